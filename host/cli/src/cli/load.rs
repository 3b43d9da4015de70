//! Functions for the commands that do not serve: load a config once, and print.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

use wharf_app::{Builder, Error, Wharf};
use wharf_base::failed::{OrFailed, failed};
use wharf_config::config::Config;

/// Prints a line to stdout. Apart from the stdio transport, nothing else writes there.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").context("stdout is closed").or_failed()
}

/// Builds a [`Wharf`] that has loaded every plugin of a config.
pub async fn load(config: Config) -> Result<Wharf> {
    let builder: Builder = Wharf::builder().resolved(config).roots_in_home().progress(|text| {
        // Progress is printed only for a person at a terminal.
        if std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "{text}").ok();
        }
    });
    builder.build().await.map_err(|error| match error {
        Error::Config(error) => error,
        other => failed(other),
    })
}
