//! Text that came from a guest, made fit for people's eyes.

/// Whether a character can change how the text around it is shown: controls, and marks that turn its direction.
fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// For descriptions and questions: deceptive characters go, line breaks and tabs stay.
pub fn clean(text: &str) -> String {
    text.chars().filter(|character| matches!(character, '\n' | '\t') || !is_deceptive(*character)).collect()
}

/// For one line of a log or terminal: deceptive characters are written out.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_deceptive_is_left() {
        let text = "a\u{1b}[31mb\u{202e}c\nd\te\r\u{7}";
        assert_eq!(clean(text), "a[31mbc\nd\te");
        assert_eq!(escaped(text), r"a\u{1b}[31mb\u{202e}c\nd\te\r\u{7}");
        assert_eq!(escaped("grüße 🌊"), "grüße 🌊");
    }
}
