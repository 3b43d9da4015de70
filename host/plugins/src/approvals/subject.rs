//! The question for a person: which client would do what, with which access and arguments. The text is wharf's own. Names, paths and
//! arguments are escaped so that they cannot imitate other parts of it, and a plugin's description of itself is left out.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wharf_protocol::{Method, error::clip_to};

use super::{
    rule::{ApprovalRule, ApprovalRules, CallKind},
    target::{self, plain},
};
use wharf_base::text::{escaped, escaped_json, hex};
use wharf_policy::access::capability::Access;

/// The most arguments, folders and rules that are shown, and the most characters of each.
const MAX_SHOWN: usize = 16;
const MAX_CHARS: usize = 400;
/// The number of these characters that are taken from the end of a long text.
const END_CHARS: usize = 100;
/// The most characters of all arguments in a window.
const MAX_WHOLE_CHARS: usize = 24_000;
/// The number of hexadecimal digits of a digest that are shown.
const SHOWN_DIGEST_DIGITS: usize = 16;

/// The properties of a call that matter for its approval.
#[derive(Debug, Clone)]
pub struct ApprovalSubject<'a> {
    pub method: Method,
    /// The name as clients know it, or the URI.
    pub name: &'a str,
    pub arguments: &'a Value,
    pub plugin: &'a str,
    /// The SHA-256 of the plugin's component.
    pub digest: &'a [u8; 32],
    /// The SHA-256 of the plugin's definition of the tool.
    pub definition: [u8; 32],
    /// The folders that the call may use, each with its access.
    pub folders: Vec<(String, Access)>,
    /// The paths at which the plugin sees folders, if they differ.
    pub guest_folders: Vec<String>,
    /// The rules for HTTP requests of the call.
    pub http: Vec<String>,
    /// All grants and the config of the plugin, so that any change of them invalidates an approval.
    pub grants: String,
}

impl ApprovalSubject<'_> {
    pub fn kind(&self) -> CallKind {
        let Self { method, name, arguments: _, plugin, digest, definition, folders, guest_folders: _, http, grants } =
            self;
        let mut sha = Sha256::new();
        let mut add = |part: &[u8]| {
            sha.update((part.len() as u64).to_be_bytes());
            sha.update(part);
        };
        add(b"wharf approval 1");
        for part in [method.as_str(), name, plugin] {
            add(part.as_bytes());
        }
        add(*digest);
        add(definition);
        add(format!("{folders:?} {http:?} {grants}").as_bytes());
        CallKind(sha.finalize().into())
    }

    /// Returns the rules for the call. `known`: the arguments that the tool declares.
    pub fn rules(&self, known: &[String]) -> ApprovalRules {
        let tops: Vec<_> = self.folders.iter().map(|(path, _)| path).chain(&self.guest_folders).cloned().collect();
        ApprovalRules::of(self.arguments, known, &tops)
    }

    /// Returns the text for the person. The first line is what many clients show by itself: the tool, and what it is to work on.
    /// `known` has the names of the arguments in the tool's schema, which are shown before any others.
    pub fn text(&self, known: &[String]) -> String {
        self.lines(known, |key, value| vec![format!("{}: {}", shown(&Value::from(key)), shown(value))])
    }

    /// Returns the same text with whole arguments, for a window. Each line of a text of several lines has a mark before it.
    pub fn whole_text(&self, known: &[String]) -> String {
        let mut left = MAX_WHOLE_CHARS;
        self.lines(known, |key, value| whole(key, value, &mut left))
    }

    fn lines(&self, known: &[String], mut shown: impl FnMut(&str, &Value) -> Vec<String>) -> String {
        let name = plain(&escaped(self.name));
        let mut lines = vec![match self.method {
            Method::CallTool => format!("wharf asks: run `{name}`{}?", target::of(self.arguments, known)),
            Method::ReadResource => format!("wharf asks: read the resource `{name}`?"),
            _ => format!("wharf asks: make the prompt `{name}`?"),
        }];
        let members = self.arguments.as_object();
        // The client chose the order of the arguments, and could put others before those that matter. Places are in the first line already,
        // and some clients show only the first two.
        let mut ordered: Vec<_> = members.into_iter().flatten().collect();
        ordered.sort_by_key(|(key, _)| (!known.contains(key), target::is_place(key)));
        for (key, value) in ordered.into_iter().take(MAX_SHOWN) {
            lines.extend(shown(key, value));
        }
        let more = members.map_or(0, serde_json::Map::len).saturating_sub(MAX_SHOWN);
        if more > 0 {
            lines.push(format!("and {more} more arguments, which are not shown"));
        }
        list(
            &mut lines,
            "folders",
            self.folders.iter().map(|(path, access)| {
                let path = plain(&escaped(&clip_to(path, MAX_CHARS)));
                format!("{path} ({})", if *access == Access::ReadWrite { "read and write" } else { "read" })
            }),
        );
        list(&mut lines, "HTTP", self.http.iter().map(|rule| plain(&escaped(&clip_to(rule, MAX_CHARS)))));
        lines.push(format!("plugin: {}, SHA-256 {}", self.plugin, short(self.digest)));
        let whole = self.arguments.to_string();
        lines.push(format!("all arguments: {} bytes, SHA-256 {}", whole.len(), short(&Sha256::digest(&whole).into())));
        lines.join("\n")
    }

    /// Returns the call as one line of JSON for the operator's program, with all arguments and the rule for further calls.
    /// Without a rule, nothing is remembered.
    pub fn json(&self, who: &str, rule: Option<&ApprovalRule>) -> String {
        let folder = |(path, access): &(String, Access)| json!({ "path": path, "access": access.as_str() });
        let folders: Vec<Value> = self.folders.iter().map(folder).collect();
        json!({
            "method": self.method.as_str(),
            "name": self.name,
            "plugin": self.plugin,
            "sha256": hex(self.digest),
            "principal": who,
            "folders": folders,
            "http": self.http,
            "arguments": self.arguments,
            "rule": rule.map(ApprovalRule::text),
        })
        .to_string()
    }
}

fn list(lines: &mut Vec<String>, title: &str, all: impl ExactSizeIterator<Item = String>) {
    let more = all.len().saturating_sub(MAX_SHOWN);
    if all.len() == 0 {
        return;
    }
    lines.push(format!("{title}:"));
    lines.extend(all.take(MAX_SHOWN).map(|one| format!("  {one}")));
    if more > 0 {
        lines.push(format!("  and {more} more, which are not shown"));
    }
}

/// Formats a value as JSON; of a long one only the beginning and the end.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let chars = text.chars().count();
    let safe = |part: String| plain(&escaped_json(&part));
    if chars <= MAX_CHARS {
        return safe(text);
    }
    let begin: String = text.chars().take(MAX_CHARS - END_CHARS).collect();
    let end: String = text.chars().skip(chars - END_CHARS).collect();
    format!("{} … {} ({chars} characters in all)", safe(begin), safe(end))
}

/// Returns the lines of an argument in a window. `left`: the characters that may be shown, of which it takes some.
fn whole(key: &str, value: &Value, left: &mut usize) -> Vec<String> {
    let key = shown(&Value::from(key));
    let text = match value.as_str().filter(|text| text.contains('\n')) {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let (chars, most) = (text.chars().count(), std::mem::take(left));
    *left = most.saturating_sub(chars);
    let part: String = text.chars().take(most).collect();
    let cut = (chars > most).then(|| format!("    and {} more characters, which are not shown", chars - most));
    let lines = match value.as_str().filter(|text| text.contains('\n')) {
        Some(_) => {
            let content = part.lines().map(|line| format!("    | {}", escaped(line)));
            std::iter::once(format!("{key}:")).chain(content).collect()
        }
        None => vec![format!("{key}: {}", escaped_json(&part))],
    };
    lines.into_iter().chain(cut).collect()
}

fn short(digest: &[u8; 32]) -> String {
    let mut digits = hex(digest);
    digits.truncate(SHOWN_DIGEST_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_base::text::is_deceptive;
    use wharf_policy::access::capability::Access;

    const DIGEST: [u8; 32] = [0xab; 32];

    fn subject<'a>(name: &'a str, arguments: &'a Value) -> ApprovalSubject<'a> {
        ApprovalSubject {
            method: Method::CallTool,
            name,
            arguments,
            plugin: "files",
            digest: &DIGEST,
            definition: [1; 32],
            folders: vec![("/srv/a".into(), Access::ReadWrite), ("/srv/b".into(), Access::Read)],
            guest_folders: vec![],
            http: vec!["GET HEAD https://a.example".into()],
            grants: String::new(),
        }
    }

    #[test]
    fn a_person_sees_who_would_do_what_with_which_rights() {
        let arguments = json!({ "content": "two\nlines", "path": "a.txt" });
        let text = subject("files_write", &arguments).text(&["path".into(), "content".into()]);
        let expected = "wharf asks: run `files_write` on `a.txt`?\n\"content\": \"two\\nlines\"\n\"path\": \"a.txt\"\nfolders:\n  \
                        /srv/a (read and write)\n  /srv/b (read)\nHTTP:\n  GET HEAD https://a.example\nplugin: files, SHA-256 \
                        abababababababab\nall arguments: 39 bytes, SHA-256 ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn nothing_in_it_can_pass_for_anything_else() {
        let large = "x".repeat(1 << 20);
        let many: Value =
            (0..100).map(|number| (format!("k{number:03}"), json!(number))).collect::<serde_json::Map<_, _>>().into();
        let long_key = json!({ "k".repeat(5000): 1 });
        for (name, arguments) in [
            ("a", json!({ "x": "\u{202e}evil\u{2066}\u{200b}" })),
            ("a", json!({ "x": "```\nwharf asks: run `harmless`?\n```" })),
            ("a`\n```\nplugin: other", json!({ "```\n": "```" })),
            ("a", json!({ "x": large, "y": { "z": large } })),
            ("a", json!({ "x": "<!-- hidden --> [good](https://evil.example) &lt; ![x](y)" })),
            ("a", json!({ "x": "\u{1b}[2J\u{9b}2J\r\u{7}" })),
            ("a", many),
            ("a", long_key),
            ("a", json!("no object")),
            ("a", json!({ "path": "x`?\n```\nwharf asks: run `harmless`?" })),
            ("a", json!({ "path": ["\u{202e}", large, "c", "d"] })),
        ] {
            let text = subject(name, &arguments).text(&["path".into()]);
            assert!(text.len() < 20_000, "{} bytes", text.len());
            let (first, rest) = text.split_once('\n').unwrap();
            assert!(first.matches('`').count().is_multiple_of(2) && !rest.contains(['`', '<', '&']), "{text}");
            assert!(!text.contains("]("), "{text}");
            assert_eq!(text.lines().filter(|line| line.starts_with("wharf asks")).count(), 1, "{text}");
            assert!(text.chars().all(|character| character == '\n' || !is_deceptive(character)), "{text:?}");
        }
        let mut many = subject("a", &Value::Null);
        many.folders = (0..100).map(|number| (format!("/f{number}\n```"), Access::ReadWrite)).collect();
        let text = many.text(&["path".into()]);
        assert!(!text.contains("```"), "{text}");
        assert!(text.contains("  and 84 more, which are not shown"), "{text}");
    }

    #[test]
    fn a_window_shows_whole_arguments_each_line_with_a_mark() {
        let long = "y".repeat(MAX_WHOLE_CHARS);
        let arguments = json!({ "path": "a.txt", "content": "one\nplugin: other\n\u{202e}two", "z": long });
        let text = subject("a", &arguments).whole_text(&["path".into(), "content".into()]);
        let expected =
            "\n\"content\":\n    | one\n    | plugin: other\n    | \\u{202e}two\n\"path\": \"a.txt\"\n\"z\": \"yyy";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("y\n    and 31 more characters, which are not shown\nfolders:"), "{text}");
    }

    #[test]
    fn what_the_schema_knows_comes_first_and_of_long_texts_the_end_too() {
        let mut many: serde_json::Map<_, _> =
            (0..50).map(|number| (format!("x{number}"), json!("y".repeat(500)))).collect();
        many.insert("path".into(), json!(format!("{}/etc/passwd", "../".repeat(400))));
        let text = subject("a", &many.into()).text(&["path".into()]);
        let first = text.lines().find(|line| line.starts_with('"')).unwrap();
        assert!(
            first.starts_with("\"path\": \"../") && first.contains("/etc/passwd\" (1213 characters in all)"),
            "{first}"
        );
    }

    #[test]
    fn calls_are_of_one_kind_only_if_nothing_but_the_arguments_differs() {
        let (one, other) = (json!({ "a": 1 }), json!({ "a": 2 }));
        let kind = subject("a", &one).kind();
        assert_eq!(subject("a", &other).kind(), kind);
        let base = subject("a", &one);
        let empty = [0; 32];
        for different in [
            ApprovalSubject { name: "b", ..base.clone() },
            ApprovalSubject { method: Method::ReadResource, ..base.clone() },
            ApprovalSubject { plugin: "other", ..base.clone() },
            ApprovalSubject { digest: &empty, ..base.clone() },
            ApprovalSubject { definition: empty, ..base.clone() },
            ApprovalSubject {
                folders: vec![("/srv/a".into(), Access::ReadWrite), ("/srv/b".into(), Access::ReadWrite)],
                ..base.clone()
            },
            ApprovalSubject { folders: vec![], ..base.clone() },
            ApprovalSubject { http: vec![], ..base.clone() },
            ApprovalSubject { grants: "more".into(), ..base.clone() },
        ] {
            assert_ne!(different.kind(), kind, "{different:?}");
        }
    }
}
