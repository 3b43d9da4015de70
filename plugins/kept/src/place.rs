//! Finds the path of the stored file: the one in the operator's config, or a default name in the open folder.

use std::path::{Path, PathBuf};

use wharf_sdk::{Directory, Error, Result};

/// A plugin's stored data, in terms of the config.
pub struct Place {
    pub plugin: &'static str,
    pub what: &'static str,
    /// The setting that names the file.
    pub setting: &'static str,
    /// The name of the file if the operator gave none.
    pub name: &'static str,
}

impl Place {
    /// Returns the path of the file. `given` is the operator's setting, a path or only a name.
    pub fn file(&self, given: Option<&str>, open: &[Directory]) -> Result<PathBuf> {
        let Self { plugin, what, setting, name: default } = self;
        let name = Path::new(given.unwrap_or(default));
        if name.is_absolute() {
            return match open.iter().any(|directory| name.starts_with(&directory.path)) {
                true => Ok(name.to_path_buf()),
                false => Err(Error::failed(format!(
                    "{what} cannot be stored in {}, because it is not in an open directory ({}); the operator can grant its directory, \
                     or change `{setting}`",
                    name.display(),
                    list(open)
                ))),
            };
        }
        let writable: Vec<&Directory> = open.iter().filter(|directory| directory.writable).collect();
        let may_be = if writable.is_empty() { open.iter().collect() } else { writable };
        match may_be.as_slice() {
            [only] => Ok(Path::new(&only.path).join(name)),
            // wharf adds who can open one, and how.
            [] => Err(Error::failed(format!("{what} cannot be stored, because no directory is open"))),
            _ => Err(Error::failed(format!(
                "several directories are open ({}), and it is not clear which one stores {what}; the operator can name the file, with \
                 `config = {{ {setting} = \"/…/{default}\" }}` in [plugins.{plugin}]",
                list(open)
            ))),
        }
    }
}

fn list(open: &[Directory]) -> String {
    open.iter().map(|directory| directory.path.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Place = Place { plugin: "memory", what: "the memory", setting: "file", name: "memory.jsonl" };

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
            assert_eq!(MEMORY.file(given, &directories).ok(), file.map(PathBuf::from));
        }
        let Err(Error::Failed(why)) = MEMORY.file(Some("/c/y"), &[open("/a", true)]) else { panic!("an error") };
        assert!(why.contains("/c/y") && why.contains("(/a)"), "{why}");
        assert!(MEMORY.file(None, &[read]).unwrap().ends_with("memory.jsonl"));
    }
}
