//! Compares wharf with another build of it: `--before WHARF`. The two take turns in one run, each with its own plugins, and a row is how
//! many times less time a call of this build takes on a core.
//!
//! `cargo xtask bench --fixed` names the build of one fixed commit, which `history.tsv` names. What several changes lose then adds up,
//! where comparisons with the build before each change would each see a little.

use std::path::Path;

use anyhow::Result;

use crate::{
    Effort,
    load::{Connection, Measured},
    report::{Report, Row, Wanted},
    rows::{AUDITED, ECHO, KEPT, Site, many, message, turns, turns_on_pipes},
    servers::{Built, Era, Http, TOKEN, modern_list_post, pipe, show},
};

fn row(report: &mut Report, name: &'static str, [now, before]: &[Measured; 2]) {
    report.row(Row {
        name: name.into(),
        figure: before.core_us() / now.core_us(),
        unit: "×",
        wanted: Wanted::AtLeast,
        target: 1.0,
        detail: format!(
            "{:.1} us on a core (middle {:.1}) against {:.1} ({:.1}); {:.2} × calls",
            now.core_us(),
            now.middle_us(),
            before.core_us(),
            before.middle_us(),
            now.rate() / before.rate(),
        ),
    });
}

/// `other`: the other build.
pub async fn compare(built: &Built, other: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    for (config, era, sizes) in [
        ("", Era::Modern, &[("HTTP modern, fresh", 32)][..]),
        ("", Era::Legacy, &[("HTTP legacy, fresh", 32)]),
        (KEPT, Era::Modern, &[("HTTP modern, reused", 32)]),
        ("", Era::Modern, &[("64 KiB, HTTP modern, fresh", 64 << 10)]),
        // The same servers, so that the last row shows what large calls leave behind.
        (
            "",
            Era::Modern,
            &[("1 MiB, HTTP modern, fresh", 1 << 20), ("HTTP modern, fresh, after calls with 1 MiB", 32)],
        ),
        (AUDITED, Era::Modern, &[("HTTP modern, fresh, audited / without", 32)]),
    ] {
        // The fixed build has no audit log.
        let theirs = if config == AUDITED { "" } else { config };
        let sites = [Site::new(built, &format!("{ECHO}{config}"))?, Site::new(other, &format!("{ECHO}{theirs}"))?];
        let servers = [Http::wharf(built, &sites[0].config()).await?, Http::wharf(other, &sites[1].config()).await?];
        for (name, bytes) in sizes {
            let arguments = message(*bytes);
            let mut loads = [
                servers[0].connections(era, 16, "echo", &arguments).await?,
                servers[1].connections(era, 16, "echo", &arguments).await?,
            ];
            if config == KEPT {
                loads.iter_mut().try_for_each(|load| show(load, TOKEN))?;
            }
            let [now, then] = &servers;
            let [ours, theirs] = &mut loads;
            row(report, name, &turns(effort, [now, then], [ours, theirs], *bytes).await?);
        }
    }
    lists(built, other, effort, report).await?;
    stdio(built, other, effort, report).await
}

async fn lists(built: &Built, other: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let sites = [many(built, 1000)?, many(other, 1000)?];
    let servers = [Http::wharf(built, &sites[0].config()).await?, Http::wharf(other, &sites[1].config()).await?];
    let mut loads = [Vec::new(), Vec::new()];
    for (server, load) in servers.iter().zip(&mut loads) {
        for _ in 0..16 {
            load.push(Connection::open(&server.address, modern_list_post(&server.address)).await?);
        }
        for connection in load.iter_mut().take(1) {
            connection.exchange().await?;
        }
        server.settled().await?;
    }
    let [now, then] = &servers;
    let [ours, theirs] = &mut loads;
    row(report, "tools/list of 1000 tools", &turns(effort, [now, then], [ours, theirs], 100_000).await?);
    Ok(())
}

async fn stdio(built: &Built, other: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let sites = [Site::new(built, ECHO)?, Site::new(other, ECHO)?];
    let configs = sites.each_ref().map(|site| site.config().display().to_string());
    let mut servers = [
        pipe(&built.wharf, &["run", "-c", &configs[0]]).await?,
        pipe(&other.wharf, &["run", "-c", &configs[1]]).await?,
    ];
    if let [now, then] = &*turns_on_pipes(effort, &mut servers).await? {
        row(report, "stdio, fresh", &[now.clone(), then.clone()]);
    }
    Ok(())
}

/// The other build: its binary, and the folder with its plugins.
pub fn other(built: &Built, wharf: &Path, plugins: Option<&Path>) -> Built {
    let plugins = plugins.unwrap_or(&built.plugins).to_path_buf();
    Built { wharf: wharf.to_path_buf(), plugins, ..built.clone() }
}
