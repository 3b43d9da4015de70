//! Checks project rules that the compiler does not check. With the argument `contract`, generates docs/contract.md instead; with `budget`,
//! accepts the weight of the project.

#![expect(clippy::disallowed_methods, reason = "it works on the project's files")]

use std::{env, fs, io::Write, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::imports::collect;

mod budget;
mod contract;
mod imports;
mod licences;
mod links;
mod names;
mod shown;
mod unsafety;
mod words;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the error cannot be reported.
            writeln!(std::io::stderr(), "error: {error:#}").ok();
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.ancestors().nth(2).context("this program was not built in the project's folder")?;
    match env::args().nth(1).as_deref() {
        None => check(root),
        Some("contract") => contract::write(root),
        Some("budget") => budget::write(root),
        Some(_) => bail!("the argument is `contract` or `budget`"),
    }
}

/// The maximum number of lines in a file.
const MAX_LINES: usize = 600;

fn check(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    let (mut files, mut sources) = (Vec::new(), Vec::new());
    for folder in ["host", "sdk-guest", "plugins", "examples", "tests", "xtask"] {
        collect(&root.join(folder), &mut files)?;
    }
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let lines = text.lines().count();
        if lines > MAX_LINES {
            problems.push(format!("{name}: {lines} lines, more than {MAX_LINES}; split it by concern"));
        }
        let described =
            text.starts_with("//!") || text.starts_with("#!") || name.starts_with("examples/") || name.contains("/ui/");
        if !described {
            problems.push(format!("{name}: has no `//!` comment at its top that says what it is"));
        }
        sources.push((name, text));
    }
    problems.extend(layering(&sources, &LAYERS));
    problems.extend(past_the_door(&sources));
    problems.extend(imports::problems(root)?);
    problems.extend(names::problems(root)?);
    problems.extend(shown::problems(root)?);
    problems.extend(licences::problems(root)?);
    problems.extend(links::problems(root)?);
    problems.extend(words::problems(root)?);
    problems.extend(unsafety::problems(root, &sources)?);
    problems.extend(budget::problems(root)?);
    problems.extend(contract::check(root).err().map(|problem| format!("{problem:#}")));
    if problems.is_empty() { Ok(()) } else { bail!("untidy:\n  {}", problems.join("\n  ")) }
}

/// Returns where files name what belongs to another layer, and the layers that have no files. `sources` are paths and texts.
fn layering(sources: &[(String, String)], layers: &[Layer]) -> Vec<String> {
    let mut problems = Vec::new();
    for layer in layers {
        let mut files = sources.iter().filter(|(name, _)| name.starts_with(layer.files)).peekable();
        if files.peek().is_none() {
            problems.push(format!("the layer {} in xtask/tidy/src/main.rs has no files", layer.files));
        }
        for (name, text) in files.filter(|(name, _)| layer.except.is_none_or(|except| !name.starts_with(except))) {
            let names = |forbidden: &str| {
                text.lines().any(|line| line.contains(forbidden) && !line.trim_start().starts_with("//"))
            };
            let found = layer.forbidden.iter().filter(|forbidden| names(forbidden));
            problems
                .extend(found.map(|forbidden| format!("{name}: names {forbidden}, which belongs to another layer")));
        }
    }
    problems
}

/// Where JSON of guests is read. `sandbox::json` charges for its values before they are made.
const JSON_OF_GUESTS: [&str; 2] = ["host/plugins/src/bridge/", "host/sandbox/src/adapter/http/"];
/// How a comment begins that says why the next line may parse JSON without that.
const EXCUSE: &str = "// Past the door: ";

/// Returns where JSON is parsed that may be a guest's, other than by `sandbox::json`.
fn past_the_door(sources: &[(String, String)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, text) in sources.iter().filter(|(name, _)| JSON_OF_GUESTS.iter().any(|folder| name.starts_with(folder)))
    {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut before = "";
        for (line, number) in code.lines().zip(1..) {
            if line.contains("serde_json::from_") && !before.trim_start().starts_with(EXCUSE) {
                problems.push(format!(
                    "{name}:{number}: parses JSON without a charge for its values: use `Room::parse` of `sandbox::json`, or say in the \
                     line before why not: `{EXCUSE}…`"
                ));
            }
            before = line;
        }
    }
    problems
}

/// Names that must not appear in the files of one layer, although its crate could use them.
struct Layer {
    /// The path prefix of the layer's files.
    files: &'static str,
    forbidden: &'static [&'static str],
    /// The path prefix of files in it that may contain the names.
    except: Option<&'static str>,
}

/// The layers with forbidden names.
const LAYERS: [Layer; 4] = [
    Layer { files: "host/protocol/", forbidden: &["std::fs", "std::net"], except: None },
    // There, wharf is the client of components that are MCP servers.
    Layer { files: "host/sandbox/", forbidden: &["jsonrpc"], except: Some("host/sandbox/src/adapter/http/") },
    Layer { files: "host/serve/src/transport/", forbidden: &["wharf_sandbox"], except: None },
    Layer { files: "host/policy/src/access/grants/", forbidden: &["wharf_protocol", "tokio"], except: None },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_layers_and_layers_without_files_are_problems() {
        let layers = [
            Layer { files: "host/a/", forbidden: &["std::fs"], except: Some("host/a/may/") },
            Layer { files: "host/gone.rs", forbidden: &[], except: None },
        ];
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let sources = [
            file("host/a/fine.rs", "// std::fs\nuse std::io;"),
            file("host/a/wrong.rs", "use std::fs;"),
            file("host/a/may/all.rs", "use std::fs;"),
            file("host/b/other.rs", "use std::fs;"),
        ];
        let problems = layering(&sources, &layers);
        let [wrong, gone] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(wrong.starts_with("host/a/wrong.rs: names std::fs") && gone.contains("host/gone.rs"), "{problems:?}");
    }

    #[test]
    fn json_of_guests_has_one_door() {
        let parses = "    let it = serde_json::from_str(text);";
        for (name, text, wrong) in [
            ("host/plugins/src/bridge/a.rs", parses.to_owned(), true),
            ("host/plugins/src/bridge/a.rs", format!("    // It is small.\n{parses}"), true),
            ("host/plugins/src/bridge/a.rs", format!("    {EXCUSE}it is small.\n{parses}"), false),
            ("host/sandbox/src/adapter/http/a.rs", parses.to_owned(), true),
            ("host/sandbox/src/adapter/http/a.rs", format!("#[cfg(test)]\n{parses}"), false),
            ("host/sandbox/src/adapter/a.rs", parses.to_owned(), false),
        ] {
            let problems = past_the_door(&[(name.to_owned(), text.clone())]);
            assert_eq!(!problems.is_empty(), wrong, "{name}: {text}");
        }
    }
}
