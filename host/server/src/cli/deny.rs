//! `wharf deny`: takes grants away. Nobody is asked, since to take something away is always safe.

use std::{path::Path, process::ExitCode};

use anyhow::{Result, bail, ensure};

use super::{file::File, load::print};

pub fn run(id: &str, what: &[String], config: Option<&Path>) -> Result<ExitCode> {
    let mut file = File::open(config)?;
    ensure!(file.is_there(), "{}: there is no such config file", file.path.display());
    // A config that does not load here may load elsewhere, where a variable is set. So all that counts is that it is no worse.
    let before = file.config();
    if what.is_empty() {
        ensure!(
            file.edited.deny_all(id),
            "{}: [plugins.{id}.grants] is not there, so there is nothing to take",
            file.path.display()
        );
    }
    for one in what {
        if !file.edited.deny(id, one) {
            let granted = before.as_ref().ok().and_then(|config| config.plugins.iter().find(|plugin| plugin.id == id));
            let granted = granted.map(|plugin| plugin.grants.describe()).unwrap_or_default();
            bail!(
                "{id} is not granted `{one}`, so nothing was written; granted: {}; name a kind (http, roots, dirs, env, ask) or \
                 an entry as the config has it",
                super::check::all_or_nothing(&granted)
            );
        }
    }
    let after = file.changed();
    if before.is_ok()
        && let Err(error) = &after
    {
        bail!("without that the config would be wrong, so nothing was written: {error:#}");
    }
    file.write()?;
    let left = after.ok().and_then(|config| config.plugins.iter().find(|plugin| plugin.id == id).cloned());
    if let Some(plugin) = left {
        print(&format!("granted: {}", super::check::all_or_nothing(&plugin.grants.describe())))?;
    }
    Ok(ExitCode::SUCCESS)
}
