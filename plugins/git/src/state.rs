//! What is in progress in a repository, such as a merge or a rebase, and a HEAD that is on no branch, in the words of git.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId, Repository,
    bstr::ByteSlice,
    index::{Entry, entry::Flags},
};
use wharf_sdk::{Error, Result};

use crate::{patch::short, side};

/// The number of commands of a rebase that are shown before it, and after it.
const MAX_COMMANDS: usize = 2;

/// What is in progress.
pub struct State {
    pub merging: bool,
    rebase: Option<Rebase>,
    /// `git am`, and whether its patch is empty.
    am: Option<bool>,
    pick: Option<Replay>,
    revert: Option<Replay>,
    bisect: Option<Option<String>>,
    folder: PathBuf,
}

struct Rebase {
    /// Whether it has a list of commands.
    interactive: bool,
    branch: Option<String>,
    onto: Option<String>,
}

/// The commit that is applied, or nothing between two commits.
struct Replay(Option<ObjectId>);

/// What was found in the index and the work tree.
#[derive(Clone, Copy)]
pub struct Changed {
    pub unmerged: bool,
    pub in_work: bool,
}

impl State {
    pub fn of(repo: &Repository) -> Result<Self> {
        let folder = repo.git_dir().to_path_buf();
        let is = |name: &str| exists(&folder.join(name));
        let merging = is("MERGE_HEAD")?;
        let (mut am, mut rebase) = (None, None);
        if is("rebase-apply")? {
            match is("rebase-apply/applying")? {
                true => am = Some(fs::metadata(folder.join("rebase-apply/patch")).is_ok_and(|patch| patch.len() == 0)),
                false => rebase = Some(Rebase::of(repo, "rebase-apply", false)?),
            }
        } else if is("rebase-merge")? {
            rebase = Some(Rebase::of(repo, "rebase-merge", is("rebase-merge/interactive")?)?);
        }
        let commit = |name: &str| -> Result<Option<Replay>> {
            let id = line(&folder.join(name))?.and_then(|text| ObjectId::from_hex(text.as_bytes()).ok());
            Ok(id.map(|id| Replay(Some(id))))
        };
        let mut pick = if merging || rebase.is_some() || am.is_some() { None } else { commit("CHERRY_PICK_HEAD")? };
        let mut revert = commit("REVERT_HEAD")?;
        let todo = text(&folder.join("sequencer/todo"))?.unwrap_or_default();
        match todo.split_whitespace().next() {
            Some("pick" | "p") => pick = pick.or(Some(Replay(None))),
            Some("revert") => revert = revert.or(Some(Replay(None))),
            _ => {}
        }
        let bisect = is("BISECT_LOG")?.then(|| branch(repo, &folder.join("BISECT_START"))).transpose()?;
        Ok(Self { merging, rebase, am, pick, revert, bisect, folder })
    }

    /// Whether the next commit joins or repeats other commits.
    pub fn is_joining(&self) -> bool {
        self.merging || self.pick.as_ref().is_some_and(|pick| pick.0.is_some())
    }

    /// Returns the line that stands in the place of the branch during a rebase.
    pub fn onto(&self) -> Option<String> {
        let rebase = self.rebase.as_ref()?;
        let kind = if rebase.interactive { "interactive rebase" } else { "rebase" };
        Some(format!("{kind} in progress; onto {}", rebase.onto.as_deref().unwrap_or("(null)")))
    }

    /// Returns how `git branch` describes a HEAD that is on no branch.
    pub fn no_branch(&self, repo: &Repository) -> Result<String> {
        if let Some(rebase) = &self.rebase {
            return Ok(match &rebase.branch {
                Some(branch) => format!("(no branch, rebasing {branch})"),
                None => format!("(no branch, rebasing detached HEAD {})", last_checkout(repo)?.1),
            });
        }
        match &self.bisect {
            Some(from) => Ok(format!("(no branch, bisect started on {})", from.as_deref().unwrap_or("(null)"))),
            None => Ok(format!("({})", detached(repo)?)),
        }
    }

    /// Returns the part of the status that tells what is in progress.
    pub fn text(&self, repo: &Repository, index: &gix::index::State, changed: Changed) -> Result<String> {
        let mut text = String::new();
        if self.merging {
            if let Some(rebase) = self.rebase.as_ref().filter(|rebase| rebase.interactive) {
                text.push_str(&self.commands(repo, rebase)?);
                text.push('\n');
            }
            text.push_str(if changed.unmerged {
                "You have unmerged paths.\n  (fix conflicts and run \"git commit\")\n  (use \"git merge --abort\" to abort the merge)\n\n"
            } else {
                "All conflicts fixed but you are still merging.\n  (use \"git commit\" to conclude merge)\n\n"
            });
        } else if let Some(empty) = self.am {
            text.push_str("You are in the middle of an am session.\n");
            text.push_str(match empty {
                true => {
                    "The current patch is empty.\n  (use \"git am --skip\" to skip this patch)\n  \
                     (use \"git am --allow-empty\" to record this patch as an empty commit)\n"
                }
                false => {
                    "  (fix conflicts and then run \"git am --continue\")\n  (use \"git am --skip\" to skip this patch)\n"
                }
            });
            text.push_str("  (use \"git am --abort\" to restore the original branch)\n\n");
        } else if let Some(rebase) = &self.rebase {
            text.push_str(&self.commands(repo, rebase)?);
            text.push_str(&self.rebasing(repo, rebase, changed)?);
        } else if let Some(pick) = &self.pick {
            text.push_str(&replaying(repo, pick, ["Cherry-pick", "cherry-picking", "cherry-pick"], changed));
        } else if let Some(revert) = &self.revert {
            text.push_str(&replaying(repo, revert, ["Revert", "reverting", "revert"], changed));
        }
        if let Some(from) = &self.bisect {
            text.push_str("You are currently bisecting");
            if let Some(from) = from {
                text.push_str(&format!(", started from branch '{from}'"));
            }
            text.push_str(".\n  (use \"git bisect reset\" to get back to the original branch)\n\n");
        }
        let all = index.entries().len();
        if repo.config_snapshot().boolean("core.sparseCheckout").unwrap_or(false) && all > 0 {
            let work = repo.workdir().unwrap_or(Path::new(""));
            let is_there =
                |entry: &Entry| work.join(entry.path(index).to_str_lossy().as_ref()).symlink_metadata().is_ok();
            let left_out = index.entries().iter().filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
            let (there, away): (Vec<&Entry>, Vec<&Entry>) = left_out.partition(|entry| is_there(entry));
            let skipped = away.len();
            let present = 100 - skipped.saturating_mul(100) / all;
            // Git does not count the files behind the folders of a sparse index.
            text.push_str(&match there.is_empty() && repo.config_snapshot().boolean("index.sparse").unwrap_or(false) {
                true => "You are in a sparse checkout.\n\n".to_owned(),
                false => format!("You are in a sparse checkout with {present}% of tracked files present.\n\n"),
            });
        }
        Ok(text)
    }

    /// Lists the last commands of a rebase and the next ones.
    fn commands(&self, repo: &Repository, rebase: &Rebase) -> Result<String> {
        if !rebase.interactive {
            return Ok(String::new());
        }
        let of = |name: &str| -> Result<Vec<String>> {
            let text = text(&self.folder.join("rebase-merge").join(name))?.unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            Ok(lines.map(|line| command(repo, line)).collect())
        };
        let (done, next) = (of("done")?, of("git-rebase-todo")?);
        let several = |count: usize| if count == 1 { "" } else { "s" };
        let mut text = String::new();
        if done.is_empty() {
            text.push_str("No commands done.\n");
        } else {
            let count = done.len();
            let s = several(count);
            text.push_str(&format!("Last command{s} done ({count} command{s} done):\n"));
            for line in done.iter().skip(count.saturating_sub(MAX_COMMANDS)) {
                text.push_str(&format!("   {line}\n"));
            }
            if count > MAX_COMMANDS {
                text.push_str("  (see more in file .git/rebase-merge/done)\n");
            }
        }
        if next.is_empty() {
            text.push_str("No commands remaining.\n");
        } else {
            let count = next.len();
            let s = several(count);
            text.push_str(&format!("Next command{s} to do ({count} remaining command{s}):\n"));
            for line in next.iter().take(MAX_COMMANDS) {
                text.push_str(&format!("   {line}\n"));
            }
            text.push_str("  (use \"git rebase --edit-todo\" to view and edit)\n");
        }
        Ok(text)
    }

    fn rebasing(&self, repo: &Repository, rebase: &Rebase, changed: Changed) -> Result<String> {
        let (while_on, during) = match (&rebase.branch, &rebase.onto) {
            (Some(branch), Some(onto)) => {
                (format!(" branch '{branch}' on '{onto}'"), format!(" while rebasing branch '{branch}' on '{onto}'"))
            }
            _ => (String::new(), " during a rebase".to_owned()),
        };
        Ok(if changed.unmerged {
            format!(
                "You are currently rebasing{while_on}.\n  (fix conflicts and then run \"git rebase --continue\")\n  \
                 (use \"git rebase --skip\" to skip this patch)\n  (use \"git rebase --abort\" to check out the original branch)\n\n"
            )
        } else if !rebase.interactive || exists(&self.folder.join("MERGE_MSG"))? {
            format!("You are currently rebasing{while_on}.\n  (all conflicts fixed: run \"git rebase --continue\")\n\n")
        } else if changed.in_work && self.is_splitting(repo)? {
            format!(
                "You are currently splitting a commit{during}.\n  \
                 (Once your working directory is clean, run \"git rebase --continue\")\n\n"
            )
        } else {
            format!(
                "You are currently editing a commit{during}.\n  (use \"git commit --amend\" to amend the current commit)\n  \
                 (use \"git rebase --continue\" once you are satisfied with your changes)\n\n"
            )
        })
    }

    /// Whether the commit that is edited was taken back, to be made in several parts.
    fn is_splitting(&self, repo: &Repository) -> Result<bool> {
        let of = |name: &str| line(&self.folder.join(name));
        let (Some(amended), Some(original)) = (of("rebase-merge/amend")?, of("rebase-merge/orig-head")?) else {
            return Ok(false);
        };
        let head = side::head(repo)?.map(|id| id.to_string());
        match amended == original {
            true => Ok(head != Some(amended)),
            false => Ok(of("ORIG_HEAD")?.is_some_and(|before| before != original)),
        }
    }
}

impl Rebase {
    fn of(repo: &Repository, folder: &str, interactive: bool) -> Result<Self> {
        let folder = repo.git_dir().join(folder);
        Ok(Self {
            interactive,
            branch: branch(repo, &folder.join("head-name"))?,
            onto: branch(repo, &folder.join("onto"))?,
        })
    }
}

fn replaying(repo: &Repository, replay: &Replay, [noun, doing, verb]: [&str; 3], changed: Changed) -> String {
    let (what, now) = match replay.0 {
        Some(id) => (format!("You are currently {doing} commit {}.", short(repo, id)), "all conflicts fixed: run"),
        None => (format!("{noun} currently in progress."), "run"),
    };
    let go_on = match (changed.unmerged, replay.0) {
        (true, _) => format!("fix conflicts and run \"git {verb} --continue\""),
        (false, Some(_)) => format!("{now} \"git {verb} --continue\""),
        (false, None) => format!("{now} \"git {verb} --continue\" to continue"),
    };
    format!(
        "{what}\n  ({go_on})\n  (use \"git {verb} --skip\" to skip this patch)\n  \
         (use \"git {verb} --abort\" to cancel the {verb} operation)\n\n"
    )
}

/// Abbreviates the id in a command of a rebase.
fn command(repo: &Repository, line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (Some(verb), Some(id)) = (words.next(), words.next()) else { return line.to_owned() };
    if matches!(verb, "exec" | "x" | "label" | "l") {
        return line.to_owned();
    }
    let Ok(id) = ObjectId::from_hex(id.as_bytes()) else { return line.to_owned() };
    let rest = words.next().map(|rest| format!(" {rest}")).unwrap_or_default();
    format!("{verb} {}{rest}", short(repo, id))
}

/// Returns the branch that a file names; an id is abbreviated.
fn branch(repo: &Repository, file: &Path) -> Result<Option<String>> {
    let Some(name) = line(file)? else { return Ok(None) };
    if let Some(branch) = name.strip_prefix("refs/heads/") {
        return Ok(Some(branch.to_owned()));
    }
    Ok(match ObjectId::from_hex(name.as_bytes()) {
        Ok(id) => Some(short(repo, id)),
        Err(_) if name == "detached HEAD" => None,
        Err(_) => Some(name),
    })
}

pub fn exists(file: &Path) -> Result<bool> {
    file.try_exists().map_err(|error| Error::failed(format!("{} cannot be looked at: {error}", file.display())))
}

/// Returns the text of a file; `None` if there is no such file.
pub fn text(file: &Path) -> Result<Option<String>> {
    match fs::read(file) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::failed(format!("{} cannot be read: {error}", file.display()))),
    }
}

fn line(file: &Path) -> Result<Option<String>> {
    Ok(text(file)?
        .and_then(|text| text.lines().next().map(|line| line.trim().to_owned()))
        .filter(|line| !line.is_empty()))
}

/// Describes a detached HEAD, by the reflog of HEAD.
pub fn detached(repo: &Repository) -> Result<String> {
    let (word, name) = last_checkout(repo)?;
    Ok(match word {
        "" => name,
        word => format!("HEAD detached {word} {name}"),
    })
}

/// Returns what was checked out last, and whether HEAD is still `at` it or moved on `from` it.
fn last_checkout(repo: &Repository) -> Result<(&'static str, String)> {
    let Some(head) = side::head(repo)? else { return Ok(("", "Not currently on any branch.".to_owned())) };
    let log = text(&repo.git_dir().join("logs/HEAD"))?.unwrap_or_default();
    let last = log.lines().rev().find_map(|line| {
        let (before, said) = line.split_once('\t')?;
        let to = said.strip_prefix("checkout: moving from ")?.rsplit_once(" to ")?.1;
        Some((before.split(' ').nth(1)?.to_owned(), to.to_owned()))
    });
    let Some((id, to)) = last else { return Ok(("at", short(repo, head))) };
    let id = ObjectId::from_hex(id.as_bytes());
    let word = if id.as_ref().is_ok_and(|id| *id == head) { "at" } else { "from" };
    let name = match id {
        Ok(id) if !repo.try_find_reference(to.as_str()).is_ok_and(|found| found.is_some()) => short(repo, id),
        _ => to,
    };
    Ok((word, name))
}
