//! Plugins in every language: from an empty folder to a tool in a client, and the official suite against a plugin of each.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    conformance::{Place, RUNS, suite},
    installed, prepare, run, say,
};

/// The languages whose plugins come through an SDK of their own. Rust's is what `cargo xtask conformance` drives.
const SDKS: [&str; 4] = ["ts", "python", "go", "c"];

/// Works like an author in each language, and then lets the suite look at what came out.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&["languages"])?;
    let path = tools(root)?;
    let mut author = Command::new(root.join("target/release/languages"));
    run(author.args(rest).env("PATH", path)).context("a plugin could not be made, or does not do what it should")?;
    let only = rest.iter().position(|argument| argument == "--only").and_then(|at| rest.get(at + 1));
    let place = Place::set_up(root)?;
    let mut problems = Vec::new();
    for language in SDKS.into_iter().filter(|one| only.is_none_or(|only| only == one)) {
        let config = config(root, &place, language)?;
        say(&format!("the suite against the plugin in {language}"));
        // The newest of each era.
        let found = suite(&place, "wharf", &config, RUNS.get(..2).unwrap_or_default())?;
        problems.extend(found.into_iter().map(|problem| format!("{language}: {problem}")));
    }
    if problems.is_empty() { Ok(()) } else { bail!("not conforming:\n  {}", problems.join("\n  ")) }
}

/// The search path, with the compilers that few machines have before all others. They come from PyPI.
fn tools(root: &Path) -> Result<std::ffi::OsString> {
    let requirements = root.join("tests/languages/requirements.txt");
    let python = installed::python(&requirements, &root.join("target/languages/tools"))?;
    let programs = python.parent().context("the interpreter lies in a folder")?.to_path_buf();
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths([programs].into_iter().chain(env::split_paths(&path)))?)
}

/// The config of the suite's plugin, with the one in this language in its place.
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
