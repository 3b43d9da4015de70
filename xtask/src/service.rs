//! Runs the unit under systemd and the image in a container, with all that shuts them in, on a Debian where this is root: the unit in a
//! Debian of its own that systemd-nspawn boots. The checks themselves are in tests/service.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{prepare, run, say};

/// What the unit is tried with. Its systemd has to know `Type=notify-reload`.
const SUITE: &str = "trixie";
const PACKAGES: &str = "systemd,systemd-sysv,dbus,libpam-systemd,curl,openssl,gawk,hostname";
const MIRROR: &str = "http://deb.debian.org/debian";

const NEEDED: [&str; 6] = ["mmdebstrap", "systemd-nspawn", "buildah", "podman", "curl", "unshare"];

/// The unit that is booted in place of everything else, and ends the machine with its own status.
const CHECK: &str = "[Unit]
After=basic.target dbus.service network-online.target
Requires=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/bash /in/unit.sh
TimeoutStartSec=300
";

/// `--unit` or `--image`: only that. `WHARF_BIN`: that binary, in place of one that is built now.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let wants = |what: &str| rest.is_empty() || rest.iter().any(|argument| argument == what);
    for program in NEEDED {
        let found = Command::new(program).arg("--help").output().is_ok();
        ensure!(found, "{program} is missing: apt-get install mmdebstrap systemd-container buildah podman crun curl");
    }
    let binary = match env::var_os("WHARF_BIN") {
        Some(binary) => PathBuf::from(binary),
        None => {
            prepare(&[])?;
            root.join("target/release/wharf")
        }
    };
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
        say("making a Debian with systemd, once");
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
    fs::write(debian.join("etc/systemd/system/check.service"), CHECK)?;
    let mut nspawn = Command::new("systemd-nspawn");
    nspawn.arg("--quiet").arg("--directory").arg(&debian);
    nspawn.args(["--volatile=overlay", "--private-network", "--console=pipe", "--hostname=wharf-service"]);
    nspawn.arg(format!("--bind-ro={}:/in", inside.display())).arg(format!("--bind={}:/out", out.display()));
    if !Path::new("/run/systemd/system").exists() {
        // Nobody is there who could be told of it.
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
    // Container engines do not run beside controllers of the first kind: there they get a tree of the second kind, and only that.
    let script = "mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(root.join("tests/service/image.sh"));
    run(command.arg(folder).arg(root.join("examples/container/Containerfile")))?;
    say("the image runs with its hardening");
    Ok(())
}
