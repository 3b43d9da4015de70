//! `wharf build`: builds the plugin in a folder, and checks that it loads; or writes into a component what its author says of it.

#![expect(clippy::disallowed_methods, reason = "reads the files that the user names")]

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow};

use super::{
    arguments::Build,
    check::all_or_nothing,
    file::{SHARED_MODE, component as read_component, replace},
    inspect::show_offers,
    load::{load, print},
};
use crate::authoring::{
    build::{self, Output, Until},
    project::Project,
};
use wharf_base::{failed::failed, text};
use wharf_config::config::{self, CommandLine};
use wharf_plugins::plugins::{
    snapshot::Serving,
    status::{Stage, Status},
};
use wharf_policy::access::wants::{parse, want::WantedGrant};
use wharf_sandbox::{
    Outside,
    sections::{INSTRUCTIONS, WANTS},
    with_section,
};

pub async fn run(command: &Build) -> Result<ExitCode> {
    if let Some(plugin) = &command.embed {
        return embed(plugin, command);
    }
    let project = Project::open(&command.project.folder)?;
    build_artifact(&project, command.project.setup).await?;
    let config = config(&project, &project.build.artifact)?;
    for plugin in load(config.clone()).await?.wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
            let lacking = match problem.stage {
                Stage::List => lacking(&project.build.artifact, &config)?,
                _ => Vec::new(),
            };
            if !lacking.is_empty() {
                print(&format!(
                    "note: what it offers is not checked, because it does not say that without its variables ({}): {}",
                    lacking.join(", "),
                    problem.text
                ))?;
                let grants = "`env` in [dev.grants] of plugin.toml";
                print(&format!(
                    "the component can be served with these granted; to check it here, grant them with {grants}"
                ))?;
                continue;
            }
            let problem = format!("the plugin was built, but does not load ({}): {}", problem.stage, problem.text);
            return Err(failed(anyhow!(problem)));
        }
        if let Some(serving) = &plugin.serving {
            show(serving)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

const HOW: (Until, Output) = (Until::Interrupted, Output::Passed);

/// Builds the plugin, and writes the component to the path of its artifact.
pub async fn build_artifact(project: &Project, set_up: bool) -> Result<()> {
    build::ready(project, set_up, HOW).await?;
    let built = build::build(project, HOW).await?;
    let artifact = &project.build.artifact;
    replace(artifact, &built.component, SHARED_MODE)?;
    let (size, seconds) = (built.component.len().div_ceil(1024), built.took.as_secs_f64());
    print(&format!("built {} in {seconds:.1} s, {size} KiB", text::path(artifact)))
}

/// Returns the variables that a component wants and the config does not grant.
fn lacking(component: &Path, config: &config::Config) -> Result<Vec<String>> {
    let (_, outside) = read_component(component)?;
    let wants = outside.sections.wants.as_deref().map(parse::json).transpose().context("the section wharf:wants")?;
    let wanted = wants.into_iter().flat_map(|wants| wants.grants).map(|want| want.what);
    let granted = |what: &WantedGrant| config.plugins.iter().any(|plugin| what.is_granted(&plugin.grants));
    let lacking = wanted.filter(|what| !granted(what)).filter_map(|what| match what {
        WantedGrant::Env(name) => Some(name),
        _ => None,
    });
    Ok(lacking.collect())
}

/// Returns a config that serves this component as the project's plugin.
fn config(project: &Project, component: &Path) -> Result<config::Config> {
    let text = project.config(component)?;
    config::from_text(&text, None, &CommandLine::default()).context("plugin.toml, [dev]")
}

fn show(serving: &Serving) -> Result<()> {
    print(&format!("sha256 {}", serving.sha256))?;
    show_offers(serving)?;
    print(&format!("could use, if granted: {}", all_or_nothing(&serving.could_use)))?;
    for note in &serving.notes {
        print(&format!("note: {note}"))?;
    }
    Ok(())
}

/// Writes the grants that a component wants, and instructions for models, into custom sections of the component. Wharf reads them without
/// running the component.
fn embed(plugin: &Path, Build { wants, instructions, out, .. }: &Build) -> Result<ExitCode> {
    let (mut bytes, _) = read_component(plugin)?;
    let unwritten = || text::path(plugin);
    if let Some(wants) = wants {
        let text = read(wants)?;
        // The error of a malformed line begins with its number.
        let (_, json) = parse::toml(&text).map_err(|error| anyhow::anyhow!("{}:{error:#}", text::path(wants)))?;
        bytes = with_section(&bytes, WANTS, &json).with_context(unwritten)?;
    }
    if let Some(instructions) = instructions {
        let text = match instructions.strip_prefix('@') {
            Some(file) => read(Path::new(file))?,
            None => instructions.clone(),
        };
        bytes = with_section(&bytes, INSTRUCTIONS, text.trim()).with_context(unwritten)?;
    }
    let out = out.as_deref().unwrap_or(plugin);
    replace(out, &bytes, SHARED_MODE)?;
    print(&format!("wrote {}, sha256 {}", text::path(out), Outside::of(&bytes)?.sha256))?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", text::path(path)))
}
