//! Installs packages from npm and PyPI below `target`, exactly in the versions that the repository pins.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{run, run_in, say};

/// Installs in `target` what the lockfile in `source` names, without running any package's scripts. It does nothing if that
/// lockfile was installed there before.
pub fn npm(source: &Path, target: &Path) -> Result<()> {
    let lock = fs::read(source.join("package-lock.json"))?;
    let stamp = target.join("installed.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    say(&format!("installing what {} names", source.join("package-lock.json").display()));
    fs::create_dir_all(target)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(source.join(name), target.join(name)).with_context(|| name.to_owned())?;
    }
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run_in(target, Command::new("npm").args(arguments)).context("this needs npm")?;
    fs::write(&stamp, lock)?;
    Ok(())
}

/// The Python interpreter of a virtual environment in which `requirements` is installed. The environment is made anew when that
/// file changes.
pub fn python(requirements: &Path, environment: &Path) -> Result<PathBuf> {
    let program = environment.join("bin/python");
    let wanted = fs::read(requirements)?;
    let stamp = environment.join("installed.txt");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    say(&format!("installing what {} names", requirements.display()));
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment))
        .context("this needs python3 with its module venv (Debian: the package python3-venv)")?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&program).args(pip).arg(requirements))?;
    fs::write(&stamp, wanted)?;
    Ok(program)
}
