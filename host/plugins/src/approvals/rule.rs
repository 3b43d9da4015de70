//! Which arguments a remembered approval is valid for. By default, it is the narrowest rule that the arguments of the approved call lead to:
//! the folders, web servers and repositories that they name, or else exactly these arguments.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_base::text::escaped;

use super::target::{is_place, plain, words};

/// The most bounds of one rule. A call that names more places is approved with exactly its arguments.
const MAX_BOUNDS: usize = 6;
/// The most characters of a place in a rule, since a person has to see all of it.
const MAX_CHARS: usize = 160;
/// The most rules that are looked up for one call.
const MAX_RULES: usize = 64;
/// The deepest nesting of arguments in which places are found.
const MAX_DEPTH: usize = 8;

/// The words of an argument's name that say that its value is a folder, so that the rule is about what is in it.
const FOLDERS: [&str; 7] = ["dir", "directory", "folder", "root", "cwd", "repo", "repository"];
/// The words of an argument's name that say that its value is what the call works in, such as a repository of a service.
const SCOPES: [&str; 19] = [
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
    "account",
    "team",
    "recipient",
    "from",
    "to",
    "output",
    "email",
    "domain",
];

/// The kind of a call: a digest of everything except its arguments. With an [`ApprovalRule`], the key of a remembered approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallKind(pub [u8; 32]);

/// Which arguments an approval is valid for. Calls with the same [`CallKind`] and the same rule are approved together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ApprovalRule {
    /// All arguments.
    Any,
    /// Exactly these: their SHA-256.
    Same([u8; 32]),
    /// Arguments whose places are all within these bounds.
    Within(BTreeSet<Bound>),
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

impl ApprovalRule {
    /// Returns the narrowest rule for a call with these arguments. `tops` are the folders that are open to it; an approval of one file in
    /// one of them is not an approval of all that is in it.
    pub fn narrowest(arguments: &Value, tops: &[String]) -> Self {
        let first = |chain: Vec<Bound>| chain.into_iter().next();
        chains(arguments, tops).map_or_else(
            || Self::same(arguments),
            |chains| Self::Within(chains.into_iter().filter_map(first).collect()),
        )
    }

    /// Returns all rules under which a call with these arguments is approved.
    pub fn covering(arguments: &Value, tops: &[String]) -> Vec<Self> {
        let mut rules = vec![Self::Any, Self::same(arguments)];
        let Some(chains) = chains(arguments, tops) else { return rules };
        let mut sets = vec![BTreeSet::new()];
        let combinations = chains.iter().try_fold(1_usize, |product, chain| product.checked_mul(chain.len()));
        let all = combinations.is_some_and(|number| number <= MAX_RULES);
        for chain in chains {
            let bounds = if all { chain.as_slice() } else { chain.get(..1).unwrap_or_default() };
            let with = |set: &BTreeSet<Bound>, bound: &Bound| set.iter().chain([bound]).cloned().collect();
            sets = sets.iter().flat_map(|set| bounds.iter().map(move |bound| with(set, bound))).collect();
        }
        sets.dedup();
        rules.extend(sets.into_iter().map(Self::Within));
        rules
    }

    fn same(arguments: &Value) -> Self {
        if arguments.as_object().is_none_or(serde_json::Map::is_empty) {
            return Self::Any;
        }
        Self::Same(Sha256::digest(arguments.to_string()).into())
    }

    /// Returns the key under which an approval of calls of this kind is remembered.
    pub fn of_kind(&self, kind: &CallKind) -> CallKind {
        // An approval without a rule was valid for any arguments.
        if *self == Self::Any {
            return *kind;
        }
        let mut sha = Sha256::new_with_prefix(b"wharf approval rule 1");
        sha.update(kind.0);
        sha.update(serde_json::to_vec(self).unwrap_or_default());
        CallKind(sha.finalize().into())
    }

    /// Describes the calls, as the rest of a sentence.
    pub fn text(&self) -> String {
        let bounds = match self {
            Self::Any => return "any arguments".into(),
            Self::Same(_) => return "exactly these arguments".into(),
            Self::Within(bounds) => bounds,
        };
        let shown = |bound: &Bound| {
            let (word, place) = match &bound.to {
                Place::In(folder) => ("in", folder),
                Place::At(server) => ("at", server),
                Place::Is(value) => ("=", value),
            };
            format!("`{}` {word} `{}`", plain(&escaped(&bound.argument)), plain(&escaped(place)))
        };
        format!("{} (the rest may differ)", bounds.iter().map(shown).collect::<Vec<_>>().join(" and "))
    }
}

/// Returns for each place that the arguments name the bounds that it is within, the narrowest first. None: they name no place, or too many
/// for a rule that a person reads.
fn chains(arguments: &Value, tops: &[String]) -> Option<Vec<Vec<Bound>>> {
    let mut found = Vec::new();
    collect(arguments, "", None, MAX_DEPTH, &mut found)?;
    let mut chains: Vec<Vec<Bound>> = Vec::new();
    for (argument, value, key) in found {
        let places = places(value, key, tops)?;
        let chain = places.into_iter().map(|to| Bound { argument: argument.clone(), to }).collect();
        if !chains.contains(&chain) {
            chains.push(chain);
        }
        if chains.len() > MAX_BOUNDS {
            return None;
        }
    }
    Some(chains).filter(|chains| !chains.is_empty())
}

/// Collects the arguments that name a place, with their names and the last part of these. None: they are nested too deeply.
fn collect<'a>(
    value: &'a Value,
    name: &str,
    key: Option<&'a str>,
    depth: usize,
    found: &mut Vec<(String, &'a Value, &'a str)>,
) -> Option<()> {
    let deeper = depth.checked_sub(1);
    match (value, key) {
        (Value::Object(members), _) => {
            for (key, value) in members {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                collect(value, &name, Some(key), deeper?, found)?;
            }
        }
        (Value::Array(items), _) => {
            for item in items {
                collect(item, name, key, deeper?, found)?;
            }
        }
        (_, Some(key)) if is_place(key) || has(key, &FOLDERS) || has(key, &SCOPES) || looks_like_place(value) => {
            found.push((name.to_owned(), value, key));
        }
        _ => {}
    }
    Some(())
}

/// Whether a value is written like a path or an address, whatever its argument is called.
fn looks_like_place(value: &Value) -> bool {
    let begins = |text: &str| ["/", "./", "../", "~/"].iter().any(|begin| text.starts_with(begin));
    value.as_str().is_some_and(|text| (begins(text) || text.contains("://")) && !text.contains(char::is_whitespace))
}

/// Whether one of the words of an argument's name is one of these, or the plural of one.
fn has(key: &str, all: &[&str]) -> bool {
    let is = |word: &str, one: &str| {
        let stem = word.strip_suffix("ies").filter(|stem| one.strip_suffix('y') == Some(*stem));
        word == one || word.strip_suffix('s') == Some(one) || stem.is_some()
    };
    words(key).iter().any(|word| all.iter().any(|one| is(word, one)))
}

/// Returns the places that a value is within, the narrowest first. None: a person could not see all of it.
fn places(value: &Value, key: &str, tops: &[String]) -> Option<Vec<Place>> {
    let exactly = || {
        let text = value.to_string();
        (text.chars().count() <= MAX_CHARS).then(|| vec![Place::Is(text)])
    };
    let Some(text) = value.as_str().filter(|text| text.chars().count() <= MAX_CHARS) else { return exactly() };
    if text.contains("://") {
        return server(text).map_or_else(exactly, |server| Some(vec![Place::At(server)]));
    }
    let is_path = has(key, &FOLDERS) && text.starts_with(['/', '.']);
    if has(key, &SCOPES) && !is_place(key) && !is_path {
        return exactly();
    }
    let Some(parts) = parts(text) else { return exactly() };
    let begin = if text.starts_with('/') { "/" } else { "" };
    let own = if has(key, &FOLDERS) { parts.len() } else { parts.len().saturating_sub(1) };
    let tops: Vec<String> = tops.iter().filter_map(|top| Some(self::parts(top)?.join("/"))).collect();
    let is_wide = |folder: &str| {
        let around = |top: &String| top == folder || top.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        folder.is_empty() || (begin == "/" && tops.iter().any(around))
    };
    let folders: Vec<String> =
        (1..=own).rev().map(|number| parts.get(..number).unwrap_or_default().join("/")).collect();
    // The folder that the argument itself names may be one that is open: that is what the person saw.
    let narrow = own == parts.len() || folders.first().is_some_and(|folder| !is_wide(folder));
    if folders.is_empty() || !narrow {
        return exactly();
    }
    Some(folders.into_iter().map(|folder| Place::In(format!("{begin}{folder}"))).collect())
}

/// Returns the parts of a path. None: it depends on more than its text where it leads.
fn parts(path: &str) -> Option<Vec<&str>> {
    let odd = |letter: char| letter == '\\' || letter == '%' || letter == '~' || letter.is_control();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!path.contains(odd) && !parts.contains(&"..")).then_some(parts)
}

/// Returns the server of a web address. None: it has a user, or is not a web address.
fn server(address: &str) -> Option<String> {
    let uri: http::Uri = address.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?.to_ascii_lowercase(), uri.authority()?);
    let port = authority.port_u16().or(match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    })?;
    let plain = !authority.as_str().contains('@') && matches!(scheme.as_str(), "http" | "https");
    plain.then(|| format!("{scheme}://{}:{port}", authority.host().to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tops() -> Vec<String> {
        vec!["/home/me/work".into(), "/documents".into()]
    }

    #[test]
    fn a_rule_names_what_the_call_was_about() {
        let long = format!("/home/me/work/{}/a.txt", "x".repeat(200));
        let many: Vec<String> = (0..10).map(|number| format!("/home/me/work/{number}/a.txt")).collect();
        for (arguments, expected) in [
            (
                json!({ "path": "/home/me/work/notes/a.txt", "content": "see /etc/passwd" }),
                "`path` in `/home/me/work/notes`",
            ),
            (json!({ "path": "notes/./a.txt" }), "`path` in `notes`"),
            // Not all that is in a folder that is open, nor what contains it.
            (json!({ "path": "/home/me/work/a.txt" }), "`path` = `\"/home/me/work/a.txt\"`"),
            (json!({ "path": "/home/me/work" }), "`path` = `\"/home/me/work\"`"),
            (json!({ "path": "/home/a.txt" }), "`path` = `\"/home/a.txt\"`"),
            (json!({ "path": "/documents/a.txt" }), "`path` = `\"/documents/a.txt\"`"),
            (json!({ "path": "a.txt" }), "`path` = `\"a.txt\"`"),
            // But a folder that the argument itself names.
            (json!({ "repo_path": "/home/me/work", "message": "x" }), "`repo_path` in `/home/me/work`"),
            (json!({ "source": "a/x", "destination": "b/x" }), "`destination` in `b` and `source` in `a`"),
            (json!({ "files": [{ "path": "a/x", "text": "1" }, { "path": "a/y" }] }), "`files.path` in `a`"),
            (json!({ "url": "https://API.example/x?y", "body": "z" }), "`url` at `https://api.example:443`"),
            (json!({ "owner": "ann", "repo": "wharf", "number": 5 }), "`owner` = `\"ann\"` and `repo` = `\"wharf\"`"),
            (json!({ "path": "a/b", "then": "/x/y" }), "`path` in `a` and `then` in `/x`"),
            (
                json!({ "directories": ["/x/y"], "repositories": "ann" }),
                "`directories` in `/x/y` and `repositories` = `\"ann\"`",
            ),
            (json!({ "project": "/home/me/work/p" }), "`project` = `\"/home/me/work/p\"`"),
            (json!({ "repo": "ann/wharf" }), "`repo` = `\"ann/wharf\"`"),
            (json!({ "path": "notes/../a.txt" }), "`path` = `\"notes/../a.txt\"`"),
            (json!({ "path": "notes\\a/b.txt" }), "`path` = `\"notes\\\\a/b.txt\"`"),
            (json!({ "path": 7 }), "`path` = `7`"),
            (
                json!({ "url": "https://good.example@evil.example/" }),
                "`url` = `\"https://good.example@evil.example/\"`",
            ),
            (json!({ "url": "file:///home/me/work/x/a" }), "`url` = `\"file:///home/me/work/x/a\"`"),
            (json!({ "a`\n": { "path": "x`\n/y" } }), "`a\\u0060\\n.path` = `\"x\\u0060\\n/y\"`"),
            // What a person could not see whole.
            (json!({ "path": long }), "exactly these arguments"),
            (json!({ "paths": many }), "exactly these arguments"),
            (json!({ "command": "ls" }), "exactly these arguments"),
            (json!({}), "any arguments"),
            (Value::Null, "any arguments"),
        ] {
            let text = ApprovalRule::narrowest(&arguments, &tops()).text();
            assert_eq!(text.strip_suffix(" (the rest may differ)").unwrap_or(&text), expected, "{arguments}");
        }
    }

    #[test]
    fn a_rule_covers_what_it_says_and_nothing_else() {
        let covers = |approved: &Value, call: &Value| {
            ApprovalRule::covering(call, &tops()).contains(&ApprovalRule::narrowest(approved, &tops()))
        };
        let note = json!({ "path": "/home/me/work/notes/a.txt", "content": "1" });
        let at = |path: &str| json!({ "path": path, "content": "2" });
        for (call, expected) in [
            (at("/home/me/work/notes/b.txt"), true),
            (at("/home/me/work/notes/old/b.txt"), true),
            (at("/home/me/work/notes"), false),
            (at("/home/me/work/notes2/b.txt"), false),
            (at("/home/me/work/b.txt"), false),
            (at("/home/me/work/notes/../b.txt"), false),
            (at("home/me/work/notes/b.txt"), false),
            (at("/home/me/work/notes/%2e%2e/b.txt"), false),
            (json!({ "path": "/home/me/work/notes/b.txt", "destination": "/home/me/work/c.txt" }), false),
            (json!({ "path": ["/home/me/work/notes/b.txt", "/home/me/work/c/d.txt"] }), false),
            (json!({ "path": ["/home/me/work/notes/b.txt", "/home/me/work/notes/c.txt"] }), true),
            (json!({ "content": "2" }), false),
            (json!({ "file": "/home/me/work/notes/b.txt" }), false),
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
        let pair = json!({ "source": "a/x", "destination": "b/x" });
        assert!(covers(&pair, &json!({ "source": "a/c/y", "destination": "b/d/y" })));
        assert!(!covers(&pair, &json!({ "source": "b/x", "destination": "a/x" })));
        assert!(covers(&json!({ "command": "ls", "n": 1 }), &json!({ "command": "ls", "n": 1 })));
        assert!(!covers(&json!({ "command": "ls" }), &json!({ "command": "ls -l" })));
        let deep = (0..200).fold(json!({ "path": "a/b" }), |inner, _| json!({ "x": inner }));
        assert!(covers(&deep, &deep) && !covers(&json!({ "path": "a/b" }), &deep));
    }

    #[test]
    fn the_number_of_rules_is_bounded() {
        let folders = |top: &str| format!("{top}/{}x", "d/".repeat(40));
        let arguments = json!({ "source": folders("a"), "destination": folders("b"), "path": folders("c") });
        let rules = ApprovalRule::covering(&arguments, &[]);
        assert!(rules.len() <= MAX_RULES + 2 && rules.contains(&ApprovalRule::narrowest(&arguments, &[])));
    }

    #[test]
    fn the_key_of_an_approval_of_any_arguments_is_that_of_the_kind() {
        let kind = CallKind([1; 32]);
        let narrow = ApprovalRule::narrowest(&json!({ "path": "a/b" }), &[]);
        assert_eq!(ApprovalRule::Any.of_kind(&kind), kind);
        assert_ne!(narrow.of_kind(&kind), kind);
        assert_ne!(narrow.of_kind(&kind), narrow.of_kind(&CallKind([2; 32])));
        assert_ne!(narrow.of_kind(&kind), ApprovalRule::narrowest(&json!({ "path": "a/c/d" }), &[]).of_kind(&kind));
    }
}
