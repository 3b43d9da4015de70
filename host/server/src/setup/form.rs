//! What a text has beside what it says: a byte order mark, and how its lines end. Editors of texts know neither.

use anyhow::{Result, ensure};

#[derive(Debug, Default, PartialEq)]
pub struct Form {
    /// Whether a byte order mark stands at its beginning.
    mark: bool,
    /// Whether its lines end in two characters.
    crlf: bool,
}

impl Form {
    pub fn take(text: &str) -> Result<(String, Self)> {
        let (rest, mark) = text.strip_prefix('\u{feff}').map_or((text, false), |rest| (rest, true));
        let plain = rest.replace("\r\n", "\n");
        let form = Self { mark, crlf: plain.len() < rest.len() };
        ensure!(form.give(&plain) == text, "some of its lines end in CRLF and some in LF; let all end alike");
        Ok((plain, form))
    }

    pub fn give(&self, plain: &str) -> String {
        let text = if self.crlf { plain.replace('\n', "\r\n") } else { plain.to_owned() };
        if self.mark { format!("\u{feff}{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_text_stays() {
        for (text, plain, mark, crlf) in [
            ("", "", false, false),
            ("a = 1\nb = 2\n", "a = 1\nb = 2\n", false, false),
            ("a = 1\r\nb = 2", "a = 1\nb = 2", false, true),
            ("\u{feff}a = 1\r\n", "a = 1\n", true, true),
            ("\u{feff}a = 1", "a = 1", true, false),
        ] {
            let (taken, form) = Form::take(text).unwrap();
            assert_eq!((&*taken, &form), (plain, &Form { mark, crlf }), "{text:?}");
            assert_eq!(form.give(plain), text);
        }
        assert!(Form::take("a = 1\r\nb = 2\n").unwrap_err().to_string().contains("let all end alike"));
    }
}
