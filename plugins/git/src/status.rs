//! The output of `git status`.

use std::{collections::BTreeMap, fs, sync::atomic::AtomicBool};

use gix::{
    Repository,
    bstr::{BString, ByteSlice},
    dir::{entry::Status, walk::EmissionMode},
};
use wharf_sdk::Result;

use crate::{
    changes::{self, Change},
    patch::short,
    side::{self, shown},
};

/// Returns the status in git's long format.
pub fn text(repo: &Repository) -> Result<String> {
    let index = repo.index_or_empty()?;
    let mut text = String::new();
    let head = side::head(repo)?;
    match repo.head_name()? {
        Some(name) => {
            text.push_str(&format!("On branch {}\n", name.shorten()));
            if head.is_some() {
                text.push_str(&upstream(repo, &name)?);
            }
        }
        None => text.push_str(&format!("{}\n", detached(repo)?)),
    }
    let conflicts = conflicts(&index);
    let merging = repo.git_dir().join("MERGE_HEAD").exists();
    if merging {
        text.push_str(if conflicts.is_empty() {
            "All conflicts fixed but you are still merging.\n  (use \"git commit\" to conclude merge)\n\n"
        } else {
            "You have unmerged paths.\n  (fix conflicts and run \"git commit\")\n  (use \"git merge --abort\" to abort the merge)\n\n"
        });
    }
    if head.is_none() {
        text.push_str("\nNo commits yet\n\n");
    }
    let (kept, index_side, work) = (side::of_head(repo)?, side::of_index(&index), side::of_work(repo, &index)?);
    let fine = |change: &Change| !conflicts.contains_key(change.path());
    let staged: Vec<Change> = changes::between(repo, &kept, &index_side)?.into_iter().filter(fine).collect();
    let unstaged: Vec<Change> = plain(&index_side, &work).into_iter().filter(fine).collect();
    if !staged.is_empty() {
        text.push_str("Changes to be committed:\n");
        text.push_str(match head {
            // During a merge, unstaging would lose a part of the merge.
            _ if merging => "",
            Some(_) => "  (use \"git restore --staged <file>...\" to unstage)\n",
            None => "  (use \"git rm --cached <file>...\" to unstage)\n",
        });
        list(&mut text, &joined(staged.clone()));
    }
    if !conflicts.is_empty() {
        text.push_str("Unmerged paths:\n  (use \"git add <file>...\" to mark resolution)\n");
        for (path, stages) in &conflicts {
            text.push_str(&format!("\t{:<17}{}\n", conflict(*stages), shown(path.as_bstr())));
        }
        text.push('\n');
    }
    if !unstaged.is_empty() {
        let gone = unstaged.iter().any(|change| change.new.is_none());
        text.push_str("Changes not staged for commit:\n");
        text.push_str(&format!(
            "  (use \"git add{} <file>...\" to update what will be committed)\n",
            if gone { "/rm" } else { "" }
        ));
        text.push_str("  (use \"git restore <file>...\" to discard changes in working directory)\n");
        list(&mut text, &unstaged);
    }
    let untracked = untracked(repo, &index, EmissionMode::CollapseDirectory)?;
    if !untracked.is_empty() {
        text.push_str("Untracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n");
        for path in &untracked {
            text.push_str(&format!("\t{}\n", shown(path.as_bstr())));
        }
        text.push('\n');
    }
    if staged.is_empty() {
        text.push_str(if !unstaged.is_empty() || !conflicts.is_empty() {
            "no changes added to commit (use \"git add\" and/or \"git commit -a\")\n"
        } else if !untracked.is_empty() {
            "nothing added to commit but untracked files present (use \"git add\" to track)\n"
        } else if head.is_none() {
            "nothing to commit (create/copy files and use \"git add\" to track)\n"
        } else {
            "nothing to commit, working tree clean\n"
        });
    }
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// Returns the files that differ, without detection of renames.
fn plain(old: &side::Side, new: &side::Side) -> Vec<Change> {
    let differing = old.iter().filter(|(path, file)| new.get(*path) != Some(*file));
    let change = |(path, file): (&BString, &side::File)| Change {
        old: Some((path.clone(), file.clone())),
        new: new.get(path).map(|file| (path.clone(), file.clone())),
        similar: None,
    };
    differing.map(change).collect()
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

fn list(text: &mut String, changes: &[Change]) {
    for change in changes {
        let kind = |file: &Option<(BString, side::File)>| file.as_ref().map(|(_, file)| file.mode & 0o170_000);
        let what = match (&change.old, &change.new, change.similar) {
            (Some(_), Some(_), Some(_)) => "renamed:",
            (None, ..) => "new file:",
            (_, None, _) => "deleted:",
            _ if kind(&change.old) != kind(&change.new) => "typechange:",
            _ => "modified:",
        };
        let path = shown(change.path().as_bstr());
        let from = match (&change.old, change.similar) {
            (Some((from, _)), Some(_)) => format!("{} -> ", shown(from.as_bstr())),
            _ => String::new(),
        };
        text.push_str(&format!("\t{what:<12}{from}{path}\n"));
    }
    text.push('\n');
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

/// Returns the files that are neither in the index nor ignored, sorted. Folders end in a slash.
pub fn untracked(repo: &Repository, index: &gix::index::State, mode: EmissionMode) -> Result<Vec<BString>> {
    let options = repo.dirwalk_options()?.emit_untracked(mode).emit_ignored(None).emit_tracked(false);
    let mut found = gix::dir::walk::delegate::Collect::default();
    repo.dirwalk(index, None::<&str>, &AtomicBool::new(false), options, &mut found)?;
    let entries = found.into_entries_by_path().into_iter().map(|(entry, _)| entry);
    let mut paths: Vec<BString> = entries
        .filter(|entry| entry.status == Status::Untracked)
        .map(|entry| {
            let mut path = entry.rela_path;
            if entry.disk_kind.is_some_and(|kind| kind.is_dir()) {
                path.push(b'/');
            }
            path
        })
        .collect();
    paths.sort();
    Ok(paths)
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
    let count = |from, without| -> Result<usize> {
        Ok(repo.rev_walk([from]).with_hidden([without]).all()?.filter_map(Result::ok).count())
    };
    let commits = |many: usize| format!("{many} commit{}", if many == 1 { "" } else { "s" });
    Ok(match (count(own, theirs)?, count(theirs, own)?) {
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

/// Describes a detached HEAD, by the reflog of HEAD.
pub fn detached(repo: &Repository) -> Result<String> {
    let Some(head) = side::head(repo)? else { return Ok("Not currently on any branch.".to_owned()) };
    let log = fs::read_to_string(repo.git_dir().join("logs/HEAD")).unwrap_or_default();
    let last = log.lines().rev().find_map(|line| {
        let (before, said) = line.split_once('\t')?;
        let to = said.strip_prefix("checkout: moving from ")?.rsplit_once(" to ")?.1;
        Some((before.split(' ').nth(1)?.to_owned(), to.to_owned()))
    });
    let Some((id, to)) = last else { return Ok(format!("HEAD detached at {}", short(repo, head))) };
    let word = if gix::ObjectId::from_hex(id.as_bytes()).is_ok_and(|id| id == head) { "at" } else { "from" };
    let name = match gix::ObjectId::from_hex(id.as_bytes()) {
        Ok(id) if !repo.try_find_reference(to.as_str()).is_ok_and(|found| found.is_some()) => short(repo, id),
        _ => to,
    };
    Ok(format!("HEAD detached {word} {name}"))
}
