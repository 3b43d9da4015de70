//! Decodes the text of a response. The encoding is that of its byte order mark, otherwise the one in its header, otherwise the one that the
//! page names in its XML declaration or in a `meta` element, otherwise UTF-8, or Windows-1252 if the text is hardly UTF-8. Invalid bytes
//! become replacement characters.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// The number of bytes at the start of a page in which its encoding is looked for, as in browsers.
const NAMED_WITHIN: usize = 1024;

/// Decodes a body with a content type.
pub fn text(body: &[u8], content_type: &str) -> String {
    let encoding = Encoding::for_bom(body)
        .map(|(encoding, _)| encoding)
        .or_else(|| parameter(content_type, "charset").and_then(|label| Encoding::for_label(label.as_bytes())))
        .or_else(|| named(body))
        .unwrap_or_else(|| guessed(body));
    let (text, _) = encoding.decode_with_bom_removal(body);
    text.into_owned()
}

/// Returns UTF-8, unless more bytes are invalid in it than there are characters of several bytes: then the page is from before its time.
fn guessed(body: &[u8]) -> &'static Encoding {
    let (mut invalid, mut valid) = (0, 0);
    for chunk in body.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    if invalid > valid { WINDOWS_1252 } else { UTF_8 }
}

/// Returns a parameter of a header such as `text/html; charset=utf-8`. If there are several such headers, the first one with it counts.
fn parameter<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.split([';', ',']).skip(1).find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the encoding that a page names in its XML declaration or in a `meta` element.
fn named(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..NAMED_WITHIN).unwrap_or(body);
    let start = without_comments(&String::from_utf8_lossy(start).to_ascii_lowercase());
    let declared = || encoding_after(start.trim_start().strip_prefix("<?xml")?.split("?>").next()?, "encoding");
    let in_meta = || {
        start.split("<meta").skip(1).find_map(|element| {
            let element = element.split('>').next()?;
            let (before, _) = element.split_once("charset")?;
            let counts = before.ends_with(|c: char| c.is_ascii_whitespace()) || element.contains("http-equiv");
            counts.then(|| encoding_after(element, "charset"))?
        })
    };
    declared().or_else(in_meta)
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("-->").map_or("", |(_, after)| after))
}

/// Returns the encoding whose name follows a word and `=`.
fn encoding_after(text: &str, word: &str) -> Option<&'static Encoding> {
    let (_, value) = text.split_once(word)?;
    let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = value.split(|end: char| end.is_whitespace() || matches!(end, '"' | '\'' | ';' | '/')).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A page whose encoding name is readable as ASCII cannot be in UTF-16.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_counts_before_the_header_and_the_header_before_the_page() {
        let table: [(&[u8], &str, &str); 20] = [
            (b"caf\xc3\xa9", "text/plain", "café"),
            (b"caf\xe9", "text/plain; charset=ISO-8859-1", "café"),
            (b"caf\xe9", "text/plain; boundary=x; Charset = \"latin1\"", "café"),
            (b"caf\xe9", "text/plain, text/plain; charset=ISO-8859-1", "café"),
            (b"caf\xe9 cr\xe8me", "text/plain", "café crème"),
            (b"\x93caf\xe9\x94.", "text/plain", "“café”."),
            (b"caf\xc3\xa9 na\xc3\xafve \xff", "text/plain", "café naïve \u{fffd}"),
            (b"caf\xc3\xa9", "text/plain; charset=nonsense", "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain", "café"),
            (b"\xff\xfea\0", "text/plain", "a"),
            (b"<meta charset=windows-1251>\xe4\xe0", "text/html", "<meta charset=windows-1251>да"),
            (
                b"<META http-equiv=x content='text/html; charset=koi8-r'>\xc4",
                "",
                "<META http-equiv=x content='text/html; charset=koi8-r'>д",
            ),
            (
                b"<!-- <meta charset=latin1> --><meta charset=utf-8>\xc3\xa9",
                "",
                "<!-- <meta charset=latin1> --><meta charset=utf-8>é",
            ),
            (b"<meta content='charset=latin1'>\xc3\xa9", "", "<meta content='charset=latin1'>é"),
            (
                b"<?xml version='1.0' encoding='ISO-8859-2'?>\xb1",
                "text/xml",
                "<?xml version='1.0' encoding='ISO-8859-2'?>ą",
            ),
            (b"<?xml version='1.0'?>\xc3\xa9", "text/xml", "<?xml version='1.0'?>é"),
            (b"\xef\xbb\xbf\xc3\xa9", "text/plain; charset=latin1", "é"),
            (b"\xfe\xff\0a", "text/plain; charset=utf-8", "a"),
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
        assert!(text(&page, "text/html").ends_with('é'), "as Windows-1252, which is the guess");
        let page = [b" ".repeat(NAMED_WITHIN).as_slice(), b"<meta charset=koi8-r>\xd6"].concat();
        assert!(text(&page, "text/html").ends_with('Ö'));
    }
}
