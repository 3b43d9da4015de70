//! Makes text from guests safe to show to people.

/// Whether a character can change how the text around it is shown, or is invisible: control characters, unusual line
/// separators, marks that change a text's direction, and characters without a shape, which a model reads all the same. The
/// characters that join letters do not count, since some scripts and emoji need them.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// For descriptions and questions: removes deceptive characters, but keeps line breaks and tabs.
pub fn clean(text: &str) -> String {
    text.chars().filter(|character| matches!(character, '\n' | '\t') || !is_deceptive(*character)).collect()
}

/// For one line of a log or terminal: replaces deceptive characters, line breaks among them, by their escapes.
pub fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// For one line of JSON: replaces deceptive characters by the escapes of JSON, which leaves the values as they are. Between values,
/// where no such escape may stand, none of these characters may stand either.
pub fn escaped_json(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
        } else {
            line.push(character);
        }
    }
    line
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.extend(digits(*byte).map(char::from));
    }
    text
}

/// The same for a digest, without memory of its own.
pub fn hex_digest(digest: &[u8; 32]) -> [u8; 64] {
    let mut text = [0; 64];
    for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(digest) {
        *pair = digits(*byte);
    }
    text
}

fn digits(byte: u8) -> [u8; 2] {
    let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
    [digit(byte >> 4), digit(byte & 15)]
}

/// The most characters of a foreign text that a message repeats.
const MAX_QUOTED_CHARS: usize = 200;

/// Shortens a text so that a message can repeat it.
pub fn clip(text: &str) -> String {
    wharf_protocol::error::clip_to(text, MAX_QUOTED_CHARS)
}

/// A foreign text between quotation marks, for one line of a log or terminal. It is short, and cannot end the quotation.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(&clip(text)).replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_short_and_ends_where_it_ends() {
        assert_eq!(quoted("reads issues"), "\"reads issues\"");
        assert_eq!(quoted("a\" [y/N] y\n\u{1b}[2K"), r#""a\" [y/N] y\n\u{1b}[2K""#);
        assert_eq!(quoted(&"x".repeat(10_000)).chars().count(), MAX_QUOTED_CHARS + 3);
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
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
        let digest: [u8; 32] = std::array::from_fn(|at| (at * 7) as u8);
        assert_eq!(str::from_utf8(&hex_digest(&digest)).unwrap(), hex(&digest));
        let json = "{\"a\":\"x\u{202e}y\u{e0041}\u{7f}\"}";
        assert_eq!(escaped_json(json), r#"{"a":"x\u202ey\udb40\udc41\u007f"}"#);
        assert_eq!(escaped("grüße 🌊 👩\u{200d}🚀 می\u{200c}خواهم"), "grüße 🌊 👩\u{200d}🚀 می\u{200c}خواهم");
    }
}
