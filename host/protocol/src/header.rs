//! Values of the HTTP headers that mirror a modern request's body.

use base64::{Engine, engine::general_purpose::STANDARD};

/// The text an `Mcp-Name` or `Mcp-Param-*` header stands for; `None` if it is malformed.
///
/// Surrounding blanks do not count. A value wrapped in `=?base64?` and `?=` is the base64 of UTF-8 text; half a wrapper
/// is literal text.
pub fn decode_value(raw: &[u8]) -> Option<String> {
    let visible = raw.iter().all(|byte| matches!(byte, 0x20..=0x7e | b'\t'));
    let text = std::str::from_utf8(raw).ok().filter(|_| visible)?.trim_matches([' ', '\t']);
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (raw, expected) in [
            ("=?base64?Z3LDvMOfZQ==?=", Some("grüße")),
            ("  abc ", Some("abc")),
            ("ABC", Some("ABC")),
            ("=?base64?YWJj", Some("=?base64?YWJj")),
            ("=?base64?YWJ?=", None),
            ("=?base64?YW Jj?=", None),
            ("=?base64?/w==?=", None),
            ("=?base64?PT9iYXNlNjQ/eD89?=", Some("=?base64?x?=")),
            ("=?base64?=", Some("=?base64?=")),
            ("", Some("")),
            ("grüße", None),
            ("a\u{1}b", None),
        ] {
            assert_eq!(decode_value(raw.as_bytes()).as_deref(), expected, "{raw:?}");
        }
    }
}
