//! The byte order mark and the line endings of a text. They are removed before editing, since the editing libraries support neither, and
//! restored afterwards.

use anyhow::{Result, ensure};

/// The byte order mark and the line endings of a text.
#[derive(Debug, Default, PartialEq)]
pub struct Form {
    /// Whether the text begins with a byte order mark.
    mark: bool,
    /// Whether the lines end in CRLF.
    crlf: bool,
}

impl Form {
    /// Returns the text without byte order mark and with LF line endings, and its form.
    pub fn take(text: &str) -> Result<(String, Self)> {
        let (rest, mark) = text.strip_prefix('\u{feff}').map_or((text, false), |rest| (rest, true));
        let plain = rest.replace("\r\n", "\n");
        let form = Self { mark, crlf: plain.len() < rest.len() };
        ensure!(form.give(&plain) == text, "some lines end in CRLF and some in LF; use one of the two for all lines");
        Ok((plain, form))
    }

    /// Returns a text in this form.
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
        assert!(Form::take("a = 1\r\nb = 2\n").unwrap_err().to_string().contains("use one of the two"));
    }
}
