//! The arguments of `wharf call`.

#![expect(clippy::disallowed_methods, reason = "tells folders from the names of tools")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::{
    line_place::{begins, ending},
    run::{ConfigFile, Granted, Plugins, of_line, tell},
    value_names::ValueNames,
};
use crate::authoring::existing::started::meant;
use wharf_config::config::{Named, Positional};

#[derive(Debug, Args)]
#[command(override_usage = "wharf call [OPTIONS] <PLUGIN.wasm> [DIR]... <TOOL> [JSON | key=value]...\n       \
    wharf call [OPTIONS] <SERVER.py | SERVER.ts | npm:NAME | pypi:NAME> [DIR]... <TOOL> [JSON | key=value]...\n       \
    wharf call [OPTIONS] [DIR]... <npx -y NAME | uvx NAME | node FILE> [ARGUMENTS]... <TOOL> [JSON | key=value]...\n       \
    wharf call [OPTIONS] --builtin <NAME> [DIR]... <TOOL> [JSON | key=value]...")]
pub struct Call {
    #[command(flatten)]
    pub config: ConfigFile,
    #[command(flatten)]
    pub granted: Granted,
    /// Approve the call, if `confirm` in the config requires a person's approval
    #[arg(long)]
    pub yes: bool,
    /// A built-in plugin, in place of a component
    #[arg(long, value_name = "NAME", value_parser = ValueNames::builtins(), hide_possible_values = true)]
    pub builtin: Option<String>,
    /// Open the folders for reading only
    #[arg(long)]
    pub read_only: bool,
    /// The component or the existing MCP server, the folders that it may read and write in, the tool's name in the plugin, and the
    /// arguments: one JSON object, or key=value pairs. Of the line that starts a server, the last word before such pairs is the tool
    #[arg(required = true, value_name = "PLUGIN.wasm DIR TOOL ARGUMENTS")]
    pub words: Vec<String>,
}

/// What `wharf call` is to call.
#[derive(Debug)]
pub struct Parts<'a> {
    pub plugin: Named,
    pub folders: Vec<PathBuf>,
    pub tool: &'a str,
    pub arguments: &'a [String],
}

impl Call {
    /// Splits the words into the plugin, the folders, the tool and its arguments.
    pub fn parts(&self) -> Result<Parts<'_>> {
        if let Some(parts) = self.parts_of_line()? {
            return Ok(parts);
        }
        let (plugin, mut words) = match (&self.builtin, self.words.split_first()) {
            (Some(name), _) => (Named::BuiltIn(name.clone()), self.words.as_slice()),
            (None, Some((path, words))) => match meant(tell(Path::new(path))?)? {
                Some(server) => (Named::Server(Arc::new(server)), words),
                None => (Named::File(path.into()), words),
            },
            (None, None) => bail!("name a plugin"),
        };
        let mut folders = Vec::new();
        // The last word before the arguments is the tool, even if there is a folder of that name.
        while let [word, next, ..] = words
            && !is_argument(next)
        {
            let path = Path::new(word);
            if !path.is_dir() && !word.contains('/') {
                break;
            }
            match Positional::tell(path)? {
                Positional::Folder(folder) => folders.push(folder),
                Positional::Plugin(_) | Positional::Server(_) | Positional::Published(_) => {
                    bail!("`{word}` is not a folder; `wharf call` calls one tool of one plugin")
                }
            }
            words = words.get(1..).unwrap_or_default();
        }
        let (tool, arguments) = words
            .split_first()
            .with_context(|| format!("name the tool, after the plugin{}", instead(0, ["TOOL", "key=value"])))?;
        Ok(Parts { plugin, folders, tool, arguments })
    }

    /// Splits the words if they contain the line that starts a server. What is open to it stands before the line, and the tool is the last
    /// word before its own arguments.
    fn parts_of_line(&self) -> Result<Option<Parts<'_>>> {
        let at = self.words.iter().position(|word| begins(word) || !Path::new(word).is_dir());
        let Some((folders, rest)) = at.and_then(|at| self.words.split_at_checked(at)) else { return Ok(None) };
        if self.builtin.is_some() || !rest.first().is_some_and(|word| begins(word)) {
            return Ok(None);
        }
        let pairs = rest.iter().rev().take_while(|word| is_argument(word)).count();
        let (line, arguments) = rest.split_at_checked(rest.len() - pairs).unwrap_or((rest, &[]));
        let all = line;
        let (tool, line) = all.split_last().context("name the server, and the tool after it")?;
        let Ok(server) = of_line(line) else {
            // The last word may belong to the server, and the tool be missing.
            of_line(all)?;
            let pairs = arguments.iter().map(String::as_str);
            let pairs = pairs.chain(arguments.is_empty().then_some("key=value"));
            bail!("name the tool, after the server{}", instead(arguments.len(), std::iter::once("TOOL").chain(pairs)));
        };
        ensure!(
            !tool.starts_with('-'),
            "`{tool}` stands where the tool is expected, after the server; wharf's own options stand before `{}`",
            rest.first().map_or("", String::as_str)
        );
        if let [.., tool_too] = server.args.as_slice()
            && arguments.is_empty()
            && is_tool(tool_too)
            && !matches!(server.args.as_slice(), [.., option, _] if option.starts_with('-') && !option.contains('='))
        {
            bail!(
                "`{tool}` is taken for the tool, and `{tool_too}` for an argument of the server; if `{tool_too}` is the tool, write its \
                 arguments as key=value{}; if it is not, write {{}} after the tool{}",
                instead(1, [format!("KEY={tool}").as_str()]),
                instead(0, ["{}"])
            );
        }
        let (plugin, folders) = (Named::Server(Arc::new(server)), folders.iter().map(PathBuf::from).collect());
        Ok(Some(Parts { plugin, folders, tool, arguments }))
    }

    /// Returns the plugin and its folders, as `wharf run` has them on its command line.
    pub fn opened(&self, plugin: &Named, folders: Vec<PathBuf>) -> Plugins {
        let mut plugins = Plugins { paths: folders, read_only: self.read_only, ..Plugins::default() };
        match plugin {
            Named::BuiltIn(name) => plugins.builtins.push(name.clone()),
            Named::File(path) => plugins.paths.push(path.clone()),
            Named::Server(server) => plugins.paths.push(server.component()),
        }
        plugins
    }
}

/// Returns what stands in place of the last words of this command line, after a colon.
fn instead<'a>(last: usize, words: impl IntoIterator<Item = &'a str>) -> String {
    ending(last, words).map(|line| format!(": {line}")).unwrap_or_default()
}

/// Whether a word may be the name of a tool, and is not that of a file.
fn is_tool(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        && !Path::new(word).exists()
}

/// Whether a word is an argument of a tool.
fn is_argument(word: &str) -> bool {
    word.trim_start().starts_with('{') || word.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::{Arguments, Command};

    fn call(words: &[&str]) -> Call {
        let words = ["wharf", "call"].iter().chain(words).map(Into::into).collect();
        match Arguments::read(words).unwrap().command {
            Command::Call(call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn folders_stand_between_the_plugin_and_the_tool() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_str().unwrap();
        let gone = format!("{at}/gone");
        for (words, folders, tool, arguments) in [
            (["--builtin", "files", at, "list", "path=a"].as_slice(), 1, "list", 1),
            (&["--builtin", "files", at, at, "list"], 2, "list", 0),
            (&["--builtin", "files", at, "list", "{\"path\": 1}"], 1, "list", 1),
            (&["--builtin", "files", at], 0, at, 0),
            (&["--builtin", "files", "list", "path=a", "b=c"], 0, "list", 2),
            (&["a.wasm", at, "list"], 1, "list", 0),
            (&["a.wasm", "greet", "name"], 0, "greet", 1),
            (&["npx", "-y", "notes", "greet", "Ada", "{}"], 0, "Ada", 1),
            (&["npx", "-y", "notes", "--set", "core", "greet"], 0, "greet", 0),
            (&["npx", "-y", "notes", at, "greet"], 0, "greet", 0),
        ] {
            let call = call(words);
            let parts = call.parts().unwrap();
            assert_eq!(
                (parts.folders.len(), parts.tool, parts.arguments.len()),
                (folders, tool, arguments),
                "{words:?}"
            );
        }
        for (words, expected) in [
            (["--builtin", "files", gone.as_str(), "list"].as_slice(), "does not exist"),
            (&["a.wasm"], "name the tool"),
            (&["a.wasm", "./b.wasm", "greet"], "calls one tool of one plugin"),
            (&["npx", "-y", "notes"], "name the tool, after the server"),
            (&["npx", "-y", "notes", "name=Ada"], "name the tool, after the server"),
            (&["npx", "-y", "@notes", "greet", "name=Ada"], "@notes: not the name of a package"),
            (&["npx", "-y", "notes", "greet", "--allow", "env=KEY"], "wharf's own options stand before `npx`"),
            (&["npx", "-y", "notes", "greet", "Ada"], "`Ada` is taken for the tool, and `greet` for an argument"),
        ] {
            let error = call(words).parts().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
