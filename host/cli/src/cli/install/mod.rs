//! `wharf install`: adds wharf to the config of an MCP client, and removes it again.

#![expect(clippy::disallowed_methods, reason = "changes the config of a client, at the user's command")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail, ensure};

use self::{opened_access::opened, program::Program};
use super::{
    arguments::{Install, tell_of_servers},
    file::{PRIVATE_MODE, changed_meanwhile, read, read_backup, replace, write_backup},
    load::{load_to_look, print},
    missing_grants,
    serve::refuse_nothing,
};
use crate::{
    authoring::{
        build::Until,
        existing::{cache::make_folder, make::make},
    },
    setup::{
        client_list::{self, ConfigPaths},
        clients::Client,
        server::Server,
    },
};
use wharf_base::{
    failed::{OrFailed, failed},
    text,
};
use wharf_config::config::{self, Config};
use wharf_plugins::plugins::status::Status;

pub mod adopt;
pub mod line;
mod opened_access;
mod program;

pub(super) async fn run(mut command: Install) -> Result<ExitCode> {
    let Some(client) = command.client()? else { return list() };
    let places = ConfigPaths::here()?;
    let path = match &command.config_path {
        Some(path) => std::path::absolute(path)?,
        None => client.path(&places).context("name the client's config with --config-path")?,
    };
    let before = read(&path)?;
    if !client.is_edited() {
        return by_hand(command, client, &path, before.is_none(), &places.home).await;
    }
    let text = before.as_deref().unwrap_or_default();
    // A config that cannot be parsed is never changed, not even with --force.
    let servers = client.servers(text).map_err(|error| located(&path, &error))?;
    if command.uninstall {
        return uninstall(&command, client, &path, text, &servers);
    }
    let name = name(&command)?;
    let own = servers.iter().find(|one| one.name == name && one.is_wharf());
    ensure!(
        own.is_some() || !client.has(text, &name)? || command.force,
        "{} has a server `{name}` that is not wharf; choose another --name, or replace it with --force, which `wharf install {} \
         --uninstall` undoes",
        text::path(&path),
        client.id
    );
    let Wanted { server, config, notes, hints } = wanted(&mut command, client, own, name, &places.home)?;
    let after = client.set(text, &server).map_err(|error| located(&path, &error))?;
    let says = format!("{}: `{}` is {}", text::path(&path), server.name, text::escaped(&server.line()));
    let tell = |first: &str| std::iter::once(first).chain(notes.iter().map(String::as_str)).try_for_each(print);
    if after == text {
        tell(&format!("already up to date: {says}; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if command.dry_run {
        tell(&format!("would write {says}; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    prepare(&command, config).await?;
    let folder = path.parent().context("the path of the config names no folder")?;
    if !folder.is_dir() {
        make_folder(folder)?;
        print(&format!("created {}, which did not exist: is {} installed?", text::path(folder), client.title))?;
    }
    write(client, &path, before.as_deref(), &after)?;
    tell(&says)?;
    for hint in hints {
        print(&format!("note: {hint}"))?;
    }
    print(&format!("next: {}", client.next_step))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the lines that a person adds to a config that wharf does not edit. What there is to know about them is in comments.
async fn by_hand(mut command: Install, client: &Client, path: &Path, is_new: bool, home: &Path) -> Result<ExitCode> {
    let file = text::path(path);
    ensure!(!command.uninstall, "{file}: wharf does not edit YAML, so nothing was changed; remove the entry by hand");
    let name = name(&command)?;
    let Wanted { server, config, notes, hints } = wanted(&mut command, client, None, name, home)?;
    if !command.dry_run {
        prepare(&command, config).await?;
    }
    for note in notes.iter().chain(&hints) {
        print(&format!("# {note}"))?;
    }
    print(client.lines(&server, is_new).trim_end())?;
    bail!(
        "{file}: wharf does not edit YAML, so nothing was changed; add the lines above, without `{}:` if the file has that already, and {}",
        client.key,
        client.next_step
    )
}

/// What is to be written for a client.
struct Wanted {
    server: Server,
    /// The config that is served; `None` if the arguments were given as they are.
    config: Option<Config>,
    /// What a person has to know about the arguments.
    notes: Vec<String>,
    /// What a person should do besides.
    hints: Vec<String>,
}

fn wanted(
    command: &mut Install,
    client: &Client,
    before: Option<&Server>,
    name: String,
    home: &Path,
) -> Result<Wanted> {
    let given = command.as_they_are().map(<[String]>::to_vec);
    let is_plain = given.is_none();
    let (args, config, notes) = match given {
        Some(args) => (args, None, Vec::new()),
        None => {
            let (args, config, notes) = described(command, client, before, home)?;
            (args, Some(config), notes)
        }
    };
    let program = Program::here()?;
    let odd = program.short_lived();
    let odd = odd.map(|odd| format!("{} {odd}; install wharf permanently, and run this again", program.command));
    let remedy = client.remedy().filter(|_| is_plain && command.given.run.profile.is_none());
    let args = program.before.into_iter().chain(args).collect();
    let hints = odd.into_iter().chain(remedy).collect();
    Ok(Wanted { server: Server { name, command: program.command, args }, config, notes, hints })
}

/// Makes the plugins of servers that have to be made, and loads what would be served.
async fn prepare(command: &Install, config: Option<Config>) -> Result<()> {
    let Some(config) = config else { return Ok(()) };
    for server in command.given.run.named.servers()? {
        make(&server, Until::Interrupted).await?;
    }
    try_out(config).await
}

/// Returns the arguments for `wharf run`, the config that they lead to, and what a person has to know about both.
fn described(
    command: &mut Install,
    client: &Client,
    before: Option<&Server>,
    home: &Path,
) -> Result<(Vec<String>, Config, Vec<String>)> {
    let kept = line::keep(before, &mut command.given)?;
    line::add_roots(&mut command.given);
    let run = &command.given.run;
    let args = line::arguments(&command.given, client)?;
    let command_line = line::command_line(run)?;
    tell_of_servers(&run.named.servers()?, &command_line, 0);
    let is_open = |paths: &[PathBuf]| paths.iter().any(|path| missing_grants::is_variable(path));
    let file = run.config.file(&command_line)?;
    refuse_nothing(file.as_deref(), &command_line.plugins)?;
    let config = config::load(file.as_deref(), &command_line)?;
    if let Some(profile) = &run.profile {
        let known = || config.profiles.names().collect::<Vec<_>>().join(", ");
        ensure!(config.profiles.has(profile), "--profile: there is no profile `{profile}`; choose one of: {}", known());
    }
    let is_open = is_open(&run.named.paths) || is_open(&run.granted.roots);
    let mut lacking = missing_grants::lacking(&config, Some(client), is_open).into_iter();
    if let Some((plugin, lack)) = lacking.find(|(plugin, _)| run.named.builtins.contains(plugin)) {
        bail!("{}; add {}", lack.says(&plugin, Some(client)), lack.words());
    }
    let mut notes = opened(run, &config, client, home);
    for folder in &kept.folders {
        notes.push(format!("{} was open before, and stays open; --uninstall first closes it", text::path(folder)));
    }
    for (folder, why) in &kept.dropped {
        notes.push(format!("{} was open before, and is not any more: {why}", text::path(folder)));
    }
    Ok((args, config, notes))
}

/// Adds the path to an error of a text. The error begins with a line number if it is about a line.
fn located(path: &Path, error: &anyhow::Error) -> anyhow::Error {
    let error = format!("{error:#}");
    let space = if error.starts_with(|first: char| first.is_ascii_digit()) { "" } else { " " };
    anyhow::anyhow!("{}:{space}{}; nothing was changed", text::path(path), text::escaped(&error))
}

fn backup(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".wharf-backup");
    name.into()
}

/// Writes the text, unless the file has changed since it was read. The old text becomes the backup, unless it differs from the existing
/// backup only by added servers: then the backup is still the text to restore.
fn write(client: &Client, path: &Path, before: Option<&str>, after: &str) -> Result<()> {
    check_unchanged(path, before)?;
    if let Some(before) = before {
        let backup = backup(path);
        // A file that wharf has made needs no backup: it is deleted in the end. An empty one was there before.
        let original = read_backup(&backup)?.or_else(|| (!before.is_empty()).then(String::new));
        if !original.is_some_and(|original| client.only_adds_servers(&original, before)) {
            write_backup(&backup, before.as_bytes())?;
        }
    }
    replace(path, after.as_bytes(), PRIVATE_MODE)
}

fn check_unchanged(path: &Path, before: Option<&str>) -> Result<()> {
    if read(path)?.as_deref() == before { Ok(()) } else { Err(changed_meanwhile(path)) }
}

fn uninstall(command: &Install, client: &Client, path: &Path, text: &str, servers: &[Server]) -> Result<ExitCode> {
    let own: Vec<&str> = servers.iter().filter(|server| server.is_wharf()).map(|server| server.name.as_str()).collect();
    let file = text::path(path);
    let says_which = command.name.is_some() || !command.given.run.named.is_empty();
    let name = match own.as_slice() {
        _ if says_which => name(command)?,
        [] => {
            print(&format!("{file} does not start wharf; nothing was changed"))?;
            return Ok(ExitCode::SUCCESS);
        }
        [only] => (*only).to_owned(),
        several => bail!("{file} starts wharf under several names; choose one with --name: {}", several.join(", ")),
    };
    if !client.has(text, &name)? {
        print(&format!("{file} has no server `{name}`; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        own.contains(&name.as_str()) || command.force,
        "{file}: the server `{name}` is not wharf; remove it anyway with --force"
    );
    let original = read_backup(&backup(path))?;
    let after = client.undo(text, &name, original.as_deref()).map_err(|error| located(path, &error))?;
    if command.dry_run {
        print(&format!("would remove the server `{name}` from {file}; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    match &after.text {
        Some(after) if original.as_ref() == Some(after) => {
            check_unchanged(path, Some(text))?;
            replace(path, after.as_bytes(), PRIVATE_MODE)?;
            // Nothing of wharf is left, so the next install makes a backup of what there is then.
            std::fs::remove_file(backup(path)).with_context(|| text::path(&backup(path))).or_failed()?;
        }
        Some(after) => write(client, path, Some(text), after)?,
        None => {
            check_unchanged(path, Some(text))?;
            std::fs::remove_file(path).with_context(|| file.clone()).or_failed()?;
        }
    }
    let restored = if after.is_restored { ", and put back the one that it had replaced" } else { "" };
    print(&format!("removed the server `{name}` from {file}{restored}"))?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<ExitCode> {
    let places = ConfigPaths::here()?;
    for client in client_list::ALL {
        let Some(path) = client.path(&places) else { continue };
        let says = match read(&path) {
            Ok(None) => "no such file".to_owned(),
            Ok(Some(text)) => match client.servers(&text) {
                Ok(servers) => {
                    let own: Vec<String> =
                        servers.iter().filter(|server| server.is_wharf()).map(|server| server.name.clone()).collect();
                    if own.is_empty() {
                        "without wharf".to_owned()
                    } else {
                        format!("with wharf as {}", own.join(", "))
                    }
                }
                Err(error) => format!("{error:#}"),
            },
            Err(error) => format!("{error:#}"),
        };
        print(&format!("{:<15} {}: {}", client.id, text::path(&path), text::escaped(&says)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the server's name in the client's config.
fn name(command: &Install) -> Result<String> {
    let named = &command.given.run.named;
    let files = named.paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    let files = files.filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
    let servers = if command.as_they_are().is_some() { Vec::new() } else { named.servers()? };
    let made = servers.into_iter().map(|server| server.id);
    let ids: Vec<String> = named.builtins.iter().cloned().chain(files).chain(made).collect();
    let name = match (&command.name, ids.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [only]) => only.clone(),
        (None, _) => "wharf".to_owned(),
    };
    let fits =
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    ensure!(fits, "--name: use 1 to 64 letters, digits, `-` and `_`; some clients reject others");
    Ok(name)
}

/// Loads what would be served, as `wharf check` does, so that only a working server is written. The client's first start then finds the
/// compiled plugins in the cache.
async fn try_out(config: Config) -> Result<()> {
    let wharf = load_to_look(config).await?.wharf;
    for plugin in wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
            let not_served = format!("{} would not be served ({}): {}", plugin.subject, problem.stage, problem.text);
            return Err(failed(anyhow!("nothing was written: {not_served}")));
        }
    }
    wharf.stop().await;
    Ok(())
}
