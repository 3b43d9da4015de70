//! Checks the workflows of `.github/workflows`: their syntax, and what their steps do as far as that can be tried on this machine.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, ensure};

use super::{LOOPBACK, Release, output, write};
use crate::{run, run_in, say};

/// How a step is tried.
enum Try {
    /// It runs as it is; in a job that checks out the repository, in the repository.
    Run,
    /// It runs with this program replaced by one that only records its arguments, and has to record this text.
    Record(&'static str, &'static str),
    /// It does not run, because of what this says.
    Skip(&'static str),
}

use Try::{Record, Run, Skip};

const MACHINE: Try = Skip("it changes the machine");
const LONG: Try = Skip("it takes minutes");

/// The steps with commands: the workflow, the job, the first line of the commands, and how it is tried. A test compares it with the workflows.
const STEPS: [(&str, &str, &str, Try); 19] = [
    ("pull-request", "test", "rustup toolchain install stable", MACHINE),
    ("pull-request", "test", "cargo xtask test", LONG),
    ("release", "plugins", "rustup toolchain install stable", MACHINE),
    ("release", "plugins", "cargo xtask build plugins", LONG),
    ("release", "plugins", "grep -qx", Run),
    ("release", "binary", "curl --proto", MACHINE),
    ("release", "binary", "sudo apt-get", MACHINE),
    ("release", "binary", "rustup target add", MACHINE),
    ("release", "binary", "cargo xtask package --build-only", LONG),
    ("release", "binary", "WHARF_BUILTINS=", LONG),
    ("release", "test", "chmod +x target/built/wharf", Run),
    ("release", "test", "WHARF_BIN=", LONG),
    ("release", "package", "chmod +x target/built/wharf", Run),
    ("release", "package", "cargo xtask package --check --binary", Skip("this command has just done it")),
    ("release", "lists", "cargo xtask package --check --from", Run),
    ("release", "release", "rm -rf dist/work", Run),
    ("release", "release", "gh release view", Record("gh", "dist/SHA256SUMS")),
    ("release", "npm", "for package in", Record("npm", "publish --access public ./dist/wharf-mcp-")),
    ("release", "pypi", "mkdir wheels", Run),
];

/// Validates the workflows against the schema of GitHub workflows, and compares their steps with the list. `try_them`: also runs the steps.
pub fn check(release: &Release, try_them: bool) -> Result<()> {
    let folder = release.root.join(".github/workflows");
    let mut files = fs::read_dir(&folder)?.map(|one| Ok(one?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut validate = Command::new(&release.python);
    validate.args(["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]);
    run(validate.args(&files).stdout(std::io::stderr()))?;
    let steps = output(Command::new(&release.python).arg(release.root.join("packaging/check/steps.py")).args(&files))?;
    let steps: Vec<(String, String, bool, String)> = serde_json::from_str(&steps)?;
    let found = steps.iter().map(|(workflow, job, _, commands)| (workflow.as_str(), job.as_str(), commands.as_str()));
    let mut listed = STEPS.iter().map(|(workflow, job, start, _)| (*workflow, *job, *start));
    for step in found.map(Some).chain([None]) {
        let one = listed.next();
        let same =
            step.zip(one).is_none_or(|(step, one)| (step.0, step.1) == (one.0, one.1) && step.2.starts_with(one.2));
        ensure!(
            same && step.is_some() == one.is_some(),
            "the workflows have the step {step:?} where xtask/src/package/steps.rs has {one:?}"
        );
    }
    if !try_them {
        return Ok(());
    }
    let place = release.root.join("target/steps");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let built = release.root.join("target/built/wharf");
    for ((workflow, job, checks_out, commands), (_, _, start, how)) in steps.iter().zip(&STEPS) {
        let step = format!("{workflow}, {job}: {start}");
        if let Skip(why) = how {
            say(&format!("not tried: {step} …: {why}"));
            continue;
        }
        // As `download-artifact` lays what earlier jobs have made.
        let folder = if *checks_out { release.root.clone() } else { place.join(job) };
        if *checks_out {
            super::copy(&release.binary, &built)?;
            fs::set_permissions(&built, fs::Permissions::from_mode(0o644))?;
        } else if !folder.exists() {
            lay(release, &folder.join("dist"))?;
        }
        let mut address = release.repository.as_deref().unwrap_or(LOOPBACK).rsplitn(3, '/');
        let (name, owner) = (address.next().context("no name")?, address.next().context("no owner")?);
        let (began, log) = (Instant::now(), place.join("recorded"));
        let mut bash = Command::new("bash");
        bash.args(["-eo", "pipefail", "-c", commands]).stdout(std::io::stderr());
        for (name, value) in [
            ("GITHUB_REF_NAME", format!("v{}", release.version).as_str()),
            ("GITHUB_SERVER_URL", address.next().context("the repository has no owner")?),
            ("GITHUB_REPOSITORY", &format!("{owner}/{name}")),
        ] {
            bash.env(name, value);
        }
        if let Record(program, _) = how {
            let recorder = place.join("bin").join(program);
            write(&recorder, b"#!/bin/sh\necho \"$@\" >> \"$RECORDED\"\n")?;
            fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755))?;
            write(&log, b"")?;
            let path = std::env::var("PATH")?;
            bash.env("RECORDED", &log).env("PATH", format!("{}:{path}", place.join("bin").display()));
        }
        run_in(&folder, &mut bash).with_context(|| step.clone())?;
        if let Record(program, expected) = how {
            let recorded = fs::read_to_string(&log)?;
            ensure!(
                recorded.contains(expected),
                "{step}: {program} was to record `{expected}`, and recorded:\n{recorded}"
            );
        }
        say(&format!("tried: {step} … ({:.1} s)", began.elapsed().as_secs_f32()));
    }
    Ok(())
}

/// Lays the finished packages and the plugins into a folder.
fn lay(release: &Release, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for from in [&release.out, &release.root.join("target/plugins")] {
        for entry in fs::read_dir(from)? {
            let path = entry?.path();
            if path.is_file() {
                fs::hard_link(&path, folder.join(path.file_name().context("no name")?))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that a pull request with another step fails at once.
    #[test]
    fn every_step_of_the_workflows_is_in_the_list() {
        let file = |name: &str| crate::root().join(format!(".github/workflows/{name}.yml"));
        let text = ["pull-request", "release"].map(|name| fs::read_to_string(file(name)).unwrap()).concat();
        assert_eq!(text.matches(" run: ").count(), STEPS.len());
        assert!(STEPS.iter().all(|(_, _, start, _)| text.contains(start)));
    }
}
