//! wharf beside another build of it, such as the one from before a change: `--before PATH`.
//!
//! The two take turns in one run. The time that a server's threads had on a core for each call is the steadier figure on a
//! machine that does other things too.

use std::path::Path;

use anyhow::Result;

use crate::{
    Effort,
    load::{Connection, Measured, http},
    report::Report,
    rows::{ECHO, KEPT, Site, many, message},
    servers::{Built, Era, Http, call, modern_list_post, pipe},
};

/// Loads two servers in turn; rates and core seconds for each of them.
async fn turns(
    effort: &Effort,
    servers: [&Http; 2],
    loads: &mut [Vec<Connection>; 2],
    least: usize,
) -> Result<[(Measured, f64); 2]> {
    let mut sums = [(Measured::default(), 0.0), (Measured::default(), 0.0)];
    for round in 0..=effort.rounds {
        for ((server, load), (sum, cpu)) in servers.iter().zip(loads.iter_mut()).zip(&mut sums) {
            let before = server.cpu_seconds()?;
            let measured = http(load, effort.round, least).await?;
            // The first round warms up.
            if round > 0 {
                *cpu += server.cpu_seconds()? - before;
                sum.add(measured);
            }
        }
    }
    Ok(sums)
}

fn note(report: &mut Report, name: &str, [now, before]: &[(Measured, f64); 2]) {
    let each = |(measured, cpu): &(Measured, f64)| cpu / measured.calls.max(1) as f64 * 1e6;
    report.note(format!(
        "{name}: now / before {:.3} × calls ({:.0} against {:.0} a second); time on a core for a call {:.1} against {:.1} us: {:.3} ×",
        now.0.rate() / before.0.rate(),
        now.0.rate(),
        before.0.rate(),
        each(now),
        each(before),
        each(before) / each(now),
    ));
}

pub async fn compare(built: &Built, before: &Path, effort: &Effort, report: &mut Report) -> Result<()> {
    let other = Built { wharf: before.to_path_buf(), ..built.clone() };
    let plain = Site::new(built, ECHO)?;
    let kept = Site::new(built, &format!("{ECHO}{KEPT}"))?;
    for (name, site, era, bytes) in [
        ("HTTP modern, fresh", &plain, Era::Modern, 32),
        ("HTTP legacy, fresh", &plain, Era::Legacy, 32),
        ("HTTP modern, reused", &kept, Era::Modern, 32),
        ("64 KiB, HTTP modern, fresh", &plain, Era::Modern, 64 << 10),
        ("1 MiB, HTTP modern, fresh", &plain, Era::Modern, 1 << 20),
    ] {
        let (now, then) = (Http::wharf(built, &site.config()).await?, Http::wharf(&other, &site.config()).await?);
        let arguments = message(bytes);
        let mut loads =
            [now.connections(era, 16, "echo", &arguments).await?, then.connections(era, 16, "echo", &arguments).await?];
        let sums = turns(effort, [&now, &then], &mut loads, bytes).await?;
        note(report, name, &sums);
    }
    {
        let site = many(built, 1000)?;
        let (now, then) = (Http::wharf(built, &site.config()).await?, Http::wharf(&other, &site.config()).await?);
        let mut loads = [Vec::new(), Vec::new()];
        for (server, load) in [&now, &then].into_iter().zip(&mut loads) {
            for _ in 0..16 {
                load.push(Connection::open(&server.address, modern_list_post(&server.address)).await?);
            }
            for connection in load.iter_mut().take(1) {
                connection.exchange().await?;
            }
            server.settled().await?;
        }
        let sums = turns(effort, [&now, &then], &mut loads, 100_000).await?;
        note(report, "tools/list of 1000 tools", &sums);
    }
    let config = plain.config().display().to_string();
    let (_now, mut ours) = pipe(&built.wharf, &["run", "-c", &config]).await?;
    let (_then, mut theirs) = pipe(before, &["run", "-c", &config]).await?;
    let small = message(32);
    let line = |id: u64| call(id, "echo", &small, None).to_string();
    let (mut one, mut two) = (Measured::default(), Measured::default());
    for round in 0..=effort.rounds {
        let (ours, theirs) =
            (ours.load(&line, 16, effort.round, 32).await?, theirs.load(&line, 16, effort.round, 32).await?);
        if round > 0 {
            one.add(ours);
            two.add(theirs);
        }
    }
    report.note(format!(
        "stdio, fresh: now / before {:.3} × calls ({:.0} against {:.0} a second)",
        one.rate() / two.rate(),
        one.rate(),
        two.rate()
    ));
    Ok(())
}
