//! `cargo xtask replicas`: runs three replicas behind nginx and behind HAProxy, with Redis, all of Debian, and loads them while they are stopped,
//! killed and started again.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::{debian, prepare, run_in};

/// How long each proxy is loaded, in seconds.
const SECONDS: [(&str, u32); 2] = [("nginx", 300), ("haproxy", 120)];
const BRIEF_SECONDS: u32 = 60;

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let brief = rest.iter().any(|argument| argument == "--brief");
    ensure!(rest.iter().all(|argument| argument == "--brief"), "the only option is --brief: nginx, for a minute");
    debian::provide(root, "redis-server", "usr/bin/redis-server")?;
    debian::provide(root, "nginx", "usr/sbin/nginx")?;
    if !brief {
        debian::provide(root, "haproxy", "usr/sbin/haproxy")?;
    }
    prepare(&[])?;
    for (proxy, seconds) in SECONDS.into_iter().take(if brief { 1 } else { SECONDS.len() }) {
        let seconds = if brief { BRIEF_SECONDS } else { seconds };
        let mut load = Command::new("node");
        load.arg(root.join("tests/replicas/load.mjs"));
        load.arg("--bin").arg(root.join("target/release/wharf")).arg("--plugins").arg(root.join("target/plugins"));
        load.arg("--debian").arg(root.join("target/debian")).args([
            "--proxy",
            proxy,
            "--seconds",
            &seconds.to_string(),
        ]);
        run_in(root, &mut load)?;
    }
    Ok(())
}
