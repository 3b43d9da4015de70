//! Opens a repository. All of its parts must be in folders that are open to the plugin.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use gix::{Repository, bstr::ByteSlice};
use wharf_sdk::{Directory, Error, Result};

/// Opens the repository whose work tree is at the path.
pub fn repository(path: &str, open: &[Directory]) -> Result<Repository> {
    let path = inside(path, open)?;
    if !path.is_dir() {
        return Err(Error::failed(format!("{}: there is no such directory", path.display())));
    }
    let marker = path.join(".git");
    if marker.symlink_metadata().is_err() && !path.join("HEAD").is_file() {
        return Err(Error::failed(format!("{} is not a Git repository: it has no .git", path.display())));
    }
    // A linked work tree or a submodule names the path of its repository in a file.
    if let Ok(text) = fs::read_to_string(&marker)
        && let Some(at) = text.strip_prefix("gitdir:")
    {
        held("the repository itself", &path.join(at.trim()), open)?;
    }
    // The environment and files of other users are ignored, and so are values that name programs.
    let options =
        gix::open::Options::isolated().with(gix::sec::Trust::Reduced).bail_if_untrusted(false).strict_config(false);
    let mut repo = gix::open_opts(&path, options)
        .map_err(|error| Error::failed(format!("{} cannot be opened: {}", path.display(), reasons(&error))))?;
    held("the repository itself", repo.common_dir(), open)?;
    let work = repo.workdir().map(Path::to_path_buf);
    match &work {
        Some(work) => held("its work tree", work, open)?,
        None => {
            return Err(Error::failed(format!("{} is a bare repository, without files to work with", path.display())));
        }
    }
    let alternates = repo.common_dir().join("objects/info/alternates");
    for line in fs::read(&alternates).unwrap_or_default().lines() {
        if !line.is_empty() && !line.starts_with(b"#") {
            held("a part of its objects", &repo.common_dir().join("objects").join(line.to_str_lossy().as_ref()), open)?;
        }
    }
    repo.object_cache_size_if_unset(4 << 20);
    Ok(repo)
}

/// Returns the path without `.` and `..`, if it is in an open folder. A relative path is in the first open folder.
fn inside(path: &str, open: &[Directory]) -> Result<PathBuf> {
    let Some(first) = open.first() else {
        return Err(Error::failed(
            "no directory is open to this server; the operator can open one, or the client a root",
        ));
    };
    let normal = normal(&Path::new(&first.path).join(path));
    if open.iter().any(|directory| normal.starts_with(&directory.path)) {
        return Ok(normal);
    }
    let list: Vec<&str> = open.iter().map(|directory| directory.path.as_str()).collect();
    Err(Error::failed(format!("{} lies outside of what is open to this server: {}", normal.display(), list.join(", "))))
}

/// Fails if a part of a repository is outside of the open folders.
fn held(what: &str, at: &Path, open: &[Directory]) -> Result<()> {
    let at = normal(at);
    match open.iter().any(|directory| at.starts_with(&directory.path)) {
        true => Ok(()),
        false => Err(Error::failed(format!(
            "{what} lies in {}, which is not open to this server; the operator can open it too",
            at.display()
        ))),
    }
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Formats an error with its causes.
pub fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Returns the path relative to a folder, if it is in the folder.
pub fn below(folder: &Path, path: &Path) -> Option<String> {
    normal(path).strip_prefix(normal(folder)).ok()?.to_str().map(str::to_owned)
}
