//! The command line that a client gets: the options and paths of the person, in a form that means the same in every folder, and the
//! folders that were open before.

#![expect(clippy::disallowed_methods, reason = "looks whether the folders that were open before still exist")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::{
    authoring::existing::{line, started},
    cli::{
        arguments::{Allowed, Arguments, AsGiven, Command, Given, Run, of_line},
        missing_grants::is_variable,
    },
    setup::{clients::Client, server::Server},
};
use wharf_base::text;
use wharf_config::config::{CommandLine, Positional};
use wharf_policy::access::capability::Access;

/// Returns the arguments for `wharf run`, with absolute paths.
pub fn arguments(given: &AsGiven, client: &Client) -> Result<Vec<String>> {
    let mut args = vec!["run".to_owned()];
    for Given { flag, value, is_path } in &given.options {
        let Some(value) = value else {
            args.push(flag.clone());
            continue;
        };
        let value = if *is_path { place(Path::new(value), client)? } else { in_words(Path::new(value))?.to_owned() };
        if value.starts_with('-') {
            args.push(format!("{flag}={value}"));
        } else {
            args.extend([flag.clone(), value]);
        }
    }
    let named = &given.run.named;
    for path in &named.paths {
        args.push(place(path, client)?);
    }
    match named.after.first() {
        None => {}
        Some(first) if line::begins(first) => args.extend(started::line(&of_line(&named.after)?, &named.after)?),
        Some(_) => args.extend(std::iter::once("--".to_owned()).chain(named.after.iter().cloned())),
    }
    Ok(args)
}

/// Returns a path as it is written into the config.
fn place(path: &Path, client: &Client) -> Result<String> {
    let words = in_words(path)?;
    if let Ok(Positional::Published(name)) = Positional::tell(path) {
        return Ok(name);
    }
    if is_variable(path) {
        ensure!(client.has_variables, "{words}: {} does not expand variables; name the folder itself", client.title);
        return Ok(words.to_owned());
    }
    Ok(in_words(&std::path::absolute(path)?)?.to_owned())
}

fn in_words(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{}: not UTF-8, so it cannot be written into a config", text::path(path)))
}

/// Grants the plugins on the command line the folders that are open, if they work in folders and none is named.
pub fn add_roots(given: &mut AsGiven) {
    let Run { granted, named, .. } = &mut given.run;
    let works_in_folders = named.builtins.iter().any(|name| match name.as_str() {
        "files" | "git" => true,
        "memory" => !granted.roots.is_empty(),
        _ => false,
    });
    let is_granted = named.paths.iter().any(|path| is_folder(path));
    if works_in_folders && !is_granted && !granted.allow.iter().any(|allowed| matches!(allowed, Allowed::Roots(_))) {
        let allowed = Allowed::Roots(if named.read_only { Access::Read } else { Access::ReadWrite });
        given.options.push(Given { flag: "--allow".into(), value: Some(allowed.to_string().into()), is_path: false });
        granted.allow.push(allowed);
    }
}

/// Returns what the command line adds to the config, as far as it is known here: only the client knows the values of its variables.
pub fn command_line(run: &Run) -> Result<CommandLine> {
    let known = |paths: &[PathBuf]| paths.iter().filter(|path| !is_variable(path)).cloned().collect();
    for root in run.granted.roots.iter().filter(|root| !is_variable(root)) {
        ensure!(root.is_dir(), "--root {}", Positional::missing(root));
    }
    let (mut granted, mut named) = (run.granted.clone(), run.named.clone());
    granted.roots = known(&granted.roots);
    named.paths = known(&named.paths);
    let command_line = granted.command_line(&named)?;
    let is_open = run.named.paths.iter().any(|path| is_variable(path));
    let allow_roots = command_line.allow_roots.or_else(|| is_open.then(|| access(run)));
    Ok(CommandLine { allow_roots, ..command_line })
}

/// The folders of an earlier entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those that stay open.
    pub folders: Vec<PathBuf>,
    /// Those that do not, each with the reason.
    pub dropped: Vec<(PathBuf, &'static str)>,
}

/// Adds the folders that the earlier entry had open. Those of other plugins are not added, since these plugins may not be meant to use
/// them. Fails if a folder that was open for reading would be open for writing.
pub fn keep(before: Option<&Server>, given: &mut AsGiven) -> Result<Kept> {
    let mut kept = Kept::default();
    let Some(old) = before.and_then(|server| parsed(server.arguments()?)) else { return Ok(kept) };
    let run = &mut given.run;
    let plugins = |run: &Run| -> Vec<PathBuf> {
        let is_server =
            |path: &Path| matches!(Positional::tell(path), Ok(Positional::Server(_) | Positional::Published(_)));
        let files =
            run.named.paths.iter().filter(|path| !is_folder(path) && !is_server(path)).map(|path| absolute(path));
        // The same server may be written in several ways.
        let servers = run.named.servers().unwrap_or_default().into_iter().map(|server| server.component());
        let mut all: Vec<PathBuf> = run.named.builtins.iter().map(PathBuf::from).chain(files).chain(servers).collect();
        all.sort();
        all
    };
    let is_same = plugins(&old) == plugins(run);
    let here: Vec<PathBuf> = run.named.paths.iter().chain(&run.granted.roots).map(|path| absolute(path)).collect();
    let new = |path: &&PathBuf| !here.contains(&absolute(path));
    let names_roots = !run.granted.roots.is_empty();
    let names_folders = run.named.paths.iter().any(|path| is_folder(path));
    for folder in old.named.paths.iter().filter(|path| is_folder(path)).filter(new) {
        if let Some(why) = reason(folder, is_same, names_roots) {
            kept.dropped.push((folder.clone(), why));
        } else {
            kept.folders.push(folder.clone());
            run.named.paths.push(folder.clone());
        }
    }
    for root in old.granted.roots.iter().filter(new) {
        if let Some(why) = reason(root, is_same, names_folders) {
            kept.dropped.push((root.clone(), why));
        } else {
            kept.folders.push(root.clone());
            run.granted.roots.push(root.clone());
            given.options.push(Given { flag: "--root".into(), value: Some(root.clone().into()), is_path: true });
        }
    }
    let widens = !kept.folders.is_empty() && access(&old) < access(run);
    ensure!(
        !widens,
        "{} was open for reading only, and would be open for writing: add --read-only, or remove the entry first with --uninstall",
        kept.folders.first().map(|folder| text::path(folder)).unwrap_or_default()
    );
    Ok(kept)
}

/// Returns why a folder of the earlier entry does not stay open.
fn reason(folder: &Path, is_same: bool, names_others: bool) -> Option<&'static str> {
    if !is_same {
        Some("the entry had other plugins")
    } else if names_others {
        Some("--root and folders without an option exclude each other")
    } else if !is_variable(folder) && !folder.is_dir() {
        Some("it does not exist any more")
    } else {
        None
    }
}

/// Parses the arguments of an entry, if they are for `wharf run`.
fn parsed(args: &[String]) -> Option<Run> {
    let words = std::iter::once("wharf").chain(args.iter().map(String::as_str));
    match Arguments::read(words.map(Into::into).collect()).ok()?.command {
        Command::Run(run) => Some(run),
        _ => None,
    }
}

/// Returns the access to folders that a command line grants.
fn access(run: &Run) -> Access {
    let granted = run.granted.allow.iter().rev().find_map(|allowed| match allowed {
        Allowed::Roots(access) => Some(*access),
        _ => None,
    });
    if run.named.read_only { Access::Read } else { granted.unwrap_or(Access::ReadWrite) }
}

/// Whether a path on the command line is that of a folder, not of a plugin.
fn is_folder(path: &Path) -> bool {
    is_variable(path)
        || match Positional::tell(path) {
            Ok(told) => matches!(told, Positional::Folder(_)),
            // One that was a folder may be gone.
            Err(_) => !path.is_file(),
        }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::client_list::find;

    /// The arguments of `wharf install`, which has no effect here but to parse them.
    fn given(words: &[&str]) -> AsGiven {
        let words = ["wharf", "install", "codex"].iter().chain(words).map(Into::into).collect();
        match Arguments::read(words).unwrap().command {
            Command::Install(install) => install.given,
            other => panic!("{other:?}"),
        }
    }

    fn entry(words: &[&str]) -> Server {
        let args = words.iter().map(|&word| word.to_owned()).collect();
        Server { name: "files".into(), command: "/opt/wharf".into(), args }
    }

    #[test]
    fn folders_of_an_earlier_entry_stay_open_to_the_same_plugins_with_no_more_access() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (a, b) = (at("a"), at("b"));
        let gone = folder.path().join("gone").to_str().unwrap().to_owned();
        let files = ["--builtin", "files"];
        for (before, now, expected, dropped) in [
            (
                ["run", "--builtin", "files", a.as_str()].as_slice(),
                [files.as_slice(), &[b.as_str()]].concat(),
                vec![b.clone(), a.clone()],
                0,
            ),
            (&["run", "--builtin", "files", &a], [files.as_slice(), &[a.as_str()]].concat(), vec![a.clone()], 0),
            (&["run", "--builtin", "files", &a], files.to_vec(), vec![a.clone()], 0),
            (
                &["run", "--builtin", "files", "--read-only", &a],
                [files.as_slice(), &["--read-only", b.as_str()]].concat(),
                vec![b.clone(), a.clone()],
                0,
            ),
            (
                &["run", "--builtin", "files", &a, &gone],
                [files.as_slice(), &[b.as_str()]].concat(),
                vec![b.clone(), a.clone()],
                1,
            ),
            (&["run", "--builtin", "git", &a], [files.as_slice(), &[b.as_str()]].concat(), vec![b.clone()], 1),
            (
                &["run", "--builtin", "files", "--root", &a],
                [files.as_slice(), &["--root", b.as_str()]].concat(),
                vec!["--root".into(), b.clone(), "--root".into(), a.clone()],
                0,
            ),
            (
                &["run", "--builtin", "files", "--root", &a],
                [files.as_slice(), &[b.as_str()]].concat(),
                vec![b.clone()],
                1,
            ),
            (&["serve", &a], [files.as_slice(), &[b.as_str()]].concat(), vec![b.clone()], 0),
        ] {
            let mut given = given(&now);
            let kept = keep(Some(&entry(before)), &mut given).unwrap();
            let args = arguments(&given, find("codex").unwrap()).unwrap();
            let rest: Vec<String> = args
                .into_iter()
                .filter(|word| !["run", "--builtin", "files", "--read-only"].contains(&word.as_str()))
                .collect();
            assert_eq!((rest, kept.dropped.len()), (expected, dropped), "{before:?}, then {now:?}");
        }
        let mut wider = given(&["--builtin", "files", &b]);
        let error = keep(Some(&entry(&["run", "--builtin", "files", "--read-only", &a])), &mut wider).unwrap_err();
        assert!(error.to_string().contains("add --read-only"), "{error}");
        assert_eq!(keep(None, &mut given(&files)).unwrap(), Kept::default());
    }

    #[test]
    fn values_that_look_like_options_stay_values() {
        let args = arguments(&given(&["--builtin", "time", "--prefix=-x"]), find("codex").unwrap()).unwrap();
        assert_eq!(args, ["run", "--builtin", "time", "--prefix=-x"]);
    }
}
