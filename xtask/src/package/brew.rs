//! Makes the formula for Homebrew, `packaging/wharf.rb.in`, with the addresses and digests of the archives.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::{Release, archive, hex, is_sha256, output, used};

/// Prints the calls in a Ruby file.
const CALLS: &str = include_str!("../../../packaging/check/formula.mjs");

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let archives = archive::finished(release)?;
    let mut text = String::new();
    for (os, block) in [("darwin", "on_macos"), ("linux", "on_linux")] {
        let of_system = archives.iter().filter(|one| one.platform.os == os);
        let each = of_system.map(|one| {
            let cpu = if one.platform.cpu == "x64" { "on_intel" } else { "on_arm" };
            let url = release.download(release.list("wharf.rb").0, &one.file);
            format!("    {cpu} do\n      url \"{url}\"\n      sha256 \"{}\"\n    end\n", hex(&one.sha256))
        });
        let each: String = each.collect();
        if !each.is_empty() {
            text += &format!("\n  {block} do\n{each}  end\n");
        }
    }
    release.fill("wharf.rb", &[("@ARCHIVES@", &text)])
}

/// Reads the formula with Ruby's parser, compares its digests with those of the archives, looks for the files that it installs in each
/// archive, and runs its test with the binary of this machine.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let (repository, formula) = release.list("wharf.rb");
    let mut node = Command::new("node");
    node.args(["--no-warnings", "--input-type=module", "--eval", CALLS]).arg(&formula);
    let calls = output(node.current_dir(&release.node_modules)).context("Ruby's parser does not take the formula")?;
    let calls: Vec<Vec<String>> = serde_json::from_str(&calls)?;
    let arguments = |name: &str| {
        let of_name = calls.iter().filter(|call| {
            call.first().is_some_and(|one| one == name || (name.starts_with('.') && one.ends_with(name)))
        });
        of_name.map(|call| call.get(1..).unwrap_or_default()).collect::<Vec<_>>()
    };
    let (mut os, mut cpu, mut file) = ("", "", "");
    let mut files = Vec::new();
    for call in &calls {
        let (name, value) =
            (call.first().map_or("", String::as_str), call.get(1).map_or("", |one| one.trim_matches('"')));
        match name {
            "on_macos" => os = "apple-darwin",
            "on_linux" => os = "linux",
            "on_intel" => cpu = "x86_64",
            "on_arm" => cpu = "aarch64",
            "url" => {
                file = value.strip_prefix(&release.download(repository, "")).with_context(|| value.to_owned())?;
                ensure!(file.contains(os) && file.contains(cpu), "{file} is not for {os} on {cpu}");
            }
            "sha256" => {
                let same = is_sha256(value, &release.out.join(file))?;
                ensure!(same, "the SHA-256 of {file} in the formula is {value}");
                files.push(file);
            }
            _ => {}
        }
    }
    let expected: Vec<_> = archive::finished(release)?.into_iter().map(|one| one.file).collect();
    ensure!(
        files.iter().all(|file| expected.iter().any(|one| one == file)) && files.len() == expected.len(),
        "{files:?}"
    );
    let installed = arguments(".install");
    ensure!(installed.len() >= 5, "the formula installs only {installed:?}");
    for file in files {
        let files = output(Command::new("tar").arg("tzf").arg(release.out.join(file)))?;
        let files: Vec<_> = files.lines().filter_map(|line| line.split_once('/')).map(|(_, file)| file).collect();
        for what in installed.iter().copied().flatten() {
            let path = what.split('"').nth(1).with_context(|| what.clone())?;
            let (before, after) = path.split_once('*').unwrap_or((path, ""));
            let named =
                |one: &&str| one.starts_with(before) && one.ends_with(after) && (path.contains('*') || one == &path);
            ensure!(files.iter().any(named), "{file} has no {path}, which the formula installs");
        }
    }
    let asserted = arguments("assert_match");
    ensure!(!asserted.is_empty(), "the formula tests nothing");
    for one in asserted {
        let [expected, command] = one else { bail!("not understood: assert_match {one:?}") };
        let expected = if expected == "version.to_s" { &release.version } else { expected.trim_matches('"') };
        let line = command.strip_prefix("shell_output(\"#{bin}/wharf ").and_then(|line| line.strip_suffix("\")"));
        let mut wharf = used::command(&release.binary, place);
        let line = line.with_context(|| command.clone())?;
        let printed = output(wharf.args(line.split(' '))).with_context(|| command.clone())?;
        ensure!(printed.contains(expected), "{command} printed {printed}, and not {expected}");
    }
    Ok(())
}
