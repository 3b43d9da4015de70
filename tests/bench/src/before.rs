//! Compares wharf with another build of it, such as the one from before a change: `--before PATH`.
//!
//! The two take turns in one run. The time that a server's threads had on a core for each call is the steadier figure on a
//! machine that does other things too.

use std::path::Path;

use anyhow::Result;

use crate::{
    Effort,
    load::{Connection, Measured},
    report::Report,
    rows::{ECHO, KEPT, Site, many, message, turns},
    servers::{Built, Era, Http, TOKEN, call, modern_list_post, pipe, show},
};

fn note(report: &mut Report, name: &str, [now, before]: &[Measured; 2]) {
    report.note(format!(
        "{name}: now / before {:.3} × calls ({:.0} against {:.0} a second); time on a core for a call {:.1} against {:.1} us: {:.3} ×",
        now.rate() / before.rate(),
        now.rate(),
        before.rate(),
        now.core_us(),
        before.core_us(),
        before.core_us() / now.core_us(),
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
        let mut ours = now.connections(era, 16, "echo", &arguments).await?;
        let mut theirs = then.connections(era, 16, "echo", &arguments).await?;
        if std::ptr::eq(site, &kept) {
            show(&mut ours, TOKEN)?;
            show(&mut theirs, TOKEN)?;
        }
        let sums = turns(effort, [&now, &then], [&mut ours, &mut theirs], bytes).await?;
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
        let [ours, theirs] = &mut loads;
        let sums = turns(effort, [&now, &then], [ours, theirs], 100_000).await?;
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
