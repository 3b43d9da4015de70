//! `wharf check`: loads everything once and says what a running wharf would say, all at once.

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::{Result, bail};

use super::load::{load_once, print};
use crate::{
    base::ledger::Ledger,
    config::{self, CommandLine, PluginConfig},
    plugins::status::{Status, Subject},
};

pub async fn run(file: Option<&Path>) -> Result<ExitCode> {
    let Some(file) = config::find(file)? else {
        let default = config::default_path().map(|path| path.display().to_string()).unwrap_or_default();
        bail!("there is no config to check: name one with -c, or write {default}");
    };
    let config = Arc::new(config::load(Some(&file), &CommandLine::default())?);
    print(&format!("config {}", file.display()))?;
    let ledger = Ledger::new(config.startup.total_host_memory_bytes);
    let (published, scopes, _library) = load_once(Arc::clone(&config), &ledger).await?;
    let catalog = published.catalog.borrow().clone();
    let mut failed = 0;
    for (subject, status) in published.status() {
        match status {
            Status::Failed { problem, .. } => {
                failed += 1;
                print(&format!("\n{subject}: FAILED ({}): {}", problem.stage, problem.text))?;
            }
            Status::Serving => {
                let served = catalog.served().iter().find(|served| subject == Subject::plugin(&served.config.id));
                let Some(served) = served else { continue };
                let offer = &served.offer;
                print(&format!(
                    "\n{subject}: ok, {} tools, {} resources, {} templates, {} prompts",
                    offer.tools.len(),
                    offer.resources.len(),
                    offer.templates.len(),
                    offer.prompts.len()
                ))?;
                print(&format!("  sha256 {}", served.plugin.code().digest_hex()))?;
                print(&format!("  granted: {}", granted(&served.config)))?;
                if served.config.reuse {
                    print("  instances: reused, by calls of the same client that may touch the same")?;
                }
                let ungranted = served.config.grants.unused(served.plugin.code().imports());
                if !ungranted.is_empty() {
                    print(&format!("  could use, not granted: {}", ungranted.join(", ")))?;
                }
                for problem in scopes.problems(&served.config.grants) {
                    print(&format!("  note: {problem}"))?;
                }
            }
        }
    }
    if published.status().is_empty() {
        print("no plugins")?;
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn granted(config: &PluginConfig) -> String {
    let all = config.grants.describe();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}
