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
mod tests {
    use wharf_testing::paths::{PLAIN, leaves, leaving};

    use super::*;

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
