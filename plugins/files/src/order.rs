//! The order of names in which the reference server lists a folder with sizes: that of its runtime for English. Punctuation comes before
//! digits, and digits before letters; accents and upper case count only among names that are otherwise equal. For names in other scripts
//! than Latin, the order is that of their characters' numbers.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// The characters of ASCII that are neither digits nor letters, in their order. The dollar sign follows all
/// other symbols.
const OTHERS: &str = "\t\n\u{b}\u{c}\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~";

/// A name in a form that compares in the right order: by characters, then by accents, then by case.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    characters: Vec<(u8, u32)>,
    accents: Vec<Vec<char>>,
    upper_case: Vec<bool>,
}

pub fn key(name: &str) -> Key {
    let mut key = Key { characters: Vec::new(), accents: Vec::new(), upper_case: Vec::new() };
    for char in name.nfd() {
        match key.accents.last_mut() {
            Some(accents) if is_combining_mark(char) => accents.push(char),
            _ => {
                let Some(place) = place(char) else { continue };
                key.characters.push(place);
                key.accents.push(Vec::new());
                key.upper_case.push(char.is_uppercase());
            }
        }
    }
    key
}

/// Returns the place of a character: its class, and its number in the class. `None` if it does not count.
fn place(char: char) -> Option<(u8, u32)> {
    let lower = char.to_lowercase().next().unwrap_or(char);
    match OTHERS.chars().position(|other| other == char) {
        Some(at) => Some((0, u32::try_from(at).unwrap_or(u32::MAX))),
        None if char.is_control() => None,
        None if char == '$' => Some((1, u32::MAX)),
        None if lower.is_ascii_digit() => Some((2, lower.into())),
        None if lower.is_ascii_alphabetic() => Some((3, lower.into())),
        None if lower.is_alphanumeric() => Some((4, lower.into())),
        // Symbols such as emoji.
        None => Some((1, lower.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_a_dictionary() {
        let ordered = [
            "_x",
            "-x",
            "!bang.txt",
            ".git",
            ".hidden",
            "[z].txt",
            "{y}.txt",
            "~",
            "😀",
            "$",
            "1",
            "10",
            "2",
            "a",
            "A",
            "a b",
            "a_b",
            "a-b",
            "a.txt",
            "A.txt",
            "a+b",
            "a1",
            "ab",
            "cafe",
            "Cafe",
            "café",
            "Café",
            "cafes",
            "cafés",
            "empty dir",
            "empty.txt",
            "nö",
            "zone",
            "αβ",
            "нет",
            "日本",
        ];
        for pair in ordered.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
        assert_eq!(key("caf\u{e9}"), key("cafe\u{301}"));
    }
}
