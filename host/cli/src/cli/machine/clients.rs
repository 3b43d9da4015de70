//! Checks the wharf servers in the configs of clients: whether the config can be read, and whether the client can start wharf.

#![expect(clippy::disallowed_methods, reason = "looks for the programs that clients would start")]

use std::path::{Path, PathBuf};

use super::finding::Finding;
use crate::{
    cli::{
        arguments::{Arguments, Command, Run},
        file::read,
        install::line,
        missing_grants::{is_variable, lacking},
    },
    setup::{
        client_list::{ALL, ConfigPaths},
        clients::Client,
        server::Server,
    },
};
use wharf_base::{guard, paths::FileId, text};
use wharf_config::config::{self, Positional};

pub fn look() -> Vec<Finding> {
    let places = match ConfigPaths::here() {
        Ok(places) => places,
        Err(error) => return vec![Finding::wrong("home", format!("{error:#}"), "set HOME to yours")],
    };
    let mut findings = Vec::new();
    for client in ALL.iter().filter(|client| client.is_edited()) {
        let Some(path) = client.path(&places) else { continue };
        findings.extend(config(client, &path));
    }
    findings
}

fn config(client: &Client, path: &Path) -> Vec<Finding> {
    let about = client.title;
    let file = text::path(path);
    let read = read(path).and_then(|text| text.map(|text| Ok((client.servers(&text)?, text))).transpose());
    let (servers, text) = match read {
        Ok(None) => return Vec::new(),
        Ok(Some(read)) => read,
        Err(error) => {
            let says = format!("{file}: {error:#}");
            return vec![Finding::wrong(about, says, "fix the file; until then the client finds no servers in it")];
        }
    };
    let mut findings = Vec::new();
    for server in servers.iter().filter(|server| server.is_wharf()) {
        let entry = Entry { client, server, file: &file };
        let problems = match client.fault(&text, &server.name) {
            Ok(None) => entry.problems(),
            Ok(Some(fault)) => vec![fault],
            Err(error) => vec![(format!("{error:#}"), "fix the file".to_owned())],
        };
        if problems.is_empty() && !server.is_fetched() && !entry.is_own() {
            let says = format!(
                "{file}: `{}`: {} is another file than this wharf; neither its version nor its arguments were checked, because \
                 `wharf check --machine` starts no program that a config names",
                server.name, server.command
            );
            let version = text::shell([server.command.as_str(), "--version"]);
            let remedy = format!("if you trust it, run `{version}`; to use this wharf, {}", entry.again());
            findings.push(Finding::note(about, says, remedy));
        } else if problems.is_empty() {
            findings.push(Finding::fine(about, format!("{file} has wharf as `{}`", server.name)));
        }
        for (says, remedy) in problems {
            findings.push(Finding::wrong(about, format!("{file}: `{}`: {says}", server.name), remedy));
        }
    }
    findings
}

/// A wharf server in a client's config.
struct Entry<'a> {
    client: &'a Client,
    server: &'a Server,
    file: &'a str,
}

impl Entry<'_> {
    /// Returns what is wrong, each with the remedy.
    fn problems(&self) -> Vec<(String, String)> {
        let Self { server, file, .. } = self;
        if server.is_one_line() {
            let says = "`command` has the whole command line, and clients look for a program of that name".to_owned();
            return vec![(says, format!("in {file}, write the program into `command`, and each argument into `args`"))];
        }
        if server.is_fetched() {
            let program = &server.command;
            let missing = (!is_found(program)).then(|| {
                let remedy =
                    format!("install what `{program}` belongs to, or install wharf itself and {}", self.again());
                (format!("`{program}` is not on PATH"), remedy)
            });
            return missing.into_iter().chain(self.arguments()).collect();
        }
        let command = Path::new(&server.command);
        let again = || self.again();
        if !command.is_absolute() {
            let says =
                format!("`{}` is not an absolute path, and clients do not have the PATH of your shell", server.command);
            return [(says, again())].into_iter().chain(self.arguments()).collect();
        }
        if !command.exists() {
            let says = format!("{} does not exist", server.command);
            return [(says, again())].into_iter().chain(self.arguments()).collect();
        }
        if rustix::fs::access(command, rustix::fs::Access::EXEC_OK).is_err() || command.is_dir() {
            return vec![(format!("{} is not a program that you may run", server.command), again())];
        }
        if self.is_own() {
            return self.arguments().into_iter().collect();
        }
        let checked = guard::check_trusted_file(command, "program");
        checked.err().map(|error| (format!("{error:#}"), again())).into_iter().collect()
    }

    /// Whether the client starts this binary.
    fn is_own(&self) -> bool {
        let own = std::env::current_exe().ok().and_then(|own| FileId::at(&own));
        own.is_some() && own == FileId::at(Path::new(&self.server.command))
    }

    /// Returns the command that writes this binary into the config, with the arguments that are there.
    fn again(&self) -> String {
        let first = ["wharf", "install", self.client.id, "--name", &self.server.name, "--"];
        let args = self.server.arguments().unwrap_or_default();
        format!("run `{}`", text::shell(first.into_iter().chain(args.iter().map(String::as_str))))
    }

    /// Returns what is wrong with the arguments that wharf would get.
    fn arguments(&self) -> Option<(String, String)> {
        let args = self.server.arguments().unwrap_or_default();
        let words = std::iter::once("wharf").chain(args.iter().map(String::as_str)).map(Into::into).collect();
        let correct = |how: &str| format!("{how}, or correct the arguments in {}", self.file);
        let run: Run = match Arguments::read(words).map(|arguments| arguments.command) {
            Ok(Command::Run(run)) => run,
            Ok(Command::Serve(serve)) if serve.stdio => serve.run,
            Ok(_) => {
                let says = "its command is not `wharf run`, so it does not serve MCP".to_owned();
                return Some((says, format!("in {}, begin the arguments with `run`", self.file)));
            }
            Err(error) => {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                let tip =
                    error.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(|tip| format!(" ({tip})"));
                let says = format!("wharf rejects its arguments: {}", first.trim_start_matches("error: "));
                let see = "`wharf run --help` lists what there is";
                return Some((
                    says + &tip.unwrap_or_default(),
                    format!("correct the arguments in {}; {see}", self.file),
                ));
            }
        };
        // Only the client knows the values of its variables.
        let is_known = |path: &&PathBuf| !(self.client.has_variables && is_variable(path));
        let (file, roots, paths) = (run.config.config.iter(), &run.granted.roots, &run.named.paths);
        let mut all = file.clone().chain(paths).chain(roots).filter(is_known);
        let is_published = |path: &Path| matches!(Positional::tell(path), Ok(Positional::Published(_)));
        if let Some(path) = all.find(|path| !path.is_absolute() && !is_published(path)) {
            let says = format!("{} is not an absolute path, and clients start wharf in any folder", text::path(path));
            return Some((says, format!("write the whole path into {}", self.file)));
        }
        if let Some(path) = file.clone().find(|path| !path.is_file()) {
            return Some((format!("{}: there is no such config", text::path(path)), correct("write it")));
        }
        for path in paths.iter().chain(roots).filter(is_known) {
            match Positional::tell(path) {
                Ok(Positional::Folder(_) | Positional::Server(_) | Positional::Published(_)) => {}
                Ok(Positional::Plugin(path)) if path.is_file() && !roots.contains(&path) => {}
                Ok(Positional::Plugin(path)) => {
                    return Some((format!("{}: there is no such plugin", text::path(&path)), correct("put it there")));
                }
                Err(error) => return Some((format!("{error:#}"), correct("create it"))),
            }
        }
        if let Err(error) = run.named.servers() {
            return Some((format!("{error:#}"), format!("correct the arguments in {}", self.file)));
        }
        if let Some(error) = run.named.builtins.iter().find_map(|name| config::builtin::find(name).err()) {
            return Some((format!("{error:#}"), format!("correct the arguments in {}", self.file)));
        }
        self.grants(&run, args)
    }

    /// Returns which built-in plugin lacks a grant without which it can do nothing.
    fn grants(&self, run: &Run, args: &[String]) -> Option<(String, String)> {
        let config = line::command_line(run).and_then(|command_line| {
            let file = run.config.file(&command_line)?;
            config::load(file.as_deref(), &command_line)
        });
        let config = match config {
            Ok(config) => config,
            // The default config is looked at by itself.
            Err(_) if run.config.config.is_none() => return None,
            Err(error) => return Some((format!("{error:#}"), "correct the config, or the arguments".to_owned())),
        };
        let is_open = run.named.paths.iter().chain(&run.granted.roots).any(|path| is_variable(path));
        let (plugin, lack) = lacking(&config, Some(self.client), is_open).into_iter().next()?;
        let says = lack.says(&plugin, Some(self.client));
        if !run.named.builtins.contains(&plugin) {
            return Some((says, format!("run `wharf grant {plugin}`, which asks about each grant that it wants")));
        }
        let first = ["wharf", "install", self.client.id, "--name", &self.server.name];
        let options = args.iter().skip(1).map(String::as_str);
        let line = text::shell(first.into_iter().chain(lack.words().split(' ')).chain(options));
        Some((says, format!("run `{line}`, with what it may use in place of {}", lack.example())))
    }
}

/// Whether a program exists, or is on PATH if it is only a name.
fn is_found(program: &str) -> bool {
    let path = Path::new(program);
    if path.is_absolute() {
        return path.is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(path).is_file())
}
