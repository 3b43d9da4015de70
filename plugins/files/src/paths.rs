//! Paths as people write them, and what to say when one leads nowhere.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use wharf_sdk::{Error, Result, host};

/// The path without `.` and `..`, if it lies in an open folder. The sandbox would refuse others anyway, but could not say
/// which folders there are.
pub fn resolve(path: &str) -> Result<PathBuf> {
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
    let base =
        host::directories().into_iter().map(|directory| directory.path).filter(|base| path.starts_with(base)).max();
    let base = PathBuf::from(base.unwrap_or_default());
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

/// Errors of WASI that std takes together.
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

/// What stands for itself in the path of a URI.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

pub fn to_uri(path: &Path) -> String {
    format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PATH))
}
