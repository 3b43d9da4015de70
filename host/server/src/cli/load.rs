//! What commands share that do not serve: they load once, and print.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

use crate::{
    app::{Builder, Wharf},
    config::Config,
};

/// The only place that writes to stdout outside the stdio transport.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").context("stdout is closed")
}

/// A wharf that has loaded all there is in a config.
pub async fn load(config: Config) -> Result<Wharf> {
    let builder: Builder = Wharf::builder().resolved(config).roots_in_home().progress(|text| {
        // Only for somebody who watches.
        if std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "{text}").ok();
        }
    });
    Ok(builder.build().await?)
}
