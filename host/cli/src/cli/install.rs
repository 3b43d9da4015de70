//! `wharf install`: adds wharf to the config of an MCP client, and removes it again.

#![expect(clippy::disallowed_methods, reason = "changes the config of a client, at the user's command")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::{
    arguments::{Allowed, Install, Plugins, Run},
    file::{PRIVATE_MODE, changed_meanwhile, make_folder, read, read_backup, replace, write_backup},
    load::{load, print},
    serve::refuse_nothing,
};
use crate::setup::clients::{self, Client, Places, Server};
use wharf_base::{
    failed::{OrFailed, failed},
    text,
};
use wharf_config::{access::capability::Access, config};
use wharf_plugins::plugins::status::Status;

pub(super) async fn run(command: Install) -> Result<ExitCode> {
    let Some(client) = command.client.filter(|_| !command.list) else { return list() };
    let usual = || client.path(&Places::here()?).context("name the client's config with --config-path");
    let path = match &command.config_path {
        Some(path) => std::path::absolute(path)?,
        None => usual()?,
    };
    let before = read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    // A config that cannot be parsed is never changed, not even with --force.
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
        print(&format!("already up to date: {says}; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if command.dry_run {
        print(&format!("would write {says}; nothing was changed"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !is_raw {
        try_out(&command.run).await?;
    }
    let folder = path.parent().context("the path of the config names no folder")?;
    if !folder.is_dir() {
        make_folder(folder)?;
        print(&format!("created {}, which did not exist: is {} installed?", text::path(folder), client.title))?;
    }
    write(client, &path, before.as_deref(), &after)?;
    print(&says)?;
    if let Some(odd) = short_lived(&server.command) {
        print(&format!("note: {} {odd}; install wharf permanently, and run this again", server.command))?;
    }
    if let Some(remedy) = client.remedy().filter(|_| !is_raw && command.run.profile.is_none()) {
        print(&format!("note: {remedy}"))?;
    }
    print(&format!("next: {}", client.next_step))?;
    Ok(ExitCode::SUCCESS)
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
        if !read_backup(&backup)?.is_some_and(|original| client.only_adds_servers(&original, before)) {
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
    let says_which = command.name.is_some() || !command.run.named.is_empty();
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
    match after {
        Some(after) => write(client, path, Some(text), &after)?,
        None => {
            check_unchanged(path, Some(text))?;
            std::fs::remove_file(path).with_context(|| file.clone()).or_failed()?;
        }
    }
    print(&format!("removed the server `{name}` from {file}"))?;
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<ExitCode> {
    let places = Places::here()?;
    for client in clients::ALL {
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
    ensure!(fits, "--name: use 1 to 64 letters, digits, `-` and `_`; some clients reject others");
    Ok(name)
}

/// Returns the arguments of `wharf run`, with absolute paths so that they mean the same in every folder.
fn arguments(run: &Run, client: &Client) -> Result<Vec<String>> {
    let mut args = vec!["run".to_owned()];
    let mut add = |option: &str, value: String| args.extend([option.to_owned(), value]);
    let place = |path: &Path| {
        let words = path.to_str().with_context(|| {
            format!("{}: the path is not UTF-8, so it cannot be written into a config", text::path(path))
        })?;
        if words.contains("${") {
            ensure!(
                client.has_variables,
                "{words}: {} does not expand variables; name the folder itself",
                client.title
            );
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
    for folder in &granted.within {
        add("--within", place(folder)?);
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
    // A folder on the command line grants access to it.
    let granted_folders = named.paths.iter().any(|path| path.is_dir() || is_variable(path)) || has("roots=");
    for builtin in &named.builtins {
        match builtin.as_str() {
            "fetch" if !has("http") => {
                bail!(
                    "`fetch` has no access to any URL yet: add --allow http=any, for every public address, or --allow \
                     http=https://example.com/"
                )
            }
            "files" | "git" if !granted_folders => {
                ensure!(
                    client.has_roots || !granted.roots.is_empty(),
                    "{} does not tell servers which folders are open: name the folders that `{builtin}` may use",
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

/// Loads what would be served, as `wharf check` does, so that only a working server is written. The client's first start then finds the
/// compiled plugins in the cache.
async fn try_out(run: &Run) -> Result<()> {
    let named = &run.named;
    let paths = named.paths.iter().filter(|path| !is_variable(path)).cloned().collect();
    let command_line = run.granted.command_line(&Plugins { paths, ..named.clone() })?;
    let file = run.file(&command_line)?;
    refuse_nothing(file.as_deref(), &command_line.plugins)?;
    let mut config = config::load(file.as_deref(), &command_line)?;
    if let Some(profile) = &run.profile {
        let known = || config.profiles.names().collect::<Vec<_>>().join(", ");
        ensure!(config.profiles.has(profile), "--profile: there is no profile `{profile}`; choose one of: {}", known());
    }
    // Another process may write the audit log, and no call is made here.
    Arc::make_mut(&mut config.startup).audit = None;
    let wharf = load(config).await?.wharf;
    for plugin in wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
            let not_served = format!("{} would not be served ({}): {}", plugin.subject, problem.stage, problem.text);
            return Err(failed(anyhow!("nothing was written: {not_served}")));
        }
    }
    wharf.stop().await;
    Ok(())
}

/// Returns the path of this binary. A path through `PATH` is preferred, since it stays the same when a package manager updates wharf.
fn binary() -> Result<String> {
    let own = std::env::current_exe().context("the path of this program cannot be determined")?;
    let real = own.canonicalize().unwrap_or_else(|_| own.clone());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found =
        std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join("wharf"));
    let path = found.find(|path| path.canonicalize().is_ok_and(|path| path == real)).unwrap_or(own);
    path.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{}: the path is not UTF-8", path.display()))
}

/// Returns why the binary at this path may soon be gone.
fn short_lived(command: &str) -> Option<&'static str> {
    let temporary = std::env::temp_dir();
    match command {
        path if path.contains("/_npx/") => Some("is in the cache of npx"),
        path if path.contains("/uv/archive-") || path.contains("/uv/cache/") => Some("is in the cache of uv"),
        path if Path::new(path).starts_with(&temporary) => Some("is in the folder for temporary files"),
        _ => None,
    }
}
