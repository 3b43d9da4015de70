//! Project templates, one per language: the example of this repository in that language, with its SDK. Both are embedded in the binary,
//! so that a new project matches the version of wharf that created it.

#![expect(clippy::disallowed_methods, reason = "writes the project folder that the author names")]

use std::{
    borrow::Cow,
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};

use super::project::{PLUGIN_TOML, Project};
use wharf_base::{failed::OrFailed, text};
use wharf_config::config;

/// A language that has a template.
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
    /// Returns the language's name.
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

    /// Returns the name of its template's folder in `examples`.
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

    /// Returns the steps of a workflow that install what a build needs and the machines do not have.
    fn tools(self) -> &'static str {
        match self {
            Self::Rust => "      - run: rustup target add wasm32-wasip2\n",
            Self::C => "      - run: python3 -m pip install --break-system-packages ziglang\n",
            Self::TypeScript | Self::JavaScript | Self::Python | Self::Go => "",
        }
    }

    /// Returns the name of its SDK's folder in `sdk-guest`.
    fn sdk(self) -> &'static str {
        match self {
            Self::JavaScript => Self::TypeScript.example(),
            other => other.example(),
        }
    }
}

/// The workflow that releases a plugin.
const RELEASE: &str = include_str!("release.yml");
const RELEASE_PATH: &str = ".github/workflows/release.yml";
/// The workflow that tells the registry of MCP servers, which has an identity of its own.
const REGISTRY: &str = include_str!("registry.yml");
const REGISTRY_PATH: &str = ".github/workflows/registry.yml";

/// The name of the plugin in each template, and the file name that Rust derives from it.
const TEMPLATE_NAME: &str = "hello";
const TEMPLATE_ARTIFACT: &str = "hello.wasm";
/// The files in which the name is replaced.
const FILES_WITH_NAME: [&str; 6] = [PLUGIN_TOML, "Cargo.toml", "package.json", "pyproject.toml", "go.mod", "README.md"];

/// The .gitignore of a new project.
pub(super) const GITIGNORE: &str = "node_modules/\ndist/\ntarget/\n.venv/\n__pycache__/\n*.new\n";

/// Names that a module in Go cannot have, or that mean something else to the go command.
const NOT_IN_GO: [&str; 9] = ["all", "cmd", "go", "internal", "main", "std", "tool", "toolchain", "vendor"];

/// Creates a project with a plugin of this name from a template.
pub fn make(folder: &Path, name: &str, language: Language) -> Result<Project> {
    check_name(name)?;
    ensure!(
        language != Language::Go || !NOT_IN_GO.contains(&name),
        "{name}: the go command uses this name itself; choose another, such as {name}-tools"
    );
    check_free(folder)?;
    let all = wharf_assets::templates()?;
    let (example, sdk) = (format!("examples/{}/", language.example()), format!("sdk-guest/{}/", language.sdk()));
    let outside = format!("../../sdk-guest/{}", language.sdk());
    for (path, file) in below(&all, &example) {
        let mut contents = replaced(file, &outside, "sdk");
        if FILES_WITH_NAME.contains(&path) {
            contents = named(&contents, name).into_bytes().into();
        }
        if path == "Cargo.toml" {
            // Even inside another Cargo workspace, the project is a workspace of its own.
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
    write(&folder.join(".gitignore"), GITIGNORE.as_bytes())?;
    let project = Project::open(folder)?;
    write(&folder.join(RELEASE_PATH), release(&project, language)?.as_bytes())?;
    write(&folder.join(REGISTRY_PATH), REGISTRY.as_bytes())?;
    Ok(project)
}

/// Returns the workflow that releases a project.
fn release(project: &Project, language: Language) -> Result<String> {
    let artifact = project.build.artifact.strip_prefix(&project.folder)?;
    let shown = |path: Option<&Path>| {
        path.and_then(Path::to_str).context("the artifact's path is not UTF-8").map(str::to_owned)
    };
    Ok(RELEASE
        .replace("{TOOLS}", language.tools())
        .replace("{WHARF}", env!("CARGO_PKG_VERSION"))
        .replace("{ARTIFACT}", &shown(Some(artifact))?)
        .replace("{FOLDER}", &shown(artifact.parent())?))
}

/// Checks that a plugin may have this name, whatever its language.
pub(super) fn check_name(name: &str) -> Result<()> {
    config::check_id(name)?;
    let plain = |name: &str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    ensure!(
        plain(name) && name.starts_with(|first: char| first.is_ascii_lowercase()),
        "{name}: use lower-case letters, digits and `-`, and begin with a letter; such names are valid for packages in all languages"
    );
    Ok(())
}

/// Checks that a project can be created in a folder: it does not exist, or is empty.
pub(super) fn check_free(folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(()),
        Ok(true) => bail!("{}: this folder exists and is not empty; choose another name", text::path(folder)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| text::path(folder)),
    }
}

/// Returns the files below a folder, by their paths relative to it.
pub(super) fn below<'a>(
    files: &'a [(&'static str, Vec<u8>)],
    folder: &str,
) -> impl Iterator<Item = (&'static str, &'a [u8])> {
    files.iter().filter_map(move |(path, file)| Some((path.strip_prefix(folder)?, file.as_slice())))
}

pub(super) fn replaced<'a>(file: &'a [u8], from: &str, to: &str) -> Cow<'a, [u8]> {
    match std::str::from_utf8(file) {
        Ok(text) if text.contains(from) => text.replace(from, to).into_bytes().into(),
        _ => Cow::Borrowed(file),
    }
}

/// Returns the text of a file with the template's name replaced by the plugin's name.
fn named(contents: &[u8], name: &str) -> String {
    let artifact = format!("{}.wasm", name.replace('-', "_"));
    let text = String::from_utf8_lossy(contents).replace(TEMPLATE_ARTIFACT, "\0");
    text.replace(TEMPLATE_NAME, name).replace('\0', &artifact)
}

/// Returns the manifest of a crate of this workspace with its inherited keys resolved, so that it works outside of the workspace.
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

/// Returns a manifest without one of its tables.
fn without(text: &str, table: &str) -> String {
    let Some((before, rest)) = text.split_once(table) else { return text.to_owned() };
    let after = rest.find("\n[").and_then(|at| rest.get(at + 1..)).unwrap_or_default();
    format!("{before}{after}")
}

pub(super) fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let unwritten = || format!("{}: cannot be written", text::path(path));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(unwritten).or_failed()?;
    }
    // `create_new` never overwrites a file, not even one that was created since the check (TOCTOU).
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
            let release = fs::read_to_string(folder.join(RELEASE_PATH)).unwrap();
            let artifact = project.build.artifact.strip_prefix(&project.folder).unwrap().to_str().unwrap();
            assert!(release.contains(&format!("path: {artifact}\n")), "{language:?}: {release}");
            assert!(
                !["{TOOLS}", "{WHARF}", "{ARTIFACT}", "{FOLDER}"].iter().any(|left| release.contains(left)),
                "{release}"
            );
            let package = project.package.unwrap();
            assert_eq!((package.npm.as_str(), package.version.as_str()), ("my-tool", "0.1.0"));
            assert!(folder.join("sdk").read_dir().unwrap().next().is_some(), "{language:?}");
            let manifests = FILES_WITH_NAME.iter().filter_map(|name| fs::read_to_string(folder.join(name)).ok());
            for text in manifests {
                assert!(!text.contains("sdk-guest") && !text.contains("hello"), "{language:?}: {text}");
            }
            let again = make(&folder, "my-tool", language).unwrap_err();
            assert!(again.to_string().contains("this folder exists and is not empty"), "{again}");
        }
    }

    #[test]
    fn nothing_that_tools_leave_is_embedded() {
        let all = wharf_assets::templates().unwrap();
        for (path, _) in &all {
            let left = [
                "node_modules",
                ".venv",
                "__pycache__",
                "/dist/",
                "/target/",
                ".egg-info",
                "/python/build/",
                "/python-compat/build/",
                ".wasm",
            ];
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
        for name in ["go", "cmd"] {
            let error = make(&place.path().join("x"), name, Language::Go).unwrap_err().to_string();
            assert!(error.contains("the go command uses this name"), "{error}");
        }
        assert!(!place.path().join("x").exists());
        make(&place.path().join("x"), "go", Language::C).unwrap();
    }

    /// What a release has signed is trusted by the name of its workflow.
    #[test]
    fn what_a_release_runs_of_others_is_pinned_and_can_sign_nothing() {
        let lines = |text: &'static str, part| text.lines().map(str::trim).filter(move |line| line.contains(part));
        for action in lines(RELEASE, "uses: ").chain(lines(REGISTRY, "uses: ")) {
            let (_, commit) = action.split_once('@').unwrap();
            let commit = commit.split_whitespace().next().unwrap();
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
        }
        assert!(!RELEASE.contains("mcp-publisher") && !RELEASE.contains("curl"));
        let (publish, pypi) = RELEASE.split_once("\n  pypi:\n").unwrap();
        assert!(!publish.contains("pypa/"));
        for (job, right) in
            [(pypi, "id-token: write # to log in at PyPI"), (REGISTRY, "id-token: write # to log in at the registry")]
        {
            assert_eq!(lines(job, ": write").collect::<Vec<_>>(), [right]);
        }
        assert!(REGISTRY.contains("\npermissions: {}\n") && !REGISTRY.contains("/latest/"));
        assert!(REGISTRY.contains("sha256sum --check --strict") && REGISTRY.contains("MCP_PUBLISHER_SHA256: \"\""));
    }
}
