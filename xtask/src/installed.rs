//! Installs packages from npm and PyPI below `target`, exactly in the versions that the repository pins.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{run, run_in, say};

/// Installs the packages in the lockfile of `source` into `target`, without running any package's scripts. Does nothing if that lockfile is
/// installed there already.
pub fn npm(source: &Path, target: &Path) -> Result<()> {
    let lock = fs::read(source.join("package-lock.json"))?;
    let stamp = target.join("installed.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    say(&format!("installing the packages in {}", source.join("package-lock.json").display()));
    fs::create_dir_all(target)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(source.join(name), target.join(name)).with_context(|| name.to_owned())?;
    }
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run_in(target, Command::new("npm").args(arguments)).context("this needs npm")?;
    fs::write(&stamp, lock)?;
    Ok(())
}

/// Returns the Python interpreter of a virtual environment with the packages in the file `requirements`. The environment is created again
/// when that file changes.
pub fn python(requirements: &Path, environment: &Path) -> Result<PathBuf> {
    let program = environment.join("bin/python");
    let wanted = fs::read(requirements)?;
    let stamp = environment.join("installed.txt");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    say(&format!("installing the packages in {}", requirements.display()));
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment))
        .context("this needs python3 with its module venv (Debian: the package python3-venv)")?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&program).args(pip).arg(requirements))?;
    fs::write(&stamp, wanted)?;
    Ok(program)
}
