//! Compares wharf with another build of it: `--before WHARF`. The two take turns in one run, each with its own plugins, and a row is how
//! many times less time a call of this build takes on a core.
//!
//! `cargo xtask bench --fixed` names the build of one fixed commit, which `history.tsv` names. What several changes lose then adds up,
//! where comparisons with the build before each change would each see a little.

use std::path::Path;

use anyhow::{Result, anyhow};

use crate::{
    Effort,
    history::{Figure, History},
    load::{Connection, Measured},
    report::{Report, Row, Wanted, say},
    rows::{AUDITED, ECHO, KEPT, Site, many, message, turns, turns_on_pipes},
    servers::{Built, Era, Http, TOKEN, modern_list_post, pipe, show},
};

/// Each row takes this many processes of each build, one after the other. Which threads serve which connections differs between processes of
/// one build, and with it the time on a core: a list took 45 to 63 us. The least of all rounds counts.
const PROCESSES: u32 = 3;
/// How often a row is measured that seems to have fallen: a bad moment of the machine may have lasted for all rounds of one build.
const ATTEMPTS: u32 = 3;

/// What came of this build and of the other one.
type Both = [Measured; 2];

fn merge(all: &mut Both, more: Both) {
    for (all, more) in all.iter_mut().zip(more) {
        all.merge(more);
    }
}

fn figure([now, before]: &Both) -> Figure {
    Figure { times: before.core_us() / now.core_us(), core_us: Some(now.core_us()) }
}

fn row(report: &mut Report, name: &'static str, both: &Both) {
    let [now, before] = both;
    report.row(Row {
        name: name.into(),
        figure: figure(both).times,
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

/// What is measured with the same processes.
enum Load {
    /// Rows by their names and the bytes that are echoed.
    Echoes(&'static str, Era, &'static [(&'static str, usize)]),
    List(&'static str),
    Stdio(&'static str),
}

const LOADS: [Load; 8] = [
    Load::Echoes("", Era::Modern, &[("HTTP modern, fresh", 32)]),
    Load::Echoes("", Era::Legacy, &[("HTTP legacy, fresh", 32)]),
    Load::Echoes(KEPT, Era::Modern, &[("HTTP modern, reused", 32)]),
    Load::Echoes("", Era::Modern, &[("64 KiB, HTTP modern, fresh", 64 << 10)]),
    // The last row shows what large calls leave behind.
    Load::Echoes(
        "",
        Era::Modern,
        &[("1 MiB, HTTP modern, fresh", 1 << 20), ("HTTP modern, fresh, after calls with 1 MiB", 32)],
    ),
    Load::Echoes(AUDITED, Era::Modern, &[("HTTP modern, fresh, audited / without", 32)]),
    Load::List("tools/list of 1000 tools"),
    Load::Stdio("stdio, fresh"),
];

impl Load {
    fn names(&self) -> Vec<&'static str> {
        match self {
            Self::Echoes(_, _, rows) => rows.iter().map(|(name, _)| *name).collect(),
            Self::List(name) | Self::Stdio(name) => vec![*name],
        }
    }

    /// Measures one process of each build, for each row.
    async fn measure(&self, builds: [&Built; 2], effort: &Effort) -> Result<Vec<Both>> {
        match self {
            Self::Echoes(config, era, rows) => echoes(builds, effort, config, *era, rows).await,
            Self::List(_) => Ok(vec![lists(builds, effort).await?]),
            Self::Stdio(_) => Ok(vec![stdio(builds, effort).await?]),
        }
    }
}

/// Returns the figures by the names of their rows. `other`: the other build. Rows that fell below their history are measured again.
pub async fn compare(
    built: &Built,
    other: &Built,
    effort: &Effort,
    history: Option<&History>,
    report: &mut Report,
) -> Result<Vec<(&'static str, Figure)>> {
    let effort = &Effort { rounds: effort.rounds.div_ceil(PROCESSES), ..effort.clone() };
    let mut figures = Vec::new();
    for load in &LOADS {
        let names = load.names();
        let mut all = vec![Both::default(); names.len()];
        for attempt in 1..=ATTEMPTS {
            for _ in 0..PROCESSES {
                let measured = load.measure([built, other], effort).await?;
                all.iter_mut().zip(measured).for_each(|(all, more)| merge(all, more));
            }
            let fallen = names.iter().zip(&all).find_map(|(name, both)| history?.fallen(name, figure(both)));
            match fallen {
                Some(problem) if attempt < ATTEMPTS => say(&format!("measured again: {problem}")),
                _ => break,
            }
        }
        for (name, both) in names.into_iter().zip(&all) {
            row(report, name, both);
            figures.push((name, figure(both)));
        }
    }
    Ok(figures)
}

async fn echoes(
    [built, other]: [&Built; 2],
    effort: &Effort,
    config: &str,
    era: Era,
    rows: &[(&str, usize)],
) -> Result<Vec<Both>> {
    // The fixed build has no audit log, and another key for the variable with the token.
    let theirs = if config == AUDITED { String::new() } else { config.replace("token.env", "token_env") };
    let sites = [Site::new(built, &format!("{ECHO}{config}"))?, Site::new(other, &format!("{ECHO}{theirs}"))?];
    let [now, then] = [Http::wharf(built, &sites[0].config()).await?, Http::wharf(other, &sites[1].config()).await?];
    let mut measured = Vec::with_capacity(rows.len());
    for (_, bytes) in rows {
        let arguments = message(*bytes);
        let mut ours = now.connections(era, 16, "echo", &arguments).await?;
        let mut theirs = then.connections(era, 16, "echo", &arguments).await?;
        if config == KEPT {
            show(&mut ours, TOKEN)?;
            show(&mut theirs, TOKEN)?;
        }
        measured.push(turns(effort, [&now, &then], [&mut ours, &mut theirs], *bytes).await?);
    }
    Ok(measured)
}

async fn lists([built, other]: [&Built; 2], effort: &Effort) -> Result<Both> {
    let sites = [many(built, 1000)?, many(other, 1000)?];
    let [now, then] = [Http::wharf(built, &sites[0].config()).await?, Http::wharf(other, &sites[1].config()).await?];
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
    turns(effort, [&now, &then], [ours, theirs], 100_000).await
}

async fn stdio([built, other]: [&Built; 2], effort: &Effort) -> Result<Both> {
    let sites = [Site::new(built, ECHO)?, Site::new(other, ECHO)?];
    let configs = sites.each_ref().map(|site| site.config().display().to_string());
    let mut servers = [
        pipe(&built.wharf, &["run", "-c", &configs[0]]).await?,
        pipe(&other.wharf, &["run", "-c", &configs[1]]).await?,
    ];
    let measured = turns_on_pipes(effort, &mut servers).await?;
    measured.try_into().map_err(|_| anyhow!("not two servers"))
}

/// The other build: its binary, and the folder with its plugins.
pub fn other(built: &Built, wharf: &Path, plugins: Option<&Path>) -> Built {
    let plugins = plugins.unwrap_or(&built.plugins).to_path_buf();
    Built { wharf: wharf.to_path_buf(), plugins, ..built.clone() }
}
