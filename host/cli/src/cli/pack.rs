//! `wharf pack`: makes packages that carry wharf and the plugin in a folder.

#![expect(clippy::disallowed_methods, reason = "reads the author's folder and this binary, and writes the packages")]

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::{
    add::wants,
    arguments::{Pack, PackageKind},
    check::all_or_nothing,
    file::{SHARED_MODE, component, replace},
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
use wharf_base::{failed::OrFailed, text};
use wharf_config::access::grants::could_use;

/// The largest licence that is packed, in bytes.
const MAX_LICENSE_BYTES: u64 = 1 << 20;

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
    let (bytes, outside) = match fs::exists(artifact) {
        Ok(true) => component(artifact)?,
        _ => anyhow::bail!(
            "{} does not exist yet; build the plugin first: wharf build {}",
            text::path(artifact),
            text::path(&command.folder)
        ),
    };
    let said = wants(&outside)?;
    let could = could_use(&outside.imports);
    if said.is_none() && !could.is_empty() {
        say(&format!(
            "note: the component does not say what it wants, so users of the packages cannot allow it anything ({}). If it needs some of \
             that, declare it: wharf embed WANTS.toml {}",
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
    let license = license(&project.folder)?;
    let contents = |wharf| Contents {
        package,
        id: &project.name,
        component: &bytes,
        folders: answers::folders(&wants),
        questions: &questions,
        wharf,
        license: license.as_deref(),
    };
    let out = command.out.clone().unwrap_or_else(|| project.folder.join("dist/packages"));
    fs::create_dir_all(&out).with_context(|| text::path(&out)).or_failed()?;
    let carried = wharf.filter(|_| !command.depend);
    let mut published = Vec::new();
    for kind in kinds {
        say(&format!("packing: {}", name_of(kind)));
        let (file, made) = match kind {
            PackageKind::Mcpb => mcpb::make(&contents(wharf))?,
            PackageKind::Npm => npm::make(&contents(carried))?,
            PackageKind::Wheel => wheel::make(&contents(carried))?,
        };
        let path = out.join(&file);
        replace(&path, &made, SHARED_MODE)?;
        print(&format!("{:>6.1} MB  {}", made.len() as f64 / 1e6, text::path(&path)))?;
        match kind {
            PackageKind::Mcpb => {}
            PackageKind::Npm => published.push(Published::Npm),
            PackageKind::Wheel => published.push(Published::Pypi),
        }
    }
    published.extend(bundles(&out, &project.name, package)?);
    match registry::make(&contents(carried), &published) {
        Ok(server) => {
            let path = out.join("server.json");
            replace(&path, (serde_json::to_string_pretty(&server)? + "\n").as_bytes(), SHARED_MODE)?;
            print(&format!("           {}", text::path(&path)))?;
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

fn license(folder: &Path) -> Result<Option<String>> {
    let path = folder.join("LICENSE");
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        about => {
            let about = about.with_context(|| text::path(&path))?;
            ensure!(
                about.is_file() && about.len() <= MAX_LICENSE_BYTES,
                "{}: not a text of at most 1 MiB",
                text::path(&path)
            );
            Ok(Some(fs::read_to_string(&path).with_context(|| text::path(&path))?))
        }
    }
}

/// The bundles of this version in a folder, which may be of several platforms.
fn bundles(out: &Path, id: &str, package: &Package) -> Result<Vec<Published>> {
    let around = mcpb::file_name(id, &package.version, "\0");
    let (before, after) = around.split_once('\0').unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir(out).with_context(|| text::path(out))? {
        let path = entry?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if file.starts_with(before) && file.ends_with(after) {
            let bytes = fs::read(&path).with_context(|| text::path(&path))?;
            found.push((file.to_owned(), text::hex(&Sha256::digest(bytes))));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(file, sha256)| Published::Mcpb { file, sha256 }).collect())
}
