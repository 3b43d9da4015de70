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
    if starts(&folder, path) || places.iter().any(|place| place.join(program).is_file()) {
        return Ok(());
    }
    say(&format!("unpacking Debian's {package} into target/debian"));
    let unpacked = unpack(&folder, package);
    unpacked.with_context(|| format!("tests need {}: install {package}", program.display()))?;
    ensure!(
        starts(&folder, path),
        "Debian's {package} does not start from {path}; install {} yourself",
        program.display()
    );
    Ok(())
}

/// Makes a program available, and returns a command that starts it: the machine's or the unpacked one.
pub fn program(root: &Path, package: &str, path: &str) -> Result<Command> {
    provide(root, package, path)?;
    let folder = root.join("target/debian");
    if !folder.join(path).is_file() {
        return Ok(Command::new(Path::new(path).file_name().context("a path of a program")?));
    }
    let mut command = Command::new(folder.join(path));
    command.env("LD_LIBRARY_PATH", libraries(&folder));
    Ok(command)
}

fn unpack(folder: &Path, package: &str) -> Result<()> {
    let archives = folder.join("archives").join(package);
    fs::create_dir_all(&archives)?;
    let download = || {
        let packages = needed(package)?;
        run_in(&archives, Command::new("apt-get").args(["download", "-qq"]).args(&packages))
    };
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

/// Returns a package, and what it depends on that this machine lacks, as apt would install them.
fn needed(package: &str) -> Result<BTreeSet<String>> {
    let mut install = Command::new("apt-get");
    install.args(["install", "--simulate", "--no-install-recommends", "-qq", package]);
    let output = install.output().context("apt-get is missing")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let steps = String::from_utf8(output.stdout)?;
    let names = steps.lines().filter_map(|step| step.strip_prefix("Inst ")?.split_whitespace().next());
    let mut needed: BTreeSet<String> = names.map(ToOwned::to_owned).collect();
    needed.insert(package.to_owned());
    Ok(needed)
}

/// Whether an unpacked program starts, with the libraries that were unpacked with it.
fn starts(folder: &Path, path: &str) -> bool {
    ["-v", "--version"].iter().any(|option| {
        let mut program = Command::new(folder.join(path));
        let version = program.arg(option).env("LD_LIBRARY_PATH", libraries(folder)).output();
        version.is_ok_and(|version| version.status.success())
    })
}

/// The folders of unpacked libraries: the common one, and those of Nix and of sound, which Chromium is linked to.
fn libraries(folder: &Path) -> String {
    let common = format!("usr/lib/{}-linux-gnu", env::consts::ARCH);
    let sound = format!("{common}/pulseaudio");
    [common, "usr/lib/nix".into(), sound].map(|one| folder.join(one).display().to_string()).join(":")
}
