//! Makes a package for Debian and its derivatives: the binary, systemd units with a system user, man pages, completions.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{Release, copy, platform, used, write};
use crate::run;

const UNITS: &str = "usr/lib/systemd/system";

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let Some(architecture) = release.platform.deb else { return Ok(Vec::new()) };
    let folder = release.work.join("deb");
    let (source, doc) = (release.root.join("packaging/deb"), folder.join("usr/share/doc/wharf"));
    copy(&release.binary, &folder.join("usr/bin/wharf"))?;
    let service = fs::read_to_string(release.root.join("examples/systemd/wharf.service"))?;
    let moved = service.replace("/usr/local/bin/wharf", "/usr/bin/wharf");
    ensure!(moved != service, "examples/systemd/wharf.service does not start /usr/local/bin/wharf");
    write(&folder.join(UNITS).join("wharf.service"), moved.as_bytes())?;
    copy(&release.root.join("examples/systemd/wharf.socket"), &folder.join(UNITS).join("wharf.socket"))?;
    copy(&source.join("sysusers.conf"), &folder.join("usr/lib/sysusers.d/wharf.conf"))?;
    copy(&release.root.join("examples/wharf.toml"), &doc.join("examples/wharf.toml"))?;
    for plugin in ["fetch", "files", "git", "memory", "sequentialthinking", "time"] {
        copy(&release.plugin(plugin), &folder.join("usr/share/wharf/plugins").join(format!("{plugin}.wasm")))?;
    }
    let copyright = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nCopyright: the wharf authors\n\
         License: {}\n On Debian systems, its text is in /usr/share/common-licenses/Apache-2.0.\n",
        release.license
    );
    write(&doc.join("copyright"), copyright.as_bytes())?;
    let share = folder.join("usr/share");
    let man = share.join("man/man1");
    release.write_help(
        &man,
        &[
            ("bash", share.join("bash-completion/completions/wharf")),
            ("zsh", share.join("zsh/vendor-completions/_wharf")),
            ("fish", share.join("fish/vendor_completions.d/wharf.fish")),
        ],
    )?;
    copy(&release.root.join("CHANGELOG.md"), &doc.join("changelog"))?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "-n"]).arg(doc.join("changelog"));
    for page in fs::read_dir(&man)? {
        gzip.arg(page?.path());
    }
    run(&mut gzip)?;
    let (major, minor) = platform::glibc(&release.binary)?;
    let control = format!(
        "Package: wharf\nVersion: {}\nArchitecture: {architecture}\nMaintainer: The wharf authors\n\
         Section: net\nPriority: optional\nDepends: libc6 (>= {major}.{minor}), libgcc-s1, systemd | systemd-standalone-sysusers\nRecommends: ca-certificates\n\
         Installed-Size: {}\nDescription: {}\n The service is not started before /etc/wharf/wharf.toml is written; examples are in\n \
         /usr/share/doc/wharf/examples, plugins in /usr/share/wharf/plugins.\n",
        release.version,
        size(&folder)? / 1024,
        release.description,
    );
    write(&folder.join("DEBIAN/control"), control.as_bytes())?;
    for script in ["postinst", "prerm", "postrm"] {
        let place = folder.join("DEBIAN").join(script);
        copy(&source.join(script), &place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    }
    let file = release.out.join(format!("wharf_{}_{architecture}.deb", release.version));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&folder).arg(&file).stdout(std::io::stderr());
    run(&mut build).context("this needs dpkg-deb")?;
    Ok(vec![file])
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        sum += if found.is_dir() { size(&entry.path())? } else { found.len() };
    }
    Ok(sum)
}

/// Installs the package into a folder instead of the machine's root, with the package's scripts, uses it, and removes it.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    if release.platform.deb.is_none() {
        return Ok(());
    }
    let root = place.join("root");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for file in ["status", "available"] {
        write(&root.join("var/lib/dpkg").join(file), b"")?;
    }
    let dpkg = |action: &str, what: &Path| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(&root).args(["--force-not-root", "--force-script-chrootless", "--force-depends"]);
        // `--force-depends`, because the packages that it depends on are not installed in the empty root.
        run(dpkg.args(["--force-bad-path", "--log=/dev/null"]).arg(action).arg(what).stdout(std::io::stderr()))
    };
    dpkg("--install", &release.made(".deb")?)?;
    let users = fs::read_to_string(root.join("etc/passwd")).context("the package created no user")?;
    ensure!(users.contains("wharf:"), "there is no user wharf");
    let service = fs::read_to_string(root.join(UNITS).join("wharf.service"))?;
    ensure!(service.contains("ExecStart=/usr/bin/wharf serve"), "wharf.service does not start /usr/bin/wharf");
    let mut wharf = used::command(&root.join("usr/bin/wharf"), place);
    used::tell_time(wharf.arg("run").arg(root.join("usr/share/wharf/plugins/time.wasm")))?;
    dpkg("--purge", Path::new("wharf"))?;
    ensure!(!root.join("usr/bin/wharf").exists(), "/usr/bin/wharf still exists after the package was purged");
    Ok(())
}
