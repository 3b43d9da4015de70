//! What a list or a search leaves out unless it is asked for: `.git`, `node_modules`, and what `.gitignore` files name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gix_ignore::{Search, glob::pattern::Case, search::Ignore};

use crate::{
    left_out::{LeftOut, Why},
    paths::{self, at_path},
    said_by,
};

/// The maximum size of a `.gitignore` file.
const MAX_BYTES: u64 = 1 << 20;
const NAME: &str = ".gitignore";

/// The rules that apply to the entries of a folder and those below it.
pub struct Ignored {
    /// `None`: nothing is ignored.
    rules: Option<Rules>,
}

struct Rules {
    search: Search,
    /// The folder to which the paths in `search` are relative.
    top: PathBuf,
}

impl Ignored {
    pub fn nothing() -> Self {
        Self { rules: None }
    }

    /// Reads the `.gitignore` files above a folder: those of its repository or, if it is in no repository, of the open folder.
    pub fn above(folder: &Path, left: &mut LeftOut) -> Self {
        let base = paths::base(folder);
        let within = |path: &&Path| base.as_deref().is_some_and(|base| path.starts_with(base));
        let mut above: Vec<&Path> = Vec::new();
        for path in folder.ancestors().take_while(within) {
            above.push(path);
            if fs::symlink_metadata(path.join(".git")).is_ok() {
                break;
            }
        }
        let top = above.last().copied().unwrap_or(folder).to_path_buf();
        let mut own = Self { rules: Some(Rules { search: Search::default(), top }) };
        for path in above.into_iter().skip(1).rev() {
            own.enter(path, left);
        }
        own
    }

    /// Adds the rules of a folder, and returns what [`leave`](Self::leave) needs.
    pub fn enter(&mut self, folder: &Path, left: &mut LeftOut) -> usize {
        let Some(rules) = &mut self.rules else { return 0 };
        let before = rules.search.patterns.len();
        let file = folder.join(NAME);
        match read(&file) {
            Ok(bytes) => {
                rules.search.add_patterns_buffer(&bytes, &file, Some(&rules.top), Ignore::default()).ok();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => left.unreadable(said_by(at_path(&file, error))),
        }
        before
    }

    /// Removes the rules of the folder that was entered last.
    pub fn leave(&mut self, before: usize) {
        if let Some(rules) = &mut self.rules {
            rules.search.patterns.truncate(before);
        }
    }

    /// Returns why an entry of a folder is ignored, if it is.
    pub fn why(&self, path: &Path, is_folder: bool) -> Option<Why> {
        let rules = self.rules.as_ref()?;
        match path.file_name().and_then(|name| name.to_str()) {
            Some(".git") => return Some(Why::Git),
            Some("node_modules") if is_folder => return Some(Why::Modules),
            _ => {}
        }
        let below = path.strip_prefix(&rules.top).ok()?.to_str()?;
        let found = rules.search.pattern_matching_relative_path(below.into(), Some(is_folder), Case::Sensitive)?;
        (!found.pattern.is_negative()).then_some(Why::Listed)
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(file)?.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB"));
    }
    fs::read(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> Ignored {
        let top = PathBuf::from("/top");
        let mut search = Search::default();
        for (file, text) in files {
            search.add_patterns_buffer(text.as_bytes(), top.join(file), Some(&top), Ignore::default()).unwrap();
        }
        Ignored { rules: Some(Rules { search, top }) }
    }

    #[test]
    fn what_gitignore_names_is_ignored_as_by_git() {
        let own = rules(&[
            (".gitignore", "# a comment\n*.log\n/build\ncache/\n!keep.log\ndocs/**/*.pdf\n\\#odd\n"),
            ("sub/.gitignore", "/local\n!*.log\n"),
        ]);
        for (path, is_folder, expected) in [
            ("x.log", false, Some(Why::Listed)),
            ("a/x.log", false, Some(Why::Listed)),
            ("keep.log", false, None),
            ("sub/x.log", false, None),
            ("build", true, Some(Why::Listed)),
            ("a/build", true, None),
            ("cache", true, Some(Why::Listed)),
            ("cache", false, None),
            ("docs/a/b.pdf", false, Some(Why::Listed)),
            ("sub/local", false, Some(Why::Listed)),
            ("local", false, None),
            ("#odd", false, Some(Why::Listed)),
            (".git", true, Some(Why::Git)),
            ("a/.git", false, Some(Why::Git)),
            ("node_modules", true, Some(Why::Modules)),
            ("node_modules", false, None),
            (".gitignore", false, None),
        ] {
            assert_eq!(own.why(&Path::new("/top").join(path), is_folder), expected, "{path}");
        }
        assert_eq!(Ignored::nothing().why(Path::new("/top/.git"), true), None);
    }
}
