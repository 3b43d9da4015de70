//! The output of `git status`.

use std::collections::BTreeMap;

use gix::{
    Repository,
    bstr::{BStr, BString, ByteSlice},
    dir::walk::EmissionMode,
};
use wharf_sdk::Result;

use crate::{
    ancestry::Ancestry,
    changes::{self, Change},
    module::Dirty,
    open::Place,
    side::{self, MODULE, shown},
    state::{self, Changed, State},
    untracked::untracked,
    work::{Unknown, Work, compared, of_work},
};

/// Returns the status in git's long format. Paths are relative to the folder that was named.
pub fn text(place: &Place) -> Result<String> {
    let (repo, folder) = (&place.repo, place.folder.as_bstr());
    let index = side::index(repo)?;
    let mut unknown = Unknown::default();
    let head = side::head(repo)?;
    let conflicts = conflicts(&index);
    let work = of_work(&mut Work::new(repo, &place.open, 0)?, &index, &mut unknown)?;
    let (kept, index_side) = (side::of_head(repo)?, side::of_index(&index));
    let fine = |change: &Change| !conflicts.contains_key(change.path());
    let staged: Vec<Change> = changes::between(repo, &kept, &index_side)?.into_iter().filter(fine).collect();
    let [before, work] = compared([side::of_index_beside(&index, &work), work], &unknown);
    let unstaged: Vec<Change> = changes::plain(&before, &work).into_iter().filter(fine).collect();
    let untracked = untracked(repo, &place.open, &index, EmissionMode::CollapseDirectory, &mut unknown)?;

    let state = State::of(repo)?;
    let mut text = String::new();
    match (repo.head_name()?, state.onto()) {
        (Some(name), _) => {
            text.push_str(&format!("On branch {}\n", name.shorten()));
            if head.is_some() {
                text.push_str(&upstream(repo, &name)?);
            }
        }
        (None, Some(onto)) => text.push_str(&format!("{onto}\n")),
        (None, None) => text.push_str(&format!("{}\n", state::detached(repo)?)),
    }
    let changed = Changed { unmerged: !conflicts.is_empty(), in_work: !unstaged.is_empty() || !conflicts.is_empty() };
    text.push_str(&state.text(repo, &index, changed)?);
    if head.is_none() {
        text.push_str("\nNo commits yet\n\n");
    }
    let unstage = match head {
        // During a merge or a cherry-pick, unstaging would lose a part of it.
        _ if state.is_joining() => "",
        Some(_) => "  (use \"git restore --staged <file>...\" to unstage)\n",
        None => "  (use \"git rm --cached <file>...\" to unstage)\n",
    };
    if !staged.is_empty() {
        text.push_str("Changes to be committed:\n");
        text.push_str(unstage);
        list(&mut text, &joined(staged.clone()), folder, false);
    }
    if !conflicts.is_empty() {
        text.push_str("Unmerged paths:\n");
        text.push_str(unstage);
        text.push_str(resolve(&conflicts));
        for (path, stages) in &conflicts {
            text.push_str(&format!("\t{:<17}{}\n", conflict(*stages), named(path, folder)));
        }
        text.push('\n');
    }
    if !unstaged.is_empty() {
        let gone = unstaged.iter().any(|change| change.new.is_none());
        let dirty = |change: &Change| change.new.as_ref().is_some_and(|(_, file)| file.dirty != Dirty::default());
        text.push_str("Changes not staged for commit:\n");
        text.push_str(&format!(
            "  (use \"git add{} <file>...\" to update what will be committed)\n",
            if gone { "/rm" } else { "" }
        ));
        text.push_str("  (use \"git restore <file>...\" to discard changes in working directory)\n");
        if unstaged.iter().any(dirty) {
            text.push_str("  (commit or discard the untracked or modified content in submodules)\n");
        }
        list(&mut text, &unstaged, folder, true);
    }
    if !untracked.is_empty() {
        text.push_str("Untracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n");
        for path in &untracked {
            text.push_str(&format!("\t{}\n", named(path, folder)));
        }
        text.push('\n');
    }
    let missing = unknown.section("Not compared", folder);
    if !missing.is_empty() {
        text.push_str(&format!("{missing}\n"));
    }
    // A merge whose conflicts are resolved can be committed even if nothing differs.
    if staged.is_empty() && !(state.merging && conflicts.is_empty()) {
        text.push_str(if !unstaged.is_empty() || !conflicts.is_empty() {
            "no changes added to commit (use \"git add\" and/or \"git commit -a\")\n"
        } else if !untracked.is_empty() {
            "nothing added to commit but untracked files present (use \"git add\" to track)\n"
        } else if head.is_none() {
            "nothing to commit (create/copy files and use \"git add\" to track)\n"
        } else if missing.is_empty() {
            "nothing to commit, working tree clean\n"
        } else {
            "nothing to commit; what was compared is unchanged\n"
        });
    }
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

fn named(path: &BString, folder: &BStr) -> String {
    shown(side::relative(folder, path.as_bstr()).as_bstr())
}

/// Returns the hint that says how to mark conflicts as resolved.
fn resolve(conflicts: &BTreeMap<BString, u8>) -> &'static str {
    let has = |stages: &[u8]| conflicts.values().any(|found| stages.contains(found));
    let (both_deleted, one_deleted, others) = (has(&[1]), has(&[3, 5]), has(&[2, 4, 6, 7]));
    match (both_deleted, one_deleted, others) {
        (false, false, _) => "  (use \"git add <file>...\" to mark resolution)\n",
        (true, false, false) => "  (use \"git rm <file>...\" to mark resolution)\n",
        _ => "  (use \"git add/rm <file>...\" as appropriate to mark resolution)\n",
    }
}

/// Joins the two changes of a file whose type changed into one.
fn joined(changes: Vec<Change>) -> Vec<Change> {
    let mut joined: Vec<Change> = Vec::new();
    for change in changes {
        match joined.last_mut() {
            Some(last) if last.new.is_none() && change.old.is_none() && last.path() == change.path() => {
                last.new = change.new;
            }
            _ => joined.push(change),
        }
    }
    joined
}

/// Lists changes. Those of the work tree say what changed in a submodule.
fn list(text: &mut String, changes: &[Change], folder: &BStr, in_work: bool) {
    for change in changes {
        let kind = |file: &Option<(BString, side::File)>| file.as_ref().map(|(_, file)| file.mode & 0o170_000);
        let what = match (&change.old, &change.new, change.similar) {
            (Some(_), Some(_), Some(_)) => "renamed:",
            (None, ..) => "new file:",
            (_, None, _) => "deleted:",
            _ if kind(&change.old) != kind(&change.new) => "typechange:",
            _ => "modified:",
        };
        let path = named(change.path(), folder);
        let from = match (&change.old, change.similar) {
            (Some((from, _)), Some(_)) => format!("{} -> ", named(from, folder)),
            _ => String::new(),
        };
        text.push_str(&format!("\t{what:<12}{from}{path}{}\n", if in_work { inside(change) } else { String::new() }));
    }
    text.push('\n');
}

/// Says what changed in a submodule.
fn inside(change: &Change) -> String {
    let (Some((_, old)), Some((_, new))) = (&change.old, &change.new) else { return String::new() };
    if old.mode != MODULE || new.mode != MODULE {
        return String::new();
    }
    let kinds = [
        (old.id != new.id, "new commits"),
        (new.dirty.content, "modified content"),
        (new.dirty.untracked, "untracked content"),
    ];
    let kinds: Vec<&str> = kinds.into_iter().filter(|(has, _)| *has).map(|(_, words)| words).collect();
    format!(" ({})", kinds.join(", "))
}

/// Returns the paths in conflict, with a bit for each existing version: 1 for the common one, 2 for ours, 4 for theirs.
pub fn conflicts(index: &gix::index::State) -> BTreeMap<BString, u8> {
    let mut conflicts = BTreeMap::new();
    for entry in index.entries().iter().filter(|entry| entry.stage_raw() > 0) {
        *conflicts.entry(entry.path(index).to_owned()).or_default() |= 1 << (entry.stage_raw() - 1);
    }
    conflicts
}

fn conflict(stages: u8) -> &'static str {
    match stages {
        1 => "both deleted:",
        2 => "added by us:",
        4 => "added by them:",
        3 => "deleted by them:",
        5 => "deleted by us:",
        6 => "both added:",
        _ => "both modified:",
    }
}

/// Compares the branch with its upstream branch.
fn upstream(repo: &Repository, name: &gix::refs::FullName) -> Result<String> {
    let config = repo.config_snapshot();
    let of = |key: &str| config.string(&format!("branch.{}.{key}", name.shorten())).map(|value| value.to_string());
    let (Some(remote), Some(merge)) = (of("remote"), of("merge")) else { return Ok(String::new()) };
    let merge = merge.strip_prefix("refs/heads/").unwrap_or(&merge);
    let (other, full) = match remote.as_str() {
        "." => (merge.to_owned(), format!("refs/heads/{merge}")),
        remote => (format!("{remote}/{merge}"), format!("refs/remotes/{remote}/{merge}")),
    };
    let (Some(own), Some(mut theirs)) = (side::head(repo)?, repo.try_find_reference(full.as_str())?) else {
        return Ok(format!(
            "Your branch is based on '{other}', but the upstream is gone.\n  (use \"git branch --unset-upstream\" to fixup)\n\n"
        ));
    };
    let theirs = theirs.peel_to_id()?.detach();
    let (ahead, behind) = match Ancestry::new(repo).meeting(own, theirs) {
        Ok(meeting) => (meeting.ahead, meeting.behind),
        // The rest of the status is known.
        Err(error) => return Ok(format!("Not compared with '{other}': {}\n\n", crate::open::words(error))),
    };
    let commits = |many: usize| format!("{many} commit{}", if many == 1 { "" } else { "s" });
    Ok(match (ahead, behind) {
        (0, 0) => format!("Your branch is up to date with '{other}'.\n\n"),
        (ahead, 0) => format!(
            "Your branch is ahead of '{other}' by {}.\n  (use \"git push\" to publish your local commits)\n\n",
            commits(ahead)
        ),
        (0, behind) => format!(
            "Your branch is behind '{other}' by {}, and can be fast-forwarded.\n  (use \"git pull\" to update your local branch)\n\n",
            commits(behind)
        ),
        (ahead, behind) => format!(
            "Your branch and '{other}' have diverged,\nand have {ahead} and {behind} different commits each, respectively.\n  \
             (use \"git pull\" if you want to integrate the remote branch with yours)\n\n"
        ),
    })
}
