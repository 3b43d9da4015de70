//! Tools for Git repositories in the folders that are open to this server. Names, arguments and answers are those of the reference git
//! server, so that prompts and settings written for it keep working.
//!
//! The plugin starts no programs: no git, and no hooks, filters or helpers that a repository or its config names.

#![expect(clippy::disallowed_methods, reason = "this plugin works on files; the sandbox limits which")]

use gix::Repository;
use wharf_sdk::{prelude::*, schemars, serde};

mod ancestry;
mod changes;
mod checkout;
mod decode;
mod edit;
mod history;
mod identity;
mod ignored;
mod module;
mod names;
mod open;
mod patch;
mod refs;
mod revision;
mod side;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod unrun;
mod untracked;
mod work;

use open::Place;
use revision::Compared;
use work::{Unknown, Work, compared, of_work};

wharf_sdk::instructions!(
    "The tools of `git` take the path of the repository; commits are by the person who runs this server."
);

wants! {
    roots = { access = "read-write", why = "repositories in them; with read alone, it can look and change nothing" },
    settings = [
        { key = "name", type = "string", why = "whom commits are by, in place of the repository's user.name" },
        { key = "email", type = "string", why = "their address, in place of the repository's user.email" },
    ],
}

/// The maximum length of an answer in bytes, within the default limit of 4 MiB.
const MAX_BYTES: usize = (4 << 20) - (64 << 10);

macro_rules! arguments {
    ($($name:ident { $($(#[$meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[serde(crate = "serde")]
        #[schemars(crate = "schemars")]
        struct $name { repo_path: String, $($(#[$meta])* $field: $ty,)* }
    )*};
}

/// Returns the default number of context lines around a change.
fn context() -> i64 {
    3
}

fn commits() -> i64 {
    10
}

arguments! {
    Here {}
    Differences {
        #[serde(default = "context")]
        context_lines: i64,
    }
    DifferencesWith {
        target: String,
        #[serde(default = "context")]
        context_lines: i64,
    }
    Commit { message: String, }
    Add {
        #[schemars(length(min = 1))]
        files: Vec<String>,
    }
    Log {
        #[serde(default = "commits")]
        max_count: i64,
        /// Start timestamp for filtering commits. Accepts: ISO 8601 format (e.g., '2024-01-15T14:30:25'), relative dates (e.g., '2 weeks ago', 'yesterday'), or absolute dates (e.g., '2024-01-15', 'Jan 15 2024')
        start_timestamp: Option<String>,
        /// End timestamp for filtering commits. Accepts: ISO 8601 format (e.g., '2024-01-15T14:30:25'), relative dates (e.g., '2 weeks ago', 'yesterday'), or absolute dates (e.g., '2024-01-15', 'Jan 15 2024')
        end_timestamp: Option<String>,
    }
    CreateBranch { branch_name: String, base_branch: Option<String>, }
    Checkout { branch_name: String, }
    Show { revision: String, }
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "serde")]
#[schemars(crate = "schemars")]
struct Branches {
    /// The path to the Git repository.
    repo_path: String,
    /// Whether to list local branches ('local'), remote branches ('remote') or all branches('all').
    branch_type: String,
    /// The commit sha that branch should contain. Do not pass anything to this param if no commit sha is specified
    contains: Option<String>,
    /// The commit sha that branch should NOT contain. Do not pass anything to this param if no commit sha is specified
    not_contains: Option<String>,
}

fn place(path: &str) -> Result<Place> {
    open::place(path, open::Open { folders: host::directories(), config: host::config() })
}

/// Returns a patch with a title line before it, without the end of the last line. Files in conflict are only named, and so are those that
/// could not be compared. `index` is the index if it is one of the sides, or if the work tree is.
fn differences(
    title: &str,
    repo: &Repository,
    index: Option<&gix::index::State>,
    sides: [side::Side; 2],
    context: i64,
    unknown: &Unknown,
) -> Result<String> {
    let context = context
        .try_into()
        .map_err(|_| Error::failed(format!("context_lines must be a number of lines, not {context}")))?;
    let [mut old, mut new] = compared(sides, unknown);
    let mut text = String::new();
    for path in index.map(status::conflicts).unwrap_or_default().keys() {
        old.remove(path);
        new.remove(path);
        text.push_str(&format!("* Unmerged path {path}\n"));
    }
    // Git does not look for untracked files of submodules here.
    new.values_mut().for_each(|file| file.dirty.untracked = false);
    text.push_str(&patch::text(repo, &changes::between(repo, &old, &new)?, context)?);
    text.push_str(&unknown.section("Not compared", "".into()));
    told(format!("{title}:\n{}", text.strip_suffix('\n').unwrap_or(&text)))
}

/// Returns the files of the work tree, and what could not be looked at.
fn work_tree(place: &Place, index: &gix::index::State) -> Result<(side::Side, Unknown)> {
    let mut unknown = Unknown::default();
    let work = of_work(&mut Work::new(&place.repo, &place.open, 0)?, index, &mut unknown)?;
    Ok((work, unknown))
}

fn told(text: String) -> Result<String> {
    if text.len() > MAX_BYTES {
        let mib = text.len() >> 20;
        return Err(Error::failed(format!("the result of {mib} MiB is too large for one answer; ask for less")));
    }
    Ok(text)
}

struct Git;

#[tools]
impl Git {
    /// Shows the working tree status
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_status(args: Here) -> Result<String> {
        told(format!("Repository status:\n{}", status::text(&place(&args.repo_path)?)?))
    }

    /// Shows changes in the working directory that are not yet staged
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_diff_unstaged(args: Differences) -> Result<String> {
        let place = place(&args.repo_path)?;
        let index = side::index(&place.repo)?;
        let (work, unknown) = work_tree(&place, &index)?;
        let sides = [side::of_index_beside(&index, &work), work];
        differences("Unstaged changes", &place.repo, Some(&index), sides, args.context_lines, &unknown)
    }

    /// Shows changes that are staged for commit
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_diff_staged(args: Differences) -> Result<String> {
        let repo = place(&args.repo_path)?.repo;
        let index = side::index(&repo)?;
        let sides = [side::of_head(&repo)?, side::of_index(&index)];
        differences("Staged changes", &repo, Some(&index), sides, args.context_lines, &Unknown::default())
    }

    /// Shows differences between branches or commits
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_diff(args: DifferencesWith) -> Result<String> {
        let place = place(&args.repo_path)?;
        let repo = &place.repo;
        let title = format!("Diff with {}", args.target);
        match revision::compared(repo, &args.target)? {
            Compared::WithWork(tree) => {
                let index = side::index(repo)?;
                let (work, unknown) = work_tree(&place, &index)?;
                let sides = [side::of_tree(repo, Some(tree))?, work];
                differences(&title, repo, Some(&index), sides, args.context_lines, &unknown)
            }
            Compared::Trees(old, new) => {
                let sides = [side::of_tree(repo, old)?, side::of_tree(repo, Some(new))?];
                differences(&title, repo, None, sides, args.context_lines, &Unknown::default())
            }
        }
    }

    /// Records changes to the repository
    #[tool(read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn git_commit(args: Commit) -> Result<String> {
        let repo = place(&args.repo_path)?.repo;
        edit::commit(&repo, &args.message, &identity::author(&repo, &host::config())?)
    }

    /// Adds file contents to the staging area
    #[tool(read_only = false, destructive = false, idempotent, open_world = false)]
    fn git_add(args: Add) -> Result<String> {
        edit::add(&place(&args.repo_path)?, &args.files)
    }

    /// Unstages all staged changes
    #[tool(read_only = false, destructive, idempotent, open_world = false)]
    fn git_reset(args: Here) -> Result<&'static str> {
        edit::reset(&place(&args.repo_path)?.repo)
    }

    /// Shows the commit logs
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_log(args: Log) -> Result<String> {
        let repo = place(&args.repo_path)?.repo;
        told(history::log(&repo, args.max_count, args.start_timestamp.as_deref(), args.end_timestamp.as_deref())?)
    }

    /// Creates a new branch from an optional base branch
    #[tool(read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn git_create_branch(args: CreateBranch) -> Result<String> {
        let repo = place(&args.repo_path)?.repo;
        let author = identity::author(&repo, &host::config())?;
        edit::create_branch(&repo, &args.branch_name, args.base_branch.as_deref(), &author)
    }

    /// Switches branches
    #[tool(read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn git_checkout(args: Checkout) -> Result<String> {
        let place = place(&args.repo_path)?;
        checkout::checkout(&place, &args.branch_name, &identity::author(&place.repo, &host::config())?)
    }

    /// Shows the contents of a commit, or of a file or directory given as <revision>:<path>
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_show(args: Show) -> Result<String> {
        told(history::show(&place(&args.repo_path)?.repo, &args.revision)?)
    }

    /// List Git branches
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn git_branch(args: Branches) -> Result<String> {
        let repo = place(&args.repo_path)?.repo;
        history::branches(&repo, &args.branch_type, args.contains.as_deref(), args.not_contains.as_deref())
    }
}
