//! Parses files of test cases. An unknown key is an error that names the line and the most similar known key.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use wharf_base::{
    below::{Below, is_below},
    explain, text,
};
use wharf_config::config::to_json;

/// The maximum memory of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const MAX_NAME_BYTES: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    case: Vec<Spanned<Written>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    complete: Option<Completing>,
    list: Option<List>,
    args: Option<toml::Table>,
    text: Option<String>,
    text_matches: Option<String>,
    structured: Option<toml::Value>,
    error: Option<String>,
    #[serde(default)]
    snapshot: bool,
    #[serde(default)]
    logs: Vec<String>,
    #[serde(default)]
    progress: Vec<String>,
    #[serde(default)]
    given: WrittenGiven,
    #[serde(default)]
    after: After,
}

/// The argument to complete.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Completing {
    prompt: Option<String>,
    resource: Option<String>,
    argument: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    others: BTreeMap<String, String>,
}

/// A list that clients can request.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenGiven {
    dirs: BTreeMap<String, Contents>,
    roots: Option<Vec<String>>,
    config: toml::Table,
    env: BTreeMap<String, String>,
    now: Option<Time>,
    seed: Option<u64>,
    answers: BTreeMap<String, Answer>,
    http: Vec<Exchange>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a UTC time such as 2026-01-01T00:00:00Z")]
enum Time {
    Plain(toml::value::Datetime),
    Text(String),
}

/// The contents of a folder at the start of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the path of a folder, or a table of files and their texts")]
pub enum Contents {
    /// A copy of this folder.
    Fixture(PathBuf),
    /// These files.
    Files(BTreeMap<String, String>),
}

/// The client's answer to a question of the plugin.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Declined,
    Cancelled,
    Accepted(toml::Table),
    Sampled(Sampled),
    Roots(Vec<String>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a string, or a result of sampling/createMessage")]
pub enum Sampled {
    Text(String),
    Result(toml::Table),
}

/// A request that the plugin may make, and its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    #[serde(default = "get")]
    pub method: String,
    pub url: String,
    #[serde(default = "ok")]
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub body: Option<String>,
    pub json: Option<toml::Value>,
}

fn get() -> String {
    "GET".into()
}

fn ok() -> u16 {
    200
}

/// The files that must and must not exist after the case.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct After {
    pub files: BTreeMap<String, String>,
    pub absent: Vec<String>,
}

/// A validated case.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// The file of the case.
    pub file: PathBuf,
    /// The folder of that file. All paths of the case are below it.
    pub folder: Arc<Below>,
    /// The line of the file in which the case begins.
    pub line: usize,
    pub action: Action,
    pub expected: Expected,
    pub given: Given,
    pub after: After,
}

/// What the client of a case does.
#[derive(Debug)]
pub enum Action {
    /// Sends a request: its method and its params.
    Request(&'static str, Map<String, Value>),
    /// Requests all items of a list.
    List(List),
    /// Requests all items of all lists.
    Lists,
}

#[derive(Debug, Default)]
pub struct Expected {
    pub text: Option<String>,
    pub text_matches: Option<Regex>,
    pub structured: Option<Value>,
    pub error: Option<String>,
    pub snapshot: bool,
    pub logs: Vec<String>,
    pub progress: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Given {
    pub dirs: BTreeMap<String, Contents>,
    pub roots: Option<Vec<String>>,
    pub config: toml::Table,
    pub env: BTreeMap<String, String>,
    pub now: Option<SystemTime>,
    pub seed: Option<u64>,
    pub answers: BTreeMap<String, Answer>,
    pub http: Vec<Exchange>,
}

impl List {
    /// Returns the method that requests the list, and the key of the items in its result.
    pub fn method(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("tools/list", "tools"),
            Self::Resources => ("resources/list", "resources"),
            Self::Templates => ("resources/templates/list", "resourceTemplates"),
            Self::Prompts => ("prompts/list", "prompts"),
        }
    }

    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];
}

/// Parses the cases of a file. `file`: its path, for errors; `folder`: its folder.
pub fn read(text: &str, file: &Path, folder: &Arc<Below>) -> Result<Vec<Case>> {
    let name = text::path(file);
    let written: File = explain::toml(text).map_err(|problem| anyhow!("{name}:{problem}"))?;
    ensure!(!written.case.is_empty(), "{name}: there is no [[case]]");
    let line_of = |start: usize| text.get(..start).unwrap_or(text).matches('\n').count() + 1;
    let cases = written.case.into_iter().map(|case| {
        let line = line_of(case.span().start);
        let case = case.into_inner();
        let named = format!("{name}:{line}: the case `{}`", text::escaped(&case.name));
        checked(case, file, folder, line).context(named)
    });
    cases.collect()
}

fn checked(written: Written, file: &Path, folder: &Arc<Below>, line: usize) -> Result<Case> {
    let Written { name, tool, resource, prompt, complete, list, args, given, after, .. } = written;
    let Written { text, text_matches, structured, error, snapshot, logs, progress, .. } = written;
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, ' ' | '_' | '-' | '.');
    ensure!(
        name.len() <= MAX_NAME_BYTES
            && name.chars().all(plain)
            && name.starts_with(|first: char| first.is_alphanumeric()),
        "a name has 1 to {MAX_NAME_BYTES} letters, digits, spaces, `_`, `-` and `.`, since its snapshot is a file of that name"
    );
    ensure!(name != "lists", "`lists` is the name of the snapshot of all lists; choose another");
    let action = Action::of((tool, resource, prompt, complete, list), args)?;
    ensure!(
        error.is_none() || (text.is_none() && text_matches.is_none() && structured.is_none()),
        "a case with `error` expects no result, so it cannot have `text`, `text_matches` or `structured`"
    );
    let text_matches = text_matches.map(|pattern| {
        let built = RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build();
        built.map_err(|problem| anyhow!("`text_matches`: {}", last_line(&problem.to_string())))
    });
    let expected = Expected {
        text,
        text_matches: text_matches.transpose()?,
        structured: structured.as_ref().map(to_json),
        error,
        snapshot,
        logs,
        progress,
    };
    let given = given.checked().context("`given`")?;
    for path in after.files.keys().chain(&after.absent) {
        ensure!(given.folder_of(path).is_some(), "`after`: `{path}` is not in a folder of `given.dirs`");
    }
    let (file, folder) = (file.to_owned(), Arc::clone(folder));
    Ok(Case { name, file, folder, line, action, expected, given, after })
}

/// Returns the last line of a regex error, which says what is wrong; the lines before it repeat the pattern.
fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ")
}

/// The keys of which a case has exactly one: `tool`, `resource`, `prompt`, `complete` and `list`.
type Kinds = (Option<String>, Option<String>, Option<String>, Option<Completing>, Option<List>);

impl Action {
    fn of(kinds: Kinds, args: Option<toml::Table>) -> Result<Self> {
        let arguments = args.map(|table| to_json(&toml::Value::Table(table)));
        let takes = kinds.0.is_some() || kinds.2.is_some();
        ensure!(takes || arguments.is_none(), "only a tool and a prompt have `args`");
        let params = |key: &str, value: String| Map::from_iter([(key.to_owned(), Value::from(value))]);
        Ok(match kinds {
            (Some(name), None, None, None, None) => {
                let mut params = params("name", name);
                params.insert("arguments".into(), arguments.unwrap_or_else(|| Value::Object(Map::new())));
                Self::Request("tools/call", params)
            }
            (None, Some(uri), None, None, None) => Self::Request("resources/read", params("uri", uri)),
            (None, None, Some(name), None, None) => {
                let mut params = params("name", name);
                if let Some(arguments) = arguments {
                    let texts = arguments.as_object().is_some_and(|all| all.values().all(Value::is_string));
                    ensure!(texts, "`args`: the arguments of a prompt are strings");
                    params.insert("arguments".into(), arguments);
                }
                Self::Request("prompts/get", params)
            }
            (None, None, None, Some(complete), None) => Self::Request("completion/complete", complete.params()?),
            (None, None, None, None, Some(list)) => Self::List(list),
            _ => bail!("a case has exactly one of `tool`, `resource`, `prompt`, `complete` and `list`"),
        })
    }
}

impl Completing {
    fn params(self) -> Result<Map<String, Value>> {
        let Self { prompt, resource, argument, value, others } = self;
        let of = match (prompt, resource) {
            (Some(name), None) => serde_json::json!({ "type": "ref/prompt", "name": name }),
            (None, Some(uri)) => serde_json::json!({ "type": "ref/resource", "uri": uri }),
            _ => bail!("`complete` has either `prompt` or `resource`"),
        };
        let mut params = Map::from_iter([
            ("ref".to_owned(), of),
            ("argument".to_owned(), serde_json::json!({ "name": argument, "value": value })),
        ]);
        if !others.is_empty() {
            params.insert("context".into(), serde_json::json!({ "arguments": others }));
        }
        Ok(params)
    }
}

impl WrittenGiven {
    fn checked(self) -> Result<Given> {
        let Self { dirs, roots, config, env, now, seed, answers, http } = self;
        for path in dirs.keys() {
            let whole = path.starts_with('/') && !path.ends_with('/') && !path.contains("//");
            ensure!(
                whole && path.split('/').all(|part| part != "." && part != ".."),
                "`dirs`: `{path}` is not a path of the plugin: such a path begins with /, and has no `.`, no `..` and no / at its end"
            );
        }
        for (path, contents) in &dirs {
            match contents {
                Contents::Fixture(fixture) => ensure!(
                    is_below(fixture),
                    "`dirs`: `{path}`: {} is not below the folder of this file; put a copy of it there",
                    text::path(fixture)
                ),
                Contents::Files(files) => {
                    let outside = files.keys().find(|name| !is_below(Path::new(name)));
                    ensure!(
                        outside.is_none(),
                        "`dirs`: `{path}`: `{}` is not a path inside of it",
                        text::escaped(outside.map_or("", String::as_str))
                    );
                }
            }
        }
        for root in roots.iter().flatten() {
            ensure!(dirs.contains_key(root), "`roots`: `{root}` is not a folder of `dirs`");
        }
        let now = now.map(|now| {
            let text = match now {
                Time::Plain(time) => time.to_string(),
                Time::Text(text) => text,
            };
            humantime::parse_rfc3339(&text).map_err(|_| anyhow!("`now` is not a UTC time such as 2026-01-01T00:00:00Z"))
        });
        for exchange in &http {
            ensure!((200..=599).contains(&exchange.status), "`http`: `status` must be from 200 to 599");
            ensure!(
                exchange.body.is_none() || exchange.json.is_none(),
                "`http`: an answer has either `body` or `json`"
            );
        }
        Ok(Given { dirs, roots, config, env, now: now.transpose()?, seed, answers, http })
    }
}

impl Given {
    /// Returns the folder of `dirs` that contains a path of the plugin, and the rest of the path. Of nested folders, the inner one counts.
    pub fn folder_of<'a>(&'a self, path: &'a str) -> Option<(&'a str, &'a str)> {
        let within =
            |folder: &'a String| Some((folder.as_str(), path.strip_prefix(folder.as_str())?.strip_prefix('/')?));
        let found = self.dirs.keys().filter_map(within).max_by_key(|(folder, _)| folder.len())?;
        let inside = found.1.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        inside.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Arc<Below> {
        Arc::new(Below::open(Path::new(".")).unwrap())
    }

    fn problem(text: &str) -> String {
        format!("{:#}", read(text, Path::new("greet.toml"), &here()).unwrap_err())
    }

    #[test]
    fn mistakes_name_the_file_the_line_and_what_to_write() {
        for (text, expected) in [
            ("", "greet.toml: there is no [[case]]"),
            ("[[cases]]", "greet.toml:1: unknown key `cases`; did you mean `case`?"),
            ("[[case]]\nname='a'\ntoll='x'", "greet.toml:3: unknown key `toll`; did you mean `tool`?"),
            (
                "[[case]]\nname='a'\ntool='x'\n[case.given]\nsed=1",
                "greet.toml:5: unknown key `sed`; did you mean `seed`?",
            ),
            (
                "[[case]]\nname='a'\ntool='x'\n[[case.given.http]]\nurl='u'\nstate=2",
                "greet.toml:6: unknown key `state`; did you mean `status`?",
            ),
            (
                "[[case]]\nname='a'\ntool='x'\n[case.after]\nfile={}",
                "greet.toml:5: unknown key `file`; did you mean `files`?",
            ),
            ("[[case]]\ntool='x'", "greet.toml:1: missing field `name`"),
            ("\n[[case]]\nname='a'", "greet.toml:2: the case `a`: a case has exactly one of"),
            ("[[case]]\nname='a'\ntool='x'\nprompt='y'", "a case has exactly one of"),
            ("[[case]]\nname='a'\nresource='x:y'\nargs={}", "only a tool and a prompt have `args`"),
            ("[[case]]\nname='a'\nprompt='x'\nargs={n=1}", "the arguments of a prompt are strings"),
            ("[[case]]\nname='a'\nlist='tool'", "`list` is \"tools\", "),
            ("[[case]]\nname='a'\ncomplete={argument='x'}", "`complete` has either"),
            ("[[case]]\nname='a/b'\ntool='x'", "a name has 1 to"),
            ("[[case]]\nname=''\ntool='x'", "a name has 1 to"),
            ("[[case]]\nname='lists'\ntool='x'", "`lists` is the name"),
            ("[[case]]\nname='a'\ntool='x'\ntext_matches='('", "`text_matches`: unclosed group"),
            ("[[case]]\nname='a'\ntool='x'\nerror='e'\ntext='t'", "a case with `error` expects no result"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={now='today'}", "`now` is not a UTC time"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={seed=-1}", "expected u64"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'w'='w'}}", "such a path begins with /"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w/../x'='w'}}", "no `..`"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'=1}}", "the path of a folder, or a table"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'='/etc'}}", "/etc is not below the folder of this file"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'='a/../../b'}}", "a/../../b is not below"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'='.'}}", ". is not below"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'={'../x'=''}}}", "`../x` is not a path inside of it"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'={'/x'=''}}}", "`/x` is not a path inside of it"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={roots=['/w']}", "`/w` is not a folder of `dirs`"),
            ("[[case]]\nname='a'\ntool='x'\ngiven={answers={k='maybe'}}", ", not \"maybe\""),
            ("[[case]]\nname='a'\ntool='x'\ngiven={http=[{url='u', body='', json={}}]}", "either `body` or `json`"),
            ("[[case]]\nname='a'\ntool='x'\nafter={absent=['/w/a']}", "`/w/a` is not in a folder"),
            (
                "[[case]]\nname='a'\ntool='x'\ngiven={dirs={'/w'='w'}}\nafter={absent=['/w/../a']}",
                "`/w/../a` is not in a folder",
            ),
        ] {
            let problem = problem(text);
            assert!(problem.contains(expected), "{text}\n{problem}");
        }
    }

    #[test]
    fn what_is_written_is_what_is_asked() {
        let text = r#"
            [[case]]
            name = "a"
            tool = "t"
            args = { n = 1, when = 2026-01-01 }
            [case.given]
            now = 2026-01-01T00:00:00Z
            dirs = { "/w" = "w", "/w/in" = { "a.txt" = "x" } }
            [case.given.answers]
            no = "declined"
            yes = { accepted = { really = true } }
            said = { sampled = "words" }
            where = { roots = ["/w"] }
            [[case]]
            name = "b"
            complete = { prompt = "p", argument = "x", value = "y", others = { z = "1" } }
        "#;
        let cases = read(text, Path::new("f.toml"), &here()).unwrap();
        let [a, b] = &cases[..] else { panic!("two cases") };
        let Action::Request("tools/call", params) = &a.action else { panic!("a call") };
        assert_eq!(params["arguments"].to_string(), r#"{"n":1,"when":"2026-01-01"}"#);
        assert_eq!((a.line, b.line), (2, 14));
        assert_eq!(a.given.now, Some(humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap()));
        assert_eq!(a.given.folder_of("/w/in/a.txt"), Some(("/w/in", "a.txt")));
        assert_eq!(a.given.folder_of("/w/b/a.txt"), Some(("/w", "b/a.txt")));
        assert_eq!(a.given.folder_of("/wide/a.txt"), None);
        assert!(matches!(a.given.answers["no"], Answer::Declined));
        let Action::Request("completion/complete", params) = &b.action else { panic!("a completion") };
        assert_eq!(params["ref"]["name"], "p");
        assert_eq!(params["context"]["arguments"]["z"], "1");
    }
}
