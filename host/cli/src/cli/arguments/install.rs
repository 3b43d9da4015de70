//! The arguments of `wharf install`. The options of `wharf run` among them are passed on as they were given, whichever they are.

use std::{any::TypeId, ffi::OsString, path::PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, parser::ValueSource};

use super::{
    run::{Log, Run},
    value_names::ValueNames,
};
use wharf_base::explain;

use crate::{
    authoring::existing::line,
    setup::{client_list, clients::Client},
};

/// Adds wharf to the config of an MCP client: the absolute path of this binary and the arguments for `wharf run`. Everything else in
/// that file stays as it is, and a backup is written next to it (.wharf-backup). For a config in YAML (goose, Continue), the lines to add
/// are printed.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_HELP)]
pub struct Install {
    /// The client, such as claude-code; --list names all. `other`: a client that reads mcpServers from JSON
    #[arg(value_name = "CLIENT", required_unless_present = "list", value_parser = ValueNames::clients(), hide_possible_values = true)]
    client: Option<String>,
    /// List the clients, their configs, and which of their servers are wharf
    #[arg(long)]
    pub list: bool,
    /// The config file to change, in place of the client's usual one, such as .vscode/mcp.json of a project
    #[arg(long, value_name = "FILE")]
    pub config_path: Option<PathBuf>,
    /// The server's name in the client's config (default: the id of the plugin, if exactly one is named, else wharf)
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove wharf from the client's config, and put back what --force replaced
    #[arg(long)]
    pub uninstall: bool,
    /// Replace or remove a server of this name even if it is not wharf
    #[arg(long)]
    pub force: bool,
    /// What follows `--` may also be arguments to start wharf with, beginning with `run`, which are written as given
    #[command(flatten)]
    pub given: AsGiven,
}

/// Looks at the configs of the clients that `wharf install --list` names. Each MCP server there that wharf can run is built, as `wharf run`
/// builds it, and shown: its tools, the tokens that their list takes, and what it wants. Of each, a question is asked at the terminal: yes puts
/// wharf and the access that was shown before its line; the rest of its entry stays, such as its variables.
/// `wharf install CLIENT --name NAME --uninstall` puts back what was there.
#[derive(Debug, Args)]
pub struct Adopt {
    /// Show the servers, ask nothing and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

const INSTALL_HELP: &str = "\
Examples:
  wharf install claude-desktop --builtin files ~/Documents    a folder to read and write in
  wharf install claude-code --builtin files                   the folders that Claude Code opens
  wharf install vscode --config-path .vscode/mcp.json --builtin git '${workspaceFolder}'
  wharf install codex --allow env=API_KEY npx -y @scope/server
  wharf install codex -c ~/tools/wharf.toml                   the plugins of a config
  wharf install zed                                           the plugins of the default config
  wharf install claude-desktop --name files --uninstall";

impl Install {
    /// Returns the arguments to start wharf with if they were given as they are, in place of the options.
    pub fn as_they_are(&self) -> Option<&[String]> {
        let named = &self.given.run.named;
        let is_line = named.after.first().is_some_and(|first| line::begins(first));
        let is_alone = named.paths.is_empty() && named.builtins.is_empty();
        (is_alone && !is_line && !named.after.is_empty()).then_some(&*named.after)
    }

    /// Returns the client, or `None` if the clients are to be listed.
    pub fn client(&self) -> Result<Option<&'static Client>> {
        let Some(name) = self.client.as_deref().filter(|_| !self.list) else { return Ok(None) };
        let found = client_list::find(name).with_context(|| {
            let all = || client_list::ALL.iter().map(|client| client.id);
            let mut meant: Vec<&str> = all().filter(|id| id.starts_with(name)).collect();
            if meant.is_empty() {
                meant.extend(explain::nearest(all(), name));
            }
            let meant = if meant.is_empty() { String::new() } else { format!("did you mean {}? ", meant.join(" or ")) };
            let all: Vec<&str> = all().collect();
            format!("unknown client `{}`; {meant}choose one of: {}", name.escape_debug(), all.join(", "))
        });
        found.map(Some)
    }
}

/// The arguments for `wharf run`: parsed, and its options as they were given.
#[derive(Debug)]
pub struct AsGiven {
    pub run: Run,
    pub options: Vec<Given>,
}

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub flag: String,
    /// `None` if the option takes no value.
    pub value: Option<OsString>,
    pub is_path: bool,
}

impl FromArgMatches for AsGiven {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { options: options(matches), run: Run::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for AsGiven {
    fn augment_args(command: Command) -> Command {
        Run::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Run::augment_args_for_update(command)
    }
}

/// Returns the options of `wharf run` that were given.
fn options(matches: &ArgMatches) -> Vec<Given> {
    let (own, every) = (Run::augment_args(Command::new("run")), Log::augment_args(Command::new("wharf")));
    let all = own.get_arguments().chain(every.get_arguments());
    let mut given = Vec::new();
    for option in all.filter(|option| !option.is_positional()) {
        let id = option.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let short = option.get_short().map(|letter| format!("-{letter}"));
        let Some(flag) = short.or_else(|| option.get_long().map(|name| format!("--{name}"))) else { continue };
        let is_path = option.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        if !option.get_action().takes_values() {
            given.push(Given { flag, value: None, is_path });
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            given.push(Given { flag: flag.clone(), value: Some(value.to_owned()), is_path });
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::arguments::{Arguments, Command as Subcommand};

    fn install(line: &str) -> Install {
        let words = ["wharf", "install"].into_iter().chain(line.split(' '));
        match Arguments::try_parse_from(words).unwrap().command {
            Subcommand::Install(install) => install,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_option_of_run_is_passed_on() {
        let given =
            install("codex -c a.toml --root x --root=y --allow roots=read --read-only --log-format json docs").given;
        let path = |flag: &str, value: &str| Given { flag: flag.into(), value: Some(value.into()), is_path: true };
        let text = |flag: &str, value: &str| Given { is_path: false, ..path(flag, value) };
        let mut expected = vec![
            path("-c", "a.toml"),
            path("--root", "x"),
            path("--root", "y"),
            text("--allow", "roots=read"),
            Given { flag: "--read-only".into(), value: None, is_path: false },
            text("--log-format", "json"),
        ];
        let mut options = given.options;
        options.sort_by_key(|option| option.flag.clone());
        expected.sort_by_key(|option| option.flag.clone());
        assert_eq!(options, expected);
        assert_eq!(given.run.named.paths, [PathBuf::from("docs")]);
        assert_eq!(install("codex docs").given.options, []);
    }

    /// An option that is added to `wharf run` is passed on as well.
    #[test]
    fn no_option_of_run_has_a_form_that_is_not_known() {
        for option in Run::augment_args(Command::new("run")).get_arguments().filter(|option| !option.is_positional()) {
            let values = option.get_num_args().map_or(1, |range| range.max_values());
            assert!(!option.get_action().takes_values() || values == 1, "{option:?}");
            assert!(option.get_short().is_some() || option.get_long().is_some(), "{option:?}");
        }
    }

    #[test]
    fn clients_have_other_names_and_unknown_ones_are_told() {
        assert_eq!(install("gemini docs").client().unwrap().unwrap().id, "gemini-cli");
        let error = install("claude docs").client().unwrap_err().to_string();
        assert!(
            error.contains(
                "unknown client `claude`; did you mean claude-desktop or claude-code? choose one of: claude-desktop, "
            ),
            "{error}"
        );
        assert!(install("--list").client().unwrap().is_none());
    }
}
