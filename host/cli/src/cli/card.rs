//! `wharf card`: prints the server card that `wharf serve` publishes.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use serde_json::Value;

use super::load::print;
use wharf_config::config::{self, CommandLine};

pub fn run(named: Option<PathBuf>) -> Result<ExitCode> {
    let config = config::load(named.or_else(config::default_path).as_deref(), &CommandLine::default())?;
    let card =
        config.startup.card.as_ref().context("the server card is turned off; set `server_card = true` in [http]")?;
    let card: Value = serde_json::from_str(&card.card)?;
    print(&serde_json::to_string_pretty(&card)?)?;
    Ok(ExitCode::SUCCESS)
}
