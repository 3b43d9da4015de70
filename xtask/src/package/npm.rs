//! Makes the packages for npm: a main package, and one with the binary for each platform. The main package lists those as optional
//! dependencies, of which npm installs the one that fits the machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{NAME, Release, copy, platform, platform::Platform, registry, used, write};
use crate::run_in;

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let platform = release.platform;
    let manifest = |name: &str, description: &str, more: Value| {
        let mut manifest = json!({
            "name": name,
            "version": release.version,
            "description": description,
            "license": release.license,
            "keywords": ["mcp", "mcp-server", "model-context-protocol", "wasm", "sandbox"],
            "engines": { "node": ">=18" },
        });
        if let (Some(manifest), Value::Object(more)) = (manifest.as_object_mut(), more) {
            manifest.extend(more);
            if let Some(repository) = &release.repository {
                // npm compares it with the repository whose workflow publishes, and the registry of MCP servers the name with that of its entry.
                let url = format!("git+{repository}.git");
                manifest.insert("repository".into(), json!({ "type": "git", "url": url }));
                manifest.insert("mcpName".into(), registry::name(repository).into());
            }
        }
        manifest
    };
    let all = platform::ALL.iter().map(|platform| (package(platform), Value::from(release.version.clone())));
    let all = Value::Object(all.collect());
    let main = json!({ "bin": { "wharf": "wharf.js" }, "optionalDependencies": all });
    let main = manifest(NAME, &release.description, main);
    // `preferUnplugged` makes Yarn unpack the package. In Yarn's archive the binary could not be executed.
    let mut machine = json!({ "os": [platform.os], "cpu": [platform.cpu], "preferUnplugged": true });
    if let (Some(machine), Some(libc)) = (machine.as_object_mut(), platform.libc) {
        machine.insert("libc".into(), json!([libc]));
    }
    let description = format!("The binary of {NAME} for {}", platform.name());
    let binary = manifest(&package(platform), &description, machine);
    let source = release.root.join("packaging/npm");
    let code = fs::read_to_string(source.join("wharf.js"))?.replace("{SCOPE}", &scope());
    let main = pack(release, "main", &main, |folder| {
        write(&folder.join("wharf.js"), code.as_bytes())?;
        copy(&release.root.join("README.md"), &folder.join("README.md"))
    })?;
    let binary = pack(release, "binary", &binary, |folder| copy(&release.binary, &folder.join("wharf")))?;
    Ok(vec![main, binary])
}

fn scope() -> String {
    format!("@{NAME}")
}

fn package(platform: &Platform) -> String {
    format!("{}/cli-{}", scope(), platform.name())
}

fn pack(release: &Release, name: &str, manifest: &Value, fill: impl Fn(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = release.work.join("npm").join(name);
    write(&folder.join("package.json"), &serde_json::to_vec_pretty(manifest)?)?;
    copy(&release.root.join("LICENSE"), &folder.join("LICENSE"))?;
    fill(&folder)?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--ignore-scripts", "--loglevel=error", "--json", "--pack-destination"]).arg(&release.out);
    let output = npm.current_dir(&folder).output().context("this needs npm")?;
    let packed: Value = serde_json::from_slice(&output.stdout).context("npm pack failed")?;
    // npm prints a list up to version 11, and from then on an object keyed by package name.
    let packed = packed.get(0).or_else(|| packed.as_object()?.values().next()).and_then(|one| one.get("filename"));
    let file = packed.and_then(Value::as_str).context("the output of `npm pack` names no file")?;
    Ok(release.out.join(file))
}

/// Installs and uses the packages on an empty machine, with the files in place of the registry.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let main = release.made(&format!("{NAME}-{}.tgz", release.version))?;
    let binary = release.made(&format!("cli-{}-{}.tgz", release.platform.name(), release.version))?;
    if release.platform.libc == Some("musl") && !cfg!(target_env = "musl") {
        // npm installs this package only where musl is the C library, so its files are unpacked and tried without npm.
        run_in(place, Command::new("tar").arg("xzf").arg(&binary))?;
        let mut wharf = used::command(&place.join("package/wharf"), place);
        return used::tell_time(wharf.args(used::BUILT_IN));
    }
    let mut npx = used::command(Path::new("npx"), place);
    // npm's cache is in the user's home. Packages of other platforms are not requested.
    npx.args(["--yes", "--offline", "--no-update-notifier", "--loglevel=error"]);
    npx.arg("--package").arg(&main).arg("--package").arg(&binary).arg("--").arg("wharf");
    used::tell_time(npx.args(used::BUILT_IN))?;
    // The same without npx, which would start the command as a child process.
    let folder = place.join("project");
    write(&folder.join("package.json"), b"{ \"private\": true }")?;
    let mut npm = used::command(Path::new("npm"), place);
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]).arg(&main).arg(&binary);
    run_in(&folder, &mut npm)?;
    let mut wharf = used::command(&folder.join("node_modules/.bin/wharf"), place);
    used::tell_time(wharf.args(used::BUILT_IN))
}
