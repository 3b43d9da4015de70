//! Decodes the text of a response. The encoding is the one in its header, otherwise that of its byte order mark, otherwise the one in a
//! page's `meta` element, otherwise UTF-8. Invalid bytes become replacement characters.

use encoding_rs::{Encoding, UTF_8};

/// The number of bytes at the start of a page in which its encoding is looked for, as in browsers.
const NAMED_WITHIN: usize = 1024;

/// Decodes a body with a content type.
pub fn text(body: &[u8], content_type: &str) -> String {
    let encoding = parameter(content_type, "charset")
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| Encoding::for_bom(body).map(|(encoding, _)| encoding))
        .or_else(|| named(body))
        .unwrap_or(UTF_8);
    let (text, _) = encoding.decode_with_bom_removal(body);
    text.into_owned()
}

/// Returns a parameter of a header such as `text/html; charset=utf-8`.
fn parameter<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.split(';').skip(1).find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the encoding that a page names in a `meta` element.
fn named(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..NAMED_WITHIN).unwrap_or(body);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    start.split("<meta").skip(1).find_map(|element| {
        let element = element.split('>').next()?;
        let (_, value) = element.split_once("charset")?;
        let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let label = value.split(|end: char| end.is_whitespace() || matches!(end, '"' | '\'' | ';' | '/')).next()?;
        let encoding = Encoding::for_label(label.as_bytes())?;
        // A page whose encoding name is readable as ASCII cannot be in UTF-16.
        Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_counts_before_the_page_and_the_page_before_utf_8() {
        let table: [(&[u8], &str, &str); 12] = [
            (b"caf\xc3\xa9", "text/plain", "café"),
            (b"caf\xe9", "text/plain; charset=ISO-8859-1", "café"),
            (b"caf\xe9", "text/plain; boundary=x; Charset = \"latin1\"", "café"),
            (b"caf\xe9", "text/plain", "caf\u{fffd}"),
            (b"caf\xc3\xa9", "text/plain; charset=nonsense", "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain", "café"),
            (b"\xff\xfea\0", "text/plain", "a"),
            (b"<meta charset=windows-1251>\xe4\xe0", "text/html", "<meta charset=windows-1251>да"),
            (
                b"<META http-equiv=x content='text/html; charset=koi8-r'>\xc4",
                "",
                "<META http-equiv=x content='text/html; charset=koi8-r'>д",
            ),
            (b"<meta charset='utf-16'>\xc3\xa9", "text/html", "<meta charset='utf-16'>é"),
            (b"<meta charset=latin1>\xc3\xa9", "text/html; charset=utf-8", "<meta charset=latin1>é"),
            (b"\x93\xfa\x96{", "text/html; charset=shift_jis", "日本"),
        ];
        for (body, content_type, expected) in table {
            assert_eq!(text(body, content_type), expected, "{content_type} {body:?}");
        }
    }

    #[test]
    fn what_is_named_too_far_into_a_page_does_not_count() {
        let page = [b" ".repeat(NAMED_WITHIN).as_slice(), b"<meta charset=latin1>\xe9"].concat();
        assert!(text(&page, "text/html").ends_with('\u{fffd}'));
    }
}
