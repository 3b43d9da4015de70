//! Shared by the commands that do not serve, which load once and print.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

use crate::{
    app::{Builder, Error, Wharf},
    base::failed::{OrFailed, failed},
    config::Config,
};

/// The only place that writes to stdout outside the stdio transport.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").context("stdout is closed").or_failed()
}

/// Makes a wharf that has loaded every plugin of a config.
pub async fn load(config: Config) -> Result<Wharf> {
    let builder: Builder = Wharf::builder().resolved(config).roots_in_home().progress(|text| {
        // Progress is of use only to a person at a terminal.
        if std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "{text}").ok();
        }
    });
    builder.build().await.map_err(|error| match error {
        Error::Config(error) => error,
        other => failed(other),
    })
}
