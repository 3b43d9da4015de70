//! What a text names: a commit, tree, blob or tag, or the two sides of a comparison.

use gix::{
    ObjectId, Repository,
    bstr::{BStr, ByteSlice},
    objs::Kind,
    revision::plumbing::Spec,
};
use wharf_sdk::{Error, Result};

use crate::{
    open,
    side::{self, MODULE, object, shown},
};

/// Returns the commit, tree, blob or tag that a text names.
pub fn revision<'a>(repo: &'a Repository, text: &str) -> Result<gix::Id<'a>> {
    begin(text)?;
    let missing = match repo.rev_parse_single(text.as_bytes().as_bstr()) {
        Ok(id) => return Ok(id),
        Err(error) => open::reasons(&error),
    };
    if text.contains("..") {
        return Err(Error::failed(format!("'{text}' names a range, and this takes one revision")));
    }
    Err(unknown(repo, text, &missing))
}

/// Returns the object that a text names.
pub fn named<'a>(repo: &'a Repository, text: &str) -> Result<gix::Object<'a>> {
    object(repo, revision(repo, text)?.detach())
}

/// Returns the commit that a text names.
pub fn commit(repo: &Repository, text: &str) -> Result<ObjectId> {
    peeled(repo, revision(repo, text)?.detach(), Kind::Commit)
}

/// Returns the object of a kind that an object leads to: a tag to its commit, a commit to its tree.
pub fn peeled(repo: &Repository, id: ObjectId, kind: Kind) -> Result<ObjectId> {
    let mut at = object(repo, id)?;
    while at.kind != kind {
        let next = match at.kind {
            Kind::Tag => at.try_into_tag()?.target_id()?.detach(),
            Kind::Commit if kind == Kind::Tree => at.try_into_commit()?.tree_id()?.detach(),
            other => return Err(Error::failed(format!("the object {id} is a {other}, and a {kind} is needed"))),
        };
        at = object(repo, next)?;
    }
    Ok(at.id)
}

/// The sides of a comparison.
pub enum Compared {
    /// A tree with the work tree.
    WithWork(ObjectId),
    /// A tree with another one. `None` is the empty tree.
    Trees(Option<ObjectId>, ObjectId),
}

/// Returns what `git diff` compares for a text: `A` with the work tree, `A..B`, `A...B` from where both began to differ, `A^!`.
pub fn compared(repo: &Repository, text: &str) -> Result<Compared> {
    begin(text)?;
    let spec = match repo.rev_parse(text.as_bytes().as_bstr()) {
        Ok(spec) => spec.detach(),
        Err(error) => {
            let reason = open::reasons(&error);
            // Of a range, the side is named that is unknown.
            let sides = text.split_once("...").or_else(|| text.split_once(".."));
            let (one, other) = sides.unwrap_or((text, ""));
            for side in [one, other].into_iter().filter(|side| !side.is_empty()) {
                repo.rev_parse_single(side.as_bytes().as_bstr())
                    .map_err(|error| unknown(repo, side, &open::reasons(&error)))?;
            }
            return Err(unknown(repo, text, &reason));
        }
    };
    let tree = |id| peeled(repo, id, Kind::Tree);
    Ok(match spec {
        Spec::Include(id) => Compared::WithWork(tree(id)?),
        Spec::Range { from, to } => Compared::Trees(Some(tree(from)?), tree(to)?),
        Spec::Merge { theirs, ours } => {
            let commit = |id| peeled(repo, id, Kind::Commit);
            let base = repo
                .merge_base(commit(theirs)?, commit(ours)?)?
                .ok_or_else(|| Error::failed(format!("{text}: no merge base")))?
                .detach();
            Compared::Trees(Some(tree(base)?), tree(ours)?)
        }
        Spec::ExcludeParents(id) => {
            let commit = object(repo, peeled(repo, id, Kind::Commit)?)?.try_into_commit()?;
            let before = match *side::parents(repo, &commit)?.as_slice() {
                [] => None,
                [parent] => Some(tree(parent)?),
                _ => {
                    return Err(Error::failed(format!(
                        "'{text}' compares a merge with all of its parents at once, which this server does not; name two commits, as in A..B"
                    )));
                }
            };
            Compared::Trees(before, tree(id)?)
        }
        Spec::Exclude(_) | Spec::IncludeOnlyParents(_) => {
            return Err(Error::failed(format!("'{text}' does not name two things to compare; write A, A..B or A...B")));
        }
    })
}

/// A text that begins like an option is refused, as in the reference server.
fn begin(text: &str) -> Result<()> {
    match text.starts_with('-') {
        true => Err(Error::failed(format!("'{text}' cannot start with '-'"))),
        false => Ok(()),
    }
}

/// Says like git that a text names nothing, and why.
fn unknown(repo: &Repository, text: &str, reason: &str) -> Error {
    if let Some((of, path)) = text.split_once(':')
        && !of.is_empty()
        && repo.rev_parse_single(of.as_bytes().as_bstr()).is_ok()
    {
        let on_disk = repo.workdir().is_some_and(|work| work.join(path).exists());
        return Error::failed(match on_disk {
            true => format!("path '{path}' exists on disk, but not in '{of}'"),
            false => format!("path '{path}' does not exist in '{of}'"),
        });
    }
    let shallow = match repo.is_shallow() {
        Ok(true) => "; this clone is shallow, so it has only a part of the history",
        _ => "",
    };
    Error::failed(format!(
        "ambiguous argument '{text}': unknown revision or path not in the working tree ({reason}){shallow}{}",
        on_remotes(repo, text)
    ))
}

/// Returns a hint if a remote has a branch of this name, which git would check out.
fn on_remotes(repo: &Repository, text: &str) -> String {
    let Ok(references) = repo.references() else { return String::new() };
    let Ok(remotes) = references.prefixed("refs/remotes/") else { return String::new() };
    let name = remotes
        .filter_map(|found| found.ok())
        .map(|found| found.name().shorten().to_string())
        .find(|name| name.split_once('/').is_some_and(|(_, branch)| branch == text));
    name.map_or_else(String::new, |name| {
        format!("; {name} is a branch of a remote: git_create_branch with base_branch '{name}' makes one of it here")
    })
}

/// Returns the submodule that a text such as `HEAD:lib` names, and its commit.
pub fn submodule(repo: &Repository, text: &str) -> Result<Option<(String, ObjectId)>> {
    begin(text)?;
    let Ok(spec) = repo.rev_parse(text.as_bytes().as_bstr()) else { return Ok(None) };
    let is_module = |mode: gix::objs::tree::EntryMode| u32::from(mode.value()) == MODULE;
    let path = spec.path_and_mode().filter(|(_, mode)| is_module(*mode)).map(|(path, _): (&BStr, _)| shown(path));
    Ok(path.zip(spec.single().map(|id| id.detach())))
}
