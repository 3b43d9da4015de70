//! Which arguments a remembered approval is valid for. By default, it is the narrowest rule that the arguments of the approved call lead to:
//! the folders, web servers and repositories that they name, or else exactly these arguments.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_base::text::escaped;

use super::target::{has, is_place, plain};

/// The most bounds of one rule. A call that names more places is approved with exactly its arguments.
const MAX_BOUNDS: usize = 6;
/// The most characters of a rule in words, and of a name and a place in it, since a person has to see all of it.
const MAX_TEXT_CHARS: usize = 400;
const MAX_NAME_CHARS: usize = 64;
const MAX_PLACE_CHARS: usize = 160;
/// The most places of one call, most of which have to be in the same folders, and the most of its values that are looked at.
const MAX_PLACES: usize = 64;
const MAX_VALUES: usize = 1000;
/// The most rules that are looked up for one call.
const MAX_RULES: usize = 64;

/// The words of an argument's name that say that its value is a folder, so that the rule is about what is in it.
const FOLDERS: [&str; 7] = ["dir", "directory", "folder", "root", "cwd", "repo", "repository"];
/// The words of an argument's name that say that its value is what the call works in, such as a repository of a service, or whom it reaches.
const SCOPES: [&str; 30] = [
    "owner",
    "repo",
    "repository",
    "org",
    "organization",
    "project",
    "workspace",
    "bucket",
    "channel",
    "database",
    "table",
    "collection",
    "namespace",
    "branch",
    "account",
    "team",
    "user",
    "chat",
    "room",
    "recipient",
    "attendee",
    "from",
    "to",
    "cc",
    "bcc",
    "email",
    "domain",
    "input",
    "output",
    "location",
];
/// The words of an argument's name that say what the call does. They stay as they are, like booleans.
const SWITCHES: [&str; 10] = ["method", "action", "operation", "op", "mode", "verb", "type", "state", "status", "kind"];
/// The words of an argument's name that say that its value is a program, for which no place is a bound.
const PROGRAMS: [&str; 14] = [
    "command",
    "cmd",
    "program",
    "shell",
    "script",
    "code",
    "sql",
    "query",
    "statement",
    "expression",
    "eval",
    "args",
    "argv",
    "patch",
];

/// The kind of a call: a digest of everything except its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallKind(pub [u8; 32]);

/// The key of a remembered approval: a digest of the kind of the calls and the rule for their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApprovalKey(pub [u8; 32]);

/// Which arguments an approval is valid for. Calls with the same [`CallKind`] and the same rule are approved together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ApprovalRule {
    /// All arguments.
    Any,
    /// Exactly these: their SHA-256.
    Same([u8; 32]),
    /// Arguments with these names, whose places and booleans are all within these bounds.
    Within { names: BTreeSet<String>, bounds: BTreeSet<Bound> },
}

/// What one argument is bound to. The name of a nested argument has those of the objects around it, with dots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bound {
    argument: String,
    to: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Place {
    /// What is in this folder or below it.
    In(String),
    /// A web server: scheme, host and port.
    At(String),
    /// Exactly this value, as JSON.
    Is(String),
}

/// The rules for one call.
pub struct ApprovalRules {
    /// The narrowest, for what a person approves by it.
    pub narrowest: ApprovalRule,
    /// All under which it is approved.
    pub covering: Vec<ApprovalRule>,
}

impl ApprovalRules {
    /// Returns the rules for a call with these arguments. `known`: the arguments that the tool declares; an approval of others is one of
    /// exactly these. `tops`: the folders that are open to the call; an approval of one file in one of them is not one of all that is in it.
    pub fn of(arguments: &Value, known: &[String], tops: &[String]) -> Self {
        if arguments.is_null() {
            return Self { narrowest: ApprovalRule::Any, covering: vec![ApprovalRule::Any] };
        }
        let same = ApprovalRule::Same(Sha256::digest(arguments.to_string()).into());
        let mut covering = vec![ApprovalRule::Any, same.clone()];
        let within = Found::of(arguments, known).and_then(|found| found.rules(tops));
        let first = within
            .as_ref()
            .and_then(|rules| rules.first())
            .filter(|rule| rule.text().chars().count() <= MAX_TEXT_CHARS);
        let narrowest = first.cloned().unwrap_or(same);
        covering.extend(within.into_iter().flatten());
        Self { narrowest, covering }
    }
}

impl ApprovalRule {
    /// Returns the key under which an approval of calls of this kind is remembered.
    pub fn of_kind(&self, kind: &CallKind) -> ApprovalKey {
        // An approval without a rule was valid for any arguments.
        if *self == Self::Any {
            return ApprovalKey(kind.0);
        }
        let mut sha = Sha256::new_with_prefix(b"wharf approval rule 1");
        sha.update(kind.0);
        sha.update(serde_json::to_vec(self).unwrap_or_default());
        ApprovalKey(sha.finalize().into())
    }

    /// Describes the calls, as the rest of a sentence.
    pub fn text(&self) -> String {
        let bounds = match self {
            Self::Any => return "any arguments".into(),
            Self::Same(_) => return "exactly these arguments".into(),
            Self::Within { bounds, .. } => bounds,
        };
        let shown = |bound: &Bound| {
            let (word, place) = match &bound.to {
                Place::In(folder) => ("in", folder),
                Place::At(server) => ("at", server),
                Place::Is(value) => ("=", value),
            };
            format!("`{}` {word} `{}`", plain(&escaped(&bound.argument)), plain(&escaped(place)))
        };
        format!("{} (other values may differ)", bounds.iter().map(shown).collect::<Vec<_>>().join(" and "))
    }
}

/// What was found in the arguments of a call.
#[derive(Default)]
struct Found<'a> {
    /// The names of all arguments that are not objects.
    names: BTreeSet<String>,
    /// The places and booleans, each with its name and the last part of that.
    places: BTreeSet<(String, &'a str, String)>,
    /// Whether one of the places is an argument itself. A tool may ignore what is in an object.
    is_bound: bool,
    values: usize,
}

impl<'a> Found<'a> {
    /// Returns what the arguments name. `None`: a rule about places would not say what the call does.
    fn of(arguments: &'a Value, known: &[String]) -> Option<Self> {
        let members = arguments.as_object()?;
        let mut found = Self::default();
        for (key, value) in members {
            // The tool may ignore others, which would bound nothing then.
            found.collect(value, String::new(), known.contains(key).then_some(key)?)?;
        }
        Some(found).filter(|found| found.is_bound)
    }

    fn collect(&mut self, value: &'a Value, around: String, key: &'a str) -> Option<()> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '$');
        let mut name = around;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(key);
        let readable = !key.is_empty() && key.chars().all(is_name) && name.len() <= MAX_NAME_CHARS;
        (readable && !has(key, &PROGRAMS)).then_some(())?;
        self.values(value, &name, key)
    }

    fn values(&mut self, value: &'a Value, name: &str, key: &'a str) -> Option<()> {
        self.values += 1;
        (self.values <= MAX_VALUES).then_some(())?;
        let named = is_place(key) || has(key, &FOLDERS) || has(key, &SCOPES);
        match value {
            // Of a place that is empty, a tool may take all there are.
            Value::Null if named => None,
            Value::String(text) if named && text.trim().is_empty() => None,
            Value::Object(members) if named && members.is_empty() => None,
            Value::Array(items) if named && items.is_empty() => None,
            Value::Object(members) => {
                members.iter().try_for_each(|(key, value)| self.collect(value, name.to_owned(), key))
            }
            Value::Array(items) => {
                self.names.insert(name.to_owned());
                items.iter().try_for_each(|item| self.values(item, name, key))
            }
            _ => {
                self.names.insert(name.to_owned());
                let is_place = named || looks_like_place(value);
                self.is_bound |= is_place && !name.contains('.');
                if is_place || value.is_boolean() || has(key, &SWITCHES) {
                    let text = value.to_string();
                    (text.len() <= 4 * MAX_PLACE_CHARS).then_some(())?;
                    self.places.insert((name.to_owned(), key, text));
                }
                (self.places.len() <= MAX_PLACES).then_some(())
            }
        }
    }

    /// Returns the rules about these places, the narrowest first. `None`: there are too many places for a rule that a person reads.
    fn rules(self, tops: &[String]) -> Option<Vec<ApprovalRule>> {
        let tops: Vec<String> = tops.iter().filter_map(|top| Some(parts(top)?.join("/"))).collect();
        let mut chains: BTreeSet<Vec<Bound>> = BTreeSet::new();
        for (argument, key, text) in self.places {
            let places = places(&text, key, &tops)?;
            chains.insert(places.into_iter().map(|to| Bound { argument: argument.clone(), to }).collect());
            (chains.len() <= MAX_BOUNDS).then_some(())?;
        }
        let combinations = chains.iter().try_fold(1_usize, |product, chain| product.checked_mul(chain.len()));
        let all = combinations.is_some_and(|number| number <= MAX_RULES);
        let mut sets = vec![BTreeSet::new()];
        for chain in &chains {
            let bounds = if all { chain.as_slice() } else { chain.get(..1).unwrap_or_default() };
            let with = |set: &BTreeSet<Bound>, bound: &Bound| set.iter().chain([bound]).cloned().collect();
            sets = sets.iter().flat_map(|set| bounds.iter().map(move |bound| with(set, bound))).collect();
        }
        let rule = |bounds| ApprovalRule::Within { names: self.names.clone(), bounds };
        Some(sets.into_iter().map(rule).collect())
    }
}

/// Whether a value is written like a path or an address, whatever its argument is called.
fn looks_like_place(value: &Value) -> bool {
    let begins = |text: &str| ["/", "./", "../", "~/"].iter().any(|begin| text.starts_with(begin));
    value.as_str().is_some_and(|text| (begins(text) || text.contains("://")) && !text.contains(char::is_whitespace))
}

/// Returns the places that a value, which is JSON, is within, the narrowest first. `None`: a person could not see all of it.
fn places(json: &str, key: &str, tops: &[String]) -> Option<Vec<Place>> {
    let exactly = || (json.chars().count() <= MAX_PLACE_CHARS).then(|| vec![Place::Is(json.to_owned())]);
    let Ok(Value::String(text)) = serde_json::from_str(json) else { return exactly() };
    // Of an owner or a repository that is written as an address, the server says too little.
    if text.contains("://") && !has(key, &SCOPES) {
        return server(&text).map_or_else(exactly, |server| Some(vec![Place::At(server)]));
    }
    let is_path = is_place(key)
        || has(key, &FOLDERS) && text.starts_with(['/', '.'])
        || !has(key, &SCOPES) && !has(key, &FOLDERS);
    let Some(parts) = parts(&text).filter(|_| is_path && text.chars().count() <= MAX_PLACE_CHARS) else {
        return exactly();
    };
    let begin = if text.starts_with('/') { "/" } else { "" };
    let own = if has(key, &FOLDERS) { parts.len() } else { parts.len().saturating_sub(1) };
    let folders: Vec<String> =
        (1..=own).rev().map(|number| parts.get(..number).unwrap_or_default().join("/")).collect();
    // The folder that the argument itself names may be one that is open: that is what the person saw.
    let narrow = own == parts.len() || folders.first().is_some_and(|folder| !is_wide(folder, tops));
    if folders.is_empty() || !narrow {
        return exactly();
    }
    // No file of the call makes a rule for a folder around one that is open.
    let possible = |(at, folder): &(usize, String)| *at == 0 || !is_around(folder, tops);
    let folders = folders.into_iter().enumerate().filter(possible).map(|(_, folder)| folder);
    Some(folders.map(|folder| Place::In(format!("{begin}{folder}"))).collect())
}

/// Whether a folder is open as a whole, or is around one that is. A relative path may begin at the root of the plugin.
fn is_wide(folder: &str, tops: &[String]) -> bool {
    tops.iter().any(|top| top == folder) || is_around(folder, tops)
}

fn is_around(folder: &str, tops: &[String]) -> bool {
    tops.iter().any(|top| top.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}

/// Returns the parts of a path. `None`: it depends on more than its text where it leads.
fn parts(path: &str) -> Option<Vec<&str>> {
    let odd = |letter: char| "\\%~{}[],;:*?$|".contains(letter) || letter.is_control();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let plain = parts.iter().all(|part| !part.contains("..") && part.trim() == *part);
    (plain && !path.contains(odd) && !path.starts_with("//")).then_some(parts)
}

/// Returns the server of a web address. `None`: it has a user, or is not a web address.
fn server(address: &str) -> Option<String> {
    let uri: http::Uri = address.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?.to_ascii_lowercase(), uri.authority()?);
    let port = authority.port_u16().or(match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    })?;
    let plain = !authority.as_str().contains('@') && matches!(scheme.as_str(), "http" | "https");
    let server = format!("{scheme}://{}:{port}", authority.host().to_ascii_lowercase());
    (plain && server.len() <= MAX_PLACE_CHARS).then_some(server)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tops() -> Vec<String> {
        vec!["/home/me/code".into(), "/documents".into()]
    }

    fn known(arguments: &Value) -> Vec<String> {
        arguments.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    }

    fn of(arguments: &Value) -> ApprovalRules {
        ApprovalRules::of(arguments, &known(arguments), &tops())
    }

    #[test]
    fn a_rule_names_what_the_call_was_about() {
        let long = format!("/home/me/code/{}/a.txt", "x".repeat(200));
        let many: Vec<String> = (0..10).map(|number| format!("/home/me/code/{number}/a.txt")).collect();
        let same = "exactly these arguments";
        for (arguments, expected) in [
            (
                json!({ "path": "/home/me/code/notes/a.txt", "content": "see /etc/passwd" }),
                "`path` in `/home/me/code/notes`",
            ),
            (json!({ "path": "notes/./a.txt" }), "`path` in `notes`"),
            // Not all that is in a folder that is open, nor what contains it.
            (json!({ "path": "/home/me/code/a.txt" }), "`path` = `\"/home/me/code/a.txt\"`"),
            (json!({ "path": "/home/me/code" }), "`path` = `\"/home/me/code\"`"),
            (json!({ "path": "/home/a.txt" }), "`path` = `\"/home/a.txt\"`"),
            (json!({ "path": "/documents/a.txt" }), "`path` = `\"/documents/a.txt\"`"),
            (json!({ "path": "documents/a.txt" }), "`path` = `\"documents/a.txt\"`"),
            (json!({ "path": "a.txt" }), "`path` = `\"a.txt\"`"),
            // But a folder that the argument itself names.
            (json!({ "repo_path": "/home/me/code", "message": "x" }), "`repo_path` in `/home/me/code`"),
            (json!({ "source": "a/x", "destination": "b/x" }), "`destination` in `b` and `source` in `a`"),
            (
                json!({ "path": "a/x", "edits": [{ "path": "b/x", "text": "1" }] }),
                "`edits.path` in `b` and `path` in `a`",
            ),
            (json!({ "path1": "a/x", "filepath": "b/y" }), "`filepath` in `b` and `path1` in `a`"),
            (
                json!({ "url": "https://a.example/x", "method": "GET" }),
                "`method` = `\"GET\"` and `url` at `https://a.example:443`",
            ),
            (json!({ "repository": "https://a.example/me/x" }), "`repository` = `\"https://a.example/me/x\"`"),
            (json!({ "url": "https://API.example/x?y", "body": "z" }), "`url` at `https://api.example:443`"),
            (json!({ "owner": "ann", "repo": "wharf", "number": 5 }), "`owner` = `\"ann\"` and `repo` = `\"wharf\"`"),
            (json!({ "path": "a/b", "then": "/x/y" }), "`path` in `a` and `then` in `/x`"),
            (
                json!({ "directories": ["/x/y"], "repositories": "ann" }),
                "`directories` in `/x/y` and `repositories` = `\"ann\"`",
            ),
            (json!({ "path": "a/b", "recursive": true }), "`path` in `a` and `recursive` = `true`"),
            (json!({ "project": "/home/me/code/p" }), "`project` = `\"/home/me/code/p\"`"),
            (json!({ "repo": "ann/wharf" }), "`repo` = `\"ann/wharf\"`"),
            (json!({ "path": 7 }), "`path` = `7`"),
            (json!({ "path": "x`\n/y" }), "`path` = `\"x\\u0060\\n/y\"`"),
            (
                json!({ "url": "https://good.example@evil.example/" }),
                "`url` = `\"https://good.example@evil.example/\"`",
            ),
            (json!({ "url": "file:///home/me/code/x/a" }), "`url` = `\"file:///home/me/code/x/a\"`"),
            // What leads elsewhere by more than its text.
            (json!({ "path": "notes/../a.txt" }), "`path` = `\"notes/../a.txt\"`"),
            (json!({ "path": "notes\\a/b.txt" }), "`path` = `\"notes\\\\a/b.txt\"`"),
            (json!({ "path": "notes/{a,b}/c" }), "`path` = `\"notes/{a,b}/c\"`"),
            (json!({ "path": "notes/.. /c" }), "`path` = `\"notes/.. /c\"`"),
            (json!({ "url": "//evil.example/x" }), "`url` = `\"//evil.example/x\"`"),
            // What a person could not see whole, or would not say what the call does.
            (json!({ "path": long }), same),
            (json!({ "paths": many }), same),
            (json!({ "path": "a/b", "x".repeat(100): "/c" }), same),
            (json!({ "path": "a/b", "x y": 1 }), same),
            (json!({ "command": "ls", "cwd": "/x/y" }), same),
            (json!({ "database": "app", "sql": "SELECT 1" }), same),
            (json!({ "root": "/x/y", "files": { "a.txt": "1" } }), same),
            (json!({ "path": "a/b", "paths": [] }), same),
            (json!({ "name": "x" }), same),
            // What is not a place is not a bound by itself, nor is a place that is empty, or that the tool may ignore.
            (json!({ "name": "x", "force": false }), same),
            (json!({ "action": "read", "name": "x" }), same),
            (json!({ "path": null, "name": "x" }), same),
            (json!({ "path": " ", "name": "x" }), same),
            (json!({ "options": { "path": "a/b" }, "name": "x" }), same),
            (json!({ "path": "a/b", "SQLQuery": "x" }), same),
            (json!({}), same),
            (json!([{ "path": "a/b" }]), same),
            (Value::Null, "any arguments"),
        ] {
            let text = of(&arguments).narrowest.text();
            assert_eq!(text.strip_suffix(" (other values may differ)").unwrap_or(&text), expected, "{arguments}");
        }
        let unknown = json!({ "to": "x", "names": ["a"] });
        let rules = ApprovalRules::of(&unknown, &["names".into()], &tops());
        assert_eq!((rules.narrowest.text().as_str(), rules.covering.len()), (same, 2), "the tool ignores `to`");
    }

    #[test]
    fn a_rule_covers_what_it_says_and_nothing_else() {
        let covers = |approved: &Value, call: &Value| {
            let known = [known(approved), known(call)].concat();
            let rules = |arguments| ApprovalRules::of(arguments, &known, &tops());
            rules(call).covering.contains(&rules(approved).narrowest)
        };
        let note = json!({ "path": "/home/me/code/notes/a.txt", "content": "1" });
        let at = |path: &str| json!({ "path": path, "content": "2" });
        for (call, expected) in [
            (at("/home/me/code/notes/b.txt"), true),
            (at("/home/me/code/notes/old/b.txt"), true),
            (at("/home/me/code/notes"), false),
            (at("/home/me/code/notes2/b.txt"), false),
            (at("/home/me/code/b.txt"), false),
            (at("/home/me/code/notes/../b.txt"), false),
            (at("home/me/code/notes/b.txt"), false),
            (at("/home/me/code/notes/%2e%2e/b.txt"), false),
            (
                json!({ "path": "/home/me/code/notes/b.txt", "content": "2", "destination": "/home/me/code/c.txt" }),
                false,
            ),
            (json!({ "path": "/home/me/code/notes/b.txt", "content": "2", "mode": "x" }), false),
            (json!({ "path": ["/home/me/code/notes/b.txt", "/home/me/code/c/d.txt"], "content": "2" }), false),
            (json!({ "path": ["/home/me/code/notes/b.txt", "/home/me/code/notes/c.txt"], "content": "2" }), true),
            (json!({ "path": [], "content": "2" }), false),
            (json!({ "content": "2" }), false),
            (json!({ "file": "/home/me/code/notes/b.txt", "content": "2" }), false),
            (json!({ "": { "path": "/home/me/code/notes/b.txt" }, "content": "2" }), false),
        ] {
            assert_eq!(covers(&note, &call), expected, "{call}");
        }
        let site = json!({ "url": "https://a.example/x" });
        for (url, expected) in [
            ("https://a.example:443/y", true),
            ("https://A.example/", true),
            ("http://a.example/", false),
            ("https://a.example:8443/", false),
            ("https://b.example/", false),
            ("https://a.example.b.example/", false),
            ("https://a.example@b.example/", false),
        ] {
            assert_eq!(covers(&site, &json!({ "url": url })), expected, "{url}");
        }
        for (approved, call, expected) in [
            (
                json!({ "source": "a/x", "destination": "b/x" }),
                json!({ "source": "a/c/y", "destination": "b/d/y" }),
                true,
            ),
            (json!({ "source": "a/x", "destination": "b/x" }), json!({ "source": "b/x", "destination": "a/x" }), false),
            (json!({ "path": "a/x", "force": false }), json!({ "path": "a/y", "force": true }), false),
            (json!({ "to": "ann", "body": "x" }), json!({ "to": "ann", "body": "y" }), true),
            (json!({ "to": "ann", "body": "x" }), json!({ "to": "ann", "body": "y", "bcc": "ben" }), false),
            (json!({ "path": "a/x", "opt": { "path": "b/x" } }), json!({ "path": "a/x", "opt.path": "b/x" }), false),
            (
                json!({ "source": "/home/me/code/a/b/c/d/x", "destination": "/home/me/code/e/f/g/x" }),
                json!({ "source": "/home/me/code/a/b/c/d/e/f/y", "destination": "/home/me/code/e/f/g/h/y" }),
                true,
            ),
            (json!({ "opt": { "path": "a/x" } }), json!({ "opt": { "path": [] }, "opt.path": "a/x" }), false),
            (json!({ "name": "ls", "n": 1 }), json!({ "name": "ls", "n": 1 }), true),
            (json!({ "name": "ls", "n": 1 }), json!({ "name": "ls", "n": 1.0 }), false),
            (json!({}), json!({ "x": 1 }), false),
            (json!({}), json!({}), true),
        ] {
            assert_eq!(covers(&approved, &call), expected, "{approved}, {call}");
        }
    }

    /// The arguments of a client may be large, and are looked at before a person is asked.
    #[test]
    fn large_arguments_have_few_rules_and_take_little() {
        let deep = (0..100).fold(json!({ "path": "a/b" }), |inner, _| json!({ "x": inner }));
        let folders = |top: &str| format!("{top}/{}x", "d/".repeat(40));
        let same = json!({ "paths": vec!["a/b"; 100_000] });
        let nested = json!({ "path": "a/b", "k".repeat(400_000): vec!["/"; 100_000] });
        let wide = json!({ "x": (0..100_000).map(|n| (n.to_string(), json!("/"))).collect::<serde_json::Map<_, _>>() });
        let tops: Vec<String> = (0..64).map(|n| format!("/{n}{}", "/top".repeat(200))).collect();
        for arguments in [deep, same, nested, wide, json!({ "source": folders("a"), "path": folders("b") })] {
            let rules = ApprovalRules::of(&arguments, &known(&arguments), &tops);
            assert!(rules.covering.len() <= MAX_RULES + 2);
            assert!(rules.narrowest.text().chars().count() <= MAX_TEXT_CHARS);
        }
    }

    #[test]
    fn the_key_of_an_approval_of_any_arguments_is_that_of_the_kind() {
        let kind = CallKind([1; 32]);
        let narrow = of(&json!({ "path": "a/b" })).narrowest;
        assert_eq!(ApprovalRule::Any.of_kind(&kind).0, kind.0);
        assert_ne!(narrow.of_kind(&kind).0, kind.0);
        assert_ne!(narrow.of_kind(&kind), narrow.of_kind(&CallKind([2; 32])));
        assert_ne!(narrow.of_kind(&kind), of(&json!({ "path": "a/c/d" })).narrowest.of_kind(&kind));
    }
}
