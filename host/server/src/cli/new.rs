//! `wharf new`: makes a folder with a plugin to begin with.

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::{arguments::New, load::print};
use crate::{authoring::template, base::text};

pub fn run(command: &New) -> Result<ExitCode> {
    let name = command.folder.file_name().and_then(|name| name.to_str()).context("name the plugin")?;
    let language = command.lang.into();
    let project = template::make(&command.folder, name, language)?;
    let set_up = if project.build.setup.is_some() { " --setup" } else { "" };
    print(&format!(
        "made {}, a plugin in {}\n\
         \n  cd {}\
         \n  wharf dev{set_up}      build it, serve it, and again whenever you save\
         \n  wharf test{}     run what is in tests/\
         \n  wharf build{}    make the component that others serve",
        text::path(&command.folder),
        language.name(),
        text::path(&command.folder),
        " ".repeat(set_up.len()),
        " ".repeat(set_up.len()),
    ))?;
    Ok(ExitCode::SUCCESS)
}
