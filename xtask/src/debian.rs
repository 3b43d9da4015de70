//! Programs that tests need and that come from Debian's packages. They are unpacked into target/debian, not installed, so that no rights are
//! needed and nothing on the machine changes. A program that the machine has is used as it is.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{run_in, say};

/// Makes a program available, from a package of this name. `path`: where the package has the program.
pub fn provide(root: &Path, package: &str, path: &str) -> Result<()> {
    let folder = root.join("target/debian");
    let program = Path::new(path).file_name().context("a path of a program")?;
    let mut places = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    places.push(PathBuf::from("/usr/sbin"));
    if folder.join(path).exists() || places.iter().any(|place| place.join(program).is_file()) {
        return Ok(());
    }
    say(&format!("unpacking Debian's {package} into target/debian"));
    let unpacked = unpack(&folder, package);
    unpacked.with_context(|| format!("tests need {}: install {package}", program.display()))?;
    ensure!(folder.join(path).exists(), "Debian's {package} has no {path}; install {} yourself", program.display());
    Ok(())
}

fn unpack(folder: &Path, package: &str) -> Result<()> {
    let archives = folder.join("archives").join(package);
    fs::create_dir_all(&archives)?;
    let packages = needed(package)?;
    let download = || run_in(&archives, Command::new("apt-get").args(["download", "-qq"]).args(&packages));
    if download().is_err() {
        // The lists of packages may be missing or old.
        run_in(&archives, Command::new("apt-get").args(["update", "-qq"]))?;
        download()?;
    }
    for archive in fs::read_dir(&archives)? {
        let archive = archive?.path();
        if archive.extension().is_some_and(|extension| extension == "deb") {
            run_in(folder, Command::new("dpkg").arg("-x").arg(&archive).arg("."))?;
        }
    }
    Ok(())
}

/// Returns a package, and what it depends on that this machine lacks.
fn needed(package: &str) -> Result<BTreeSet<String>> {
    let without =
        ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"].map(|kind| format!("--no-{kind}"));
    let mut depends = Command::new("apt-cache");
    depends.args(["depends", "--recurse"]).args(without).arg(package);
    let output = depends.output().context("apt-cache is missing")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    // Virtual packages stand in angle brackets, and what is depended on is indented.
    let names = String::from_utf8(output.stdout)?;
    let names = names.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()));
    let is_missing = |name: &&str| {
        let known = Command::new("dpkg-query").args(["-W", "-f", "${Status}", name]).output();
        !known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains("install ok installed"))
    };
    let mut needed: BTreeSet<String> = names.filter(is_missing).map(ToOwned::to_owned).collect();
    needed.insert(package.to_owned());
    Ok(needed)
}
