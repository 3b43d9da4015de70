//! `wharf approvals`: lists and revokes permanent approvals, which are valid until they are revoked.

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::{arguments::Approvals, load::print};
use wharf_base::text::escaped;
use wharf_config::config::approvals;
use wharf_plugins::approvals::kept::{Kept, RememberedApproval};

pub fn run(command: &Approvals) -> Result<ExitCode> {
    let kept = Kept::new(approvals::file().context("there is no home directory, so no approvals are stored")?);
    match command {
        Approvals::List { json: true } => {
            for one in &*kept.all()? {
                print(&serde_json::to_string(one)?)?;
            }
        }
        Approvals::List { json: false } => {
            let all = kept.all()?;
            for one in &*all {
                show(one)?;
            }
            if all.is_empty() {
                print("there are no permanent approvals")?;
            }
        }
        Approvals::Revoke { ids, plugin, all } => {
            let picked = |one: &RememberedApproval| {
                *all || ids.contains(&one.id) || plugin.as_ref().is_some_and(|id| *id == one.plugin)
            };
            let gone = kept.revoke(picked)?;
            for one in &gone {
                print(&format!("revoked {} {} {}", one.id, escaped(&one.plugin), escaped(&one.name)))?;
            }
            let missing: Vec<&str> =
                ids.iter().filter(|id| gone.iter().all(|one| one.id != **id)).map(String::as_str).collect();
            if !missing.is_empty() {
                print(&format!("there is no approval {}; `wharf approvals list` shows their ids", missing.join(", ")))?;
                return Ok(ExitCode::FAILURE);
            }
            if gone.is_empty() {
                print("no approval matches, so nothing was revoked")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(one: &RememberedApproval) -> Result<()> {
    let RememberedApproval { id, time, principal, plugin, sha256, method, name, folders, http, arguments, .. } = one;
    let digest = sha256.get(..16).unwrap_or(sha256);
    print(&escaped(&format!("{id}  {name}  {method}, plugin {plugin} ({digest}), for {principal}, since {time}")))?;
    print(&escaped(&format!("              calls with {arguments}")))?;
    for line in folders.iter().chain(http) {
        print(&escaped(&format!("              {line}")))?;
    }
    Ok(())
}
