//! Makes `server.json`, by which the registry of MCP servers lists wharf.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{NAME, Release, bundle, hex, is_sha256, output, sha256, used};
use crate::run;

/// Prints the metadata of a wheel.
const METADATA: &str = "import sys, zipfile; wheel = zipfile.ZipFile(sys.argv[1]); \
    print(*(wheel.read(name).decode() for name in wheel.namelist() if name.endswith('/METADATA')))";

/// Returns wharf's name in the registry, which belongs to the owner of the repository at GitHub, or to the owner of its domain.
pub fn name(repository: &str) -> String {
    let (_, rest) = repository.split_once("://").unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.split(':').next().unwrap_or_default();
    if host == "github.com" {
        return format!("io.github.{}/wharf", path.split('/').next().unwrap_or_default());
    }
    format!("{}/wharf", host.rsplit('.').collect::<Vec<_>>().join("."))
}

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let (repository, _) = release.list("server.json");
    let mut bundles = String::new();
    for bundle in bundle::finished(release) {
        let package = json!({
            "registryType": "mcpb", "identifier": release.download(repository, &bundle), "version": release.version,
            "fileSha256": hex(&sha256(&release.out.join(&bundle))?), "transport": { "type": "stdio" },
        });
        bundles += &format!(",\n    {package}");
    }
    let host = repository.split('/').nth(2).unwrap_or_default();
    release.fill(
        "server.json",
        &[
            ("@NAME@", &name(repository)),
            // `github` and `gitlab`, for their own hosts.
            ("@SOURCE@", host.strip_suffix(".com").unwrap_or(host)),
            ("@BUNDLES@", &bundles),
        ],
    )
}

fn npm(release: &Release) -> PathBuf {
    release.out.join(format!("{NAME}-{}.tgz", release.version))
}

fn wheels(release: &Release) -> Result<Vec<PathBuf>> {
    let start = format!("{}-{}-", NAME.replace('-', "_"), release.version);
    let files = fs::read_dir(&release.out)?.collect::<std::io::Result<Vec<_>>>()?.into_iter().map(|one| one.path());
    let named = |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start));
    Ok(files.filter(named).collect())
}

/// Validates the file against the registry's schema, compares it with the packages that it names, as the registry does, and starts the line
/// that clients make of it.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let (repository, file) = release.list("server.json");
    let mut validate = Command::new(&release.python);
    validate.args(["-m", "check_jsonschema", "--schemafile"]);
    validate.arg(release.root.join("tests/data/registry/server.schema.json"));
    run(validate.arg(&file).stdout(std::io::stderr()))?;
    let server: Value = serde_json::from_slice(&fs::read(&file)?)?;
    // Packages have this name only if the release has an address, and so an owner.
    let owned = release.repository.as_deref().map(name);
    for package in server.pointer("/packages").and_then(Value::as_array).context("no packages")? {
        let text = |key: &str| package.get(key).and_then(Value::as_str).with_context(|| format!("no {key}: {package}"));
        ensure!(text("version")? == release.version, "another version: {package}");
        match text("registryType")? {
            "npm" => {
                ensure!(
                    npm(release).is_file(),
                    "server.json names a package of npm, and there is no {}",
                    npm(release).display()
                );
                let manifest = output(Command::new("tar").arg("xzOf").arg(npm(release)).arg("package/package.json"))?;
                let manifest: Value = serde_json::from_str(&manifest)?;
                let is = |key: &str| manifest.get(key).and_then(Value::as_str);
                ensure!(is("name") == Some(text("identifier")?), "npm's package has the name {:?}", is("name"));
                ensure!(is("mcpName") == owned.as_deref(), "npm's package has the mcpName {:?}", is("mcpName"));
            }
            "pypi" => {
                let wheels = wheels(release)?;
                ensure!(!wheels.is_empty(), "server.json names a package of PyPI, and there is no wheel");
                for wheel in wheels {
                    let metadata = output(Command::new(&release.python).args(["-c", METADATA]).arg(&wheel))?;
                    ensure!(metadata.contains(&format!("\nName: {}\n", text("identifier")?)), "{}", wheel.display());
                    let of =
                        metadata.lines().find_map(|line| line.strip_prefix("<!-- mcp-name: ")?.strip_suffix(" -->"));
                    ensure!(of == owned.as_deref(), "{} has the mcp-name {of:?}", wheel.display());
                }
            }
            _ => {
                let bundle = text("identifier")?.strip_prefix(&release.download(repository, "")).map(str::to_owned);
                let bundle = release.out.join(bundle.with_context(|| package.to_string())?);
                let same = is_sha256(text("fileSha256")?, &bundle)?;
                ensure!(same, "the digest is not that of {}", bundle.display());
            }
        }
        let Some(arguments) = package.get("packageArguments").and_then(Value::as_array) else { continue };
        let mut wharf = used::command(&release.binary, place);
        let words = arguments.iter().flat_map(|one| [one.get("name"), one.get("value")]).flatten();
        used::read_note(wharf.args(words.filter_map(Value::as_str)), &place.join("home/notes"))?;
    }
    Ok(())
}
