//! Opens a repository. All of its parts must be in folders that are open to the plugin.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use gix::{
    Repository,
    bstr::{BString, ByteSlice},
};
use wharf_sdk::{Directory, Error, Result};

use crate::{ignored::Ignored, state};

/// What is open to this server, and its settings.
pub struct Open {
    /// The folders in which all parts of a repository have to be.
    pub folders: Vec<Directory>,
    /// The config of the plugin, as JSON.
    pub config: String,
}

impl Open {
    /// Returns what the person's own ignore file says for a repository.
    pub fn ignored(&self, repo: &Repository) -> Result<Ignored> {
        Ignored::new(repo, crate::identity::ignored(repo, &self.config)?)
    }
}

/// A repository, and the folder of it that was named.
pub struct Place {
    pub repo: Repository,
    /// The path of the folder in the work tree, with a slash at its end. It is empty for the top.
    pub folder: BString,
    pub open: Open,
}

impl Place {
    /// Returns the path in the work tree of a file that is named relative to the folder; `None` if it is outside.
    pub fn path(&self, file: &str) -> Option<BString> {
        let top = self.repo.workdir()?;
        below(top, &top.join(self.folder.to_str().ok()?).join(file)).map(BString::from)
    }
}

/// Opens the repository that a folder belongs to. As in git, the folder may be below the top of the work tree.
pub fn place(path: &str, open: Open) -> Result<Place> {
    let named = inside(path, &open.folders)?;
    if !named.is_dir() {
        return Err(Error::failed(format!("{}: there is no such directory", named.display())));
    }
    let top = top(&named, &open.folders)?;
    let repo = at(&top, &open.folders)?;
    let work = repo.workdir().unwrap_or(&top);
    let folder = match below(work, &named) {
        // The folder .git is part of no work tree; git would refuse it, and other programs take it for the repository.
        Some(folder) if !folder.is_empty() && folder != ".git" => BString::from(format!("{folder}/")),
        _ => BString::default(),
    };
    Ok(Place { repo, folder, open })
}

/// Returns the nearest folder that has a repository: the one that is named, or one above it that is open too.
fn top(named: &Path, open: &[Directory]) -> Result<PathBuf> {
    let mut at = named;
    loop {
        if at.join(".git").symlink_metadata().is_ok() || at.join("HEAD").is_file() && at.join("objects").is_dir() {
            return Ok(at.to_path_buf());
        }
        match at.parent() {
            Some(above) if open.iter().any(|directory| above.starts_with(&directory.path)) => at = above,
            _ => break,
        }
    }
    Err(Error::failed(format!(
        "{} is not a git repository: neither it nor a folder above it that is open to this server has a .git",
        named.display()
    )))
}

/// Opens the repository whose work tree begins at a folder.
pub fn at(path: &Path, open: &[Directory]) -> Result<Repository> {
    // A linked work tree or a submodule names the path of its repository in a file.
    if let Ok(text) = fs::read_to_string(path.join(".git"))
        && let Some(at) = text.strip_prefix("gitdir:")
    {
        held("the repository itself", &path.join(at.trim()), open)?;
    }
    // The environment and files of other users are ignored, and so are values that name programs. What the config of the repository includes
    // is a part of it, if it is in an open folder: the sandbox shows no other.
    let mut permissions = gix::open::Permissions::isolated();
    permissions.config.includes = true;
    let options = gix::open::Options::isolated()
        .permissions(permissions)
        .with(gix::sec::Trust::Reduced)
        .bail_if_untrusted(false)
        .strict_config(false);
    let mut repo = gix::open_opts(path, options)
        .map_err(|error| Error::failed(format!("{} cannot be opened: {}", path.display(), reasons(&error))))?;
    held("the repository itself", repo.common_dir(), open)?;
    served(&repo, path)?;
    let work = repo.workdir().map(Path::to_path_buf);
    match &work {
        Some(work) => held("its work tree", work, open)?,
        None => {
            return Err(Error::failed(format!("{} is a bare repository, without files to work with", path.display())));
        }
    }
    let alternates = repo.common_dir().join("objects/info/alternates");
    for line in state::text(&alternates)?.unwrap_or_default().lines() {
        if !line.is_empty() && !line.starts_with('#') {
            held("a part of its objects", &repo.common_dir().join("objects").join(line), open)?;
        }
    }
    repo.object_cache_size_if_unset(4 << 20);
    Ok(repo)
}

/// The extensions of the format of repositories that change nothing here, or are supported.
const EXTENSIONS: [&str; 8] = [
    "noop",
    "noop-v1",
    "objectformat",
    "partialclone",
    "preciousobjects",
    "refstorage",
    "relativeworktrees",
    "worktreeconfig",
];

/// Fails if a repository is stored in a form that would be misread here.
fn served(repo: &Repository, path: &Path) -> Result<()> {
    let (path, config) = (path.display(), repo.config_snapshot());
    if let Some(storage) = config.string("extensions.refStorage")
        && storage != "files"
    {
        return Err(Error::failed(format!(
            "{path} keeps its branches in the format {storage} (extensions.refStorage), which this server cannot read, so no tool works on \
             it; `git refs migrate --ref-format=files` converts it"
        )));
    }
    let version = config.integer("core.repositoryFormatVersion").unwrap_or(0);
    if version > 1 {
        return Err(Error::failed(format!("{path}: Expected git repo version <= 1, found {version}")));
    }
    let mut keys = config.plumbing().sections_by_name("extensions").into_iter().flatten().flat_map(|section| {
        section.value_names().map(|name| name.to_string().to_ascii_lowercase()).collect::<Vec<_>>()
    });
    match keys.find(|key| version == 1 && !EXTENSIONS.contains(&key.as_str())) {
        Some(key) => Err(Error::failed(format!(
            "{path} uses the repository extension '{key}', which this server does not know, so it could misread the repository"
        ))),
        None => Ok(()),
    }
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

/// Returns an absolute path without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
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

/// Returns the message of an error.
pub fn words(error: Error) -> String {
    match error {
        Error::Failed(message) | Error::Protocol { message, .. } => message,
        Error::Ask(_) => "it asks a question".to_owned(),
    }
}

/// Returns the path relative to a folder, if it is in the folder.
pub fn below(folder: &Path, path: &Path) -> Option<String> {
    normal(path).strip_prefix(normal(folder)).ok()?.to_str().map(str::to_owned)
}
