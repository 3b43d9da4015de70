//! How much memory a JSON text takes when it is parsed, by one pass over the text. It can be a hundred times the size of the text.

/// The number of bytes that a schema of a plugin may have. Tools with larger ones are refused.
pub const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// The memory that parsed JSON takes besides its text: for each value, for each member of an object, and for each array or object,
/// which allocates room for several entries at first.
const VALUE_BYTES: usize = 80;
const MEMBER_BYTES: usize = 160;
const ARRAY_BYTES: usize = 320;
const OBJECT_BYTES: usize = 280;

/// Returns an upper bound for the memory that a JSON text takes when it is parsed into a tree, without parsing it.
pub fn tree_bytes(text: &[u8]) -> usize {
    of(text, usize::MAX)
}

/// Returns an upper bound for what is made of so many levels of a JSON text.
pub fn of(text: &[u8], levels: usize) -> usize {
    let (mut bytes, mut level) = (VALUE_BYTES, 0_usize);
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b':' | b'[' | b'{' | b']' | b'}')) {
        let (here, after) = match rest.get(at..).and_then(<[u8]>::split_first) {
            Some(split) => split,
            None => break,
        };
        rest = after;
        let takes = match here {
            b',' => VALUE_BYTES,
            b':' => MEMBER_BYTES,
            b'"' => {
                rest = after_string(rest);
                0
            }
            b']' | b'}' => {
                level = level.saturating_sub(1);
                0
            }
            group => {
                level += 1;
                if *group == b'[' { ARRAY_BYTES } else { OBJECT_BYTES }
            }
        };
        if level <= levels {
            bytes += takes;
        }
    }
    bytes
}

/// Returns what follows a string. `text` begins right after the opening quote.
fn after_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + if escaped { 2 } else { 1 }..).unwrap_or_default();
        if !escaped {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn trees_are_never_larger_than_thought() {
        // The numbers of values in the shapes that grow most, counted by hand.
        for (text, values) in
            [("7", 1), (r#"{"a":"b,c,d[[[","e":"\"["}"#, 3), ("[[0],[0],[0]]", 7), (r#"[{"a":1},{"b":[{}]}]"#, 6)]
        {
            assert!(tree_bytes(text.as_bytes()) >= values * VALUE_BYTES, "{text}");
        }
        let strings = format!("\"{}\"", ",[{:".repeat(1000));
        assert_eq!(tree_bytes(strings.as_bytes()), VALUE_BYTES, "the contents of a string are not counted");
        assert_eq!(tree_bytes(br#""a\\",1"#), 2 * VALUE_BYTES);
        for broken in ["\"", "\"\\", "[\"\\\"", "", "]]]}"] {
            tree_bytes(broken.as_bytes());
        }
    }

    /// What a tree allocates: an object has an entry of a hash, a name and a value for each member, and a table of indices. Both, and
    /// arrays, double when they are full.
    #[test]
    fn an_object_of_any_size_is_charged() {
        let value = size_of::<Value>();
        let entry = size_of::<usize>() + size_of::<String>() + value;
        assert!(ARRAY_BYTES >= 4 * value, "the first allocation of an array");
        for members in 1..200_usize {
            let buckets = [4, 8, 16, 32, 64, 128, 256].into_iter().find(|buckets| buckets * 7 / 8 >= members).unwrap();
            // Allocators have four sizes between a power of two and the next.
            let size = |bytes: usize| bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16));
            let takes = size(entry * (buckets * 7 / 8)) + size(buckets * 9 + 16);
            let text = format!("{{{}}}", vec!["\"\":0"; members].join(","));
            let charged = tree_bytes(text.as_bytes()) - VALUE_BYTES;
            assert!(charged >= takes, "{members} members take {takes} bytes, and {charged} are charged");
        }
    }
}
