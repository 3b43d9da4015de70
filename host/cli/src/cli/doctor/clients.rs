//! Checks the wharf servers in the configs of clients: whether the config can be read, and whether the client can start wharf.

#![expect(clippy::disallowed_methods, reason = "looks for the programs that clients would start")]

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Parser;

use super::finding::Finding;
use crate::{
    cli::{
        arguments::{Arguments, Command, Run},
        file::read,
    },
    setup::clients::{ALL, Client, Places, Server},
};
use wharf_base::{guard, paths::FileId, program, text};
use wharf_config::config::Positional;

/// How long another wharf binary may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest output of `--version`.
const MAX_VERSION_BYTES: usize = 80;

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
            return vec![Finding::wrong(about, says, "fix the file; until then the client finds no servers in it")];
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

/// Returns what is wrong with a wharf server in a client's config, and the remedy.
async fn problem(client: &Client, server: &Server) -> Option<(String, String)> {
    let command = Path::new(&server.command);
    let again = format!("run `wharf install {} --name {}` with the same options as before", client.id, server.name);
    if !command.is_absolute() {
        return Some((
            format!("`{}` is not an absolute path, and clients do not have the PATH of your shell", server.command),
            again,
        ));
    }
    let Some(id) = FileId::at(command) else {
        return Some((format!("{} does not exist", server.command), again));
    };
    if rustix::fs::access(command, rustix::fs::Access::EXEC_OK).is_err() || command.is_dir() {
        return Some((format!("{} is not a program that you may run", server.command), again));
    }
    let own = std::env::current_exe().ok().and_then(|own| FileId::at(&own));
    if own != Some(id) {
        // A binary that other users may write is not run, not even for its version.
        if let Err(error) = guard::check_trusted_file(command, "program") {
            return Some((format!("{error:#}"), again));
        }
        return other(&server.command).await.map(|says| (says, again));
    }
    arguments(server, client).map(|says| (says, again))
}

/// Returns what is wrong with a wharf binary that is not this one.
async fn other(command: &str) -> Option<String> {
    let asked = [command.to_owned(), "--version".to_owned()];
    let said = match program::run(&asked, b"", MAX_VERSION_BYTES, VERSION_TIMEOUT).await {
        Ok(said) => said.trim().to_owned(),
        Err(error) => return Some(format!("`{command} --version` failed: {error:#}")),
    };
    let own = format!("wharf {}", env!("CARGO_PKG_VERSION"));
    (said != own).then(|| format!("{command} is `{}`, and this is `{own}`", text::escaped(&said)))
}

/// Returns what is wrong with the arguments that a client would start this binary with.
fn arguments(server: &Server, client: &Client) -> Option<String> {
    let words = std::iter::once("wharf").chain(server.args.iter().map(String::as_str));
    let run: Run = match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
        Ok(Command::Run(run)) => run,
        Ok(Command::Serve(serve)) if serve.stdio => serve.run,
        Ok(_) => return Some("its command is not `wharf run`, so it does not serve MCP".to_owned()),
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            return Some(format!("wharf rejects its arguments: {}", first.trim_start_matches("error: ")));
        }
    };
    // Only the client knows the values of its variables.
    let is_known = |path: &&PathBuf| !(client.has_variables && path.to_str().is_some_and(|path| path.contains("${")));
    let missing = run.config.config.iter().find(|path| !path.is_file());
    let missing = missing.map(|path| format!("{}: there is no such config", text::path(path)));
    let relative = run.config.config.iter().chain(&run.named.paths).chain(&run.granted.roots).filter(is_known);
    let relative = relative.clone().find(|path| !path.is_absolute());
    let relative = relative
        .map(|path| format!("{} is not an absolute path, and clients start wharf in any folder", text::path(path)));
    let gone = run.granted.roots.iter().filter(is_known).find(|path| !path.is_dir());
    let gone = gone.map(|path| format!("{}: there is no such folder", text::path(path)));
    let mut odd = run.named.paths.iter().filter(is_known).filter_map(|path| match Positional::tell(path) {
        Ok(Positional::Folder(_)) => None,
        Ok(Positional::Plugin(path)) if path.is_file() => None,
        Ok(Positional::Plugin(path)) => Some(format!("{}: there is no such plugin", text::path(&path))),
        Err(error) => Some(format!("{error:#}")),
    });
    let unknown = run.named.builtins.iter().find_map(|name| wharf_config::config::builtin::find(name).err());
    relative.or(missing).or(gone).or_else(|| odd.next()).or_else(|| unknown.map(|error| format!("{error:#}")))
}
