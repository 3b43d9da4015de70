//! `wharf new`: creates a plugin project from a template, or from an existing MCP server.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result};

use super::{arguments::New, load::print};
use crate::authoring::{
    existing::adopt::{self, Origin},
    template::{self, Language},
};
use wharf_base::text;

pub fn run(command: &New) -> Result<ExitCode> {
    let name_of = |folder: &Path| {
        let name = folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        name.context("name a folder to create; its last component is the name of the plugin")
    };
    if let Some(from) = &command.from {
        let origin = Origin::parse(from)?;
        let folder = command.folder.clone().unwrap_or_else(|| origin.name().into());
        adopt::make(&origin, &folder, &name_of(&folder)?)?;
        print(&format!(
            "created {folder}, a plugin made from {}\n\
             \n  cd {folder}\
             \n  wharf dev --setup      install its packages, build and serve it, and rebuild it whenever you save\
             \n  wharf build            build the component to distribute",
            text::escaped(from),
            folder = text::path(&folder),
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = command.folder.as_deref().context("name a folder to create")?;
    let language: Language = command.lang.into();
    let project = template::make(folder, &name_of(folder)?, language)?;
    let set_up = if project.build.setup.is_some() { " --setup" } else { "" };
    print(&format!(
        "created {}, a plugin in {}\n\
         \n  cd {}\
         \n  wharf dev{set_up}      build and serve it, and rebuild it whenever you save\
         \n  wharf test{}     run the test cases in tests/\
         \n  wharf build{}    build the component to distribute",
        text::path(folder),
        language.name(),
        text::path(folder),
        " ".repeat(set_up.len()),
        " ".repeat(set_up.len()),
    ))?;
    Ok(ExitCode::SUCCESS)
}
