//! Functions for the commands that do not serve: load a config once, and print.

use std::{
    fmt,
    io::{ErrorKind, IsTerminal, Write},
    sync::Arc,
};

use anyhow::{Context, Result, anyhow};

use super::log;
use crate::authoring::existing::detached::Builds;
use wharf_app::operator::{Operator, Setup};
use wharf_base::failed::{OrFailed, failed};
use wharf_config::{config::Config, lock::Surface};
use wharf_plugins::plugins::{making::Making, snapshot::Serving, status::Status};

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
    let making = Making::by(Builds::new(log::options()));
    let setup =
        Setup { resolved: Some(config), roots_in_home: true, making, progress: Some(progress), ..Setup::default() };
    Operator::load(setup).await
}

/// Loads every plugin of a config only to look at it: no call is made, and another process may write the audit log.
pub async fn load_to_look(mut config: Config) -> Result<Operator> {
    Arc::make_mut(&mut config.startup).audit = None;
    load(config).await
}

/// Loads one plugin of a config only to look at it, and fails if it would not be served. The other plugins and their secrets do not
/// matter.
pub async fn load_only(mut config: Config, id: &str) -> Result<Operator> {
    config.plugins.retain(|plugin| plugin.id == id);
    config.plugin_dir = None;
    let operator = load_to_look(config).await?;
    for plugin in operator.wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
            return Err(failed(anyhow!("{id} would not be served ({}): {}", problem.stage, problem.text)));
        }
    }
    Ok(operator)
}

/// What a plugin offers, as it would be served with its config.
pub struct Look {
    pub surface: Surface,
    pub serving: Option<Serving>,
}

/// Loads one plugin of a config to look at it, whether its surface is accepted or not.
pub async fn look(mut config: Config, id: &str) -> Result<Look> {
    for plugin in &mut config.plugins {
        Arc::make_mut(plugin).lock = None;
    }
    let operator = load_only(config, id).await?;
    let surface = operator.surface(id).await.map_err(anyhow::Error::msg).or_failed()?;
    Ok(Look { surface, serving: operator.wharf.plugins().into_iter().find_map(|plugin| plugin.serving) })
}
