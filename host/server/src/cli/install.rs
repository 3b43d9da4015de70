//! `wharf install`: puts wharf into the config of an MCP client, and takes it out again.

#![expect(clippy::disallowed_methods, reason = "the configs of clients are written here, when a person says so")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::{
    arguments::{Allowed, Install, Plugins, Run},
    file::{OWN, changed_meanwhile, keep, kept, make_folder, read, replace},
    load::{load, print},
    serve::refuse_nothing,
};
use crate::{
    access::capability::Access,
    base::{
        failed::{OrFailed, failed},
        text,
    },
    config,
    plugins::status::Status,
    setup::clients::{self, Client, Places, Server},
};

pub(super) async fn run(command: Install) -> Result<ExitCode> {
    let Some(client) = command.client.filter(|_| !command.list) else { return list() };
    let usual = || client.path(&Places::here()?).context("name the client's config with --config-path");
    let path = match &command.config_path {
        Some(path) => std::path::absolute(path)?,
        None => usual()?,
    };
    let before = read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    // What cannot be read is left alone, whatever is to be done.
    let servers = client.servers(text).map_err(|error| located(&path, &error))?;
    if command.uninstall {
        return uninstall(&command, client, &path, text, &servers);
    }
    let is_raw = !command.arguments.is_empty();
    let args = if is_raw { command.arguments.clone() } else { arguments(&command.run, client)? };
    let server = Server { name: name(&command)?, command: binary()?, args };
    let is_other =
        client.has(text, &server.name)? && !servers.iter().any(|one| one.name == server.name && one.is_wharf());
    ensure!(
        !is_other || command.force,
        "{} has a server `{}` that is not wharf; choose another --name, or replace it with --force",
        text::path(&path),
        server.name
    );
    let after = client.set(text, &server).map_err(|error| located(&path, &error))?;
    let says = format!("{}: `{}` is {}", text::path(&path), server.name, text::escaped(&server.line()));
    if after == text {
        print(&format!("{says}, as it was already; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if command.dry_run {
        print(&format!("{says}, if it were written; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !is_raw {
        try_out(&command.run).await?;
    }
    let folder = path.parent().context("a config lies in a folder")?;
    if !folder.is_dir() {
        make_folder(folder)?;
        print(&format!("made {}, which was not there: is {} installed?", text::path(folder), client.title))?;
    }
    write(client, &path, before.as_deref(), &after)?;
    print(&says)?;
    if let Some(odd) = short_lived(&server.command) {
        print(&format!("note: {} {odd}; install wharf for good, and run this again", server.command))?;
    }
    print(&format!("next: {}", client.then))?;
    Ok(ExitCode::SUCCESS)
}

/// The error of a text, which begins with the line if it is about one.
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

/// Writes the text, if the file still has the one that was read. A copy of that is kept, unless the copy that is there already is what
/// it was made of by putting in servers: then that one is still the text to come back to.
fn write(client: &Client, path: &Path, before: Option<&str>, after: &str) -> Result<()> {
    check_unchanged(path, before)?;
    if let Some(before) = before {
        let backup = backup(path);
        if !kept(&backup)?.is_some_and(|kept| client.leads(&kept, before)) {
            keep(&backup, before.as_bytes())?;
        }
    }
    replace(path, after.as_bytes(), OWN)
}

fn check_unchanged(path: &Path, before: Option<&str>) -> Result<()> {
    if read(path)?.as_deref() == before { Ok(()) } else { Err(changed_meanwhile(path)) }
}

fn uninstall(command: &Install, client: &Client, path: &Path, text: &str, servers: &[Server]) -> Result<ExitCode> {
    let own: Vec<&str> = servers.iter().filter(|server| server.is_wharf()).map(|server| server.name.as_str()).collect();
    let file = text::path(path);
    let says_which = command.name.is_some() || !command.run.named.is_empty();
    let name = match own.as_slice() {
        _ if says_which => name(command)?,
        [] => {
            print(&format!("{file} has no wharf; nothing was changed"))?;
            return Ok(ExitCode::SUCCESS);
        }
        [only] => (*only).to_owned(),
        several => bail!("{file} has more than one wharf; choose one with --name: {}", several.join(", ")),
    };
    if !client.has(text, &name)? {
        print(&format!("{file} has no server `{name}`; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        own.contains(&name.as_str()) || command.force,
        "{file}: the server `{name}` is not wharf; take it out with --force all the same"
    );
    let kept = kept(&backup(path))?;
    let after = client.undo(text, &name, kept.as_deref()).map_err(|error| located(path, &error))?;
    if command.dry_run {
        print(&format!("{file} would be without `{name}`; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    match after {
        Some(after) => write(client, path, Some(text), &after)?,
        None => {
            check_unchanged(path, Some(text))?;
            std::fs::remove_file(path).with_context(|| file.clone()).or_failed()?;
        }
    }
    print(&format!("{file} is without `{name}`"))?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<ExitCode> {
    let places = Places::here()?;
    for client in clients::ALL {
        let Some(path) = client.path(&places) else { continue };
        let says = match read(&path) {
            Ok(None) => "not there".to_owned(),
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

/// The name under which the client is to have it.
fn name(command: &Install) -> Result<String> {
    let named = &command.run.named;
    let files = named.paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    let files = files.filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
    let ids: Vec<String> = named.builtins.iter().cloned().chain(files).collect();
    let name = match (&command.name, ids.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [only]) => only.clone(),
        (None, _) => "wharf".to_owned(),
    };
    let fits =
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    ensure!(fits, "--name: 1 to 64 letters, digits, `-` and `_`, since not all clients take others");
    Ok(name)
}

/// The arguments of `wharf run` that say the same from every folder.
fn arguments(run: &Run, client: &Client) -> Result<Vec<String>> {
    let mut args = vec!["run".to_owned()];
    let mut add = |option: &str, value: String| args.extend([option.to_owned(), value]);
    let place = |path: &Path| {
        let words = path.to_str().with_context(|| format!("{}: not UTF-8, which configs are", text::path(path)))?;
        if words.contains("${") {
            ensure!(client.has_variables, "{words}: {} replaces no variables; name the folder itself", client.title);
            return Ok(words.to_owned());
        }
        Ok(std::path::absolute(path)?.to_str().unwrap_or(words).to_owned())
    };
    let Run { config, granted, profile, named } = run;
    if let Some(config) = &config.config {
        add("-c", place(config)?);
    }
    if let Some(profile) = profile {
        add("--profile", profile.clone());
    }
    for root in &granted.roots {
        add("--root", place(root)?);
    }
    for builtin in &named.builtins {
        config::builtin::find(builtin)?;
        add("--builtin", builtin.clone());
    }
    if let Some(prefix) = &named.prefix {
        add("--prefix", prefix.clone());
    }
    let mut allow: Vec<String> = granted.allow.iter().map(Allowed::to_string).collect();
    let has = |kind: &str| granted.allow.iter().any(|allowed| allowed.to_string().starts_with(kind));
    // A folder on the command line comes with the grant to use it.
    let granted_folders = named.paths.iter().any(|path| path.is_dir() || is_variable(path)) || has("roots=");
    for builtin in &named.builtins {
        match builtin.as_str() {
            "fetch" if !has("http=") => bail!("fetch can fetch nothing yet: add --allow http=https://example.com/"),
            "memory" if !granted_folders && granted.roots.is_empty() => {
                bail!("name the folder in which memory is to keep its file")
            }
            "files" | "git" | "memory" if !granted_folders => {
                ensure!(
                    client.has_roots || !granted.roots.is_empty(),
                    "{} does not tell servers which folders are open: name those that {builtin} is to have",
                    client.title
                );
                let access = if named.read_only { Access::Read } else { Access::ReadWrite };
                allow.push(Allowed::Roots(access).to_string());
            }
            _ => {}
        }
    }
    allow.dedup();
    for allowed in allow {
        add("--allow", allowed);
    }
    args.extend(named.read_only.then(|| "--read-only".to_owned()));
    for path in &named.paths {
        args.push(place(path)?);
    }
    Ok(args)
}

fn is_variable(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.contains("${"))
}

/// Loads what would be served, as `wharf check` does, so that nothing is written that does not work. What is compiled for that is in
/// the cache when the client starts it.
async fn try_out(run: &Run) -> Result<()> {
    let named = &run.named;
    let paths = named.paths.iter().filter(|path| !is_variable(path)).cloned().collect();
    let command_line = run.granted.command_line(&Plugins { paths, ..named.clone() })?;
    let file = run.file(&command_line)?;
    refuse_nothing(file.as_deref(), &command_line.plugins)?;
    let mut config = config::load(file.as_deref(), &command_line)?;
    if let Some(profile) = &run.profile {
        let known = || config.profiles.names().collect::<Vec<_>>().join(", ");
        ensure!(config.profiles.has(profile), "--profile: `{profile}` is none of {}", known());
    }
    // Another process may write the audit log, and no call is made here.
    Arc::make_mut(&mut config.startup).audit = None;
    let wharf = load(config).await?;
    for plugin in wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
            let not_served = format!("{} would not be served ({}): {}", plugin.subject, problem.stage, problem.text);
            return Err(failed(anyhow!("nothing was written: {not_served}")));
        }
    }
    wharf.stop().await;
    Ok(())
}

/// This binary: by the way in which it is found in `PATH` if it is, which stays the same when a package manager brings a new version.
fn binary() -> Result<String> {
    let own = std::env::current_exe().context("the system does not tell where this program is")?;
    let real = own.canonicalize().unwrap_or_else(|_| own.clone());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found =
        std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join("wharf"));
    let path = found.find(|path| path.canonicalize().is_ok_and(|path| path == real)).unwrap_or(own);
    path.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{}: not UTF-8", path.display()))
}

/// Why a path may soon lead nowhere.
fn short_lived(command: &str) -> Option<&'static str> {
    let temporary = std::env::temp_dir();
    match command {
        path if path.contains("/_npx/") => Some("is in the cache of npx"),
        path if path.contains("/uv/archive-") || path.contains("/uv/cache/") => Some("is in the cache of uv"),
        path if Path::new(path).starts_with(&temporary) => Some("is in the folder for temporary files"),
        _ => None,
    }
}
