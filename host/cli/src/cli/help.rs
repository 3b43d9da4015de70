//! `wharf completions`, `wharf man` and `wharf schema`: completion scripts, man pages, and the JSON Schema of the config.

#![expect(clippy::disallowed_methods, reason = "man pages are written into the folder that the user names")]

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use super::load::print;
use wharf_base::text;
use wharf_config::config;

pub fn completions(shell: Shell, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "wharf", &mut script);
    print(String::from_utf8(script)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(folder: &Path, command: Command) -> Result<ExitCode> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write man pages to {}", text::path(folder)))?;
    Ok(ExitCode::SUCCESS)
}

pub fn schema() -> Result<ExitCode> {
    print(config::SCHEMA.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::arguments::Arguments;

    #[test]
    fn the_program_has_one_name_in_its_version_man_pages_and_completions() {
        let command = Arguments::command();
        assert_eq!(command.get_name(), "wharf");
        assert_eq!(command.render_version(), concat!("wharf ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}
