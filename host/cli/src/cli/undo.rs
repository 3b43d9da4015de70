//! `wharf undo`: lists what calls of plugins have changed in folders, and takes it back.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use wharf_undo::{ChangedCall, NotUndone, UndoStore};

use super::{arguments::Undo, load::print};
use wharf_base::text::escaped;
use wharf_config::config::undo_folder;

/// How many paths of a call are listed.
const LISTED_PATHS: usize = 5;

pub fn run(command: &Undo) -> Result<ExitCode> {
    let store = store()?;
    let all = store.all().context("cannot read what is kept of calls")?;
    let Undo { which, last, force } = command;
    let chosen: Vec<&ChangedCall> = match which {
        Some(which) => {
            let chosen: Vec<_> = all.iter().filter(|kept| kept.id == *which || kept.call.session == *which).collect();
            ensure!(!chosen.is_empty(), "there is no call or session {which}; `wharf undo` lists them");
            // Of a session, all that were not taken back yet.
            let is_session = chosen.iter().all(|kept| kept.id != *which);
            chosen.into_iter().filter(|kept| !is_session || !kept.is_undone).collect()
        }
        None if *last => {
            let kept = all.iter().find(|kept| !kept.is_undone);
            vec![kept.context("no call of the last seven days has changed anything that was not taken back")?]
        }
        None => {
            ensure!(!force, "--force takes a call or a session; `wharf undo` lists them");
            return list(&all);
        }
    };
    take_back(&store, &chosen, *force)
}

/// Returns what is kept of calls.
pub fn store() -> Result<UndoStore> {
    let folder = undo_folder().context("there is no home directory, so nothing is kept of what calls change")?;
    // What is kept is made by servers, whose config bounds it.
    Ok(UndoStore::new(folder, 0))
}

fn list(all: &[ChangedCall]) -> Result<ExitCode> {
    for kept in all.iter().rev() {
        let call = &kept.call;
        let state = match (kept.is_running, kept.is_undone) {
            (true, _) => ", still running",
            (_, true) => ", taken back",
            _ => "",
        };
        print(&escaped(&format!(
            "{}  {} ago{state}  {}: {}  session {}",
            kept.id,
            ago(call.time),
            call.plugin,
            call.name,
            call.session
        )))?;
        let paths = kept.paths();
        for path in paths.iter().take(LISTED_PATHS) {
            print(&escaped(&format!("    {}", path.display())))?;
        }
        if paths.len() > LISTED_PATHS {
            print(&format!("    and {} more", paths.len() - LISTED_PATHS))?;
        }
    }
    if all.is_empty() {
        print("no call of the last seven days has changed anything")?;
    } else {
        print("take back the last one with `wharf undo --last`, or another by its name, or all of a session")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes calls back, the last one first. Stops at the first that cannot be.
fn take_back(store: &UndoStore, chosen: &[&ChangedCall], force: bool) -> Result<ExitCode> {
    if chosen.is_empty() {
        print("everything of this session was taken back already")?;
    }
    for kept in chosen {
        let (id, call) = (&kept.id, &kept.call);
        match store.undo(kept, force) {
            Ok(done) => {
                print(&escaped(&format!("{id}, {}: {}", call.plugin, call.name)))?;
                for line in done {
                    print(&escaped(&format!("    {line}")))?;
                }
            }
            Err(NotUndone::Conflicts(conflicts)) => {
                print(&escaped(&format!("{id}, {}: {}, was not taken back:", call.plugin, call.name)))?;
                for line in conflicts {
                    print(&escaped(&format!("    {line}")))?;
                }
                print(&format!(
                    "nothing of it was changed; `wharf undo {id} --force` takes back what it can, and overwrites what has changed"
                ))?;
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error).with_context(|| format!("{id} was not taken back")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns how long ago a time was, in its largest unit.
fn ago(time: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = now.saturating_sub(time / 1_000_000);
    let step = [86_400, 3600, 60].into_iter().find(|step| seconds >= *step).unwrap_or(1);
    humantime::format_duration(Duration::from_secs(seconds - seconds % step)).to_string()
}
