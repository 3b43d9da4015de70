//! `wharf inspect`: shows what a plugin offers and could use, without granting it anything.

use std::{path::Path, process::ExitCode};

use anyhow::{Result, ensure};

use super::{
    arguments::{Inspect, of_line},
    check::all_or_nothing,
    file::component,
    load::{load, print},
    provenance::Provenance,
    supply::preview::{self, Preview},
};
use crate::authoring::{
    build::Until,
    existing::{
        detached,
        inputs::Inputs,
        make::{admit, is_built, make},
        outline::outline,
        started::meant,
    },
};
use wharf_base::text::escaped;
use wharf_config::config::{
    self, CommandLine, Named, Positional, builtin, existing::ExistingServer, reference::SourceReference,
};
use wharf_plugins::plugins::{snapshot::Serving, status::Status};
use wharf_policy::access::wants::want::because;

pub(super) async fn run(command: Inspect) -> Result<ExitCode> {
    if command.server_from_stdin {
        return detached::asked().await;
    }
    let source = command.plugin.as_deref().and_then(Path::to_str).filter(|text| SourceReference::is_meant(text));
    let seen = match source {
        Some(source) => Some(Box::pin(preview::bring(source)).await?),
        None => None,
    };
    let plugin = seen.as_ref().map(Preview::path).or(command.plugin);
    for line in seen.iter().flat_map(|seen| &seen.lines) {
        print(line)?;
    }
    let server = match plugin.as_deref().map(Positional::tell) {
        _ if !command.line.is_empty() => Some(of_line(&command.line)?),
        Some(Ok(positional)) => meant(positional)?,
        _ => None,
    };
    ensure!(
        !command.build || server.is_some(),
        "--build is for an existing server in Python, TypeScript or JavaScript"
    );
    if let Some(server) = &server {
        if command.build {
            make(server, Until::Interrupted).await?;
        } else {
            let inputs = admit(server)?;
            if !is_built(server, &inputs) {
                return show_outline(server, &inputs);
            }
        }
    }
    let path = server.map(|server| server.component()).or(plugin);
    let file = path.clone().map(Named::File);
    let plugins = file.into_iter().chain(command.builtin.clone().map(Named::BuiltIn)).collect();
    let command_line = CommandLine { plugins, ..CommandLine::default() };
    for plugin in load(config::load(None, &command_line)?).await?.wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
            print(&format!("{}: FAILED ({}): {}", plugin.subject, problem.stage, problem.text))?;
            return Ok(ExitCode::FAILURE);
        }
        let Some(serving) = plugin.serving else { continue };
        print(&format!("sha256 {}", serving.sha256))?;
        if let Some(adapted) = &serving.adapted {
            print(&format!("served: {adapted}"))?;
        }
        let provenance = match (&path, &command.builtin) {
            (Some(path), _) => Provenance::of(&component(path)?.0),
            (None, Some(name)) => Provenance::of(&builtin::find(name)?.bytes()?),
            (None, None) => continue,
        };
        match provenance {
            Ok(provenance) => provenance.lines(command.packages).iter().try_for_each(|line| print(line))?,
            Err(error) => print(&format!("how it was made cannot be read: {}", escaped(&format!("{error:#}"))))?,
        }
        print(&format!("could use, if granted: {}", all_or_nothing(&serving.could_use)))?;
        show_wants(&serving)?;
        show_offers(&serving)?;
        if serving.completions {
            print("completions")?;
        }
        for note in &serving.notes {
            print(&format!("note: {note}"))?;
        }
        print("imports:")?;
        for import in &serving.imports {
            print(&format!("  {import}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what is known of a server without its build.
fn show_outline(server: &ExistingServer, inputs: &Inputs) -> Result<ExitCode> {
    const ASKS: &str =
        "--build builds it, which runs its package manager and, in confinement, its own code, and shows what it offers";
    ensure!(
        !inputs.files.is_empty(),
        "{}: this package is not built, and none of its files are here; {ASKS}",
        server.named()
    );
    print(&format!("{}: not built, or changed since; this is what its files say", server.named()))?;
    outline(server, inputs)?.iter().try_for_each(|line| print(line))?;
    print(&format!("note: {ASKS}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the tools, resources, templates and prompts of a plugin, one per line.
pub fn show_offers(serving: &Serving) -> Result<()> {
    offers(serving).iter().try_for_each(|line| print(line))
}

/// Returns a line for each tool, resource, template and prompt of a plugin.
pub fn offers(serving: &Serving) -> Vec<String> {
    let kinds = [
        ("tool", &serving.tools),
        ("resource", &serving.resources),
        ("template", &serving.templates),
        ("prompt", &serving.prompts),
    ];
    let lines = kinds.into_iter().flat_map(|(kind, entries)| {
        entries.iter().map(move |entry| {
            let first_line = entry.description.lines().next().unwrap_or_default();
            format!("{kind} {}: {}", escaped(&entry.own_name), escaped(first_line))
        })
    });
    lines.collect()
}

/// Prints the grants that the plugin wants, and what its imports would let it use beyond those.
fn show_wants(serving: &Serving) -> Result<()> {
    for wanted in serving.wants.iter().flatten() {
        print(&format!("wants {}{}", wanted.what, because(wanted.why.as_deref())))?;
    }
    let wants = match &serving.wants {
        None => "it does not say what it wants",
        Some(wants) if wants.is_empty() => "wants nothing",
        Some(_) => "wants nothing else",
    };
    match &serving.unspoken {
        unspoken if unspoken.is_empty() => print(wants),
        unspoken => print(&format!("{wants}, could use {}", unspoken.join(", "))),
    }
}
