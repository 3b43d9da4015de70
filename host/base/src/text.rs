//! Makes text from guests safe to show to people. `wharf_protocol::text` decides which characters are hidden.

pub use super::hex::{hex, hex_digest};
use sha2::{Digest, Sha256};
pub use wharf_protocol::text::{clean, in_place, is_deceptive};

/// The longest name that may be a segment of a URL.
pub const MAX_SEGMENT_BYTES: usize = 64;

/// Whether a text can be a segment of a URL without escapes: lower-case letters, digits and `-`.
pub fn is_segment(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= MAX_SEGMENT_BYTES && text.bytes().all(fits)
}

/// Escapes deceptive characters, including line breaks, for one line of a log or terminal.
pub fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (character, hidden) in in_place(text) {
        if hidden {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Escapes deceptive characters in one line of JSON, which leaves its values unchanged. JSON allows these characters only in strings,
/// where it also allows escapes.
pub fn escaped_json(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (character, hidden) in in_place(text) {
        if hidden {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
        } else {
            line.push(character);
        }
    }
    line
}

/// Returns sixteen hexadecimal digits of the SHA-256 of a text: enough to tell texts apart in logs, without showing them.
pub fn short_digest(text: impl AsRef<[u8]>) -> String {
    hex(Sha256::digest(text).get(..8).unwrap_or_default())
}

/// The maximum number of characters of untrusted text that a message repeats.
const MAX_QUOTED_CHARS: usize = 200;

/// Shortens a text so that a message can repeat it.
pub fn clip(text: &str) -> String {
    wharf_protocol::error::clip_to(text, MAX_QUOTED_CHARS)
}

/// Quotes untrusted text for one line of a log or terminal. The text is shortened, and cannot end the quotation. Wide blanks, and
/// several blanks in a row, become one space, so that the text cannot move a part of itself to where it looks like text of wharf.
pub fn quoted(text: &str) -> String {
    let is_blank =
        |character: char| matches!(character, '\u{2800}') || (character.is_whitespace() && !is_deceptive(character));
    let mut plain = String::new();
    for character in clip(text).chars() {
        match character {
            blank if is_blank(blank) => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            // Backslashes are escaped too; otherwise a backslash in the text could disable an escape added here.
            '\\' | '"' => plain.extend(['\\', character]),
            other => plain.push(other),
        }
    }
    format!("\"{}\"", escaped(&plain))
}

/// Returns these words as one line for a shell.
pub fn shell<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = words.into_iter().map(|word| {
        let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=,@+".contains(c));
        if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The maximum width of a line of untrusted text, so that a terminal does not wrap it and begin a line without the mark.
const MAX_LINE_COLUMNS: usize = 70;

/// Wraps a text of one line into several lines, each of which begins with a mark that no other line begins with.
pub fn marked(text: &str) -> String {
    let mut lines = String::new();
    let (mut rest, mut left) = (text, text.chars());
    while !rest.is_empty() {
        let (mut columns, mut blank) = (0, None);
        let mut end = rest.len();
        while let Some(character) = left.next() {
            // Terminals disagree on which characters are wide, so only ASCII counts as narrow.
            columns += if character.is_ascii() { 1 } else { 2 };
            let behind = rest.len() - left.as_str().len();
            if columns > MAX_LINE_COLUMNS {
                end = blank.unwrap_or(behind - character.len_utf8());
                break;
            }
            // Lines are not broken in their first half: a long word that follows would leave the line nearly empty.
            if character == ' ' && columns > MAX_LINE_COLUMNS / 2 {
                blank = Some(behind);
            }
        }
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        lines += &format!("\n  | {}", line.trim_end());
        (rest, left) = (after, after.chars());
    }
    lines
}

/// Escapes a path for one line of a log or terminal.
pub fn path(path: &std::path::Path) -> String {
    escaped(&path.display().to_string())
}

/// Returns the header of a table in a config, such as `[plugins."my.plugin".grants]`.
pub fn toml_header(keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| toml_key(key)).collect();
    format!("[{}]", keys.join("."))
}

/// Writes a key of TOML, between quotation marks where it needs them.
pub fn toml_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { format!("{key:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_short_and_ends_where_it_ends() {
        assert_eq!(quoted("reads issues"), "\"reads issues\"");
        for (text, expected) in [
            ("a\" [y/N] y\n\u{1b}[2K", r#""a\" [y/N] y\n\u{1b}[2K""#),
            (r#"a\" y"#, r#""a\\\" y""#),
            (r"\n \u{1b}", r#""\\n \\u{1b}""#),
            ("a   b\u{3000}\u{2003}\u{2800}c\u{a0}", "\"a b c \""),
            ("a\u{3164}\u{115f}b\tc", r#""a\u{3164}\u{115f}b\tc""#),
        ] {
            assert_eq!(quoted(text), expected, "{text}");
        }
        assert_eq!(quoted(&"x".repeat(10_000)).chars().count(), MAX_QUOTED_CHARS + 3);
    }

    /// However long the text is, each of its lines begins with the mark.
    #[test]
    fn a_long_text_has_several_lines() {
        for (text, expected) in [
            (String::new(), String::new()),
            ("short".into(), "\n  | short".to_owned()),
            ("x".repeat(70), format!("\n  | {}", "x".repeat(70))),
            ("x".repeat(141), format!("\n  | {0}\n  | {0}\n  | x", "x".repeat(70))),
            (
                format!("{} {}", "x".repeat(40), "y".repeat(40)),
                format!("\n  | {}\n  | {}", "x".repeat(40), "y".repeat(40)),
            ),
            (format!("a {}", "x".repeat(70)), format!("\n  | a {}\n  | xx", "x".repeat(68))),
            ("界".repeat(36), format!("\n  | {}\n  | 界", "界".repeat(35))),
        ] {
            assert_eq!(marked(&text), expected, "{text}");
        }
    }

    #[test]
    fn keys_of_toml_are_quoted_where_they_have_to_be() {
        for (key, expected) in [("a-b_1", "a-b_1"), ("my.plugin", "\"my.plugin\""), ("", "\"\"")] {
            assert_eq!(toml_key(key), expected);
        }
        assert_eq!(toml_header(&["plugins", "a.b", "grants"]), "[plugins.\"a.b\".grants]");
    }

    #[test]
    fn nothing_deceptive_is_left() {
        let text = "a\u{1b}[31mb\u{202e}c\nd\te\r\u{7}";
        assert_eq!(clean(text), "a[31mbc\nd\te");
        assert_eq!(escaped(text), r"a\u{1b}[31mb\u{202e}c\nd\te\r\u{7}");
        for invisible in ['\u{61c}', '\u{2028}', '\u{2029}', '\u{e0041}', '\u{200b}', '\u{2064}', '\u{e0100}', '\u{9b}']
        {
            assert_eq!(clean(&format!("a{invisible}b")), "ab", "{}", invisible.escape_unicode());
        }
        let json = "{\"a\":\"x\u{202e}y\u{e0041}\u{7f}\"}";
        assert_eq!(escaped_json(json), r#"{"a":"x\u202ey\udb40\udc41\u007f"}"#);
        assert_eq!(escaped("grüße 🌊 👩\u{200d}🚀 می\u{200c}خواهم"), "grüße 🌊 👩\u{200d}🚀 می\u{200c}خواهم");
    }
}
