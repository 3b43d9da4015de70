//! Makes an archive with the binary, its man pages and completions, for `cargo binstall` and for unpacking by hand.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{Release, copy, used};
use crate::run_in;

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let name = name(release);
    let folder = release.work.join("archive").join(&name);
    copy(&release.binary, &folder.join("wharf"))?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&release.root.join(file), &folder.join(file))?;
    }
    let completions = folder.join("completions");
    release.write_help(
        &folder.join("man"),
        &[
            ("bash", completions.join("wharf.bash")),
            ("zsh", completions.join("_wharf")),
            ("fish", completions.join("wharf.fish")),
        ],
    )?;
    let archive = release.out.join(format!("{name}.tar.gz"));
    run_in(&release.work.join("archive"), Command::new("tar").arg("czf").arg(&archive).arg(&name))?;
    Ok(vec![archive])
}

pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    run_in(place, Command::new("tar").arg("xzf").arg(release.made(".tar.gz")?))?;
    let mut wharf = used::command(&place.join(name(release)).join("wharf"), place);
    used::tell_time(wharf.args(used::BUILT_IN))
}

fn name(release: &Release) -> String {
    format!("wharf-{}-v{}", release.platform.triple, release.version)
}
