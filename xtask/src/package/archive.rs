//! Makes an archive with the binary, its man pages and completions, for `cargo binstall` and for unpacking by hand.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{
    Release, copy,
    platform::{self, Platform},
    sha256, used,
};
use crate::run_in;

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let name = name(release, release.platform);
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
    let folder = unpack(release, release.platform, place)?;
    used::tell_time(used::command(&folder.join("wharf"), place).args(used::BUILT_IN))
}

fn name(release: &Release, platform: &Platform) -> String {
    format!("wharf-{}-v{}", platform.triple, release.version)
}

/// A finished archive, as lists name it.
pub struct Archive {
    pub platform: &'static Platform,
    pub file: String,
    pub sha256: Vec<u8>,
}

/// Returns the finished archives, one for each system and processor: on Linux that with glibc if there is one, which is faster.
pub fn finished(release: &Release) -> Result<Vec<Archive>> {
    let mut all: Vec<Archive> = Vec::new();
    for platform in &platform::ALL {
        let file = format!("{}.tar.gz", name(release, platform));
        let other = |one: &Archive| (one.platform.os, one.platform.cpu) != (platform.os, platform.cpu);
        if release.out.join(&file).is_file() && all.iter().all(other) {
            all.push(Archive { platform, sha256: sha256(&release.out.join(&file))?, file });
        }
    }
    ensure!(
        !all.is_empty(),
        "{} has no archive of wharf {}; `--only archive,…` makes one",
        release.out.display(),
        release.version
    );
    Ok(all)
}

/// Unpacks an archive, and returns the folder that it contains.
pub fn unpack(release: &Release, platform: &Platform, place: &Path) -> Result<PathBuf> {
    let archive = release.out.join(format!("{}.tar.gz", name(release, platform)));
    ensure!(archive.is_file(), "there is no {}, which is the archive for {}", archive.display(), platform.triple);
    run_in(place, Command::new("tar").arg("xzf").arg(archive))?;
    Ok(place.join(name(release, platform)))
}

/// Takes the binary with which lists are tried from the archive for this machine.
pub fn take_binary(release: &Release) -> Result<()> {
    let folder = unpack(release, release.platform, &release.work).context("--check starts the binary of an archive")?;
    copy(&folder.join("wharf"), &release.binary)
}
