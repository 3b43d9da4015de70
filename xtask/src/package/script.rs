//! Makes `install.sh`, which fetches the archive for a machine, compares it with SHA256SUMS, and installs the binary.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::{Release, used};
use crate::run_in;

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let releases = release.repository.as_ref().map(|at| release.download(at, ""));
    let script = fs::read_to_string(release.root.join("packaging/install.sh"))?;
    let script = script.replace("@VERSION@", &release.version);
    let made = release.out.join("install.sh");
    fs::write(&made, script.replace("@RELEASES@", releases.unwrap_or_default().trim_end_matches('/')))?;
    Ok(vec![made])
}

/// Installs from a server on this machine that has the archive, and refuses one with another byte.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let served = place.join("release");
    fs::create_dir_all(&served)?;
    let archive =
        release.made(".tar.gz").context("`--only install` is tried with `archive`: --only archive,install")?;
    let name = archive.file_name().context("no name")?;
    fs::copy(&archive, served.join(name))?;
    run_in(&served, Command::new("sh").args(["-c", "sha256sum -- *.tar.gz > SHA256SUMS"]))?;
    let mut server = Command::new(&release.python)
        .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"])
        .current_dir(&served)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let tried = (|| {
        let mut line = String::new();
        BufReader::new(server.stdout.take().context("no output")?).read_line(&mut line)?;
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1).context("it has no port")?;
        let folder = place.join("home/bin");
        let install = || {
            let mut install = used::command(Path::new("sh"), place);
            install.arg(release.out.join("install.sh")).arg(&folder);
            install.env("WHARF_RELEASES", format!("http://127.0.0.1:{port}"));
            install.output().context("sh cannot be started")
        };
        let installed = install()?;
        ensure!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        used::tell_time(used::command(&folder.join("wharf"), place).args(used::BUILT_IN))?;
        fs::remove_file(folder.join("wharf"))?;
        let mut changed = fs::read(&archive)?;
        let last = changed.last_mut().context("the archive is empty")?;
        *last ^= 1;
        fs::write(served.join(name), changed)?;
        let refused = install()?;
        let said = String::from_utf8_lossy(&refused.stderr);
        ensure!(
            said.contains("is not the file of the release") && !folder.join("wharf").exists(),
            "not refused: {said}"
        );
        Ok(())
    })();
    server.kill().ok();
    server.wait().ok();
    tried
}
