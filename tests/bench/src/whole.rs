//! Measurements other than rates: the latency of a start or a change, the memory of an idle session, the effect on other clients.

use std::{fs, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use crate::{
    Effort,
    load::{Connection, http},
    report::{Report, Row, Wanted},
    rows::{ECHO, Site, for_sessions, many, message},
    servers::{Built, Era, Http, call, modern_list_post, modern_meta, pipe, post, talk},
};

const BUILTINS: [&str; 6] = ["fetch", "files", "git", "memory", "sequentialthinking", "time"];

pub async fn measure(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    start(built, effort, report).await?;
    first_start(built, effort, report).await?;
    dropped_in(built, effort, report).await?;
    sessions(built, effort, report).await?;
    if !effort.brief {
        held(built, report).await?;
    }
    bystander(built, effort, report).await
}

fn at_most(name: &'static str, target: f64, unit: &'static str, figure: f64, detail: String) -> Row {
    Row { name: name.into(), figure, unit, wanted: Wanted::AtMost, target, detail }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// From the start of the process to all tools listed and one called, with everything compiled before.
async fn start(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let site = many(built, 50)?;
    let config = site.config();
    let config = config.to_str().context("the folder is not UTF-8")?;
    let mut times = Vec::new();
    for run in 0..=effort.rounds {
        let began = Instant::now();
        let (mut child, mut wharf) = pipe(&built.wharf, &["run", "-c", config]).await?;
        let list = wharf.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string()).await?;
        ensure!(list.matches("\"inputSchema\"").count() == 50, "not all tools are listed");
        let answer = wharf.ask(&call(3, "p7_echo", &json!({ "message": "hello" }), None).to_string()).await?;
        ensure!(answer.contains("hello"), "not an echo: {answer}");
        // The first run fills the cache.
        if run > 0 {
            times.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        drop(wharf);
        child.wait().await?;
    }
    report.row(at_most("start → 50 cached plugins listed and one called", 250.0, "ms", median(times), "p50".into()));
    Ok(())
}

/// From the start of the process to the tools of all built-in plugins listed, with nothing compiled before.
async fn first_start(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let table = |id: &str| format!("[plugins.{id}]\npath = 'PLUGINS/{id}.wasm'\n");
    let site = Site::new(built, &BUILTINS.map(table).concat())?;
    let mut times = Vec::new();
    for _ in 0..effort.rounds.min(3) {
        let cache = tempfile::tempdir()?;
        let began = Instant::now();
        let mut command = Command::new(&built.wharf);
        command.args(["run", "-c"]).arg(site.config()).env("XDG_CACHE_HOME", cache.path());
        let (mut child, mut wharf) = talk(&mut command).await?;
        let list = wharf.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string()).await?;
        times.push(began.elapsed().as_secs_f64());
        for id in BUILTINS {
            ensure!(list.contains(&format!("\"name\":\"{id}_")), "the tools of {id} are not listed");
        }
        drop(wharf);
        child.wait().await?;
    }
    let name = "start with an empty cache → six built-in plugins compiled and listed";
    report.row(at_most(name, 3.0, "s", median(times), "p50".into()));
    Ok(())
}

/// From the write of a new plugin to the notification on the wire. Each has other bytes, so each is compiled.
async fn dropped_in(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let site = many(built, 1)?;
    let config = site.config();
    let (_child, mut wharf) =
        pipe(&built.wharf, &["run", "-c", config.to_str().context("the folder is not UTF-8")?]).await?;
    wharf.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string()).await?;
    let plugin = fs::read(built.plugins.join("echo.wasm"))?;
    let mut times = Vec::new();
    for number in 0..effort.rounds {
        // A custom section that nobody reads makes it another file.
        let name = format!("n{number}-{}", std::process::id());
        let mut bytes = plugin.clone();
        bytes.extend([0, u8::try_from(name.len() + 1)?, u8::try_from(name.len())?]);
        bytes.extend(name.bytes());
        let folder = site.folder.path();
        fs::write(folder.join("new.partial"), &bytes)?;
        let began = Instant::now();
        fs::rename(folder.join("new.partial"), folder.join("plugins").join(format!("new{number}.wasm")))?;
        let mut line = String::new();
        while !line.contains("notifications/tools/list_changed") {
            line.clear();
            ensure!(wharf.output.read_line(&mut line).await? > 0, "the server closed the pipe");
        }
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    report.row(at_most("new plugin file → list_changed", 300.0, "ms", median(times), "p50, with compilation".into()));
    Ok(())
}

/// What an idle session holds, by what the process grows.
async fn sessions(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let count = if effort.brief { 2000 } else { 10_000 };
    let site = Site::new(built, &for_sessions(count))?;
    let wharf = Http::wharf(built, &site.config()).await?;
    wharf.sessions(100).await?;
    let before = wharf.resident_kib()?;
    wharf.sessions(count).await?;
    let grown = wharf.resident_kib()?.saturating_sub(before);
    let each = grown as f64 / count as f64;
    report.row(at_most("an idle legacy session", 8.0, "KiB", each, format!("{count} sessions, {grown} KiB")));
    Ok(())
}

/// What a plugin holds that is only there, and a call that only waits, by what the process grows.
async fn held(built: &Built, report: &mut Report) -> Result<()> {
    let mut resident = Vec::new();
    for count in [100, 500] {
        let site = many(built, count)?;
        let wharf = Http::wharf(built, &site.config()).await?;
        let mut list = Connection::open(&wharf.address, modern_list_post(&wharf.address)).await?;
        list.exchange().await?;
        resident.push(wharf.resident_kib()?);
    }
    if let [few, many] = resident[..] {
        let each = many.saturating_sub(few) as f64 / 400.0;
        report.note(format!("a loaded plugin (Rust, one tool) holds {each:.0} KiB"));
    }
    let calls = 128;
    let plugin = "[plugins.hostile]\npath = 'PLUGINS/hostile.wasm'\nprefix = ''\n[plugins.hostile.limits]\n";
    let limits = format!("concurrency = {calls}\n[limits]\ntotal_concurrency = {calls}\n");
    let site = Site::new(built, &format!("{plugin}{limits}"))?;
    let wharf = Http::wharf(built, &site.config()).await?;
    let mut warm = wharf.connections(Era::Modern, 1, "ok", &json!({})).await?;
    http(&mut warm, std::time::Duration::from_millis(200), 4).await?;
    let before = wharf.resident_kib()?;
    let mut sleeping = wharf.connections(Era::Modern, calls, "sleep", &json!({ "ms": 2000 })).await?;
    let asleep = http(&mut sleeping, std::time::Duration::from_millis(1), 4);
    let look = async {
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        wharf.resident_kib()
    };
    let (slept, during) = tokio::join!(asleep, look);
    slept?;
    let each = during?.saturating_sub(before) as f64 / calls as f64;
    report.note(format!("a call in flight (Rust, HTTP) holds {each:.0} KiB, its connection with it"));
    Ok(())
}

/// The calls of one plugin while another spins in as many calls as it may have.
async fn bystander(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let hostile =
        "[plugins.hostile]\npath = 'PLUGINS/hostile.wasm'\nprefix = ''\n[plugins.hostile.limits]\ntimeout_ms = 60000\n";
    let site = Site::new(built, &format!("{ECHO}{hostile}"))?;
    let wharf = Http::wharf(built, &site.config()).await?;
    let mut calm = wharf.connections(Era::Modern, 1, "echo", &message(32)).await?;
    let alone = http(&mut calm, effort.round * 2, 32).await?;
    let mut spinning = Vec::new();
    for id in 0..16 {
        let body: Value = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "spin", "arguments": {}, "_meta": modern_meta() } });
        let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: spin\r\n";
        let mut stream = tokio::net::TcpStream::connect(&wharf.address).await?;
        stream.write_all(&post(&wharf.address, headers, &body.to_string())).await?;
        spinning.push(stream);
    }
    // Once one of them would have been answered, had it been refused.
    let mut one = [0; 1];
    let first = spinning.first_mut().context("no connection")?;
    ensure!(
        tokio::time::timeout(effort.round, first.read(&mut one)).await.is_err(),
        "the hostile plugin does not spin"
    );
    let disturbed = http(&mut calm, effort.round * 4, 32).await?;
    let (calm_p99, p99) = (alone.percentile(99.0) / 1000.0, disturbed.percentile(99.0) / 1000.0);
    report.row(at_most(
        "a bystander's p99 during 16 spinning calls",
        20.0,
        "ms",
        p99,
        format!("alone {calm_p99:.2} ms"),
    ));
    Ok(())
}
