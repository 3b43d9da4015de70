//! Where on a command line of wharf the line begins that starts a server without it. Everything from there on belongs to the server, so clap
//! finds a `--` before it.

#![expect(
    clippy::disallowed_methods,
    reason = "tells folders from names of programs, and finds those among a server's arguments"
)]

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use clap::Command;

use crate::authoring::existing::line;
use wharf_base::text;
use wharf_config::config::{CommandLine, Positional, Typed, builtin, existing::ExistingServer};

/// The commands that take such a line.
const TAKE_LINES: [&str; 6] = ["run", "serve", "install", "call", "inspect", "dev"];

/// The command line of this process.
static OWN: OnceLock<(Vec<OsString>, Place)> = OnceLock::new();

/// What is where on a command line of wharf.
pub struct Place {
    /// The number of words up to the command, with it.
    command: usize,
    /// Where the line begins, or the arguments of a server after `--`.
    line: Option<usize>,
}

impl Place {
    /// `all`: wharf and its commands. `words`: the program and its arguments.
    pub fn of(all: &Command, words: &[OsString]) -> Self {
        let mut command: Option<&Command> = None;
        let mut place = Self { command: words.len().min(1), line: None };
        let (mut positionals, mut at) = (0, 1);
        while let Some(word) = words.get(at) {
            let word = word.to_string_lossy();
            at += 1;
            if word == "--" {
                place.line = command.is_some().then_some(at).filter(|at| *at < words.len());
                return place;
            }
            if word.starts_with('-') && word.len() > 1 {
                if word.starts_with("--builtin") && command.is_some_and(|command| command.get_name() == "call") {
                    return place;
                }
                at += usize::from(takes_next(&word, &[Some(all), command]));
                continue;
            }
            let Some(known) = command else {
                command = all.find_subcommand(&*word).filter(|_| TAKE_LINES.contains(&&*word));
                place.command = at;
                if command.is_none() {
                    return place;
                }
                continue;
            };
            positionals += 1;
            match known.get_name() {
                "install" if positionals == 1 => {}
                _ if begins(&word) => {
                    place.line = Some(at - 1);
                    return place;
                }
                // What follows the one plugin of these is something else.
                "call" | "inspect" | "dev" if !Path::new(&*word).is_dir() => return place,
                _ => {}
            }
        }
        place
    }

    /// Returns the command line of this process with the `--` that a person may leave out, and keeps what they typed.
    pub fn own(all: &Command) -> Vec<OsString> {
        let words: Vec<OsString> = std::env::args_os().collect();
        let place = Self::of(all, &words);
        let apart = place.apart(words.clone());
        OWN.get_or_init(|| (words, place));
        apart
    }

    /// Returns the words with the `--` that a person may leave out.
    pub fn apart(&self, mut words: Vec<OsString>) -> Vec<OsString> {
        let is_apart = |at: usize| at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|word| word == "--");
        if let Some(at) = self.line.filter(|at| !is_apart(*at)) {
            words.insert(at, "--".into());
        }
        words
    }
}

/// Whether the line of a server begins with this word. A folder may have the name of such a program; it is written with a slash then.
pub fn begins(word: &str) -> bool {
    line::begins(word) && !(word.contains('/') && Path::new(word).is_dir())
}

/// Returns the command line of this process. `hidden`: how many words at its end are somebody's arguments, which a log does not show.
pub fn typed(hidden: usize) -> Option<Typed> {
    let (words, place) = OWN.get()?;
    let mut shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    hide(&mut shown, hidden);
    let (command, rest) = shown.split_at_checked(place.command).unwrap_or((&shown, &[]));
    let line = |words: &[String]| text::shell(words.iter().map(String::as_str));
    Some(Typed { command: line(command), rest: line(rest) })
}

/// Returns the command line of this process with other words in place of the last ones.
pub fn ending<'a>(last: usize, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let (typed, _) = OWN.get()?;
    let mut shown: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    shown.truncate(shown.len().saturating_sub(last));
    shown.extend(words.into_iter().map(str::to_owned));
    Some(text::shell(shown.iter().map(String::as_str)))
}

/// Returns the word where a command is missing before the line or the name of a server, and the command line with that command.
pub fn without_command() -> Option<(String, String)> {
    let (words, place) = OWN.get()?;
    let (before, from) =
        words.split_at_checked(place.command.checked_sub(1)?).filter(|(before, _)| !before.is_empty())?;
    let word = from.first()?.to_string_lossy().into_owned();
    let is_server =
        || matches!(Positional::tell(Path::new(&word)), Ok(Positional::Server(_) | Positional::Published(_)));
    if !begins(&word) && !is_server() {
        return None;
    }
    let shown = |word: &OsString| word.to_string_lossy().into_owned();
    let all: Vec<String> = before.iter().map(shown).chain(["run".to_owned()]).chain(from.iter().map(shown)).collect();
    Some((word, text::shell(all.iter().map(String::as_str))))
}

fn hide(words: &mut Vec<String>, last: usize) {
    if last > 0 {
        words.truncate(words.len().saturating_sub(last));
        words.push("…".to_owned());
    }
}

/// Says which servers are built though a built-in plugin takes their place, which folders among their arguments are not open to them, and what
/// opens each. `hidden`: as for [`typed`].
pub fn tell_of_servers(servers: &[ExistingServer], command_line: &CommandLine, hidden: usize) {
    for server in servers.iter().filter(|server| !server.component().is_file()) {
        let package = server.package.as_ref();
        if let Some(name) = package.and_then(|package| builtin::in_place_of(&package.name)) {
            tracing::info!(
                target: "wharf_cli::authoring",
                "the built-in plugin {name} does what {} does, and needs no build: --builtin {name}",
                server.named()
            );
        }
    }
    let real = |path: &PathBuf| std::fs::canonicalize(path).ok();
    let open: Vec<PathBuf> = command_line.folders.iter().chain(&command_line.roots).filter_map(real).collect();
    for word in servers.iter().flat_map(|server| &server.args) {
        let named = word.split_once('=').filter(|_| word.starts_with('-')).map_or(word.as_str(), |(_, value)| value);
        let Some(folder) = real(&named.into()).filter(|folder| folder.is_dir()) else { continue };
        if open.iter().any(|open| folder.starts_with(open)) {
            continue;
        }
        let absolute = std::path::absolute(named).unwrap_or(folder);
        tracing::warn!(
            target: "wharf_cli::authoring",
            "{} is an argument of the server, which opens nothing; to open it for reading and writing (with --read-only, for reading): {}",
            text::escaped(named),
            text::escaped(&with_folder(&absolute, named, hidden))
        );
    }
}

/// Returns the command line of this process with one more folder, which stands before the server.
fn with_folder(folder: &Path, as_typed: &str, hidden: usize) -> String {
    let Some((words, place)) = OWN.get() else { return String::new() };
    let at = place.line.unwrap_or(words.len());
    let at = if at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|word| word == "--") { at - 1 } else { at };
    let absolute = folder.to_string_lossy().into_owned();
    let (before, after) = words.split_at_checked(at).unwrap_or((words, &[]));
    let shown = |word: &OsString| word.to_string_lossy().into_owned();
    let mut after: Vec<String> = after.iter().map(shown).collect();
    hide(&mut after, hidden);
    let after = after.into_iter().map(|word| if word == as_typed { absolute.clone() } else { word });
    let all: Vec<String> = before.iter().map(shown).chain([absolute.clone()]).chain(after).collect();
    text::shell(all.iter().map(String::as_str))
}

/// Whether the word after this option is its value.
fn takes_next(word: &str, commands: &[Option<&Command>]) -> bool {
    let (long, short) = (word.strip_prefix("--"), word.chars().nth(1));
    if word.contains('=') || (long.is_none() && word.chars().count() > 2) {
        return false;
    }
    let mut all = commands.iter().flatten().flat_map(|command| command.get_arguments());
    all.any(|option| {
        let is_this = match long {
            Some(long) => {
                let aliases = option.get_all_aliases().unwrap_or_default();
                option.get_long() == Some(long) || aliases.contains(&long)
            }
            None => option.get_short().is_some() && option.get_short() == short,
        };
        is_this && option.get_action().takes_values()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::arguments::Arguments;

    #[test]
    fn what_follows_the_line_is_the_servers() {
        for (text, expected) in [
            ("wharf run npx -y a", Some("npx -y a")),
            ("wharf run --allow env=X -c /x npx -y a --allow env=Y", Some("npx -y a --allow env=Y")),
            ("wharf --log-format json run --prefix npx npx a", Some("npx a")),
            ("wharf run --prefix=x --builtin time /tmp uvx a", Some("uvx a")),
            ("wharf run server.py -- -v", Some("-v")),
            ("wharf run -- npx a", Some("npx a")),
            ("wharf run a.wasm", None),
            ("wharf serve --listen 127.0.0.1:1 node x.js", Some("node x.js")),
            ("wharf dev --port 7300 node x.js", Some("node x.js")),
            ("wharf install npx uvx a", Some("uvx a")),
            ("wharf install codex --name npx npx a", Some("npx a")),
            ("wharf install codex -- run -c x", Some("run -c x")),
            ("wharf call /tmp npx -y a tool x=1", Some("npx -y a tool x=1")),
            ("wharf call a.wasm node", None),
            ("wharf call --builtin files node", None),
            ("wharf inspect --build uvx a", Some("uvx a")),
            ("wharf build npx", None),
            ("wharf", None),
        ] {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            let place = Place::of(&Arguments::command(), &words);
            let line = |words: &[OsString]| words.join(" ".as_ref()).into_string().unwrap();
            assert_eq!(place.line.map(|at| line(&words[at..])).as_deref(), expected, "{text}");
            let apart = line(&place.apart(words.clone()));
            let marked = expected.map_or(text.to_owned(), |line| {
                format!("{} -- {line}", text.strip_suffix(line).unwrap().trim_end().trim_end_matches(" --"))
            });
            assert_eq!(apart, marked);
        }
    }
}
