//! Writes JSON strings as serde_json does, but examines many bytes at a time. Most bytes of a large text need no escape, and examining
//! each of them alone took a fifth of the time of a large answer.

use std::fmt::Write;

/// Appends the text as a JSON string.
pub(crate) fn write_string(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    loop {
        // Each byte that needs an escape is a character of its own.
        let (plain, others) = rest.split_at(plain_bytes(rest.as_bytes()));
        json.push_str(plain);
        let mut others = others.chars();
        let Some(special) = others.next() else { break };
        match special {
            '"' => json.push_str(r#"\""#),
            '\\' => json.push_str(r"\\"),
            '\n' => json.push_str(r"\n"),
            '\r' => json.push_str(r"\r"),
            '\t' => json.push_str(r"\t"),
            '\u{8}' => json.push_str(r"\b"),
            '\u{c}' => json.push_str(r"\f"),
            // Writing into a string never fails.
            control => write!(json, "\\u{:04x}", u32::from(control)).unwrap_or_default(),
        }
        rest = others.as_str();
    }
    json.push('"');
}

/// Returns how many bytes at the beginning need no escape.
fn plain_bytes(bytes: &[u8]) -> usize {
    let plain = plain_blocks::<64>(bytes);
    let plain = plain + plain_blocks::<16>(bytes.get(plain..).unwrap_or_default());
    // The rest begins with a block that contains a byte to escape, or is shorter than a block.
    let rest = bytes.get(plain..).unwrap_or_default();
    plain + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Returns how many bytes the blocks at the beginning have in which no byte needs an escape. All bytes of a block are examined without a
/// branch in between, so that the compiler examines them together.
fn plain_blocks<const N: usize>(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<N>();
    let plain = |block: &&[u8; N]| !block.iter().fold(false, |found, byte| found | is_special(byte));
    blocks.iter().take_while(plain).count() * N
}

fn is_special(byte: &u8) -> bool {
    (*byte < b' ') | (*byte == b'"') | (*byte == b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut json = String::new();
        write_string(&mut json, text);
        json
    }

    #[test]
    fn strings_are_as_serde_json_writes_them() {
        let characters: Vec<char> =
            (0..0x300).filter_map(char::from_u32).chain(['\u{2028}', '\u{fffd}', '𝄞']).collect();
        let whole: String = characters.iter().collect();
        assert_eq!(written(&whole), serde_json::to_string(&whole).unwrap());
        // Each special character, at every position of blocks and of incomplete ones.
        for character in ['"', '\\', '\n', '\r', '\t', '\u{0}', '\u{8}', '\u{c}', '\u{1f}', '\u{7f}', 'é'] {
            for length in [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 81] {
                for at in 0..length {
                    let mut text = "x".repeat(length);
                    text.replace_range(at..=at, &character.to_string());
                    assert_eq!(written(&text), serde_json::to_string(&text).unwrap(), "{text:?}");
                }
            }
        }
        assert_eq!(written(""), "\"\"");
        assert_eq!(written(&"\"".repeat(99)), serde_json::to_string(&"\"".repeat(99)).unwrap());
    }
}
