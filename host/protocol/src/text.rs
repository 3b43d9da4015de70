//! Finds and removes deceptive characters in texts that are shown to people: invisible characters, and characters that change how the text
//! around them is displayed.

/// Whether a character is invisible, or can change how the text around it is displayed, regardless of its position: control characters,
/// unusual line separators, marks that change a text's direction, and characters without a glyph, which a model reads nevertheless.
/// Characters that some scripts and emoji need are deceptive only in positions where they have no effect: see [`in_place`].
pub fn is_deceptive(character: char) -> bool {
    let by_position =
        matches!(character, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    // Separators of lines, notes between lines, and marks that arrange hieroglyphs.
    let arranges = matches!(
        character,
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
    );
    character.is_control() || arranges || (is_default_ignorable(character) && !by_position)
}

/// Whether a character is one of those that Unicode lets programs show as nothing (`Default_Ignorable_Code_Point`), assigned or not. A test
/// compares this with the data of Unicode.
fn is_default_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character is a line break or a tab, which are allowed in prose.
pub(crate) fn is_layout(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

/// Returns the characters of a text, each with whether it is deceptive in its position. The joiners (U+200C and U+200D) are allowed between
/// letters of scripts that join, and U+200D between emoji. The variation selectors (U+FE0E and U+FE0F) are allowed after an emoji.
pub fn in_place(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before: Option<char> = None;
    let mut rest = text.chars().peekable();
    std::iter::from_fn(move || {
        let character = rest.next()?;
        let hidden = match character {
            '\u{200c}' | '\u{200d}' => !before.is_some_and(|before| joins(before, character, rest.peek().copied())),
            '\u{fe0e}' | '\u{fe0f}' => !before.is_some_and(|before| selects(before, rest.peek().copied())),
            '\u{180b}'..='\u{180d}' | '\u{180f}' => !matches!(before, Some('\u{1820}'..='\u{18aa}')),
            other => is_deceptive(other),
        };
        if !hidden {
            before = Some(character);
        }
        Some((character, hidden))
    })
}

fn joins(before: char, joiner: char, next: Option<char>) -> bool {
    if is_pictured(before) || before == '\u{fe0f}' {
        return joiner == '\u{200d}' && next.is_some_and(is_pictured);
    }
    // In the scripts of India a joiner may also be at the end of a word.
    is_joining(before)
        && next.is_none_or(|next| is_joining(next) || is_of_india(before))
        && (next.is_some() || is_of_india(before))
}

fn selects(before: char, next: Option<char>) -> bool {
    match before {
        '0'..='9' | '#' | '*' => next == Some('\u{20e3}'),
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' => true,
        other => is_pictured(other),
    }
}

/// Whether a character is a symbol, an emoji or a skin tone modifier.
fn is_pictured(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

fn is_of_india(character: char) -> bool {
    matches!(character, '\u{900}'..='\u{dff}')
}

/// Whether a character is a letter or a mark of a script in which joiners have a meaning: from Arabic to those of India, of South-East
/// Asia, and Mongolian.
fn is_joining(character: char) -> bool {
    is_of_india(character)
        || matches!(
            character,
            '\u{620}'..='\u{6ff}' | '\u{710}'..='\u{8ff}' | '\u{f40}'..='\u{109f}' | '\u{1780}'..='\u{18aa}'
                | '\u{1900}'..='\u{1aff}' | '\u{1b00}'..='\u{1c4f}' | '\u{a840}'..='\u{a877}' | '\u{a8e0}'..='\u{a9df}'
                | '\u{aa00}'..='\u{aadf}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{10fff}'
                | '\u{11000}'..='\u{11fff}'
        )
}

/// Removes deceptive characters, except line breaks and tabs. For descriptions and questions.
pub fn clean(text: &str) -> String {
    in_place(text)
        .filter(|(character, hidden)| !hidden || is_layout(*character))
        .map(|(character, _)| character)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the characters that may be shown as nothing, none is missing, and a new version of Unicode adds none unnoticed.
    #[test]
    fn what_may_be_shown_as_nothing_is_as_in_unicode() {
        let ignorable = regex::Regex::new(r"^\p{Default_Ignorable_Code_Point}$").unwrap();
        for character in '\0'..=char::MAX {
            let expected = ignorable.is_match(character.encode_utf8(&mut [0; 4]));
            assert_eq!(is_default_ignorable(character), expected, "{}", character.escape_unicode());
            if expected {
                assert_eq!(clean(&format!("a{character}b")), "ab", "{}", character.escape_unicode());
            }
        }
    }

    #[test]
    fn nothing_hidden_is_left_and_nothing_needed_is_lost() {
        for hidden in [
            '\0',
            '\u{7}',
            '\u{8}',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{2069}',
            '\u{206f}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            assert_eq!(clean(&format!("a{hidden}b")), "ab", "{}", hidden.escape_unicode());
            assert_eq!(clean(&hidden.to_string()), "", "{}", hidden.escape_unicode());
        }
        for needed in [
            "a\nb\tc",
            "grüße 🌊 Ω 漢字 한국어 ไทย",
            "👩\u{200d}🚀 👩🏽\u{200d}🚀 🏴\u{200d}☠\u{fe0f} ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} ©\u{fe0f}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष न\u{d4d}\u{200d} ශ්\u{200d}රී",
            "ᠮ\u{180b}",
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        ] {
            assert_eq!(clean(needed), needed, "{}", needed.escape_unicode());
        }
        for (text, expected) in [
            // A sequence of joiners or selectors could encode a hidden message.
            ("می\u{200c}\u{200c}\u{200d}خ", "می\u{200d}خ"),
            ("❤\u{fe0f}\u{fe0f}\u{fe0e}", "❤\u{fe0f}"),
            ("a\u{200d}🚀\u{200d}", "a🚀"),
            ("1\u{fe0f}2", "12"),
            ("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴"),
            ("a\u{1b}[31mb\u{202e}c\r\nd", "a[31mbc\nd"),
        ] {
            assert_eq!(clean(text), expected, "{}", text.escape_unicode());
        }
    }
}
