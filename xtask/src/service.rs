//! `cargo xtask check service`: tests the systemd unit and the container image with their hardening. It needs root on Debian. The unit runs in a
//! separate Debian that systemd-nspawn boots. The checks themselves are in tests/service.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    run, say,
    tree::{prepare, wharf},
};

/// The Debian release that the unit is tested on. Its systemd has to support `Type=notify-reload`.
const SUITE: &str = "trixie";
const PACKAGES: &str = "systemd,systemd-sysv,dbus,libpam-systemd,curl,openssl,gawk,hostname";
const MIRROR: &str = "http://deb.debian.org/debian";

const REQUIRED_PROGRAMS: [&str; 6] = ["mmdebstrap", "systemd-nspawn", "buildah", "podman", "curl", "unshare"];

/// The systemd unit that runs the checks. It is booted instead of the default target, and shuts the machine down with its own exit status.
const CHECK_UNIT: &str = "[Unit]
After=basic.target dbus.service network-online.target
Requires=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/bash /in/unit.sh
TimeoutStartSec=300
";

/// Runs both tests; with `--unit` or `--image`, only that one.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let wants = |what: &str| rest.is_empty() || rest.iter().any(|argument| argument == what);
    for program in REQUIRED_PROGRAMS {
        let found = Command::new(program).arg("--help").output().is_ok();
        ensure!(found, "{program} is missing: apt-get install mmdebstrap systemd-container buildah podman crun curl");
    }
    prepare(&[])?;
    let binary = wharf();
    let folder = root.join("target/service");
    if wants("--unit") {
        unit(root, &folder, &binary)?;
    }
    if wants("--image") {
        image(root, &folder.join("image"), &binary)?;
    }
    Ok(())
}

fn copy_all(to: &Path, files: &[(PathBuf, &str)]) -> Result<()> {
    for (from, name) in files {
        let place = to.join(name);
        fs::create_dir_all(place.parent().unwrap_or(to))?;
        fs::copy(from, &place).with_context(|| format!("{} is missing", from.display()))?;
    }
    Ok(())
}

fn unit(root: &Path, folder: &Path, binary: &Path) -> Result<()> {
    let (debian, inside, out) = (folder.join("debian"), folder.join("in"), folder.join("out"));
    if !debian.is_dir() {
        say("installing a Debian with systemd, only this time");
        let partial = folder.join("debian.partial");
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir_all(folder)?;
        let mut debootstrap = Command::new("mmdebstrap");
        debootstrap.args(["--quiet", "--variant=minbase"]).arg(format!("--include={PACKAGES}"));
        run(debootstrap.arg(SUITE).arg(&partial).arg(MIRROR))?;
        fs::rename(&partial, &debian)?;
    }
    for one in [&inside, &out] {
        if one.exists() {
            fs::remove_dir_all(one)?;
        }
        fs::create_dir_all(one)?;
    }
    let (examples, tests) = (root.join("examples/systemd"), root.join("tests/service"));
    let files = [
        (binary.to_path_buf(), "wharf"),
        (root.join("target/plugins/time.wasm"), "time.wasm"),
        (examples.join("wharf.service"), "wharf.service"),
        (examples.join("wharf.socket"), "wharf.socket"),
        (tests.join("unit.sh"), "unit.sh"),
        (tests.join("probe.sh"), "probe.sh"),
    ];
    copy_all(&inside, &files)?;
    fs::write(debian.join("etc/systemd/system/check.service"), CHECK_UNIT)?;
    let mut nspawn = Command::new("systemd-nspawn");
    nspawn.arg("--quiet").arg("--directory").arg(&debian);
    nspawn.args(["--volatile=overlay", "--private-network", "--console=pipe", "--hostname=wharf-service"]);
    nspawn.arg(format!("--bind-ro={}:/in", inside.display())).arg(format!("--bind={}:/out", out.display()));
    if !Path::new("/run/systemd/system").exists() {
        // Without systemd on this machine, there is no systemd-machined to register with.
        nspawn.args(["--register=no", "--keep-unit"]);
    }
    nspawn.args(["--boot", "--", "systemd.unit=check.service", "systemd.show_status=no"]);
    let output = nspawn.env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1").output().context("systemd-nspawn")?;
    let report = fs::read_to_string(out.join("report")).unwrap_or_default();
    say(report.trim_end());
    let ended = report.contains("overall exposure") || report.contains("Overall exposure");
    ensure!(
        output.status.success() && ended && !report.contains("FAILED"),
        "the unit: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    say("the unit runs with its hardening");
    Ok(())
}

fn image(root: &Path, folder: &Path, binary: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let plugins = root.join("target/plugins");
    let files = [
        (binary.to_path_buf(), "target/x86_64-unknown-linux-musl/release/wharf"),
        (plugins.join("files.wasm"), "target/plugins/files.wasm"),
        (plugins.join("time.wasm"), "target/plugins/time.wasm"),
        (plugins.join("fetch.wasm"), "target/plugins/fetch.wasm"),
    ];
    copy_all(folder, &files)?;
    // Container engines do not run with cgroup v1 controllers, so they get a mount namespace in which only a cgroup v2 tree is mounted.
    let script = "mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(root.join("tests/service/image.sh"));
    run(command.arg(folder).arg(root.join("examples/container/Containerfile")))?;
    say("the image runs with its hardening");
    Ok(())
}
