//! Resolves a client's path to a file in an open folder. Errors say what is wrong with the path.

use std::{
    borrow::Cow,
    env, fs, io,
    path::{Component, Path, PathBuf},
    sync::OnceLock,
};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use unicode_normalization::UnicodeNormalization;
use wasip2::filesystem::preopens::get_directories;
use wharf_sdk::{Error, Result, host};

/// Returns the path at which a file is found, which may differ from the given one: see [`elsewhere`].
pub fn resolve(path: &str) -> Result<PathBuf> {
    let path = locate(path)?;
    Ok(match fs::metadata(&path) {
        Ok(_) => path,
        Err(error) => elsewhere(&path, &error)?.unwrap_or(path),
    })
}

/// Returns the path of an entry in a folder, without following it if it is a link, so that the link itself is moved.
pub fn entry(path: &str) -> Result<PathBuf> {
    let path = locate(path)?;
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(path);
    }
    match (path.parent().and_then(follow), path.file_name()) {
        (Some(folder), Some(name)) => same_letters(&folder.join(name)),
        _ => Ok(path),
    }
}

/// Reads the file at a path. Only if that fails, [`elsewhere`] looks for another path to read.
pub fn reading<T>(path: &str, read: impl Fn(&Path) -> Result<T>) -> Result<T> {
    let path = locate(path)?;
    let done = read(&path);
    if done.is_err()
        && let Err(error) = fs::metadata(&path)
        && let Some(other) = elsewhere(&path, &error)?
    {
        return read(&other);
    }
    done
}

/// Returns another path for a file that cannot be opened by this one, because its name is encoded with other characters or the sandbox does
/// not follow its links. Returns `None` if there is no other.
fn elsewhere(path: &Path, error: &io::Error) -> Result<Option<PathBuf>> {
    let found = match error.kind() {
        io::ErrorKind::PermissionDenied => follow(path),
        io::ErrorKind::NotFound => Some(same_letters(path)?),
        _ => None,
    };
    Ok(found.filter(|found| found != path))
}

/// Returns the path without `.` and `..`, if it is in an open folder. The sandbox would refuse other paths anyway (path traversal), but its
/// error would not list the open folders.
fn locate(path: &str) -> Result<PathBuf> {
    let directories = host::directories();
    let Some(first) = directories.first() else {
        return Err(Error::failed("Access denied - no directory is open to this server"));
    };
    let path = &*in_home(path)?;
    let windows = path.as_bytes();
    if matches!(windows, [drive, b':', rest @ ..] if drive.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'\\' | b'/')))
    {
        return Err(Error::failed(format!("Access denied - Windows-style path received on a POSIX host: {path}")));
    }
    let normal = normalize(&Path::new(&first.path).join(path));
    if base(&normal).is_some() {
        return Ok(normal);
    }
    let open: Vec<&str> = directories.iter().map(|directory| directory.path.as_str()).collect();
    let open = open.join(", ");
    Err(Error::failed(format!("Access denied - path outside allowed directories: {} not in {open}", normal.display())))
}

/// Returns a path in which `~` at the beginning stands for the home directory, which the operator may tell.
fn in_home(path: &str) -> Result<Cow<'_, str>> {
    let Some(rest) = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Ok(path.into());
    };
    match env::var("HOME") {
        Ok(home) if home.starts_with('/') => Ok(format!("{}{rest}", home.trim_end_matches('/')).into()),
        _ => Err(Error::failed(format!(
            "`{path}`: this server does not know the home directory; give an absolute path. (The operator can tell it, with \
             env = [\"HOME\"] in the grants of the plugin.)"
        ))),
    }
}

/// Returns the paths of the open folders. Those behind a link have two.
fn open_folders() -> &'static [PathBuf] {
    static OPEN: OnceLock<Vec<PathBuf>> = OnceLock::new();
    OPEN.get_or_init(|| get_directories().into_iter().map(|(_, path)| PathBuf::from(path)).collect())
}

/// Returns the innermost open folder that contains a path.
pub fn base(path: &Path) -> Option<&'static Path> {
    let around = open_folders().iter().filter(|folder| path.starts_with(folder));
    around.max_by_key(|folder| folder.as_os_str().len()).map(PathBuf::as_path)
}

/// Whether the last name of a path stands for one that is not UTF-8: in lists, U+FFFD stands for its other bytes.
pub fn odd_name(path: &Path) -> bool {
    let is_replaced = |name: &str| name.contains(char::REPLACEMENT_CHARACTER);
    path.file_name().and_then(|name| name.to_str()).is_some_and(is_replaced) && fs::symlink_metadata(path).is_err()
}

/// The maximum number of links that are followed on the way to one file.
const MAX_LINKS: usize = 40;

/// Returns the path with all links resolved. The sandbox does not follow links that are absolute or lead from one open folder into another,
/// so they are followed here, one by one. Returns `None` if they lead out of the open folders, or in a cycle.
pub fn follow(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let base = base(&path)?;
        let below = path.strip_prefix(base).ok()?;
        let mut seen = base.to_path_buf();
        let link = below.components().find_map(|name| {
            seen.push(name);
            seen.is_symlink().then(|| {
                let rest = path.strip_prefix(&seen).ok()?;
                // A link that cannot be read leads out of the open folders.
                let mut leads = along(seen.parent()?, &fs::read_link(&seen).ok()?)?;
                leads.extend(rest);
                Some(leads)
            })
        });
        match link {
            Some(leads) => path = leads?,
            None => return Some(path),
        }
    }
    None
}

/// Returns the path that the text of a link in a folder leads to. Returns `None` if the text goes up by `..` from another link, because the
/// parent then is that of the other link's target.
fn along(folder: &Path, link: &Path) -> Option<PathBuf> {
    let mut at = folder.to_path_buf();
    for step in link.components() {
        match step {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir if at != folder && at.is_symlink() => return None,
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) => at.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(at)
}

/// Returns the metadata of a file, or of the file that a link leads to.
pub fn look(path: &Path) -> io::Result<fs::Metadata> {
    fs::metadata(path).or_else(|error| follow(path).map_or(Err(error), fs::metadata))
}

/// Returns the path of an existing file whose name equals the given one after Unicode normalization: an accented letter can be encoded in
/// two ways that look alike. Names without such a file stay unchanged.
fn same_letters(path: &Path) -> Result<PathBuf> {
    if path.to_str().is_none_or(str::is_ascii) {
        return Ok(path.to_path_buf());
    }
    let mut found = base(path).unwrap_or(path).to_path_buf();
    let below = path.strip_prefix(&found).unwrap_or(path).to_path_buf();
    for name in below.components() {
        let exact = found.join(name);
        let name = name.as_os_str().to_string_lossy().into_owned();
        if name.is_ascii() || fs::symlink_metadata(&exact).is_ok() {
            found = exact;
            continue;
        }
        let letters = |name: &str| name.nfc().collect::<String>();
        let alike = fs::read_dir(&found).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let alike: Vec<_> = alike.filter(|other| letters(&other.to_string_lossy()) == letters(&name)).collect();
        found = match alike.as_slice() {
            [] => exact,
            [one] => found.join(one),
            _ => return Err(Error::failed(format!("Ambiguous Unicode path component: {name}"))),
        };
    }
    Ok(found)
}

fn normalize(path: &Path) -> PathBuf {
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

/// Creates a folder and those above it, from the open folder downwards.
pub fn create_all(path: &Path) -> Result<()> {
    let base = base(path).unwrap_or(path).to_path_buf();
    let mut current = base.clone();
    for component in path.strip_prefix(&base).unwrap_or(path).components() {
        current.push(component);
        match fs::create_dir(&current) {
            Ok(()) => {}
            Err(_) if current.is_dir() => {}
            Err(error) => return Err(at_path(&current, error)),
        }
    }
    Ok(())
}

/// Error codes of WASI that are more precise than the `ErrorKind` that std gives them.
const ACCESS: i32 = 2;
const ILLEGAL_BYTES: i32 = 25;
const NOT_EMPTY: i32 = 55;
const NOT_SUPPORTED: i32 = 58;

/// What is said of a path that leads to something that is neither a file nor a folder.
pub const NOT_A_FILE: &str =
    "it is a named pipe, a socket or a device and not a file, so this server does not open or replace it";
/// What is said of a name from a list that stands for another one.
pub const ODD_NAME: &str =
    "in this name, U+FFFD stands for bytes that are not UTF-8. This server cannot open such a file; rename it first";

/// Returns an error that names the path it is about.
pub fn at_path(path: &Path, error: io::Error) -> Error {
    let what = match (error.kind(), error.raw_os_error()) {
        (_, Some(ILLEGAL_BYTES)) => ODD_NAME.to_owned(),
        (io::ErrorKind::NotFound, _) if odd_name(path) => ODD_NAME.to_owned(),
        (io::ErrorKind::Unsupported, _) | (_, Some(NOT_SUPPORTED)) => NOT_A_FILE.to_owned(),
        (io::ErrorKind::NotFound, _) => "there is no such file or directory".to_owned(),
        (_, Some(ACCESS)) => "permission denied: this server's user lacks the permission for that".to_owned(),
        (io::ErrorKind::PermissionDenied, _) => {
            "Access denied - this server has read-only access to it, or a link leads out of the open directories"
                .to_owned()
        }
        (_, Some(NOT_EMPTY)) => "the directory is not empty".to_owned(),
        (io::ErrorKind::NotADirectory, _) => "it is not a directory".to_owned(),
        (io::ErrorKind::IsADirectory, _) => "it is a directory".to_owned(),
        _ => {
            // The number of a WASI error would help nobody, so it is cut off.
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    };
    Error::failed(format!("{}: {what}", path.display()))
}

/// The characters that must be percent-encoded in the path of a URI, besides those that are not ASCII.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

pub fn to_uri(path: &Path) -> String {
    format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PATH))
}
