//! The plugins that are built into the binary. Once loaded, they are treated like all others: they are compiled and sandboxed in the
//! same way, and reach nothing that is not granted. What they need to be useful at once, and what tells them only about this machine and
//! its person, they have by default: see [`complete`] and [`complete_grants`].

#![expect(clippy::disallowed_methods, reason = "the folder of the memory is made here")]

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result, bail};

use super::{
    command_line::{CommandLine, Named},
    default_paths::base_dirs,
    defaults,
    identity::Identity,
    raw,
    source::{BuiltIn, Component},
    zone,
};
use wharf_base::text;
use wharf_policy::access::{
    capability::Access,
    grants::{RawGrants, dirs::RawDir, env::RawEnv},
};

/// The plugins in the program.
static IN_PROGRAM: OnceLock<&'static [BuiltIn]> = OnceLock::new();

/// Says which plugins are in the program. `main` calls this, once and before anything else; programs that embed wharf have none.
pub fn provide(all: &'static [BuiltIn]) {
    IN_PROGRAM.get_or_init(|| all);
}

fn all() -> &'static [BuiltIn] {
    IN_PROGRAM.get().copied().unwrap_or_default()
}

/// The names of all built-in plugins.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().iter().map(|known| known.name)
}

/// The component of that name.
pub fn find(name: &str) -> Result<Component> {
    let Some(found) = all().iter().find(|known| known.name == name) else {
        let all: Vec<&str> = names().collect();
        if all.is_empty() {
            bail!("this wharf was built without built-in plugins; `cargo xtask build` builds one that has them");
        }
        bail!("there is no built-in plugin `{}`; there are: {}", name.escape_debug(), all.join(", "));
    };
    Ok(Component::built_in(found))
}

/// The packages of the reference servers, and the plugins that take their place.
const REFERENCE_SERVERS: [(&str, &str); 7] = [
    ("@modelcontextprotocol/server-filesystem", "files"),
    ("@modelcontextprotocol/server-memory", "memory"),
    ("@modelcontextprotocol/server-sequential-thinking", "sequentialthinking"),
    ("mcp-server-fetch", "fetch"),
    ("mcp-server-git", "git"),
    ("mcp-server-sqlite", "sqlite"),
    ("mcp-server-time", "time"),
];

/// Returns the built-in plugin that takes the place of the reference server in this package. Who leaves out the scope means it too.
pub fn in_place_of(package: &str) -> Option<&'static str> {
    let is_meant = |known: &str| known == package || known.rsplit('/').next() == Some(package);
    let (_, plugin) = REFERENCE_SERVERS.iter().find(|(known, _)| is_meant(known))?;
    names().find(|name| name == plugin)
}

/// Adds what a built-in plugin has if its table does not say otherwise: the machine's time zone, the person's name for commits, and
/// instances that remember.
pub fn complete(name: &str, written: &mut raw::Plugin) {
    match name {
        "time" if !written.config.contains_key("timezone") => {
            let (key, value) = match zone::of_machine() {
                Ok(name) => ("timezone", name),
                Err(problem) => {
                    tracing::warn!("the time zone of this machine is not known: {problem}");
                    ("timezone_problem", problem)
                }
            };
            written.config.insert(key.into(), value.into());
        }
        "git" if !written.config.contains_key("person") => Identity::of_person().write(&mut written.config),
        "sequentialthinking" => {
            written.instances.get_or_insert(raw::Instances::Reused);
        }
        _ => {}
    }
}

/// Adds what a built-in plugin on the command line may use: `files` the variable `HOME`, for paths that begin with `~`; `memory` the folder
/// of its file, unless the command line opens a folder for it. `is_alone`: whether no other plugin is named there. If one is, the folders are
/// for that one.
pub fn complete_grants(name: &str, grants: &mut RawGrants, is_alone: bool) -> Result<()> {
    if name == "files" {
        grants.env.push(RawEnv::Variable("HOME".to_owned()));
    }
    if name == "memory" && (grants.roots.is_none() || !is_alone) {
        grants.roots = None;
        let access = Access::ReadWrite.as_str().to_owned();
        grants.dirs.push(RawDir { host: memory_folder()?, guest: Some("/memory".into()), access });
    }
    Ok(())
}

/// Makes the folders that built-in plugins on the command line keep their files in.
pub fn make_folders(command_line: &CommandLine) -> Result<()> {
    if command_line.plugins.contains(&Named::BuiltIn("memory".into())) {
        make(&memory_folder()?)?;
    }
    Ok(())
}

/// Makes a folder that only this user may enter, if it does not exist.
fn make(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("{}: the folder of `memory` cannot be made", text::path(folder)))
}

/// Returns the folder of the memory: `$XDG_STATE_HOME/wharf/memory`, else `~/.local/state/wharf/memory`.
fn memory_folder() -> Result<PathBuf> {
    let base = base_dirs("XDG_STATE_HOME", ".local/state").next();
    let base =
        base.context("`memory`: there is no home directory to keep its file in; name a folder after the options")?;
    Ok(base.join("wharf").join("memory"))
}

/// Returns the maximum size of a result of a built-in plugin that has no limit of its own. `general`: that of `[limits]`.
pub fn output_bytes(name: &str, general: usize) -> usize {
    match name {
        // Another general limit was set by the operator.
        "files" if general == raw::Limits::default().output_kib.get() => defaults::FILES_OUTPUT_KIB << 10,
        _ => general,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_send_pictures_unless_the_operator_says_otherwise() {
        assert_eq!(output_bytes("files", 4 << 20), 16 << 20);
        assert_eq!(output_bytes("files", 1 << 20), 1 << 20);
        assert_eq!(output_bytes("git", 4 << 20), 4 << 20);
    }

    #[test]
    fn all_that_are_there_are_whole_and_others_are_named() {
        for name in names() {
            assert_eq!(find(name).unwrap().to_string(), format!("the built-in plugin {name}"));
        }
        let error = find("fiels").unwrap_err().to_string();
        let expected = if names().next().is_none() { "without built-in" } else { "there are: fetch, files, git" };
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_written_counts_before_what_is_added() {
        let mut thinking = raw::Plugin { instances: Some(raw::Instances::Fresh), ..raw::Plugin::default() };
        complete("sequentialthinking", &mut thinking);
        assert_eq!(thinking.instances, Some(raw::Instances::Fresh));
        let mut thinking = raw::Plugin::default();
        complete("sequentialthinking", &mut thinking);
        assert_eq!(thinking.instances, Some(raw::Instances::Reused));
        let mut time = raw::Plugin { config: toml::toml! { timezone = "Asia/Tokyo" }, ..raw::Plugin::default() };
        complete("time", &mut time);
        assert_eq!(time.config, toml::toml! { timezone = "Asia/Tokyo" });
        let mut files = raw::Plugin::default();
        complete("files", &mut files);
        assert!(files.config.is_empty() && files.instances.is_none());
    }

    #[test]
    fn the_memory_has_a_folder_of_its_own_unless_one_is_named_for_it() {
        for (name, roots, is_alone, expected) in [
            ("memory", None, true, (None, 1)),
            ("memory", Some("read-write"), true, (Some("read-write"), 0)),
            ("memory", Some("read-write"), false, (None, 1)),
            ("files", Some("read"), false, (Some("read"), 0)),
            ("files", None, true, (None, 0)),
        ] {
            let mut grants = RawGrants { roots: roots.map(str::to_owned), ..RawGrants::default() };
            complete_grants(name, &mut grants, is_alone).unwrap();
            assert_eq!((grants.roots.as_deref(), grants.dirs.len()), expected, "{name} {roots:?} {is_alone}");
        }
    }
}
