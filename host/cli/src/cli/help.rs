//! `wharf --help`, which lists the commands in groups, and `wharf print`: completion scripts, man pages, the JSON Schema of the config.

#![expect(clippy::disallowed_methods, reason = "man pages are written into the folder that the user names")]

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Command;

use super::{arguments::Print, load};
use wharf_base::text;
use wharf_config::config;

/// What a person does with wharf, and the commands for it. Not listed are `packaged`, which packages start, and `print`.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Use plugins", &["run", "serve", "install", "adopt", "call", "inspect", "check"]),
    ("Write plugins", &["new", "build", "dev", "test", "pack", "publish"]),
    (
        "Operate wharf",
        &["add", "grant", "remove", "update", "lock", "open", "audit", "undo", "approvals", "keys", "cache"],
    ),
];

/// Returns the program with a help that lists its commands in groups.
pub fn grouped(program: Command) -> Command {
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        template += &format!("\n{heading}:\n");
        for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            template += &format!("  {:<10} {about}\n", command.get_name());
        }
    }
    program.help_template(template + "\nOptions:\n{options}{after-help}")
}

pub fn print(what: Print, mut command: Command) -> Result<ExitCode> {
    match what {
        Print::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "wharf", &mut script);
            load::print(String::from_utf8(script)?.trim_end())?;
        }
        Print::Man { folder } => std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(command, &folder))
            .with_context(|| format!("cannot write man pages to {}", text::path(&folder)))?,
        Print::Schema => load::print(config::SCHEMA.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::arguments::Arguments;

    #[test]
    fn the_program_has_one_name_in_its_version_man_pages_and_completions() {
        let command = Arguments::command();
        assert_eq!(command.get_name(), "wharf");
        assert_eq!(command.render_version(), concat!("wharf ", env!("CARGO_PKG_VERSION"), "\n"));
    }

    #[test]
    fn each_command_stands_in_one_group_on_one_line() {
        for command in Arguments::command().get_subcommands() {
            let (name, about) = (command.get_name(), command.get_about().unwrap().to_string());
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, usize::from(!["packaged", "print"].contains(&name)), "{name}");
            assert!(groups == 0 || about.len() <= 87 && !about.contains('{'), "{name}: {about}");
        }
        let help = grouped(Arguments::command()).render_help().to_string();
        assert!(help.contains("\nOperate wharf:\n  add        Add a plugin"), "{help}");
    }
}
