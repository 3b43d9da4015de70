//! The calls by which the compiler learns what calls execute: `--train WHARF` with a build that counts. It measures nothing.

use std::{fs::File, path::Path, process::Stdio, time::Duration};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::process::Command;

use crate::{
    load::{self, Connection},
    rows::{AUDITED, ECHO, KEPT, Site, many, message},
    servers::{Built, Era, Http, TOKEN, call, modern_list_post, pipe, show},
};

/// How long each kind of call goes on.
const LONG: Duration = Duration::from_secs(3);
/// How long a kind goes on of which one call executes as much as a thousand others.
const SHORT: Duration = Duration::from_millis(500);

pub async fn train(built: &Built, wharf: &Path) -> Result<()> {
    let built = &Built { wharf: wharf.to_path_buf(), ..built.clone() };
    for (config, era, bytes, in_flight, duration) in [
        ("", Era::Modern, 32, 16, LONG),
        ("", Era::Modern, 32, 1, LONG),
        ("", Era::Legacy, 32, 16, LONG),
        (KEPT, Era::Modern, 32, 16, LONG),
        (AUDITED, Era::Modern, 32, 16, LONG),
        ("", Era::Modern, 4 << 10, 16, SHORT),
        ("", Era::Modern, 64 << 10, 16, SHORT),
        ("", Era::Modern, 1 << 20, 16, LONG),
    ] {
        let site = Site::new(built, &format!("{ECHO}{config}"))?;
        let server = Http::wharf(built, &site.config()).await?;
        let mut connections = server.connections(era, in_flight, "echo", &message(bytes)).await?;
        if config == KEPT {
            show(&mut connections, TOKEN)?;
        }
        load::http(&mut connections, duration, bytes).await?;
        server.end().await?;
    }
    let site = many(built, 100)?;
    let server = Http::wharf(built, &site.config()).await?;
    let mut connections = Vec::new();
    for _ in 0..4 {
        connections.push(Connection::open(&server.address, modern_list_post(&server.address)).await?);
    }
    load::http(&mut connections, LONG, 1000).await?;
    server.end().await?;
    let small = message(32);
    let echo = Site::new(built, ECHO)?;
    pipe_load(built, &echo, &|id| call(id, "echo", &small, None).to_string(), LONG).await?;
    // A folder with many entries.
    let folder = tempfile::tempdir()?;
    for number in 0..1000 {
        File::create(folder.path().join(format!("file-{number}.txt")))?;
    }
    let open =
        format!("[plugins.files.grants]\ndirs = [{{ host = {:?}, guest = '/f', access = 'read' }}]\n", folder.path());
    let files = Site::new(built, &format!("[plugins.files]\npath = 'PLUGINS/files.wasm'\nprefix = ''\n{open}"))?;
    let listed = json!({ "path": "/f" });
    pipe_load(built, &files, &|id| call(id, "list_directory", &listed, None).to_string(), SHORT).await?;
    // What compiles plugins is not optimised for size then.
    let compiled = Command::new(&built.wharf)
        .args(["compile-one-component", "4096", "600", "1", "0"])
        .stdin(File::open(built.plugins.join("files.wasm"))?)
        .stdout(Stdio::null())
        .status()
        .await?;
    ensure!(compiled.success(), "a plugin was not compiled: {compiled}");
    Ok(())
}

async fn pipe_load(built: &Built, site: &Site, line: &dyn Fn(u64) -> String, duration: Duration) -> Result<()> {
    let config = site.config().display().to_string();
    let (mut child, mut client) = pipe(&built.wharf, &["run", "-c", &config]).await?;
    client.load(line, 16, duration, 32).await?;
    drop(client);
    child.wait().await?;
    Ok(())
}
