//! What commands share that do not serve: they load once, and print.

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
};

use anyhow::{Context, Result};

use crate::{
    access::scope::Scopes,
    app,
    base::ledger::Ledger,
    config,
    plugins::{library::Library, published::Published},
};

/// The only place that writes to stdout outside the stdio transport.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").context("stdout is closed")
}

/// A library that has loaded once.
pub async fn load_once(config: Arc<config::Config>, ledger: &Arc<Ledger>) -> Result<(Published, Arc<Scopes>, Library)> {
    let (mut library, published, scopes) = app::library(&config, ledger, true, |text| {
        // Only for somebody who watches.
        if std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "{text}").ok();
        }
    })?;
    library.load().await;
    Ok((published, scopes, library))
}
