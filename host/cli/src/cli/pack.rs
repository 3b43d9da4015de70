//! `wharf pack`: makes packages that carry wharf and the plugin in a folder.

#![expect(clippy::disallowed_methods, reason = "reads this binary, and makes the folder for the packages")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::{
    add::wants,
    arguments::{Pack, PackageKind},
    check::all_or_nothing,
    load::print,
};
use crate::authoring::{
    pack::{
        Contents, answers,
        machine::Machine,
        mcpb, npm,
        package::Package,
        registry::{self, Published},
        wheel,
    },
    project::{PLUGIN_TOML, Project},
};
use wharf_base::{below::Below, failed::OrFailed, text};
use wharf_policy::access::grants::could_use;
use wharf_sandbox::Outside;
use wharf_scope::MAX_COMPONENT_BYTES;

/// The largest licence that is packed, in bytes.
const MAX_LICENSE_BYTES: u64 = 1 << 20;
/// The largest bundle whose digest is written into `server.json`.
const MAX_BUNDLE_BYTES: u64 = 1 << 30;

pub(super) fn run(command: &Pack) -> Result<ExitCode> {
    let project = Project::open(&command.folder)?;
    let package = project.package.as_ref().with_context(|| {
        format!(
            "{} has no table [package], which says what the packages are called; add\n\n[package]\nversion = \"0.1.0\"\ndescription = \
             \"What it does, in at most 100 characters\"\nauthor = \"Your name\"\n",
            text::path(&project.folder.join(PLUGIN_TOML))
        )
    })?;
    let artifact = &project.build.artifact;
    // A project may be a clone of somebody else's, so what is packed is below its folder, and no link leads out of it.
    let folder = Below::open(&project.folder)?;
    let made = folder.bytes(artifact.strip_prefix(&project.folder)?, MAX_COMPONENT_BYTES as u64)?;
    let bytes = made.with_context(|| {
        let (artifact, folder) = (text::path(artifact), text::path(&command.folder));
        format!("{artifact} does not exist yet; build the plugin first: wharf build {folder}")
    })?;
    let outside = Outside::of(&bytes).with_context(|| text::path(artifact))?;
    let said = wants(&outside)?;
    let could = could_use(&outside.imports);
    if said.is_none() && !could.is_empty() {
        say(&format!(
            "note: the component does not say what it wants, so users of the packages cannot allow it anything ({}). If it needs some of \
             that, declare it: wharf build --embed {} --wants WANTS.toml",
            all_or_nothing(&could),
            text::path(artifact)
        ));
    }
    let wants = said.unwrap_or_default();
    let questions = answers::questions(&project.name, &wants);
    let mut names = BTreeMap::new();
    for question in &questions {
        let other = names.insert(&question.variable, &question.title);
        ensure!(
            other.is_none(),
            "{} and {} would have the same variable, {}; rename one",
            other.map(String::as_str).unwrap_or_default(),
            question.title,
            question.variable
        );
    }
    let kinds = if command.to.is_empty() {
        vec![PackageKind::Mcpb, PackageKind::Npm, PackageKind::Wheel]
    } else {
        command.to.clone()
    };
    let binary = if command.depend && !kinds.contains(&PackageKind::Mcpb) { None } else { Some(this_binary()?) };
    let wharf = binary.as_ref().map(|(binary, machine)| (binary.as_slice(), machine));
    let license = folder.read(Path::new("LICENSE"), MAX_LICENSE_BYTES)?;
    let contents = |wharf| Contents {
        package,
        id: &project.name,
        component: &bytes,
        folders: answers::folders(&wants),
        questions: &questions,
        wharf,
        license: license.as_deref(),
    };
    let (out, within) = match &command.out {
        Some(out) => {
            fs::create_dir_all(out).with_context(|| text::path(out)).or_failed()?;
            (Below::open(out)?, PathBuf::new())
        }
        None => (folder, PathBuf::from("dist/packages")),
    };
    let carried = wharf.filter(|_| !command.depend);
    let mut published = Vec::new();
    for kind in kinds {
        say(&format!("packing: {}", name_of(kind)));
        let (file, made) = match kind {
            PackageKind::Mcpb => mcpb::make(&contents(wharf))?,
            PackageKind::Npm => npm::make(&contents(carried))?,
            PackageKind::Wheel => wheel::make(&contents(carried))?,
        };
        let path = within.join(&file);
        out.replace(&path, &made)?;
        print(&format!("{:>6.1} MB  {}", made.len() as f64 / 1e6, text::path(&out.shown(&path))))?;
        match kind {
            PackageKind::Mcpb => {}
            PackageKind::Npm => published.push(Published::Npm),
            PackageKind::Wheel => published.push(Published::Pypi),
        }
    }
    published.extend(bundles(&out, &within, &project.name, package)?);
    match registry::make(&contents(carried), &published) {
        Ok(server) => {
            let path = within.join("server.json");
            out.replace(&path, (serde_json::to_string_pretty(&server)? + "\n").as_bytes())?;
            print(&format!("           {}", text::path(&out.shown(&path))))?;
        }
        Err(why) => say(&format!("no server.json: {why}")),
    }
    Ok(ExitCode::SUCCESS)
}

fn name_of(kind: PackageKind) -> &'static str {
    match kind {
        PackageKind::Mcpb => "a bundle for desktop clients (.mcpb)",
        PackageKind::Npm => "a package for npm (.tgz)",
        PackageKind::Wheel => "a wheel for PyPI (.whl)",
    }
}

/// Tells the author something on stderr. If stderr is closed, nobody reads it.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

/// Reads the binary of this process.
fn this_binary() -> Result<(Vec<u8>, Machine)> {
    let path = std::env::current_exe().context("the path of this binary is not known").or_failed()?;
    let binary = fs::read(&path).with_context(|| text::path(&path)).or_failed()?;
    let machine = Machine::of(&binary)?;
    Ok((binary, machine))
}

/// The bundles of this version in a folder, which may be of several platforms.
fn bundles(out: &Below, within: &Path, id: &str, package: &Package) -> Result<Vec<Published>> {
    let around = mcpb::file_name(id, &package.version, "\0");
    let (before, after) = around.split_once('\0').unwrap_or_default();
    let mut found = Vec::new();
    let inner = if within.as_os_str().is_empty() { None } else { out.folder(within)? };
    let out = inner.as_ref().unwrap_or(out);
    for path in out.names()? {
        let Some(file) = path.to_str() else { continue };
        if file.starts_with(before)
            && file.ends_with(after)
            && let Some(bytes) = out.bytes(&path, MAX_BUNDLE_BYTES)?
        {
            found.push((file.to_owned(), text::hex(&Sha256::digest(bytes))));
        }
    }
    Ok(found.into_iter().map(|(file, sha256)| Published::Mcpb { file, sha256 }).collect())
}
