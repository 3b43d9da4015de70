//! `wharf inspect`: shows what a plugin offers and could use, without granting it anything.

use std::process::ExitCode;

use anyhow::Result;

use super::{
    arguments::Inspect,
    check::all_or_nothing,
    file::component,
    load::{load, print},
    made_of::MadeOf,
};
use crate::authoring::{
    build::Until,
    existing::{make::make, server::Server},
};
use wharf_base::text::escaped;
use wharf_config::{
    access::wants::want::because,
    config::{self, CommandLine, Named, Positional, builtin},
};
use wharf_plugins::plugins::{snapshot::Serving, status::Status};

pub(super) async fn run(command: Inspect) -> Result<ExitCode> {
    let server = match command.plugin.as_deref().map(Positional::tell) {
        Some(Ok(Positional::Server(path))) => Some(Server::at(&path)?),
        _ => None,
    };
    if let Some(server) = &server {
        make(server, Until::Interrupted).await?;
    }
    let path = server.map(|server| server.component()).or(command.plugin);
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
        let made_of = match (&path, &command.builtin) {
            (Some(path), _) => MadeOf::of(&component(path)?.0),
            (None, Some(name)) => MadeOf::of(builtin::find(name)?.bytes()),
            (None, None) => continue,
        };
        match made_of {
            Ok(made_of) => made_of.lines(command.packages).iter().try_for_each(|line| print(line))?,
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

/// Prints the tools, resources, templates and prompts of a plugin, one per line.
pub fn show_offers(serving: &Serving) -> Result<()> {
    for (kind, entries) in [
        ("tool", &serving.tools),
        ("resource", &serving.resources),
        ("template", &serving.templates),
        ("prompt", &serving.prompts),
    ] {
        for entry in entries {
            let first_line = entry.description.lines().next().unwrap_or_default();
            print(&format!("{kind} {}: {}", escaped(&entry.own_name), escaped(first_line)))?;
        }
    }
    Ok(())
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
