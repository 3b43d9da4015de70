//! The rates: each of wharf's against its ceiling, and wharf along each axis.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Child};

use crate::{
    Effort,
    load::{Connection, Measured, Pipe, http},
    login,
    report::{Point, Report, Row, Wanted},
    servers::{Built, Era, Http, TOKEN, call, cpu_seconds, get, modern_list_post, pipe, show},
};

/// A config for `wharf serve` in a folder of its own.
pub struct Site {
    pub folder: tempfile::TempDir,
}

impl Site {
    pub fn new(built: &Built, config: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let text = config.replace("PLUGINS", &built.plugins.display().to_string());
        fs::write(folder.path().join("wharf.toml"), text)?;
        Ok(Self { folder })
    }

    pub fn config(&self) -> std::path::PathBuf {
        self.folder.path().join("wharf.toml")
    }
}

pub const ECHO: &str = "[plugins.echo]\npath = 'PLUGINS/echo.wasm'\nprefix = ''\n";
/// Instances are kept for clients that are known, and these are known by a token.
pub const KEPT: &str = "instances = 'reused'\n[http]\ntoken.env = 'BENCH_TOKEN'\n";

/// Every call is recorded. The log has a folder of its own, because wharf reacts to changes in that of its config.
pub const AUDITED: &str = "[audit]\nfile = 'log/audit.jsonl'\n";

/// The arguments of an echo of so many bytes.
pub fn message(bytes: usize) -> Value {
    json!({ "message": "x".repeat(bytes) })
}

/// Two servers in turn, so that what else the machine does hits both alike.
pub async fn turns(
    effort: &Effort,
    servers: [&Http; 2],
    loads: [&mut [Connection]; 2],
    least: usize,
) -> Result<[Measured; 2]> {
    let mut sums = [Measured::default(), Measured::default()];
    let mut sides: Vec<_> = servers.into_iter().zip(loads).zip(&mut sums).collect();
    for round in 0..=effort.rounds {
        for ((server, load), sum) in &mut sides {
            let before = server.cpu_seconds()?;
            let mut measured = http(load, effort.round, least).await?;
            measured.core_seconds = server.cpu_seconds()? - before;
            // The first round warms up.
            if round > 0 {
                sum.add(measured);
            }
        }
    }
    Ok(sums)
}

/// A row about the server's own time on a core for a call: more than 1 if wharf takes less than the other side.
pub fn ratio(name: &'static str, target: f64, [ours, theirs]: &[Measured; 2]) -> Row {
    Row {
        name: name.into(),
        figure: theirs.core_us() / ours.core_us(),
        unit: "×",
        wanted: Wanted::AtLeast,
        target,
        detail: format!(
            "{:.1} us on a core (middle {:.1}) against {:.1} ({:.1}); {:.0} against {:.0} calls/s, {:.2} ×",
            ours.core_us(),
            ours.middle_us(),
            theirs.core_us(),
            theirs.middle_us(),
            ours.rate(),
            theirs.rate(),
            ours.rate() / theirs.rate(),
        ),
    }
}

/// The ratios that have a target.
pub async fn targets(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let site = Site::new(built, ECHO)?;
    let wharf = Http::wharf(built, &site.config()).await?;
    let sdk = Http::plain(&built.sdk, &["json"]).await?;
    let small = message(32);
    {
        let mut ours = wharf.connections(Era::Modern, 16, "echo", &small).await?;
        let mut theirs = sdk.connections(Era::Modern, 16, "echo", &small).await?;
        let both = turns(effort, [&wharf, &sdk], [&mut ours, &mut theirs], 32).await?;
        report.row(ratio("HTTP modern, fresh / SDK, JSON answers", 1.25, &both));
    }
    {
        let large = message(1 << 20);
        let mut ours = wharf.connections(Era::Modern, 16, "echo", &large).await?;
        let mut theirs = sdk.connections(Era::Modern, 16, "echo", &large).await?;
        let both = turns(effort, [&wharf, &sdk], [&mut ours, &mut theirs], 1 << 20).await?;
        report.row(ratio("1 MiB, HTTP modern, fresh / SDK", 1.0, &both));
    }
    drop(sdk);
    {
        // What a sandbox costs at most: a handler that does nothing else than echo.
        let bare = Http::plain(&built.bare, &[]).await?;
        let site = Site::new(built, &format!("{ECHO}{KEPT}"))?;
        let reused = Http::wharf(built, &site.config()).await?;
        let mut ours = reused.connections(Era::Modern, 16, "echo", &small).await?;
        show(&mut ours, TOKEN)?;
        let mut theirs = bare.connections(Era::Modern, 16, "echo", &small).await?;
        let both = turns(effort, [&reused, &bare], [&mut ours, &mut theirs], 32).await?;
        report.row(ratio("HTTP modern, reused / bare axum handler", 0.6, &both));
        let mut fresh = wharf.connections(Era::Modern, 16, "echo", &small).await?;
        let both = turns(effort, [&wharf, &bare], [&mut fresh, &mut theirs], 32).await?;
        report.row(ratio("HTTP modern, fresh / bare axum handler", 0.36, &both));
    }
    {
        let sdk = Http::plain(&built.sdk, &["sessions"]).await?;
        let mut ours = wharf.connections(Era::Legacy, 16, "echo", &small).await?;
        let mut theirs = sdk.connections(Era::Legacy, 16, "echo", &small).await?;
        let both = turns(effort, [&wharf, &sdk], [&mut ours, &mut theirs], 32).await?;
        report.row(ratio("HTTP legacy with sessions, fresh / SDK with sessions", 1.4, &both));
    }
    audited(built, effort, report, &wharf).await?;
    login::rows(built, effort, report, &wharf).await?;
    watched(built, effort, report, &wharf).await?;
    drop(wharf);
    stdio(built, effort, report, &site.config()).await?;
    lists(built, effort, report).await
}

/// With every call on record, against none.
async fn audited(built: &Built, effort: &Effort, report: &mut Report, plain: &Http) -> Result<()> {
    let site = Site::new(built, &format!("{AUDITED}{ECHO}"))?;
    let audited = Http::wharf(built, &site.config()).await?;
    let small = message(32);
    let mut ours = audited.connections(Era::Modern, 16, "echo", &small).await?;
    let mut theirs = plain.connections(Era::Modern, 16, "echo", &small).await?;
    let both = turns(effort, [&audited, plain], [&mut ours, &mut theirs], 32).await?;
    report.row(ratio("HTTP modern, fresh, with an audit log / without", 0.95, &both));
    Ok(())
}

/// With metrics, and with traces of a hundredth of all calls, against neither.
async fn watched(built: &Built, effort: &Effort, report: &mut Report, plain: &Http) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let collector = listener.local_addr()?;
    let taken = tokio::spawn(async move {
        let app = axum::Router::new().fallback(|_: axum::body::Bytes| async {});
        axum::serve(listener, app).await
    });
    let traced = format!("[telemetry]\notlp = 'http://{collector}'\nsample = 0.01\n");
    for (name, target, config) in [
        ("HTTP modern, fresh, with metrics / without", 0.99, "[admin]\nlisten = '127.0.0.1:0'\n".to_owned()),
        ("HTTP modern, fresh, with traces of 1 % / without", 0.97, traced),
    ] {
        let site = Site::new(built, &format!("{config}{ECHO}"))?;
        let watched = Http::wharf(built, &site.config()).await?;
        let small = message(32);
        let mut ours = watched.connections(Era::Modern, 16, "echo", &small).await?;
        let mut theirs = plain.connections(Era::Modern, 16, "echo", &small).await?;
        let both = turns(effort, [&watched, plain], [&mut ours, &mut theirs], 32).await?;
        report.row(ratio(name, target, &both));
    }
    taken.abort();
    Ok(())
}

/// Servers on pipes in turn, with small echoes.
pub async fn turns_on_pipes(effort: &Effort, servers: &mut [(Child, Pipe)]) -> Result<Vec<Measured>> {
    let small = message(32);
    let line = |id: u64| call(id, "echo", &small, None).to_string();
    let mut sums = vec![Measured::default(); servers.len()];
    for round in 0..=effort.rounds {
        for ((child, pipe), sum) in servers.iter_mut().zip(&mut sums) {
            let before = cpu_seconds(child)?;
            let mut measured = pipe.load(&line, 16, effort.round, 32).await?;
            measured.core_seconds = cpu_seconds(child)? - before;
            // The first round warms up.
            if round > 0 {
                sum.add(measured);
            }
        }
    }
    Ok(sums)
}

async fn stdio(built: &Built, effort: &Effort, report: &mut Report, config: &Path) -> Result<()> {
    let config = config.to_str().context("the folder is not UTF-8")?;
    let mut servers = vec![pipe(&built.wharf, &["run", "-c", config]).await?, pipe(&built.sdk, &["stdio"]).await?];
    if let Some(command) = &effort.rival {
        let mut words = command.split_whitespace();
        let program = words.next().context("--rival is empty")?;
        servers.push(pipe(Path::new(program), &words.collect::<Vec<_>>()).await?);
    }
    let measured = turns_on_pipes(effort, &mut servers).await?;
    if let [wharf, _, rival] = &*measured {
        report.note(format!(
            "stdio, fresh / rival: {:.2} × ({:.0} calls/s)",
            wharf.rate() / rival.rate(),
            rival.rate()
        ));
    }
    if let [wharf, sdk, ..] = &*measured {
        report.row(ratio("stdio, fresh / SDK on stdio", 2.0, &[wharf.clone(), sdk.clone()]));
    }
    Ok(())
}

/// A list of a thousand tools against the same bytes from a bare server.
async fn lists(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let site = many(built, 1000)?;
    let wharf = Http::wharf(built, &site.config()).await?;
    let mut ours = Vec::new();
    for _ in 0..16 {
        ours.push(Connection::open(&wharf.address, modern_list_post(&wharf.address)).await?);
    }
    let first = ours.first_mut().context("no connection")?;
    let (_, list) = first.exchange().await?;
    wharf.settled().await?;
    // Not next to the config: wharf reacts whenever something changes there.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("list.json");
    fs::write(&file, &list)?;
    let bare = Http::plain(&built.bare, &[file.to_str().context("the folder is not UTF-8")?]).await?;
    let mut theirs = Vec::new();
    for _ in 0..16 {
        theirs.push(Connection::open(&bare.address, get(&bare.address, "/list")).await?);
    }
    let both = turns(effort, [&wharf, &bare], [&mut ours, &mut theirs], list.len() / 2).await?;
    let mut row = ratio("tools/list of 1000 tools / the same bytes from axum", 0.9, &both);
    row.detail = format!("{}; {} KiB", row.detail, list.len() / 1024);
    report.row(row);
    Ok(())
}

/// So many plugins, all of the same code, with one tool each: `p0_echo`, `p1_echo` and so on.
pub fn many(built: &Built, count: usize) -> Result<Site> {
    let site = Site::new(built, "plugin_dir = 'plugins'\n")?;
    let folder = site.folder.path().join("plugins");
    fs::create_dir(&folder)?;
    for number in 0..count {
        fs::copy(built.plugins.join("echo.wasm"), folder.join(format!("p{number}.wasm")))?;
    }
    Ok(site)
}

async fn point(
    effort: &Effort,
    report: &mut Report,
    (axis, at): (&'static str, String),
    connections: &mut [Connection],
    least: usize,
) -> Result<()> {
    http(connections, effort.round / 2, least).await?;
    let mut all = Measured::default();
    for _ in 0..2 {
        all.add(http(connections, effort.round, least).await?);
    }
    let (p50_us, p99_us) = (all.percentile(50.0), all.percentile(99.0));
    report.point(Point { axis, at, calls_per_second: all.rate(), p50_us, p99_us });
    Ok(())
}

/// The config for one client with so many sessions. A client gets at most a quarter of the memory for them, and each is charged 40 KiB.
pub fn for_sessions(count: usize) -> String {
    format!("[http]\nsessions = {}\n[limits]\ntotal_host_memory_mib = {}\n{ECHO}", count * 3, 1024 + count / 4)
}

/// wharf along one axis at a time.
pub async fn axes(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    const MOST_SESSIONS: usize = 10_000;
    let site = Site::new(built, &for_sessions(MOST_SESSIONS))?;
    let wharf = Http::wharf(built, &site.config()).await?;
    for bytes in [32, 4 << 10, 64 << 10, 1 << 20] {
        let mut connections = wharf.connections(Era::Modern, 16, "echo", &message(bytes)).await?;
        point(effort, report, ("payload", format!("{bytes} B")), &mut connections, bytes).await?;
    }
    for count in [1, 2, 4, 8, 16, 32, 64, 128] {
        let mut connections = wharf.connections(Era::Modern, count, "echo", &message(32)).await?;
        point(effort, report, ("in flight", count.to_string()), &mut connections, 32).await?;
    }
    let mut connections = wharf.connections(Era::Legacy, 16, "echo", &message(32)).await?;
    let mut idle = 0;
    for sessions in [1, 100, 1000, MOST_SESSIONS] {
        wharf.sessions(sessions - idle).await?;
        idle = sessions;
        point(effort, report, ("idle sessions", sessions.to_string()), &mut connections, 32).await?;
    }
    drop(wharf);
    for count in [1, 10, 100, 1000] {
        let site = many(built, count)?;
        let wharf = Http::wharf(built, &site.config()).await?;
        let mut connections = Vec::new();
        for number in 0..16 {
            let tool = format!("p{}_echo", number * 61 % count);
            connections.extend(wharf.connections(Era::Modern, 1, &tool, &message(32)).await?);
        }
        if let Some(first) = connections.first_mut() {
            first.exchange().await?;
        }
        wharf.settled().await?;
        point(effort, report, ("plugins", count.to_string()), &mut connections, 32).await?;
    }
    languages(built, effort, report).await
}

/// The smallest plugin in each language, with a fresh instance for every call and with instances kept.
async fn languages(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let rust = [("Rust", built.plugins.join("hello.wasm"))];
    for (language, path) in rust.iter().chain(&built.examples) {
        let plugin = format!("[plugins.hello]\npath = '{}'\nprefix = ''\n", path.display());
        for (instances, how) in [("fresh", ""), ("reused", KEPT)] {
            let site = Site::new(built, &format!("{plugin}{how}"))?;
            let wharf = Http::wharf(built, &site.config()).await?;
            let mut connections = wharf.connections(Era::Modern, 16, "greet", &json!({ "name": "Ada" })).await?;
            if how == KEPT {
                show(&mut connections, TOKEN)?;
            }
            point(effort, report, ("language", format!("{language}, {instances}")), &mut connections, 32).await?;
        }
    }
    if built.examples.len() < 2 {
        report.note(
            "other languages: `cargo xtask check languages` makes plugins in them; it needs npm and Python 3".into(),
        );
    }
    Ok(())
}
