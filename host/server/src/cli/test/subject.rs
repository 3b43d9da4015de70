//! The plugin that is tested.

#![expect(clippy::disallowed_methods, reason = "what the author built is looked for here")]

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{
    authoring::project::Project,
    base::text,
    cli::{arguments::Test, build::made},
};

#[derive(Debug)]
pub struct Subject {
    pub name: String,
    /// Absolute.
    pub component: PathBuf,
    /// What `[plugins.NAME]` would say in a config.
    pub dev: toml::Table,
}

impl Subject {
    /// Builds the plugin of the folder, unless a component is named. With one, the folder needs no `plugin.toml`.
    pub async fn of(command: &Test) -> Result<Self> {
        let folder = &command.project.folder;
        let Some(plugin) = &command.plugin else {
            let project = Project::open(folder)?;
            made(&project, command.project.setup).await?;
            let dev = project.dev().clone();
            return Ok(Self { name: project.name, component: project.build.artifact, dev });
        };
        ensure!(plugin.is_file(), "{} is not there", text::path(plugin));
        let component = std::path::absolute(plugin)?;
        // Of the folder of somebody else, nothing is run: what it says about the build does not matter here.
        if let Some(project) = Project::find(folder)? {
            let dev = project.dev().clone();
            return Ok(Self { name: project.name, component, dev });
        }
        let name = plugin.file_stem().and_then(|stem| stem.to_str()).context("its name is not UTF-8")?.to_owned();
        Ok(Self { name, component, dev: toml::Table::new() })
    }
}
