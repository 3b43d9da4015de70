//! `cargo xtask check replicas`: runs three replicas behind nginx and behind HAProxy, with Redis, all of Debian: under load while they are stopped,
//! killed and started again, with official clients, compared with replicas that share nothing, and with many people at once.

use std::{path::Path, process::Command};

use anyhow::{Result, bail, ensure};

use crate::{
    debian, run_in, say,
    tree::{plugins, prepare, wharf},
};

/// The programs in tests/replicas, in the order in which they run.
const PROGRAMS: [&str; 4] = ["load", "clients", "ratio", "people"];
const PROXIES: [&str; 2] = ["nginx", "haproxy"];
/// How long the load with each proxy takes, in seconds.
const SECONDS: u32 = 300;
const BRIEF_SECONDS: u32 = 60;
const USAGE: &str =
    "the options are --brief (the load behind nginx, for a minute) and --only load|clients|ratio|people";

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let (brief, only) = match rest.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => (false, None),
        ["--brief"] => (true, Some("load")),
        ["--only", program] if PROGRAMS.contains(program) => (false, Some(*program)),
        ["--only", program, "--brief"] | ["--brief", "--only", program] if PROGRAMS.contains(program) => {
            (true, Some(*program))
        }
        _ => bail!("{USAGE}"),
    };
    debian::provide(root, "redis-server", "usr/bin/redis-server")?;
    debian::provide(root, "nginx", "usr/sbin/nginx")?;
    if !brief {
        debian::provide(root, "haproxy", "usr/sbin/haproxy")?;
    }
    prepare(&[])?;
    let mut failed = Vec::new();
    for program in PROGRAMS.into_iter().filter(|program| only.is_none_or(|only| only == *program)) {
        let proxies: &[Option<&str>] = match program {
            "ratio" => &[None],
            "people" => &[Some("nginx")],
            _ if brief => &[Some("nginx")],
            _ => &PROXIES.map(Some),
        };
        for proxy in proxies {
            let mut command = Command::new("node");
            command.arg(root.join("tests/replicas").join(program).with_extension("mjs"));
            command.arg("--bin").arg(wharf()).arg("--plugins").arg(plugins());
            command.arg("--debian").arg(root.join("target/debian"));
            if let Some(proxy) = proxy {
                command.args(["--proxy", proxy]);
            }
            if program == "load" {
                command.args(["--seconds", &if brief { BRIEF_SECONDS } else { SECONDS }.to_string()]);
            }
            if brief && program == "clients" {
                command.arg("--brief");
            }
            say(&format!("{program}{}", proxy.map(|proxy| format!(" behind {proxy}")).unwrap_or_default()));
            if run_in(root, &mut command).is_err() {
                failed.push(format!("{program}.mjs {}", proxy.unwrap_or_default()));
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}
