//! What a call is about, in a few words for the first line of a question: the files and hosts that its arguments name.

use serde_json::Value;
use wharf_base::text::escaped;

/// The most names that are shown, and the most characters of each.
const MAX_NAMES: usize = 3;
const MAX_CHARS: usize = 120;
/// The number of these characters that are taken from the beginning of a long name. The end of a path says more.
const BEGIN_CHARS: usize = 40;

/// The words of an argument's name that say that its value is a place.
const PLACES: [&str; 20] = [
    "path",
    "filepath",
    "pathname",
    "file",
    "filename",
    "dir",
    "directory",
    "folder",
    "source",
    "destination",
    "src",
    "dest",
    "target",
    "url",
    "uri",
    "host",
    "hostname",
    "server",
    "address",
    "endpoint",
];

/// Returns the places that the arguments name, as the rest of a sentence. Only arguments that the tool knows count: a client could add
/// others, which the tool ignores.
pub fn of(arguments: &Value, known: &[String]) -> String {
    let named = known.iter().filter(|key| is_place(key)).filter_map(|key| arguments.get(key));
    let values = named.flat_map(|value| match value {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    });
    let (mut paths, mut hosts) = (Vec::new(), Vec::new());
    for value in values.filter_map(Value::as_str) {
        match host(value) {
            Some(host) => hosts.push(host),
            None => paths.push(value.to_owned()),
        }
    }
    hosts.dedup();
    said(" on ", &paths) + &said(" at ", &hosts)
}

/// Whether the name of an argument says that its value is a place, in any usual spelling: `file_path`, `repoPath`, `URLs`, `path2`.
pub fn is_place(key: &str) -> bool {
    has(key, &PLACES)
}

/// Whether one of the words of an argument's name is one of these, or the plural of one.
pub fn has(key: &str, all: &[&str]) -> bool {
    let is = |word: &str, one: &str| {
        let stem = word.strip_suffix("ies").filter(|stem| one.strip_suffix('y') == Some(*stem));
        word == one || word.strip_suffix('s') == Some(one) || stem.is_some()
    };
    words(key).iter().any(|word| all.iter().any(|one| is(word, one)))
}

/// Returns the words of an argument's name, in lower case.
fn words(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().collect();
    let is = |at: usize, kind: fn(char) -> bool| letters.get(at).copied().is_some_and(kind);
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let begins = match at.checked_sub(1) {
            None => false,
            Some(before) => {
                let after_lower = is(at, char::is_uppercase) && is(before, char::is_lowercase);
                // `SQLQuery`, but not `URLs`.
                let after_upper = is(at, char::is_uppercase) && is(before, char::is_uppercase);
                let next = is(at + 1, char::is_lowercase) && is(at + 2, char::is_lowercase);
                after_lower || after_upper && next || is(at, char::is_numeric) != is(before, char::is_numeric)
            }
        };
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

/// Returns the host of a web address.
fn host(value: &str) -> Option<String> {
    let is_web = ["http://", "https://"]
        .iter()
        .any(|scheme| value.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme)));
    let address: http::Uri = value.parse().ok().filter(|_| is_web)?;
    address.host().map(str::to_owned)
}

fn said(word: &str, names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let shown: Vec<String> =
        names.iter().take(MAX_NAMES).map(|name| format!("`{}`", plain(&escaped(&short(name))))).collect();
    match shown.split_last() {
        None => String::new(),
        Some(_) if more > 0 => format!("{word}{} and {more} more", shown.join(", ")),
        Some((only, [])) => format!("{word}{only}"),
        Some((last, others)) => format!("{word}{} and {last}", others.join(", ")),
    }
}

/// Escapes what a client that shows Markdown would not show as it is: quoted code, links, and what HTML hides.
pub fn plain(text: &str) -> String {
    text.replace("](", "]\\u0028").replace('`', "\\u0060").replace('<', "\\u003c").replace('&', "\\u0026")
}

/// Shortens a long name in its middle.
fn short(name: &str) -> String {
    let chars = name.chars().count();
    if chars <= MAX_CHARS {
        return name.to_owned();
    }
    let begin: String = name.chars().take(BEGIN_CHARS).collect();
    let end: String = name.chars().skip(chars - (MAX_CHARS - BEGIN_CHARS)).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_line_names_files_and_hosts() {
        let long = format!("/home/me/{}/secret.txt", "x".repeat(500));
        for (known, arguments, expected) in [
            (
                ["path", "content"].as_slice(),
                json!({ "content": "/etc/passwd", "path": "/home/me/a.txt" }),
                " on `/home/me/a.txt`",
            ),
            (&["source", "destination"], json!({ "destination": "/b", "source": "/a" }), " on `/a` and `/b`"),
            (&["paths"], json!({ "paths": ["/a", "/b", "/c", "/d", "/e"] }), " on `/a`, `/b`, `/c` and 2 more"),
            (&["url", "max_length"], json!({ "url": "https://a.example/x?y", "max_length": 5 }), " at `a.example`"),
            (&["url"], json!({ "url": "HTTPS://good.example@evil.example:8443/" }), " at `evil.example`"),
            (
                &["url"],
                json!({ "url": "https://good.example\\@evil.example/" }),
                " on `https://good.example\\@evil.example/`",
            ),
            (
                &["repoPath", "outputURLs"],
                json!({ "repoPath": ".", "outputURLs": ["http://a.example"] }),
                " on `.` at `a.example`",
            ),
            (
                &["path1", "SQLQuery", "directories"],
                json!({ "path1": "/a", "SQLQuery": "x", "directories": ["/b"] }),
                " on `/a` and `/b`",
            ),
            (&["profile", "direction"], json!({ "profile": "x", "direction": "y" }), ""),
            (&[], json!({ "path": "/decoy" }), ""),
            (&["path"], json!({ "path": 7 }), ""),
            (&["path"], json!("no object"), ""),
            (&["path"], json!({ "path": "a`b\nc" }), " on `a\\u0060b\\nc`"),
        ] {
            let known: Vec<String> = known.iter().map(|&key| key.to_owned()).collect();
            assert_eq!(of(&arguments, &known), expected, "{arguments}");
        }
        let said = of(&json!({ "path": long }), &["path".to_owned()]);
        assert!(said.starts_with(" on `/home/me/x") && said.ends_with("x/secret.txt`") && said.contains('…'), "{said}");
        assert!(said.chars().count() < 130, "{said}");
    }
}
