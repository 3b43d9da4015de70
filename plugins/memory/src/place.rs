//! Which file the graph is kept in: the one that the operator named, or one in the folder that is open.

use std::path::{Path, PathBuf};

use wharf_sdk::{Directory, Error, Result};

/// The name of the file if the operator gave none.
const NAME: &str = "memory.jsonl";

/// The file, of which the operator may have given the path or only the name.
pub fn of(given: Option<&str>, open: &[Directory]) -> Result<PathBuf> {
    let name = Path::new(given.unwrap_or(NAME));
    if name.is_absolute() {
        return match open.iter().any(|directory| name.starts_with(&directory.path)) {
            true => Ok(name.to_path_buf()),
            false => Err(Error::failed(format!(
                "the memory is to be kept in {}, which lies in no directory that is open here ({}); the operator can grant one, or \
                 change `file`",
                name.display(),
                list(open)
            ))),
        };
    }
    let writable: Vec<&Directory> = open.iter().filter(|directory| directory.writable).collect();
    let may_be = if writable.is_empty() { open.iter().collect() } else { writable };
    match may_be.as_slice() {
        [only] => Ok(Path::new(&only.path).join(name)),
        [] => Err(Error::failed(
            "no directory is open to keep the memory in; the operator can grant one, with `dirs` in [plugins.memory.grants]",
        )),
        _ => Err(Error::failed(format!(
            "the memory could be kept in any of several directories ({}); the operator can name the file, with `config = {{ file = \
             \"/…/{NAME}\" }}` in [plugins.memory]",
            list(open)
        ))),
    }
}

fn list(open: &[Directory]) -> String {
    open.iter().map(|directory| directory.path.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_lies_where_the_operator_says_or_in_the_only_folder() {
        let open = |path: &str, writable| Directory { path: path.into(), writable };
        let (a, b, read) = (open("/a", true), open("/b", true), open("/r", false));
        for (given, directories, file) in [
            (None, vec![a.clone()], Some("/a/memory.jsonl")),
            (None, vec![read.clone(), a.clone()], Some("/a/memory.jsonl")),
            (None, vec![read.clone()], Some("/r/memory.jsonl")),
            (Some("x/y.jsonl"), vec![a.clone(), read.clone()], Some("/a/x/y.jsonl")),
            (Some("/b/y.jsonl"), vec![a.clone(), b.clone()], Some("/b/y.jsonl")),
            (Some("/c/y.jsonl"), vec![a.clone(), b.clone()], None),
            (None, vec![a, b], None),
            (None, vec![], None),
        ] {
            assert_eq!(of(given, &directories).ok(), file.map(PathBuf::from));
        }
        let Err(Error::Failed(why)) = of(Some("/c/y"), &[open("/a", true)]) else { panic!("an error") };
        assert!(why.contains("/c/y") && why.contains("(/a)"), "{why}");
        assert!(of(None, &[read]).unwrap().ends_with("memory.jsonl"));
    }
}
