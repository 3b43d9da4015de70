//! `wharf new`: creates a plugin project from a template.

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::{arguments::New, load::print};
use crate::authoring::template;
use wharf_base::text;

pub fn run(command: &New) -> Result<ExitCode> {
    let name = command
        .folder
        .file_name()
        .and_then(|name| name.to_str())
        .context("name a folder to create; its last component is the name of the plugin")?;
    let language = command.lang.into();
    let project = template::make(&command.folder, name, language)?;
    let set_up = if project.build.setup.is_some() { " --setup" } else { "" };
    print(&format!(
        "created {}, a plugin in {}\n\
         \n  cd {}\
         \n  wharf dev{set_up}      build and serve it, and rebuild it whenever you save\
         \n  wharf test{}     run the test cases in tests/\
         \n  wharf build{}    build the component to distribute",
        text::path(&command.folder),
        language.name(),
        text::path(&command.folder),
        " ".repeat(set_up.len()),
        " ".repeat(set_up.len()),
    ))?;
    Ok(ExitCode::SUCCESS)
}
