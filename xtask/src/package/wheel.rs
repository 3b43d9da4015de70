//! A wheel for PyPI that carries the binary, as `pip`, `pipx` and `uvx` install it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{NAME, Release, copy, used, write};
use crate::run;

/// `uvx NAME` starts the command of that name. pip puts the interpreter's path into the first line.
const BY_NAME: &str = "#!python
import os
import sys

binary = os.path.join(os.path.dirname(os.path.realpath(__file__)), \"wharf\")
os.execv(binary, [binary, *sys.argv[1:]])
";

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let Release { version, .. } = release;
    let name = format!("{}-{version}", NAME.replace('-', "_"));
    let folder = release.work.join("wheel").join(&name);
    let (info, scripts) = (folder.join(format!("{name}.dist-info")), folder.join(format!("{name}.data/scripts")));
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {}\nLicense-Expression: {}\nLicense-File: LICENSE\n\
         Keywords: mcp,model-context-protocol,wasm,sandbox\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{}",
        release.description,
        release.license,
        fs::read_to_string(release.root.join("README.md"))?
    );
    write(&info.join("METADATA"), metadata.as_bytes())?;
    let tags = release.platform.wheel(&release.binary)?;
    let tags: String = tags.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let wheel = format!("Wheel-Version: 1.0\nGenerator: wharf\nRoot-Is-Purelib: false\n{tags}");
    write(&info.join("WHEEL"), wheel.as_bytes())?;
    copy(&release.root.join("LICENSE"), &info.join("licenses/LICENSE"))?;
    copy(&release.binary, &scripts.join("wharf"))?;
    write(&scripts.join(NAME), BY_NAME.as_bytes())?;
    fs::set_permissions(scripts.join(NAME), fs::Permissions::from_mode(0o755))?;
    // Writes the list of files with their digests, and the archive with their modes.
    run(Command::new(&release.python)
        .args(["-m", "wheel", "pack"])
        .arg(&folder)
        .arg("--dest-dir")
        .arg(&release.out)
        .stdout(std::io::stderr()))?;
    Ok(vec![release.made(".whl")?])
}

/// As a user does, with a folder in place of the registry.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let environment = place.join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut pip = used::command(&environment.join("bin/pip"), place);
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links"]);
    run(pip.arg(&release.out).arg(NAME))?;
    for command in ["wharf", NAME] {
        let mut wharf = used::command(&environment.join("bin").join(command), place);
        used::tell_time(wharf.args(used::BUILT_IN))?;
    }
    Ok(())
}
