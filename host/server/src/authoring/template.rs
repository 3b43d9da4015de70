//! The folders that plugins begin as, one for each language: the examples of this repository, and the SDK that each is written with.
//! Both are in the binary, so that a plugin fits the wharf that made its folder.

#![expect(clippy::disallowed_methods, reason = "writes the folder that the author asks for")]

use std::{
    borrow::Cow,
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::project::{FILE, Project};
use crate::{
    base::{failed::OrFailed, text},
    config,
};

/// The paths and lengths of all files, and their contents one after the other, deflated.
const FILES: (&[(&str, usize)], &[u8]) = include!(concat!(env!("OUT_DIR"), "/templates.rs"));
/// More than they have.
const MAX_BYTES: usize = 16 << 20;

/// A language that there is a template for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Rust,
    TypeScript,
    JavaScript,
    Python,
    Go,
    C,
}

impl Language {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::TypeScript => "TypeScript",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::Go => "Go",
            Self::C => "C",
        }
    }

    /// The folder of its template in `examples`.
    fn example(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::TypeScript => "ts",
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// The folder of its SDK in `sdk-guest`.
    fn sdk(self) -> &'static str {
        match self {
            Self::JavaScript => Self::TypeScript.example(),
            other => other.example(),
        }
    }
}

/// The name that the templates' plugins have, and the file that Rust makes of it.
const NAME: &str = "hello";
const ARTIFACT: &str = "hello.wasm";
/// The files in which that name stands.
const MANIFESTS: [&str; 6] = [FILE, "Cargo.toml", "package.json", "pyproject.toml", "go.mod", "README.md"];

/// What tools leave in the folder.
const IGNORED: &str = "node_modules/\ndist/\ntarget/\n.venv/\n__pycache__/\n*.new\n";

/// Makes a folder with a plugin of this name to begin with.
pub fn make(folder: &Path, name: &str, language: Language) -> Result<Project> {
    config::check_id(name)?;
    let plain = |name: &str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    ensure!(
        plain(name) && name.starts_with(|first: char| first.is_ascii_lowercase()),
        "{name}: use lower-case letters, digits and `-`, with a letter first; packages of all languages can have such names"
    );
    let there = fs::read_dir(folder).map(|mut entries| entries.next().is_some());
    match there {
        Ok(false) => {}
        Ok(true) => bail!("{}: there is something in this folder already; choose another name", text::path(folder)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| text::path(folder)),
    }
    let all = files()?;
    let (example, sdk) = (format!("examples/{}/", language.example()), format!("sdk-guest/{}/", language.sdk()));
    let outside = format!("../../sdk-guest/{}", language.sdk());
    for (path, file) in below(&all, &example) {
        let mut contents = replaced(file, &outside, "sdk");
        if MANIFESTS.contains(&path) {
            contents = named(&contents, name).into_bytes().into();
        }
        if path == "Cargo.toml" {
            // Wherever it lies, it is a project of its own, and no part of another.
            contents.to_mut().extend(b"\n[workspace]\n");
        }
        write(&folder.join(path), &contents)?;
    }
    for (path, file) in below(&all, &sdk) {
        let contents = match language {
            Language::Rust if path.ends_with("Cargo.toml") => alone(file).into_bytes().into(),
            _ => Cow::Borrowed(file),
        };
        write(&folder.join("sdk").join(path), &contents)?;
    }
    write(&folder.join(".gitignore"), IGNORED.as_bytes())?;
    Project::open(folder)
}

/// All files, by their paths in the repository.
fn files() -> Result<Vec<(&'static str, Vec<u8>)>> {
    let (paths, deflated) = FILES;
    let contents = miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, MAX_BYTES);
    let contents = contents.map_err(|error| anyhow!("the templates in this binary are damaged: {error}"))?;
    let mut rest = contents.as_slice();
    let each = paths.iter().map(|&(path, length)| {
        let (file, after) = rest.split_at_checked(length).context("the templates in this binary are cut off")?;
        rest = after;
        Ok((path, file.to_vec()))
    });
    each.collect()
}

/// The files below a folder, by their paths in it.
fn below<'a>(files: &'a [(&'static str, Vec<u8>)], folder: &str) -> impl Iterator<Item = (&'static str, &'a [u8])> {
    files.iter().filter_map(move |(path, file)| Some((path.strip_prefix(folder)?, file.as_slice())))
}

fn replaced<'a>(file: &'a [u8], from: &str, to: &str) -> Cow<'a, [u8]> {
    match std::str::from_utf8(file) {
        Ok(text) if text.contains(from) => text.replace(from, to).into_bytes().into(),
        _ => Cow::Borrowed(file),
    }
}

/// The text of a manifest, with the plugin's own name.
fn named(contents: &[u8], name: &str) -> String {
    let artifact = format!("{}.wasm", name.replace('-', "_"));
    let text = String::from_utf8_lossy(contents).replace(ARTIFACT, "\0");
    text.replace(NAME, name).replace('\0', &artifact)
}

/// The manifest of a crate of this workspace as it stands outside of it.
fn alone(file: &[u8]) -> String {
    let text = String::from_utf8_lossy(file);
    let text = without(&text, "[lints]");
    let text = without(&text, "[dev-dependencies]");
    let lines = text.lines().filter_map(|line| match line.strip_suffix(".workspace = true") {
        None => Some(Cow::Borrowed(line)),
        Some("version") => Some(concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"").into()),
        Some("rust-version") => Some(concat!("rust-version = \"", env!("CARGO_PKG_RUST_VERSION"), "\"").into()),
        Some("license") => Some(concat!("license = \"", env!("CARGO_PKG_LICENSE"), "\"").into()),
        Some("edition") => Some("edition = \"2024\"".into()),
        Some(_) => None,
    });
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// A manifest without one of its tables.
fn without(text: &str, table: &str) -> String {
    let Some((before, rest)) = text.split_once(table) else { return text.to_owned() };
    let after = rest.find("\n[").and_then(|at| rest.get(at + 1..)).unwrap_or_default();
    format!("{before}{after}")
}

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let unwritten = || format!("{}: cannot be written", text::path(path));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(unwritten).or_failed()?;
    }
    // Nothing that is there is written over, even if it came in between.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).with_context(unwritten).or_failed()?;
    file.write_all(contents).with_context(unwritten).or_failed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Language; 6] =
        [Language::Rust, Language::TypeScript, Language::JavaScript, Language::Python, Language::Go, Language::C];

    #[test]
    fn every_language_gets_a_folder_with_its_sdk() {
        let place = tempfile::tempdir().unwrap();
        for language in ALL {
            let folder = place.path().join(language.name());
            let project = make(&folder, "my-tool", language).unwrap_or_else(|error| panic!("{language:?}: {error:#}"));
            assert_eq!(project.name, "my-tool");
            assert!(folder.join("sdk").read_dir().unwrap().next().is_some(), "{language:?}");
            let manifests = MANIFESTS.iter().filter_map(|name| fs::read_to_string(folder.join(name)).ok());
            for text in manifests {
                assert!(!text.contains("sdk-guest") && !text.contains("hello"), "{language:?}: {text}");
            }
            let again = make(&folder, "my-tool", language).unwrap_err();
            assert!(again.to_string().contains("something in this folder already"), "{again}");
        }
    }

    #[test]
    fn nothing_that_tools_leave_is_embedded() {
        let all = files().unwrap();
        for (path, _) in &all {
            let left = ["node_modules", ".venv", "__pycache__", "/dist/", "/target/", ".wasm"];
            assert!(!left.iter().any(|name| path.contains(name)), "{path}");
        }
        let bytes: usize = all.iter().map(|(_, file)| file.len()).sum();
        assert!((512 << 10..2 << 20).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_name_that_packages_cannot_have_is_refused() {
        let place = tempfile::tempdir().unwrap();
        for name in ["", "Ada", "9lives", "a b", "-a", "a.b", "wharf-x"] {
            make(&place.path().join("x"), name, Language::Rust).unwrap_err();
        }
        assert!(!place.path().join("x").exists());
    }
}
