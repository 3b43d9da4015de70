//! Checks the names of files and branches that this plugin writes. A repository is untrusted, and the git that reads a name later must not
//! interpret it in another way than this plugin.

use gix::{
    bstr::{BStr, ByteSlice},
    validate::path::{component, component::Mode, component::Options},
};
use wharf_sdk::{Error, Result};

/// The files that configure git. A link in the place of one would make git read it from elsewhere.
const INSTRUCTIONS: [&str; 4] = ["gitmodules", "gitattributes", "gitignore", "mailmap"];

/// Fails if a file that is written to the work tree must not have this path.
pub fn check_path(path: &BStr, link: bool) -> Result<()> {
    check(path, link, Options::default())
}

/// Does the same for a file that exists in the work tree, which may have a name that is invalid on Windows.
pub fn check_known_path(path: &BStr, link: bool) -> Result<()> {
    check(path, link, Options { protect_windows: false, ..Options::default() })
}

fn check(path: &BStr, link: bool, options: Options) -> Result<()> {
    let refused =
        |why: &str| Error::failed(format!("{} is a name that no file may have here{why}", crate::side::shown(path)));
    let mut parts = path.split_str("/").map(ByteSlice::as_bstr).peekable();
    while let Some(part) = parts.next() {
        let mode = (link && parts.peek().is_none()).then_some(Mode::Symlink);
        component(part, mode, options).map_err(|_| refused(""))?;
        if mode.is_some() && is_instruction(part) {
            return Err(refused(": git takes instructions from it, so it must not be a link"));
        }
    }
    Ok(())
}

/// Whether a name is that of such a file, also on file systems that ignore case or trailing characters.
fn is_instruction(name: &BStr) -> bool {
    let seen: String = name.chars().filter(|character| !is_ignored(*character)).collect();
    let name = seen.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_ascii_lowercase();
    // The short (8.3) names of Windows: `GITIGN~1` for `.gitignore`.
    let short = |full: &str| {
        let (begin, number) = name.split_once('~').unwrap_or((&name, ""));
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && full.get(..6).is_some_and(|six| begin == six)
    };
    INSTRUCTIONS.iter().any(|full| name.strip_prefix('.') == Some(full) || short(full))
}

/// Whether the file systems of macOS ignore a character when they compare names.
fn is_ignored(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Whether a branch may have this name: `git check-ref-format --branch` must allow it, and git must not interpret it as something else.
pub fn is_branch(name: &str) -> bool {
    let full = format!("refs/heads/{name}");
    let is_id = matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Git reads FETCH_HEAD and similar refs from files of that name.
    let is_special =
        name.eq_ignore_ascii_case("HEAD") || name.ends_with("_HEAD") || name == "@" || name.starts_with("refs/");
    let visible = name.chars().all(|character| !character.is_control() && !is_ignored(character));
    !name.starts_with('-')
        && !is_id
        && !is_special
        && visible
        && gix::validate::reference::branch_name(full.as_bytes().as_bstr()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_written_under_a_name_that_git_takes_for_its_own() {
        for (path, file, link) in [
            ("a/b.txt", true, true),
            (".github/x", true, true),
            ("a.gitmodules", true, true),
            ("gitmodules", true, true),
            (".gitmodules", true, false),
            (".GitModules", true, false),
            ("sub/.gitmodules", true, false),
            (".gitmodules/x", true, true),
            (".gitmodules ", false, false),
            (".gitmodules::$DATA", false, false),
            ("GITMOD~1", true, false),
            ("gi7eba~1", true, false),
            (".gitattributes", true, false),
            (".GITATTRIBUTES", true, false),
            ("GITATT~2", true, false),
            (".git\u{200c}ignore", true, false),
            (".gitignore", true, false),
            (".mailmap", true, false),
            (".git", false, false),
            (".GIT", false, false),
            ("a/.gIt/config", false, false),
            (".git.", false, false),
            (".git ", false, false),
            ("git~1", false, false),
            (".git::$INDEX_ALLOCATION", false, false),
            (".g\u{200d}it/config", false, false),
            ("../x", false, false),
            ("a/./x", false, false),
            ("/x", false, false),
            ("a//x", false, false),
            ("", false, false),
            ("a\\..\\x", false, false),
            ("c:x", false, false),
            ("nul", false, false),
        ] {
            let found = [false, true].map(|link| check_path(path.as_bytes().as_bstr(), link).is_ok());
            assert_eq!(found, [file, link], "{path:?}");
        }
        let known = |path: &str, link| check_known_path(path.as_bytes().as_bstr(), link).is_ok();
        assert!(known("a:b", false) && known("nul", false) && !known(".git", false));
        assert!(known(".gitmodules", false) && !known(".gitmodules", true) && !known("x/.gitattributes", true));
    }

    #[test]
    fn a_branch_has_a_name_that_means_nothing_else() {
        for (name, expected) in [
            ("main", true),
            ("feature/a.b-c_d", true),
            ("v1.0", true),
            ("ümlaut", true),
            ("heads", true),
            ("HEADS", true),
            ("a/HEAD", true),
            ("HEAD", false),
            ("head", false),
            ("FETCH_HEAD", false),
            ("ORIG_HEAD", false),
            ("@", false),
            ("-x", false),
            ("--force", false),
            ("", false),
            ("refs/heads/main", false),
            ("0123456789012345678901234567890123456789", false),
            ("a..b", false),
            ("a b", false),
            ("a~1", false),
            ("a^", false),
            ("a:b", false),
            ("a?", false),
            ("a*", false),
            ("a[b", false),
            ("a\\b", false),
            ("a@{1}", false),
            ("a.lock", false),
            ("a.lock/b", false),
            (".a", false),
            ("a/.b", false),
            ("a.", false),
            ("a/", false),
            ("/a", false),
            ("a//b", false),
            ("a\u{7}b", false),
            ("a\u{202e}b", false),
        ] {
            assert_eq!(is_branch(name), expected, "{name:?}");
        }
    }
}
