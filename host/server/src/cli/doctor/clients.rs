//! The configs of clients, as far as they name wharf: whether the client can read them, and start what they name.

#![expect(clippy::disallowed_methods, reason = "what clients would start is looked for here")]

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Parser;

use super::Finding;
use crate::{
    base::{guard, paths::FileId, program, text},
    cli::{
        arguments::{Arguments, Command, Run},
        file::read,
    },
    config::Positional,
    setup::clients::{ALL, Client, Places, Server},
};

/// How long another wharf may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes that it may print for that.
const LONGEST_VERSION: usize = 80;

pub async fn look() -> Vec<Finding> {
    let places = match Places::here() {
        Ok(places) => places,
        Err(error) => return vec![Finding::wrong("home", format!("{error:#}"), "set HOME to yours")],
    };
    let mut findings = Vec::new();
    for client in ALL {
        let Some(path) = client.path(&places) else { continue };
        findings.extend(config(client, &path).await);
    }
    findings
}

async fn config(client: &Client, path: &Path) -> Vec<Finding> {
    let about = client.title;
    let file = text::path(path);
    let servers = match read(path).and_then(|text| text.map(|text| client.servers(&text)).transpose()) {
        Ok(None) => return Vec::new(),
        Ok(Some(servers)) => servers,
        Err(error) => {
            let says = format!("{file}: {error:#}");
            return vec![Finding::wrong(about, says, "mend it there; the client reads none of its servers until then")];
        }
    };
    let mut findings = Vec::new();
    for server in servers.iter().filter(|server| server.is_wharf()) {
        let wrong = problem(client, server).await;
        findings.push(match wrong {
            None => Finding::fine(about, format!("{file} has wharf as `{}`", server.name)),
            Some((says, remedy)) => Finding::wrong(about, format!("{file}: `{}`: {says}", server.name), remedy),
        });
    }
    findings
}

/// What is wrong with a server of a client that is wharf, and the remedy.
async fn problem(client: &Client, server: &Server) -> Option<(String, String)> {
    let command = Path::new(&server.command);
    let again = format!("`wharf install {} --name {}` with the same options as before", client.id, server.name);
    if !command.is_absolute() {
        return Some((
            format!("`{}` is no absolute path, and clients do not have the PATH of your shell", server.command),
            again,
        ));
    }
    let Some(id) = FileId::at(command) else {
        return Some((format!("there is no {}", server.command), again));
    };
    if rustix::fs::access(command, rustix::fs::Access::EXEC_OK).is_err() || command.is_dir() {
        return Some((format!("{} is no program that you may run", server.command), again));
    }
    let own = std::env::current_exe().ok().and_then(|own| FileId::at(&own));
    if own != Some(id) {
        // What others may write is not started only to hear its version.
        if let Err(error) = guard::check_trusted_file(command, "program") {
            return Some((format!("{error:#}"), again));
        }
        return other(&server.command).await.map(|says| (says, again));
    }
    arguments(server, client).map(|says| (says, again))
}

/// What is wrong with another binary.
async fn other(command: &str) -> Option<String> {
    let asked = [command.to_owned(), "--version".to_owned()];
    let said = match program::run(&asked, b"", LONGEST_VERSION, PATIENCE).await {
        Ok(said) => said.trim().to_owned(),
        Err(error) => return Some(format!("{command} does not say its version: {error:#}")),
    };
    let own = format!("wharf {}", env!("CARGO_PKG_VERSION"));
    (said != own).then(|| format!("{command} is `{}`, and this is `{own}`", text::escaped(&said)))
}

/// What is wrong with what this binary would be told.
fn arguments(server: &Server, client: &Client) -> Option<String> {
    let words = std::iter::once("wharf").chain(server.args.iter().map(String::as_str));
    let run: Run = match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
        Ok(Command::Run(run)) => run,
        Ok(Command::Serve(serve)) if serve.stdio => serve.run,
        Ok(_) => return Some("it is not `wharf run`, so it speaks no MCP".to_owned()),
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            return Some(format!("it does not understand its arguments: {}", first.trim_start_matches("error: ")));
        }
    };
    // What a client replaces is known to it alone.
    let is_known = |path: &&PathBuf| !(client.has_variables && path.to_str().is_some_and(|path| path.contains("${")));
    let missing = run.config.config.iter().find(|path| !path.is_file());
    let missing = missing.map(|path| format!("{}: there is no such config", text::path(path)));
    let relative = run.config.config.iter().chain(&run.named.paths).chain(&run.granted.roots).filter(is_known);
    let relative = relative.clone().find(|path| !path.is_absolute());
    let relative =
        relative.map(|path| format!("{} is no absolute path, and clients start wharf anywhere", text::path(path)));
    let gone = run.granted.roots.iter().filter(is_known).find(|path| !path.is_dir());
    let gone = gone.map(|path| format!("{}: there is no such folder", text::path(path)));
    let mut odd = run.named.paths.iter().filter(is_known).filter_map(|path| match Positional::tell(path) {
        Ok(Positional::Folder(_)) => None,
        Ok(Positional::Plugin(path)) if path.is_file() => None,
        Ok(Positional::Plugin(path)) => Some(format!("{}: there is no such plugin", text::path(&path))),
        Err(error) => Some(format!("{error:#}")),
    });
    let unknown = run.named.builtins.iter().find_map(|name| crate::config::builtin::find(name).err());
    relative.or(missing).or(gone).or_else(|| odd.next()).or_else(|| unknown.map(|error| format!("{error:#}")))
}
