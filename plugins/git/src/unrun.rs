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

/// Says that other files belong to the config, in a line that begins with a line break. They could name hooks, or ask for signatures.
pub fn includes(repo: &Repository) -> &'static str {
    let config = repo.config_snapshot();
    let has =
        |name: &str| config.plumbing().sections_by_name(name).is_some_and(|mut sections| sections.next().is_some());
    match has("include") || has("includeIf") {
        true => {
            "\nFiles that the repository's config includes were not read; what they say about hooks and signatures was not followed"
        }
        false => "",
    }
}

fn present(folder: &Path, hooks: &[&str]) -> Vec<String> {
    hooks.iter().filter(|hook| folder.join(hook).exists()).map(|hook| (*hook).to_owned()).collect()
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
