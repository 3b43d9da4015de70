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

/// An error with the path it is about.
pub fn at_path(path: &Path, error: io::Error) -> Error {
    let what = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "Access denied - it is read only here, or a link leads outside".to_owned(),
        _ => error.to_string(),
    };
    Error::failed(format!("{}: {what}", path.display()))
}

/// What stands for itself in the path of a URI.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

pub fn to_uri(path: &Path) -> String {
    format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PATH))
}
