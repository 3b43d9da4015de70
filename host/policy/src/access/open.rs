//! Opens the roots that a client names, within the folders that the operator allows (the ceilings), safe against path traversal and symlink
//! races (TOCTOU).
//!
//! The path of a root is canonicalized once, then opened component by component from its ceiling without following symlinks, so the opened
//! directory is the checked one. Calls get the handle; the path is resolved again only to see whether it still leads to the same directory.
//! A root that does not fit is dropped and never replaced by a wider one.

use std::{
    fs::File,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use rustix::fs::{Mode, OFlags, openat};

use wharf_base::paths::FileId;

/// A folder within which clients may open roots.
#[derive(Debug)]
pub struct Ceiling {
    path: PathBuf,
    handle: File,
    /// Whether this is the default ceiling, the home directory. A root must then lie strictly inside it, and not in one of its
    /// dot-directories.
    home: bool,
}

/// Why a root is not opened.
#[derive(Debug)]
pub struct RootRefused {
    /// For the operator's log.
    pub logged: String,
    /// For the client. Does not tell whether something exists outside of the ceilings.
    pub told: String,
}

/// The folders within which roots may lie.
#[derive(Debug, Default)]
pub struct Ceilings(Vec<Ceiling>);

/// A root: a directory that a client or the operator has opened.
#[derive(Debug)]
pub struct OpenRoot {
    /// The path that the guest sees: as the client spelled it, without a trailing slash.
    pub shown: String,
    path: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug, Clone)]
struct Current {
    canonical: PathBuf,
    id: FileId,
    handle: Arc<File>,
}

/// The state of a root at the time of a call.
#[derive(Debug)]
pub enum Now {
    There(OpenDirectory),
    /// The path of the root resolves to this other place now, which is not opened. If the root was granted read-only, no directory of the
    /// call may allow writing to this place.
    Elsewhere(PathBuf),
    Gone,
}

/// An open directory at the time of a call.
#[derive(Debug, Clone)]
pub struct OpenDirectory {
    pub shown: String,
    /// The canonical path, if `shown` leads to the directory through a symlink. Plugins can use both.
    pub real: Option<String>,
    pub canonical: PathBuf,
    pub id: FileId,
    pub handle: Arc<File>,
}

impl Ceilings {
    /// Opens the folders from the config. A missing folder is skipped with a warning.
    pub fn configured(paths: &[PathBuf]) -> Self {
        Self(paths.iter().filter_map(|path| Ceiling::open(path, false)).collect())
    }

    /// Creates the default ceiling: the home directory.
    pub fn home() -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute() && home.parent().is_some());
        Self(home.iter().filter_map(|home| Ceiling::open(home, true)).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens a root.
    pub fn open(&self, uri: &str) -> Result<OpenRoot, RootRefused> {
        let path = file_path(uri).map_err(RootRefused::same)?;
        let current = self.resolve(&path)?;
        let spelled = path.to_str().ok_or_else(|| RootRefused::same("its path is not UTF-8"))?;
        let plain = !path.components().any(|component| matches!(component, Component::ParentDir | Component::CurDir));
        let shown = if plain { spelled.to_owned() } else { current.canonical.display().to_string() };
        let shown = match shown.trim_end_matches('/') {
            "" => "/".to_owned(),
            trimmed => trimmed.to_owned(),
        };
        Ok(OpenRoot { shown, path, current: Mutex::new(current) })
    }

    fn resolve(&self, path: &Path) -> Result<Current, RootRefused> {
        let canonical = std::fs::canonicalize(path).map_err(|error| self.outside(error.to_string()))?;
        let mut why = None;
        for ceiling in &self.0 {
            let Ok(rest) = canonical.strip_prefix(&ceiling.path) else { continue };
            if ceiling.home {
                let Some(first) = rest.components().next() else {
                    why = Some(
                        "it is the whole home directory; open a folder in it, or accept also the whole with `--within` or \
                         `within` in [roots]",
                    );
                    continue;
                };
                if first.as_os_str().as_encoded_bytes().starts_with(b".") {
                    why = Some(
                        "dot-directories of the home directory are opened only if `--within` or `within` in [roots] names them",
                    );
                    continue;
                }
            }
            let handle = open_beneath(&ceiling.handle, rest).map_err(|error| match error {
                rustix::io::Errno::NOTDIR => RootRefused::same("it is not a directory"),
                other => RootRefused::same(other.to_string()),
            })?;
            let metadata = handle.metadata().map_err(|error| RootRefused::same(error.to_string()))?;
            return Ok(Current { canonical, id: FileId::of(&metadata), handle: Arc::new(handle) });
        }
        Err(why.map_or_else(|| self.outside("it lies outside what the operator allows".to_owned()), RootRefused::same))
    }

    /// Refuses a root that lies outside or cannot be resolved, which are the same for a client.
    fn outside(&self, logged: String) -> RootRefused {
        let told = if self.0.iter().any(|ceiling| ceiling.home) {
            "it does not exist, or lies outside the home directory; start wharf with `--within DIR`, or set `within` in \
             [roots], to accept folders in DIR"
        } else {
            "it does not exist, or lies outside the folders that `--within` and `within` in [roots] name; start wharf with another \
             `--within DIR`, or add the folder there"
        };
        RootRefused { logged, told: told.to_owned() }
    }
}

impl RootRefused {
    /// A reason that both may know.
    fn same(why: impl Into<String>) -> Self {
        let logged = why.into();
        Self { told: logged.clone(), logged }
    }
}

impl Ceiling {
    fn open(path: &Path, home: bool) -> Option<Self> {
        let opened = std::fs::canonicalize(path).and_then(|path| Ok((File::open(&path)?, path)));
        match opened {
            Ok((handle, path)) if handle.metadata().is_ok_and(|metadata| metadata.is_dir()) => {
                Some(Self { path, handle, home })
            }
            Ok(_) => {
                tracing::warn!("roots.within: {} is not a directory", path.display());
                None
            }
            Err(error) => {
                tracing::warn!("roots.within: {}: {error}", path.display());
                None
            }
        }
    }
}

/// Opens a directory one component at a time and refuses every symlink: the path was canonical, so any symlink in it was created since.
fn open_beneath(ceiling: &File, rest: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut current: File = openat(ceiling, ".", flags, Mode::empty())?.into();
    for component in rest.components() {
        current = openat(&current, component.as_os_str(), flags, Mode::empty())?.into();
    }
    Ok(current)
}

/// Opens a directory inside an open one, without following symlinks.
pub fn beneath(directory: &File, rest: &Path) -> Option<(FileId, Arc<File>)> {
    let handle = open_beneath(directory, rest).ok()?;
    Some((FileId::of(&handle.metadata().ok()?), Arc::new(handle)))
}

impl OpenRoot {
    /// Opens a directory from the config or the command line, which needs no ceiling. Symlinks in its path are followed only this once,
    /// because a plugin may have created a later one.
    pub fn by_operator(path: &Path) -> Result<Self, String> {
        let shown = path.to_str().ok_or("its path is not UTF-8")?;
        Self::shown_at(path, shown)
    }

    /// Opens a folder that the operator names, which plugins see at another path.
    pub fn shown_at(path: &Path, shown: &str) -> Result<Self, String> {
        let current = open_ambient(path)?;
        Ok(Self { shown: shown.to_owned(), path: path.to_owned(), current: Mutex::new(current) })
    }

    /// Returns the current state of the root. If another directory exists at its path now, that one is opened, but never through a symlink
    /// that did not exist at first: a plugin with write access to the parent could have created it.
    pub fn now(&self) -> Now {
        let mut current = self.current.lock();
        let Ok(canonical) = std::fs::canonicalize(&self.path) else { return Now::Gone };
        if canonical != current.canonical {
            return Now::Elsewhere(canonical);
        }
        if FileId::at(&canonical) != Some(current.id) {
            match open_canonical(&canonical) {
                Ok(opened) => *current = opened,
                Err(_) => return Now::Gone,
            }
        }
        let Current { canonical, id, handle } = current.clone();
        // A path that the operator chose for plugins does not reveal the one on the host.
        let shown = Path::new(&self.shown);
        let real = canonical.to_str().filter(|_| self.path == shown && canonical != shown).map(str::to_owned);
        Now::There(OpenDirectory { shown: self.shown.clone(), real, canonical, id, handle })
    }

    /// Whether both roots have the same path and the same directory.
    pub fn same_place(&self, other: &Self) -> bool {
        let id = |root: &Self| root.current.lock().id;
        self.path == other.path && id(self) == id(other)
    }
}

fn open_ambient(path: &Path) -> Result<Current, String> {
    open_canonical(&std::fs::canonicalize(path).map_err(|error| error.to_string())?)
}

/// Opens a canonical path; a symlink that has appeared since is refused.
fn open_canonical(canonical: &Path) -> Result<Current, String> {
    let top = File::open("/").map_err(|error| error.to_string())?;
    let below = canonical.strip_prefix("/").unwrap_or(canonical);
    let handle = open_beneath(&top, below).map_err(|error| match error {
        rustix::io::Errno::NOTDIR => "it is not a directory".to_owned(),
        other => other.to_string(),
    })?;
    let metadata = handle.metadata().map_err(|error| error.to_string())?;
    Ok(Current { canonical: canonical.to_owned(), id: FileId::of(&metadata), handle: Arc::new(handle) })
}

/// Returns the absolute path of a `file://` URI.
fn file_path(uri: &str) -> Result<PathBuf, String> {
    let rest = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")).and_then(|_| uri.get(7..));
    let rest = rest.ok_or("it is not a file:// URI")?;
    let path = match rest.find('/') {
        Some(0) => rest,
        Some(at) if rest.get(..at).is_some_and(|host| host.eq_ignore_ascii_case("localhost")) => {
            rest.get(at..).unwrap_or_default()
        }
        _ => return Err("it names another host".into()),
    };
    if path.contains(['?', '#']) {
        return Err("a query or fragment makes no sense in a file:// URI".into());
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    if bytes.contains(&0) {
        return Err("its path has a NUL byte".into());
    }
    let path = PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes));
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        for (uri, expected) in [
            ("file:///a/b", Some("/a/b")),
            ("FILE:///a", Some("/a")),
            ("file://localhost/a", Some("/a")),
            ("file:///a%20b/%C3%BC", Some("/a b/ü")),
            ("file:///", Some("/")),
            ("file://host/a", None),
            ("file:a", None),
            ("file://", None),
            ("http:///a", None),
            ("file:///a?b", None),
            ("file:///a%00b", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(file_path(uri).ok(), expected.map(PathBuf::from), "{uri}");
        }
    }

    struct Folder {
        path: PathBuf,
        _held: tempfile::TempDir,
    }

    impl Folder {
        fn new() -> Self {
            let held = tempfile::tempdir().unwrap();
            let path = std::fs::canonicalize(held.path()).unwrap();
            for folder in ["proj/sub", ".secret", "other"] {
                std::fs::create_dir_all(path.join(folder)).unwrap();
            }
            std::fs::write(path.join("file"), b"").unwrap();
            Self { path, _held: held }
        }
    }

    #[test]
    fn only_what_lies_within_a_ceiling_opens() {
        let folder = Folder::new();
        let base = &folder.path;
        std::os::unix::fs::symlink("/etc", base.join("proj/out")).unwrap();
        std::os::unix::fs::symlink("sub", base.join("proj/in")).unwrap();
        std::os::unix::fs::symlink(base.join(".secret"), base.join("hidden")).unwrap();
        let home = Ceilings(vec![Ceiling::open(base, true).unwrap()]);
        let named = Ceilings::configured(&[base.join("proj"), base.join(".secret")]);
        let none = Ceilings::default();
        let uri = |path: &str| format!("file://{}", base.join(path).display());
        for (path, in_home, in_named) in [
            ("proj", true, true),
            ("proj/", true, true),
            ("proj/sub", true, true),
            ("proj/in", true, true),
            ("proj/out", false, false),
            ("proj/../other", true, false),
            ("other", true, false),
            ("", false, false),
            ("..", false, false),
            (".secret", false, true),
            ("hidden", false, true),
            ("file", false, false),
            ("missing", false, false),
        ] {
            let uri = uri(path);
            assert_eq!(home.open(&uri).is_ok(), in_home, "home {path}: {:?}", home.open(&uri));
            assert_eq!(named.open(&uri).is_ok(), in_named, "named {path}: {:?}", named.open(&uri));
            assert!(none.open(&uri).is_err(), "none {path}");
        }
        assert!(home.open("file:///etc").is_err());
        assert_eq!(home.open(&uri("proj/")).unwrap().shown, base.join("proj").display().to_string());
        assert_eq!(home.open(&uri("proj/in")).unwrap().shown, base.join("proj/in").display().to_string());
        assert_eq!(home.open(&uri("proj/../other")).unwrap().shown, base.join("other").display().to_string());
    }

    #[test]
    fn a_root_behind_a_symlink_has_two_paths() {
        let folder = Folder::new();
        let base = &folder.path;
        std::os::unix::fs::symlink("proj", base.join("link")).unwrap();
        let real = |root: OpenRoot| match root.now() {
            Now::There(open) => open.real,
            Now::Elsewhere(_) | Now::Gone => panic!("it is there"),
        };
        let text = |name: &str| Some(base.join(name).display().to_string());
        let within = Ceilings::configured(std::slice::from_ref(base));
        for (name, expected) in [("link", text("proj")), ("link/sub", text("proj/sub")), ("proj", None)] {
            assert_eq!(real(OpenRoot::by_operator(&base.join(name)).unwrap()), expected, "{name}");
            let uri = format!("file://{}", base.join(name).display());
            assert_eq!(real(within.open(&uri).unwrap()), expected, "{name}");
        }
        assert_eq!(real(OpenRoot::shown_at(&base.join("link"), "/data").unwrap()), None);
    }

    #[test]
    fn a_root_that_goes_and_comes_back_is_opened_anew() {
        let folder = Folder::new();
        let ceilings = Ceilings::configured(std::slice::from_ref(&folder.path));
        let root = ceilings.open(&format!("file://{}/proj", folder.path.display())).unwrap();
        let there = || match root.now() {
            Now::There(open) => Some(open),
            Now::Elsewhere(_) | Now::Gone => None,
        };
        let first = there().unwrap();
        std::fs::rename(folder.path.join("proj"), folder.path.join("gone")).unwrap();
        assert!(there().is_none());
        std::fs::create_dir(folder.path.join("proj")).unwrap();
        assert_ne!(there().unwrap().id, first.id);
        std::fs::remove_dir(folder.path.join("proj")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path.join("proj")).unwrap();
        assert!(there().is_none(), "a symlink must not lead out of the ceiling");
    }
}
