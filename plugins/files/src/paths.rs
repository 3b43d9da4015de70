//! Finds the file that a path of a client means, and says in the error what is wrong if there is none.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use unicode_normalization::UnicodeNormalization;
use wharf_sdk::{Directory, Error, Result, host};

/// The path at which a file is found; it may be another than the given one: see [`elsewhere`].
pub fn resolve(path: &str) -> Result<PathBuf> {
    let path = locate(path)?;
    Ok(match fs::metadata(&path) {
        Ok(_) => path,
        Err(error) => elsewhere(&path, &error)?.unwrap_or(path),
    })
}

/// The path of an entry in a folder, links to which are not followed: what is moved is the link.
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

/// Reads what a path names. Only if that fails, [`elsewhere`] looks for another path to read.
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

/// Another path for something that cannot be opened by this one, because its name is written with other characters or the
/// sandbox does not follow its links. `None` if there is no other.
fn elsewhere(path: &Path, error: &io::Error) -> Result<Option<PathBuf>> {
    let found = match error.kind() {
        io::ErrorKind::PermissionDenied => follow(path),
        io::ErrorKind::NotFound => Some(same_letters(path)?),
        _ => None,
    };
    Ok(found.filter(|found| found != path))
}

/// The path without `.` and `..`, if it lies in an open folder. The sandbox would refuse other paths anyway, but could not say
/// which folders are open.
fn locate(path: &str) -> Result<PathBuf> {
    let directories = host::directories();
    let Some(first) = directories.first() else {
        return Err(Error::failed("Access denied - no directory is open to this server"));
    };
    if path == "~" || path.starts_with("~/") {
        return Err(Error::failed(format!("`{path}`: nobody has a home directory here; give an absolute path")));
    }
    let windows = path.as_bytes();
    if matches!(windows, [drive, b':', rest @ ..] if drive.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'\\' | b'/')))
    {
        return Err(Error::failed(format!("Access denied - Windows-style path received on a POSIX host: {path}")));
    }
    let normal = normalize(&Path::new(&first.path).join(path));
    if directories.iter().any(|directory| normal.starts_with(&directory.path)) {
        return Ok(normal);
    }
    let open: Vec<&str> = directories.iter().map(|directory| directory.path.as_str()).collect();
    let open = open.join(", ");
    Err(Error::failed(format!("Access denied - path outside allowed directories: {} not in {open}", normal.display())))
}

/// The most links that are followed on the way to one file.
const MAX_LINKS: usize = 40;

/// The path without links. The sandbox does not follow links that are absolute or lead from one open folder into another, so
/// all links are followed here, one by one. `None` if they lead out of the open folders, or in circles.
pub fn follow(path: &Path) -> Option<PathBuf> {
    let directories = host::directories();
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let base = base_of(&directories, &path)?;
        let below = path.strip_prefix(base).ok()?;
        let mut seen = base.to_path_buf();
        let link = below.components().find_map(|name| {
            seen.push(name);
            seen.is_symlink().then(|| {
                let rest = path.strip_prefix(&seen).ok()?;
                // A link that cannot be read leads outside.
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

/// Where the text of a link in a folder leads. None where it goes up again from another link, because that is a step up from where
/// the other one leads.
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

/// The metadata of a file, or of the file that a link leads to.
pub fn look(path: &Path) -> io::Result<fs::Metadata> {
    fs::metadata(path).or_else(|error| follow(path).map_or(Err(error), fs::metadata))
}

/// The path of an existing file whose name looks the same as the given one: an accented letter can be written in two ways that
/// look alike. Names for which there is no such file stay as they are.
fn same_letters(path: &Path) -> Result<PathBuf> {
    if path.to_str().is_none_or(str::is_ascii) {
        return Ok(path.to_path_buf());
    }
    let directories = host::directories();
    let mut found = base_of(&directories, path).unwrap_or(path).to_path_buf();
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

/// The innermost of the open folders that a path lies in.
fn base_of<'a>(directories: &'a [Directory], path: &Path) -> Option<&'a Path> {
    let bases = directories.iter().map(|directory| Path::new(&directory.path));
    bases.filter(|base| path.starts_with(base)).max_by_key(|base| base.as_os_str().len())
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

/// Makes a folder and those above it, from the open folder downwards.
pub fn create_all(path: &Path) -> Result<()> {
    let directories = host::directories();
    let base = base_of(&directories, path).unwrap_or(path).to_path_buf();
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

/// Error codes of WASI that mean something more exact than the kind that std gives them.
const ACCESS: i32 = 2;
const NOT_EMPTY: i32 = 55;

/// An error with the path it is about.
pub fn at_path(path: &Path, error: io::Error) -> Error {
    let what = match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::NotFound, _) => "there is no such file or directory".to_owned(),
        (_, Some(ACCESS)) => "permission denied: this server's user may not do that to it".to_owned(),
        (io::ErrorKind::PermissionDenied, _) => {
            "Access denied - it is read only here, or a link leads outside".to_owned()
        }
        (_, Some(NOT_EMPTY)) => "the directory is not empty".to_owned(),
        (io::ErrorKind::NotADirectory, _) => "it is not a directory".to_owned(),
        (io::ErrorKind::IsADirectory, _) => "it is a directory".to_owned(),
        _ => {
            // The number means something only to whoever knows WASI.
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    };
    Error::failed(format!("{}: {what}", path.display()))
}

/// The characters that must be escaped in the path of a URI, besides those that are not ASCII.
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
