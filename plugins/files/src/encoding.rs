//! Decides what the bytes of a file are: text in UTF-8 or UTF-16, text in another encoding, or no text at all.

use std::path::Path;

use wharf_sdk::{Error, Result};

use crate::said::Said;

/// How many bytes are examined to decide whether a file is text. Git examines as many.
const EXAMINED: usize = 8_000;

/// The byte order of UTF-16, from the mark at the beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0xff, 0xfe, ..] => Some(Self::Little),
            [0xfe, 0xff, ..] => Some(Self::Big),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Little => "UTF-16LE",
            Self::Big => "UTF-16BE",
        }
    }
}

/// Decodes UTF-16 that begins with a byte order mark.
pub fn utf16(path: &Path, order: ByteOrder, bytes: &[u8]) -> Result<Said> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().skip(1).map(|pair| match order {
        ByteOrder::Little => u16::from_le_bytes(*pair),
        ByteOrder::Big => u16::from_be_bytes(*pair),
    });
    let mut text: String = char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    if is_binary(text.as_bytes()) {
        return Err(binary(path));
    }
    Ok(Said { text, notes: vec![format!("Decoded from {}", order.as_str())] })
}

/// Decodes text, or a part of one. It is an error if the bytes are no text.
pub fn decode(path: &Path, bytes: Vec<u8>) -> Result<Said> {
    if is_binary(&bytes) {
        return Err(binary(path));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let count = text.matches(char::REPLACEMENT_CHARACTER).count();
            let note = format!(
                "This is not UTF-8: U+FFFD stands here for other bytes ({count}). It may be Latin-1 or another encoding of that kind."
            );
            Said { text, notes: vec![note] }
        }
    })
}

/// Decodes the text of a file that is searched. Returns `None` if it is no text.
pub fn searched(path: &Path, bytes: Vec<u8>) -> Option<String> {
    let said = match ByteOrder::of(&bytes) {
        Some(order) => utf16(path, order, &bytes),
        None => decode(path, bytes),
    };
    said.ok().map(|said| said.text)
}

/// Why a file cannot be edited. It is written back as UTF-8, which would lose what is not.
pub fn not_editable(path: &Path, bytes: &[u8]) -> Error {
    let what = match ByteOrder::of(bytes) {
        Some(order) => order.as_str(),
        None if is_binary(bytes) => "binary data",
        None => "not UTF-8, but perhaps Latin-1 or another encoding of that kind",
    };
    Error::failed(format!("{}: it is {what}, so editing it here would damage it. Nothing was changed", path.display()))
}

fn binary(path: &Path) -> Error {
    let path = path.display();
    Error::failed(format!("{path}: it is binary data and not text; read_media_file gives the data as it is"))
}

/// Whether bytes are no text in any encoding that extends ASCII: they have a NUL, or control characters and are not UTF-8 besides.
fn is_binary(bytes: &[u8]) -> bool {
    let examined = bytes.get(..EXAMINED).unwrap_or(bytes);
    if examined.contains(&0) {
        return true;
    }
    let is_control = |byte: &u8| matches!(byte, 0..=6 | 0x0e..=0x1a | 0x1c..=0x1f);
    examined.iter().any(is_control) && std::str::from_utf8(examined).is_err_and(|error| error.error_len().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<(String, usize)> {
        decode(Path::new("/f"), bytes.to_vec()).ok().map(|said| (said.text, said.notes.len()))
    }

    #[test]
    fn what_is_no_text_is_refused_and_other_encodings_are_noted() {
        let text = |text: &str, notes| Some((text.to_owned(), notes));
        assert_eq!(decoded("ünï\u{1b}[0m\u{1}\n".as_bytes()), text("ünï\u{1b}[0m\u{1}\n", 0));
        assert_eq!(decoded(b"caf\xe9\n"), text("caf\u{fffd}\n", 1));
        assert_eq!(decoded(b""), text("", 0));
        for binary in [b"\x89PNG\r\n\x1a\n".as_slice(), b"a\0b", b"\0\x01"] {
            assert_eq!(decoded(binary), None, "{binary:?}");
        }
        // A NUL far behind the beginning does not make a log unreadable.
        assert!(decoded(&[vec![b'x'; EXAMINED], vec![0]].concat()).is_some());
        // The examined part may end within a character.
        let long = format!("\u{1}{}", "ü".repeat(EXAMINED));
        assert_eq!(decoded(long.as_bytes()), text(&long, 0));
    }

    #[test]
    fn utf_16_is_decoded() {
        let little: Vec<u8> = "\u{feff}ünï 😀\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}ünï 😀\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, order) in [(little, ByteOrder::Little), (big, ByteOrder::Big)] {
            assert_eq!(ByteOrder::of(&bytes), Some(order));
            assert_eq!(utf16(Path::new("/f"), order, &bytes).unwrap().text, "ünï 😀\n");
            assert_eq!(searched(Path::new("/f"), bytes.clone()).as_deref(), Some("ünï 😀\n"));
            let Error::Failed(why) = not_editable(Path::new("/f"), &bytes) else { panic!("an error in words") };
            assert!(why.contains(order.as_str()), "{why}");
        }
        assert!(utf16(Path::new("/f"), ByteOrder::Little, &[0xff, 0xfe, 0, 0, b'a', 0]).is_err());
    }
}
