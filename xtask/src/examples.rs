//! Builds the example plugins in other languages as their READMEs describe, and calls them.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{run, run_in, say};

/// The version that the Python examples name.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Builds the examples, and calls them with the `wharf` in `target/release`.
pub fn build_and_call(root: &Path) -> Result<()> {
    let javascript = root.join("examples/javascript");
    npm(&javascript, &["install", "--no-audit", "--no-fund"]).context("the JavaScript example needs npm")?;
    npm(&javascript, &["run", "--silent", "build"])?;
    greets(root, &javascript.join("hello-js.wasm"))?;
    let fetching = root.join("examples/javascript-http");
    npm(&fetching, &["install", "--no-audit", "--no-fund"])?;
    npm(&fetching, &["run", "--silent", "build"])?;
    for plugin in [fetching.join("status-js.wasm"), root.join("target/plugins/status.wasm")] {
        asks(root, &plugin)?;
    }

    let environment = root.join("target/python");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))
        .context("the Python examples need python3 with venv")?;
    run(Command::new(environment.join("bin/pip")).args(["install", "--quiet", COMPONENTIZE_PY]))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", environment.join("bin").display());
    let (python, fetching) = (root.join("examples/python"), root.join("examples/python-http"));
    for folder in [&python, &fetching] {
        run(Command::new("sh").arg(folder.join("build.sh")).env("PATH", &path))?;
    }
    greets(root, &python.join("hello-py.wasm"))?;
    asks(root, &fetching.join("status-py.wasm"))
}

/// Calls an example that asks another server, which is one of this machine, and of which only one path is allowed.
fn asks(root: &Path, plugin: &Path) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base = format!("http://localhost:{}", listener.local_addr()?.port());
    // It answers one request and ends; nothing but the allowed one may come.
    let server = std::thread::spawn(move || answer_one(&listener));
    let folder = root.join("target/tests/examples");
    std::fs::create_dir_all(&folder)?;
    let config = folder.join("wharf.toml");
    let rule = format!("http = [{{ url = \"{base}/open\", private = true }}]");
    std::fs::write(&config, format!("[plugins.status]\npath = {plugin:?}\n[plugins.status.grants]\n{rule}\n"))?;
    for (path, expected) in [("closed", "The operator of this server can allow this."), ("open", "200, 5 characters")] {
        let mut wharf = Command::new(root.join("target/release/wharf"));
        wharf.args(["call", "-c"]).arg(&config).arg(plugin).args(["status", &format!("url={base}/{path}")]);
        let output = wharf.output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains(expected), "{} answers {said:?}: {told}", plugin.display());
    }
    let asked = server.join().map_err(|_| anyhow::anyhow!("the server panicked"))??;
    ensure!(asked.starts_with("GET /open "), "what was not allowed left: {asked}");
    say(&format!("{} asks", plugin.display()));
    Ok(())
}

/// Answers one request, and returns its first line.
fn answer_one(listener: &TcpListener) -> Result<String> {
    let (mut stream, _) = listener.accept()?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().context("no request")??;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")?;
    Ok(first)
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<()> {
    run_in(folder, Command::new("npm").args(arguments))
}

fn greets(root: &Path, plugin: &Path) -> Result<()> {
    let output =
        Command::new(root.join("target/release/wharf")).arg("call").arg(plugin).args(["greet", "name=Ada"]).output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        output.status.success() && said == "Hello, Ada!",
        "{} answers {said:?}: {}",
        plugin.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    say(&format!("{} greets", plugin.display()));
    Ok(())
}
