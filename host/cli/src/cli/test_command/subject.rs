//! The plugin that is tested.

#![expect(clippy::disallowed_methods, reason = "looks for the component that the author built")]

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{
    authoring::project::Project,
    cli::{arguments::Test, build::build_artifact},
};
use wharf_base::text;

#[derive(Debug)]
pub struct Subject {
    pub name: String,
    /// Absolute.
    pub component: PathBuf,
    /// The contents of `[plugins.NAME]` in a config.
    pub dev: toml::Table,
}

impl Subject {
    /// Builds the plugin of the folder, unless a component is named. With one, the folder needs no `plugin.toml`.
    pub async fn of(command: &Test) -> Result<Self> {
        let folder = &command.project.folder;
        let Some(plugin) = &command.plugin else {
            let project = Project::open(folder)?;
            build_artifact(&project, command.project.setup).await?;
            let dev = project.dev().clone();
            return Ok(Self { name: project.name, component: project.build.artifact, dev });
        };
        ensure!(plugin.is_file(), "{}: there is no such file", text::path(plugin));
        let component = std::path::absolute(plugin)?;
        // The folder may come from someone else, so none of its commands is run, and its build settings do not matter.
        if let Some(project) = Project::find(folder)? {
            let dev = project.dev().clone();
            return Ok(Self { name: project.name, component, dev });
        }
        let name = plugin
            .file_stem()
            .and_then(|stem| stem.to_str())
            .context("the name of the component is not UTF-8")?
            .to_owned();
        Ok(Self { name, component, dev: toml::Table::new() })
    }
}
