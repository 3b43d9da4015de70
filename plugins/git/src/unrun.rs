//! What git would have run, and this plugin does not: hooks, and programs that sign.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use gix::{Repository, bstr::ByteSlice};

/// The hooks of a commit.
pub const OF_COMMIT: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change", "reference-transaction"];
/// The hooks of a checkout.
pub const OF_CHECKOUT: &[&str] = &["post-checkout", "post-index-change", "reference-transaction"];

/// Names the hooks that were not run, in lines that each begin with a line break.
pub fn hooks(repo: &Repository, hooks: &[&str]) -> String {
    let config = repo.config_snapshot();
    let mut text = String::new();
    let named: Vec<String> = match config.string("core.hooksPath") {
        None => present(&repo.common_dir().join("hooks"), hooks),
        Some(path) => {
            let folder = folder(repo, &path.to_str_lossy());
            match folder.as_deref().map(fs::read_dir) {
                Some(Ok(_)) => present(folder.as_deref().unwrap_or(Path::new("")), hooks),
                // A folder of the work tree that does not exist.
                Some(Err(error)) if error.kind() == ErrorKind::NotFound && is_inside(repo, folder.as_deref()) => {
                    Vec::new()
                }
                _ => {
                    text.push_str(&format!(
                        "\nHooks were not run: core.hooksPath is {path}, which this server cannot look into, so it cannot name them"
                    ));
                    Vec::new()
                }
            }
        }
    };
    if !named.is_empty() {
        text.push_str(&format!("\nHooks of the repository were not run: {}", named.join(", ")));
    }
    let configured: Vec<String> = config
        .plumbing()
        .sections_by_name("hook")
        .into_iter()
        .flatten()
        .filter(|section| {
            section.values("event").iter().any(|event| hooks.iter().any(|hook| event.as_slice() == hook.as_bytes()))
        })
        .filter_map(|section| section.header().subsection_name().map(|name| name.to_string()))
        .collect();
    if !configured.is_empty() {
        text.push_str(&format!("\nHooks of the repository's config were not run: {}", configured.join(", ")));
    }
    text
}

/// Says that a commit is not signed although the config asks for it, in a line that begins with a line break.
pub fn signing(repo: &Repository) -> &'static str {
    match repo.config_snapshot().try_boolean("commit.gpgSign") {
        Ok(None | Some(false)) => "",
        Ok(Some(true)) | Err(_) => {
            "\nThe commit is not signed: commit.gpgSign is set, but no program that signs is run here"
        }
    }
}

/// Names the files that belong to the config and cannot be read here, in a line that begins with a line break. They could name an author or
/// hooks, or ask for signatures.
pub fn includes(repo: &Repository) -> String {
    let config = repo.config_snapshot();
    let mut missed = Vec::new();
    for section in ["include", "includeIf"].iter().flat_map(|name| config.plumbing().sections_by_name(name)).flatten() {
        let condition = section.header().subsection_name().unwrap_or_default();
        for path in section.values("path") {
            let written = path.to_str_lossy().into_owned();
            let from = section.meta().path.as_deref().and_then(Path::parent).unwrap_or(repo.git_dir());
            let file = from.join(&written);
            // The home directory is not known here.
            let is_known = !written.starts_with('~') && !condition.contains_str("~");
            let is_here = file.is_file() || file.starts_with(repo.common_dir()) || is_inside(repo, Some(&file));
            if !(is_known && is_here) {
                missed.push(written);
            }
        }
    }
    match missed.is_empty() {
        true => String::new(),
        false => format!(
            "\nFiles that the repository's config includes could not be read, and what they say was not followed: {}",
            missed.join(", ")
        ),
    }
}

/// Returns the hooks that are in a folder, or may be.
fn present(folder: &Path, hooks: &[&str]) -> Vec<String> {
    hooks
        .iter()
        .filter(|hook| !matches!(folder.join(hook).try_exists(), Ok(false)))
        .map(|hook| (*hook).to_owned())
        .collect()
}

fn is_inside(repo: &Repository, folder: Option<&Path>) -> bool {
    let (Some(work), Some(folder)) = (repo.workdir(), folder) else { return false };
    crate::open::below(work, folder).is_some()
}

/// Returns the folder that core.hooksPath names; `None` if it is in the home directory, which is not known here.
fn folder(repo: &Repository, path: &str) -> Option<PathBuf> {
    match path.starts_with('~') {
        true => None,
        false => repo.workdir().map(|work| work.join(path)),
    }
}
