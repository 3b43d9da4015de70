//! `wharf build`: builds the plugin in a folder, and checks that it loads.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow};

use super::{
    arguments::Project as Named,
    check::all_or_nothing,
    file::{SHARED_MODE, replace},
    inspect::show_offers,
    load::{load, print},
};
use crate::authoring::{
    build::{self, Output, Until},
    project::Project,
};
use wharf_base::{failed::failed, text};
use wharf_config::config::{self, CommandLine};
use wharf_plugins::plugins::{snapshot::Serving, status::Status};

pub async fn run(command: &Named) -> Result<ExitCode> {
    let project = Project::open(&command.folder)?;
    build_artifact(&project, command.setup).await?;
    for plugin in load(config(&project, &project.build.artifact)?).await?.wharf.plugins() {
        if let Status::Failed { problem, .. } = &plugin.status {
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
