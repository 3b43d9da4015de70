//! Evaluates a site's `robots.txt` exactly like `protego`, which the reference server uses.
//!
//! Parsing is lenient: names of fields may be misspelt, and a colon may be missing. The longest matching rule decides; if two are equally
//! long, the one that allows.

use std::ops::ControlFlow;

const DISALLOW: [&str; 6] = ["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"];
const USER_AGENT: [&str; 3] = ["user-agent", "useragent", "user agent"];
/// The fields that apply to the whole site and do not end a group.
const SITE: [&str; 4] = ["sitemap", "sitemaps", "site-map", "host"];
const OTHER: [&str; 6] = ["crawl-delay", "crawl delay", "request-rate", "request rate", "visit-time", "visit time"];

/// A rule of a group.
struct Rule {
    allows: bool,
    /// The pattern, percent-encoded, with `*` for any characters, and `$` at its end for the end of the path.
    pattern: String,
}

/// The rules for one name of a user agent, of all groups that name it.
struct Group {
    name: String,
    /// How well the name matches the user agent.
    score: usize,
    rules: Vec<Rule>,
}

/// Whether a `robots.txt` allows a user agent to fetch a URL.
pub fn allows(text: &str, url: &str, agent: &str) -> bool {
    let path = path_of(url);
    if path.split('?').next() == Some("/robots.txt") {
        return true;
    }
    let path = escaped(path, b"/%", b"/%=");
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    let groups = parse(text, &agent.trim().to_lowercase());
    // Of several equally good matches, the first one applies.
    let Some(group) = groups.iter().rev().max_by_key(|group| group.score) else { return true };
    let matching = group.rules.iter().filter(|rule| matches(&rule.pattern, &path));
    matching.map(|rule| (rule.pattern.len(), rule.allows)).max().is_none_or(|(_, allows)| allows)
}

/// Returns how well the name of a group matches a user agent. The match must begin at the start of a word of the agent.
fn score(name: &str, agent: &str) -> usize {
    if matches!(name, "" | "*") {
        return name.len();
    }
    let begins_a_word = |(at, _): (usize, &str)| {
        let before = agent.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '-' | '_'))
    };
    if overlapping(agent, name).any(begins_a_word) { name.chars().count() } else { 0 }
}

/// Returns all positions of a name in a text, including overlapping ones.
fn overlapping<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.char_indices()
        .filter_map(move |(at, _)| text.get(at..).filter(|rest| rest.starts_with(name)).map(|rest| (at, rest)))
}

/// Returns the groups whose names match a user agent. They are few, however many groups the text has.
fn parse(text: &str, agent: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut current: Vec<usize> = Vec::new();
    let mut previous_is_rule = false;
    for line in text.split(is_line_end) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((field, value)) = directive(line) else { continue };
        let names_agent = USER_AGENT.contains(&&*field);
        if names_agent && previous_is_rule {
            current.clear();
        }
        if !SITE.contains(&&*field) {
            previous_is_rule = !names_agent;
        }
        if value.is_empty() {
            continue;
        }
        if names_agent {
            let name = value.to_lowercase();
            // Names have no wildcards, so `*` in a name is ignored.
            let plain = (name != "*" && name.contains('*')).then(|| name.replace('*', ""));
            for name in std::iter::once(name).chain(plain).filter(|name| score(name, agent) > 0) {
                let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
                    groups.push(Group { score: score(&name, agent), name, rules: Vec::new() });
                    groups.len() - 1
                });
                if !current.contains(&at) {
                    current.push(at);
                }
            }
            continue;
        }
        let allows = field == "allow";
        if allows || DISALLOW.contains(&&*field) {
            for at in &current {
                if let Some(group) = groups.get_mut(*at) {
                    group.add(allows, &value);
                }
            }
        }
    }
    groups
}

impl Group {
    fn add(&mut self, allows: bool, value: &str) {
        if value.contains('$') {
            self.add(allows, &value.replace('$', "%24"));
        }
        let pattern = pattern_of(value);
        if pattern.is_empty() {
            return;
        }
        // A rule that allows the index of a folder also allows the folder.
        let folder = pattern.strip_suffix("index.html").filter(|folder| allows && folder.ends_with('/'));
        let folder = folder.map(|folder| Rule { allows, pattern: format!("{folder}$") });
        self.rules.push(Rule { allows, pattern });
        self.rules.extend(folder);
    }
}

/// Splits a line into its field, in lowercase, and its value.
fn directive(line: &str) -> Option<(String, String)> {
    let known = |field: &str| {
        field == "allow" || [&DISALLOW[..], &USER_AGENT, &SITE, &OTHER].iter().any(|fields| fields.contains(&field))
    };
    let parts = line.split_once(':').map(|(field, value)| (field.trim().to_lowercase(), value));
    if let Some((field, value)) = &parts
        && (known(field) || value.is_empty() || value.starts_with(char::is_whitespace))
    {
        return Some((field.clone(), value.trim().to_owned()));
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let found = (1..=words.len().min(2)).try_for_each(|count| {
        let (field, value) = words.split_at(count);
        let field = field.join(" ").to_lowercase();
        if known(&field) { ControlFlow::Break((field, value.join(" "))) } else { ControlFlow::Continue(()) }
    });
    found.break_value().or_else(|| parts.map(|(field, value)| (field, value.trim().to_owned())))
}

/// Splits a text at the line breaks that Python recognizes.
fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the path and query of a URL.
fn path_of(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or_default();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or_default()
}

fn pattern_of(value: &str) -> String {
    let slash = if value.starts_with("http://") || value.starts_with("https://") { "/" } else { "" };
    let (value, anchor) = value.strip_suffix('$').map_or((value, ""), |value| (value, "$"));
    format!("{slash}{}{anchor}", escaped(value, b"/%*", b"/%*="))
}

/// Normalizes the percent-encoding of a text: decodes all escapes except those of `kept`, and then encodes everything but letters, digits,
/// `_.-~` and the characters in `safe`.
fn escaped(text: &str, kept: &[u8], safe: &[u8]) -> String {
    let keep = |byte: &u8| kept.contains(byte);
    let (mut plain, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.split_at_checked(2).filter(|_| *first == b'%').and_then(|(code, after)| {
            let digits =
                std::str::from_utf8(code).ok().filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            Some((u8::from_str_radix(digits, 16).ok()?, digits, after))
        });
        match code {
            Some((byte, digits, after)) if keep(&byte) => {
                plain.push(b'%');
                plain.extend(digits.to_ascii_uppercase().bytes());
                rest = after;
            }
            Some((byte, _, after)) => {
                plain.push(byte);
                rest = after;
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    let mut out = String::new();
    for byte in String::from_utf8_lossy(&plain).bytes() {
        if byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) || safe.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
    out
}

/// Whether a pattern matches a path from its start.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_end) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return !to_end || rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    if to_end { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "ModelContextProtocol/1.0 (Autonomous; +https://github.com/modelcontextprotocol/servers)";

    /// Texts, paths, and the results of protego 0.7.
    #[test]
    fn decisions_are_those_of_protego() {
        let table = [
            ("", "/a", true),
            ("User-agent: *\nDisallow: /", "/a", false),
            ("User-agent: *\nDisallow:", "/a", true),
            ("User-agent: *\nDisallow: /a", "/ab", false),
            ("User-agent: *\nDisallow: /a\nAllow: /ab", "/abc", true),
            ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", true),
            ("User-agent: *\nDisallow: /\n\nUser-agent: modelcontextprotocol\nAllow: /", "/a", true),
            ("User-agent: *\nAllow: /\n\nUser-agent: ModelContextProtocol\nDisallow: /", "/a", false),
            ("User-agent: Context\nDisallow: /", "/a", true),
            ("User-agent: github\nDisallow: /", "/a", false),
            ("User-agent: Auto\nDisallow: /", "/a", false),
            ("User-agent: model\nDisallow: /b\nUser-agent: modelcontext\nDisallow: /a", "/a", false),
            ("User-agent: model\nDisallow: /b\nUser-agent: modelcontext\nDisallow: /a", "/b", true),
            ("User-agent: one\nUser-agent: model\nDisallow: /a", "/a", false),
            ("User-agent: model\nCrawl-delay: 1\nUser-agent: two\nDisallow: /a", "/a", true),
            ("User-agent: model\nSitemap: https://x.test/s\nUser-agent: two\nDisallow: /a", "/a", false),
            ("User-agent: model\nNonsense: 1\nUser-agent: two\nDisallow: /a", "/a", true),
            (
                "User-agent: model\nDisallow: /a\nUser-agent: two\nDisallow: /b\nUser-agent: model\nDisallow: /c",
                "/c",
                false,
            ),
            ("User-agent: mod*\nDisallow: /a", "/a", false),
            ("User-agent: *model\nDisallow: /a", "/a", false),
            ("User-agent:\nDisallow: /a", "/a", true),
            ("User agent *\ndisalow /a", "/a", false),
            ("useragent: *\nDisallow /a", "/a", false),
            ("user-agent *\n disallow : /a # why", "/a", false),
            ("Disallow: /a", "/a", true),
            ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf", false),
            ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf?y", true),
            ("User-agent: *\nDisallow: /*.pdf", "/x.pdf?y", false),
            ("User-agent: *\nDisallow: /a$", "/a", false),
            ("User-agent: *\nDisallow: /a$", "/ab", true),
            ("User-agent: *\nDisallow: /a$b", "/a$b", false),
            ("User-agent: *\nDisallow: /a$", "/a$x", false),
            ("User-agent: *\nDisallow: /a/*/c/*d", "/a/b/c/xxd", false),
            ("User-agent: *\nDisallow: /a/*/c$", "/a/b/c/d", true),
            ("User-agent: *\nDisallow: **/x", "/y/x", false),
            ("User-agent: *\nDisallow: *", "/", false),
            ("User-agent: *\nDisallow: /*?", "/a?b", false),
            ("User-agent: *\nDisallow: /*?", "/a", true),
            ("User-agent: *\nDisallow: /a?b=1", "/a?b=1&c", false),
            ("User-agent: *\nDisallow: /%7Ejoe", "/~joe/x", false),
            ("User-agent: *\nDisallow: /~joe", "/%7ejoe/x", false),
            ("User-agent: *\nDisallow: /a%2fb", "/a/b", true),
            ("User-agent: *\nDisallow: /a%2fb", "/a%2Fb", false),
            ("User-agent: *\nDisallow: /café", "/caf%C3%A9", false),
            ("User-agent: *\nDisallow: /a b", "/a%20b", false),
            ("User-agent: *\nDisallow: /a%3Db", "/a=b", false),
            ("User-agent: *\nDisallow: /%ff", "/%FF", false),
            ("User-agent: *\nDisallow: /%zz", "/%zz", false),
            ("User-agent: *\nAllow: /d/index.html\nDisallow: /", "/d/", true),
            ("User-agent: *\nAllow: /d/index.html\nDisallow: /", "/d/x", false),
            ("User-agent: *\nDisallow: /", "/robots.txt", true),
            ("User-agent: *\nDisallow: /", "/robots.txt?x", true),
            ("User-agent: *\nDisallow: https://x.test/a", "/a", true),
            ("User-agent: *\nDisallow: a", "/a", true),
            ("User-agent: *\r\nDisallow: /a\r\n", "/a", false),
            ("User-agent: *\rDisallow: /a", "/a", false),
            ("\u{feff}User-agent: *\nDisallow: /a", "/a", true),
            ("User-agent: *\nDisallow: /a\nAllow: /*b", "/ab", true),
            ("User-agent: *\nDisallow: /abc\nAllow: /a*", "/abc", false),
            ("User-agent: *\nDisallow: /a#x", "/a", false),
            ("# c\nUser-agent: * # all\nDisallow: /a", "/a", false),
            ("User-agent: *\nDisallow: /A", "/a", true),
            ("User-agent: *\nDisallow: /a", "/b#/a", true),
            ("User-agent: *\nDisallow: /a", "?x", true),
            ("User-agent: *\nDisallow: /?x", "?x", false),
            ("User-agent: https\nDisallow: /a", "/a", false),
            ("User-agent: servers)\nDisallow: /a", "/a", false),
            ("User-agent: 1.0\nDisallow: /a", "/a", false),
            ("User-agent: 0\nDisallow: /a", "/a", false),
            (":\nUser-agent: *\nDisallow: /a", "/a", false),
            ("User-agent: *\n:\nUser-agent: two\nDisallow: /a", "/a", true),
            ("User-agent: model\n\nUser-agent: *\nDisallow: /a", "/a", false),
        ];
        for (text, path, expected) in table {
            assert_eq!(allows(text, &format!("https://x.test{path}"), AGENT), expected, "{path} by {text:?}");
        }
    }

    #[test]
    fn many_names_and_rules_that_are_of_no_concern_are_not_kept() {
        let names: String = (0..20_000).map(|number| format!("User-agent: other{number}\n")).collect();
        let rules = "Disallow: /a\n".repeat(20_000);
        let text = format!("{names}{rules}User-agent: *\nDisallow: /b");
        assert!(allows(&text, "https://x.test/a", AGENT) && !allows(&text, "https://x.test/b", AGENT));
        assert_eq!(parse(&text, &AGENT.to_lowercase()).len(), 1);
    }
}
