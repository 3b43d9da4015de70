//! `cargo xtask check languages`: makes plugins in every SDK language, from an empty folder to a tool in a client, and runs the official suite
//! against a plugin in each of them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    conformance::{Place, RUNS, suite},
    installed, run, say,
    tree::{built, prepare, wharf},
};

/// The languages with an SDK, except Rust, whose plugin `cargo xtask check conformance` tests.
const SDKS: [&str; 4] = ["ts", "python", "go", "c"];

/// Makes a plugin in each language as an author would, and then, unless the run is brief, runs the suite against it.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&["languages"])?;
    let path = tools(root)?;
    let mut author = Command::new(built("languages"));
    run(author.args(rest).env("PATH", path).env("WHARF_BIN", wharf()))
        .context("a plugin could not be built, or failed its tests")?;
    if rest.iter().any(|argument| argument == "--brief") {
        return Ok(());
    }
    let only = rest.iter().position(|argument| argument == "--only").and_then(|at| rest.get(at + 1));
    let place = Place::set_up(root)?;
    let mut problems = Vec::new();
    for language in SDKS.into_iter().filter(|one| only.is_none_or(|only| only == one)) {
        let config = config(root, &place, language)?;
        say(&format!("the suite against the plugin in {language}"));
        // Only the newest of each era.
        let found = suite(&place, "wharf", &config, RUNS.get(..2).unwrap_or_default())?;
        problems.extend(found.into_iter().map(|problem| format!("{language}: {problem}")));
    }
    if problems.is_empty() { Ok(()) } else { bail!("not conforming:\n  {}", problems.join("\n  ")) }
}

/// Installs the compilers that few machines have, from PyPI, and returns `PATH` with them in front.
fn tools(root: &Path) -> Result<std::ffi::OsString> {
    let requirements = root.join("tests/languages/requirements.txt");
    let python = installed::python(&requirements, &root.join("target/languages/tools"))?;
    let programs = python.parent().context("the path of the interpreter has no folder")?.to_path_buf();
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths([programs].into_iter().chain(env::split_paths(&path)))?)
}

/// Writes a config like that of the suite's plugin in Rust, but with the plugin in this language, and returns its path.
fn config(root: &Path, place: &Place, language: &str) -> Result<PathBuf> {
    let folder = root.join("tests/guests/languages").join(language);
    let text = fs::read_to_string(folder.join("plugin.toml"))?;
    let artifact = text.lines().find_map(|line| line.strip_prefix("artifact = \"")?.strip_suffix('"'));
    let component = folder.join(artifact.context("plugin.toml names no artifact")?);
    let config = fs::read_to_string(place.config())?;
    let config = config.replace("../../target/plugins/conformance.wasm", &component.display().to_string());
    let file = place.target.join(format!("{language}.toml"));
    fs::write(&file, config)?;
    Ok(file)
}
