//! Detects ambiguous paths (path traversal). Servers differ in how often they percent-decode a path, in which characters they take for
//! separators, and in which they drop before they resolve `..`. A rule or a role for `/public` must not allow a path that some server
//! resolves to another place, so both check paths here, and an ambiguous path does not match any prefix.

use std::{borrow::Cow, fmt};

use super::text::is_deceptive;

/// How many layers of percent-encoding a path may have. Clients have no reason to use more.
const MAX_DECODINGS: usize = 3;

/// Why a path is ambiguous: servers may read it in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// A segment that consists of dots, or an encoded dot.
    Dots,
    /// An encoded slash.
    Slash,
    Backslash,
    /// Invisible characters, which some servers drop.
    Unseen,
    /// Bytes that are not UTF-8. Some servers decode `%c0%ae` (overlong UTF-8) to a dot.
    NotUtf8,
    /// More layers of percent-encoding than `MAX_DECODINGS`.
    TooDeep,
}

/// Completes a sentence that begins with "the path".
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dots => "has a segment of dots or an encoded dot",
            Self::Slash => "has an encoded slash",
            Self::Backslash => "has a backslash",
            Self::Unseen => "has control characters or invisible characters",
            Self::NotUtf8 => "is not UTF-8",
            Self::TooDeep => "is encoded more than three times over",
        })
    }
}

/// Returns why the path of a request is ambiguous. `None`: every server reads it in the same way.
pub fn doubt_of_path(path: &str) -> Option<Doubt> {
    let (dots, slashes) = (count(path, '.'), count(path, '/'));
    examine(path, |text| {
        if text.chars().any(is_deceptive) {
            Some(Doubt::Unseen)
        } else if count(text, '.') > dots || has_dots(text) {
            Some(Doubt::Dots)
        } else if text.contains('\\') {
            Some(Doubt::Backslash)
        } else {
            (count(text, '/') > slashes).then_some(Doubt::Slash)
        }
    })
}

/// Returns why a URI is ambiguous. The values after `?` or `#` may have any character, but no segment that consists of dots.
pub fn doubt_of_uri(uri: &str) -> Option<Doubt> {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let path = rest.find(['?', '#']).and_then(|at| rest.get(..at)).unwrap_or(rest);
    let values = |text: &str| {
        let seen: String = text.chars().filter(|&character| !is_deceptive(character)).collect();
        has_dots(&seen).then_some(Doubt::Dots)
    };
    doubt_of_path(path).or_else(|| if path.len() < rest.len() { examine(rest, values) } else { None })
}

/// Applies a check to a text, and to the result of each further round of percent-decoding.
fn examine(text: &str, doubt: impl Fn(&str) -> Option<Doubt>) -> Option<Doubt> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..=MAX_DECODINGS {
        if let Some(doubt) = doubt(&text) {
            return Some(doubt);
        }
        if !text.contains('%') {
            return None;
        }
        let Some(decoded) = decoded(&text) else { return Some(Doubt::NotUtf8) };
        if decoded == text {
            return None;
        }
        text = Cow::Owned(decoded);
    }
    Some(Doubt::TooDeep)
}

fn count(text: &str, wanted: char) -> usize {
    text.chars().filter(|&character| character == wanted).count()
}

/// Whether a segment between separators consists of dots. Every character that some server takes for a separator, or for the end of a
/// segment, is a separator here. White space around the dots is ignored, and so are joiners and selectors between them, since some file
/// systems drop these.
fn has_dots(text: &str) -> bool {
    text.split(is_separator).any(|part| {
        let part = part.trim_matches(|character: char| character.is_whitespace() || character == '+');
        let mut seen = part.chars().filter(|&character| !is_dropped(character)).peekable();
        seen.peek().is_some() && seen.all(is_dot)
    })
}

/// Whether a character is invisible by itself and dropped by some file systems.
fn is_dropped(character: char) -> bool {
    is_deceptive(character)
        || matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{180b}'..='\u{180d}' | '\u{180f}')
}

/// Whether some server takes a character for a separator. Windows maps the full-width forms, the look-alikes, and the signs of yen and
/// won to ASCII, in some of its languages.
fn is_separator(character: char) -> bool {
    matches!(
        character,
        '/' | '\\'
            | ';'
            | '?'
            | '#'
            | '&'
            | '='
            | ':'
            | '\u{a5}'
            | '\u{20a9}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{2216}'
            | '\u{fe68}'
            | '\u{ff0f}'
            | '\u{ff1b}'
            | '\u{ff3c}'
    )
}

fn is_dot(character: char) -> bool {
    matches!(character, '.' | '\u{2024}' | '\u{2025}' | '\u{2026}' | '\u{fe52}' | '\u{ff0e}')
}

/// Percent-decodes a text once: each `%41`, and each `%u0041`, which Microsoft's servers decode too. `None`: the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let number = |digits: Option<&[u8]>| u32::from_str_radix(str::from_utf8(digits?).ok()?, 16).ok();
        let is_hex =
            |range: std::ops::Range<usize>| after.get(range).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let long =
            || matches!(after, [b'u' | b'U', ..]).then(|| number(is_hex(1..5)).and_then(char::from_u32)).flatten();
        if *first == b'%'
            && let Some(byte) = number(is_hex(0..2))
        {
            plain.push(u8::try_from(byte).ok()?);
            rest = after.get(2..)?;
        } else if *first == b'%'
            && let Some(character) = long()
        {
            plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after.get(5..)?;
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Paths below `/public/` that every server reads alike.
    pub const PLAIN: [&str; 14] = [
        "/public/x",
        "/public/a.b..c/d..",
        "/public/main...dev",
        "/public/.well-known/x",
        "/public//x",
        "/public/100%25",
        "/public/a%20b/%c3%bc",
        "/public/a%2520b",
        "/public/%E2%82%AC",
        "/public/a;v=1.2/b",
        "/public/a%3bb",
        "/public/~u/@scope/",
        "/public/%41",
        "/public/a%",
    ];

    /// What different servers make of a path in a single step.
    fn steps(text: &[u8]) -> Vec<Vec<u8>> {
        let replace = |text: &[u8], from: &[u8], to: &[u8]| -> Vec<u8> {
            let mut out = Vec::new();
            let mut rest = text;
            while !rest.is_empty() {
                match rest.strip_prefix(from) {
                    Some(after) => {
                        out.extend_from_slice(to);
                        rest = after;
                    }
                    None => {
                        out.push(rest[0]);
                        rest = &rest[1..];
                    }
                }
            }
            out
        };
        let percent: Vec<u8> = percent_encoding::percent_decode(text).collect();
        let mut microsoft = text.to_vec();
        for (written, meant) in [("%u002e", "."), ("%u2215", "/"), ("%u005c", "\\"), ("%u002f", "/")] {
            microsoft = replace(&microsoft, written.as_bytes(), meant.as_bytes());
        }
        // Decoders that accept overlong UTF-8.
        let mut overlong = text.to_vec();
        for (written, meant) in [
            (&b"\xc0\xae"[..], "."),
            (b"\xe0\x80\xae", "."),
            (b"\xc0\xaf", "/"),
            (b"\xc1\x9c", "\\"),
            ("\u{ff0e}".as_bytes(), "."),
            ("\u{ff0f}".as_bytes(), "/"),
        ] {
            overlong = replace(&overlong, written, meant.as_bytes());
        }
        // Tomcat: what follows a semicolon in a segment does not belong to its name.
        let parameters: Vec<u8> = text
            .split(|byte| *byte == b'/')
            .map(|segment| segment.split(|byte| *byte == b';').next().unwrap())
            .collect::<Vec<_>>()
            .join(&b'/');
        let backslashes = replace(text, b"\\", b"/");
        // nginx: several slashes are one.
        let merged = replace(text, b"//", b"/");
        let visible: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_control()).collect();
        // Windows drops blanks at the end of a name.
        let trimmed = replace(text, b" /", b"/");
        vec![percent, microsoft, overlong, parameters, backslashes, merged, visible, trimmed]
    }

    /// Whether a server that takes some of these steps, in any order, arrives outside of `/public`.
    fn leaves(path: &str) -> bool {
        let mut known: BTreeSet<Vec<u8>> = BTreeSet::from([path.as_bytes().to_vec()]);
        let mut next: Vec<Vec<u8>> = known.iter().cloned().collect();
        while let Some(text) = next.pop() {
            let mut at: Vec<&[u8]> = Vec::new();
            for segment in text.split(|byte| *byte == b'/').skip(1) {
                match segment {
                    b"." | b"" => {}
                    b".." => drop(at.pop()),
                    name => at.push(name),
                }
            }
            if at.first() != Some(&&b"public"[..]) {
                return true;
            }
            let new = steps(&text).into_iter().filter(|text| known.len() < 500 && known.insert(text.clone()));
            next.extend(new.collect::<Vec<_>>());
        }
        false
    }

    /// Paths below `/public/`, each of which some server resolves to a place elsewhere.
    pub fn leaving() -> Vec<String> {
        let mut seed = 1_u64;
        let mut pick = |count: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % count
        };
        let dots = [".", "%2e", "%2E", "%c0%ae", "%u002e", "%e0%80%ae", "\u{ff0e}", "%ef%bc%8e"];
        let slashes = ["/", "%2f", "\\", "%5c", "%c0%af", "%u2215", "//", "%2F/", "%c1%9c"];
        let marks = ["", "", "", ";", ";x=1", "%3b", "%3Bx", "%20", "%00", "\t"];
        let mut all = Vec::new();
        for _ in 0..1500 {
            let mut path = String::new();
            for _ in 0..=pick(2) + 1 {
                path += [dots[pick(dots.len())], dots[pick(dots.len())], marks[pick(marks.len())]].concat().as_str();
                path += slashes[pick(slashes.len())];
            }
            path += "secret";
            // Encoded several times: only some characters, or every byte.
            for _ in 0..pick(5) {
                path = match pick(3) {
                    0 => path.replace('%', "%25"),
                    1 => path.bytes().map(|byte| format!("%{byte:02x}")).collect(),
                    _ => path.replace('.', "%2e").replace('/', "%2f"),
                };
            }
            all.push(format!("/public/{}{path}", ["", "a/", "a;b/"][pick(3)]));
        }
        all.retain(|path| leaves(path));
        all
    }

    #[test]
    fn what_some_server_takes_for_another_place_is_doubted() {
        let all = leaving();
        assert!(all.len() > 300, "{}", all.len());
        for path in &all {
            assert!(doubt_of_path(path).is_some(), "{path}");
            assert!(doubt_of_uri(&format!("notes://{path}")).is_some(), "{path}");
        }
        for path in PLAIN {
            assert!(!leaves(path), "{path}");
            assert_eq!(doubt_of_path(path), None, "{path}");
            assert_eq!(doubt_of_uri(&format!("notes://{path}?at=%2Fx")), None, "{path}");
        }
    }

    #[test]
    fn each_doubt_has_its_reason() {
        use Doubt::{Backslash, Dots, NotUtf8, Slash, TooDeep, Unseen};
        for (path, expected) in [
            ("/a/../b", Dots),
            ("/a/./b", Dots),
            ("/a/..", Dots),
            ("/a/.../b", Dots),
            ("/a/%2e%2e/b", Dots),
            ("/a/.%e2%80%8d./b", Dots),
            ("/a/.%e2%80%8c./b", Dots),
            ("/a/..%ef%b8%8f/b", Dots),
            ("/a/.%e1%a0%8b./b", Dots),
            ("/a/..%c2%a5b", Dots),
            ("/a/..%e2%82%a9b", Dots),
            ("/a/.%2E/b", Dots),
            ("/a/..;x/b", Dots),
            ("/a/;../b", Dots),
            ("/a/..%3b/b", Dots),
            ("/a/..%20/b", Dots),
            ("/a/%252e%252e/b", Dots),
            ("/a/%252%65/b", Dots),
            ("/a%25%32%65", Dots),
            ("/a/..%25%32%66", Dots),
            ("/a/%u002e%u002e/b", Dots),
            ("/a/%ef%bc%8e%ef%bc%8e/b", Dots),
            ("/a%2eb", Dots),
            ("/a%2fb", Slash),
            ("/a%252Fb", Slash),
            ("/a%5Cb", Backslash),
            ("/a\\b", Backslash),
            ("/a%00", Unseen),
            ("/a%0d%0ab", Unseen),
            ("/a%e2%80%8bb", Unseen),
            ("/a/%c0%ae%c0%ae/b", NotUtf8),
            ("/a/%25c0%25ae/b", NotUtf8),
            ("/a%ff", NotUtf8),
            ("/a%25252541", TooDeep),
        ] {
            assert_eq!(doubt_of_path(path), Some(expected), "{path}");
        }
        for (uri, expected) in [
            ("notes:..", Some(Dots)),
            ("notes:///public?..", Some(Dots)),
            ("notes:///public?at=../b", Some(Dots)),
            ("notes:///public#%2e%2e", Some(Dots)),
            ("notes:///public/.\t./secret", Some(Unseen)),
            ("notes:///public/a%2f..%2f..%2fsecret", Some(Dots)),
            ("notes:///public/a?b=c%2Fd\\e%0a%2e", None),
            ("notes:///public/a?b=.%0a./c", Some(Dots)),
        ] {
            assert_eq!(doubt_of_uri(uri), expected, "{uri}");
        }
    }
}
