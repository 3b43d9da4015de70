//! Functions for the commands that do not serve: load a config once, and print.

use std::{
    fmt,
    io::{ErrorKind, IsTerminal, Write},
    sync::Arc,
};

use anyhow::{Context, Result};

use wharf_app::operator::{Operator, Setup};
use wharf_base::failed::OrFailed;
use wharf_config::config::Config;

/// The error of a command whose reader has closed stdout, such as `head`: it ends, and says nothing.
#[derive(Debug)]
pub struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads stdout any more")
    }
}

impl std::error::Error for Unread {}

/// Prints a line to stdout. Apart from the stdio transport, nothing else writes there.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Unread.into()),
        written => written.context("stdout cannot be written").or_failed(),
    }
}

/// Starts a wharf that has loaded every plugin of a config.
pub async fn load(config: Config) -> Result<Operator> {
    let progress: fn(&str) = |text| {
        // Progress is printed only for a person at a terminal.
        if std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "{text}").ok();
        }
    };
    Operator::load(Setup { resolved: Some(config), roots_in_home: true, progress: Some(progress), ..Setup::default() })
        .await
}

/// Loads every plugin of a config only to look at it: no call is made, and another process may write the audit log.
pub async fn load_to_look(mut config: Config) -> Result<Operator> {
    Arc::make_mut(&mut config.startup).audit = None;
    load(config).await
}

/// Loads one plugin of a config only to look at it. The other plugins and their secrets do not matter.
pub async fn load_only(mut config: Config, id: &str) -> Result<Operator> {
    config.plugins.retain(|plugin| plugin.id == id);
    config.plugin_dir = None;
    load_to_look(config).await
}
