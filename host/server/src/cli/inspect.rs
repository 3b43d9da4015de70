//! `wharf inspect`: what a plugin is, without granting it anything.

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::Result;

use super::load::{load_once, print};
use crate::{
    access::grants::could_use,
    base::{ledger::Ledger, text::escaped},
    config::{self, CommandLine},
    plugins::status::Status,
};

pub async fn run(plugin: &Path) -> Result<ExitCode> {
    let command_line = CommandLine { plugins: vec![plugin.to_owned()], ..CommandLine::default() };
    let config = Arc::new(config::load(None, &command_line)?);
    let ledger = Ledger::new(config.startup.total_host_memory_bytes);
    let (published, _, _library) = load_once(config, &ledger).await?;
    for (id, status) in published.status() {
        if let Status::Failed { problem, .. } = status {
            print(&format!("{id}: FAILED ({}): {}", problem.stage, problem.text))?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let catalog = published.catalog.borrow().clone();
    for served in catalog.served() {
        let code = served.plugin.code();
        print(&format!("sha256 {}", code.digest_hex()))?;
        let uses = could_use(code.imports());
        print(&format!(
            "could use, if granted: {}",
            if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") }
        ))?;
        for tool in &served.offer.tools {
            let first_line = tool.published.description.lines().next().unwrap_or_default();
            print(&format!("tool {}: {}", tool.own_name, escaped(first_line)))?;
        }
        for resource in &served.offer.resources {
            print(&format!("resource {}: {}", escaped(&resource.uri), escaped(&resource.name)))?;
        }
        for template in &served.offer.templates {
            print(&format!(
                "template {}: {}",
                escaped(&template.published.uri_template),
                escaped(&template.published.name)
            ))?;
        }
        for prompt in &served.offer.prompts {
            print(&format!(
                "prompt {}: {}",
                escaped(&prompt.own_name),
                escaped(prompt.published.description.as_deref().unwrap_or(""))
            ))?;
        }
        if code.exports().completions {
            print("completions")?;
        }
        print("imports:")?;
        for import in code.imports() {
            print(&format!("  {import}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
