//! Decodes the escapes in which servers write characters, one escape at a time. Finding the escapes in a text is the job of `search`.

/// A way to write characters as escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Backslash escapes, in strings of JSON, JavaScript, Python and C.
    Backslash,
    /// Percent-encoding, in URLs and forms.
    Percent,
    /// Character references of HTML and XML, by name or by number.
    Reference,
    /// Quoted-printable, including soft line breaks.
    Quoted,
    /// UTF-16 and UTF-32, in which ASCII characters are separated by zero bytes.
    Wide,
}

/// The meaning of the bytes of an escape that have arrived so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The escape is incomplete.
    More,
    /// This is not an escape: its first byte stands for itself.
    Not,
    /// A complete escape that stands for nothing.
    Nothing,
    /// A complete escape that stands for a byte.
    Byte(u8),
    /// A complete escape that stands for a character.
    Char(char),
}

/// The length of the longest escape: a surrogate pair in JSON.
pub const MAX_ESCAPE_BYTES: usize = 12;

/// The HTML names of ASCII characters.
const ASCII_NAMES: [(&str, char); 34] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("AMP", '&'),
    ("LT", '<'),
    ("GT", '>'),
    ("QUOT", '"'),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("grave", '`'),
    ("lcub", '{'),
    ("verbar", '|'),
];

/// The HTML names of the characters from U+00A0 to U+00FF, in order.
const LATIN1_NAMES: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
    micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil \
    Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute \
    Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute \
    icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";

impl Notation {
    /// Returns the byte that each escape begins with.
    pub fn mark(self) -> u8 {
        match self {
            Self::Backslash => b'\\',
            Self::Percent => b'%',
            Self::Reference => b'&',
            Self::Quoted => b'=',
            Self::Wide => 0,
        }
    }

    /// Decodes an escape that begins with the mark.
    pub fn read(self, escape: &[u8]) -> Read {
        let rest = escape.get(1..).unwrap_or_default();
        match self {
            Self::Wide => Read::Nothing,
            Self::Backslash => backslash(rest),
            Self::Percent => match rest {
                [b'u' | b'U', digits @ ..] => number(digits, 4, |code| char::from_u32(code).map(Read::Char)),
                digits => number(digits, 2, |code| u8::try_from(code).ok().map(Read::Byte)),
            },
            Self::Quoted => match rest {
                [] | [b'\r'] => Read::More,
                [b'\n'] | [b'\r', b'\n'] => Read::Nothing,
                digits => number(digits, 2, |code| u8::try_from(code).ok().map(Read::Byte)),
            },
            Self::Reference => reference(rest),
        }
    }
}

/// Decodes `count` hexadecimal digits.
fn number(digits: &[u8], count: usize, meaning: impl Fn(u32) -> Option<Read>) -> Read {
    match hexadecimal(digits) {
        None if !digits.is_empty() => Read::Not,
        Some(code) if digits.len() == count => meaning(code).unwrap_or(Read::Not),
        _ if digits.len() < count => Read::More,
        _ => Read::Not,
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn backslash(rest: &[u8]) -> Read {
    match rest {
        [] => Read::More,
        [b'n'] => Read::Char('\n'),
        [b'r'] => Read::Char('\r'),
        [b't' | b'b' | b'f' | b'v' | b'0' | b'a'] => Read::Byte(0),
        [b'x', digits @ ..] => number(digits, 2, |code| u8::try_from(code).ok().map(Read::Byte)),
        [b'u', digits @ ..] if digits.len() <= 4 => number(digits, 4, |code| {
            Some(char::from_u32(code).map_or(if is_high(code) { Read::More } else { Read::Byte(0) }, Read::Char))
        }),
        // Characters outside the basic multilingual plane are surrogate pairs.
        [b'u', high @ .., b'\\'] if high.len() == 4 => Read::More,
        [b'u', high @ .., b'\\', b'u'] if high.len() == 4 => Read::More,
        [b'u', a, b, c, d, b'\\', b'u', low @ ..] => {
            let high = hexadecimal(&[*a, *b, *c, *d]).unwrap_or_default();
            number(low, 4, |low| {
                let units = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
                char::decode_utf16(units).next()?.ok().map(Read::Char)
            })
        }
        [plain] if plain.is_ascii_punctuation() => Read::Byte(*plain),
        _ => Read::Not,
    }
}

fn is_high(code: u32) -> bool {
    (0xd800..0xdc00).contains(&code)
}

fn reference(rest: &[u8]) -> Read {
    let Some((b';', name)) = rest.split_last() else {
        let fits =
            rest.len() + 2 <= MAX_ESCAPE_BYTES && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
        return if fits { Read::More } else { Read::Not };
    };
    let code = match name {
        [b'#', b'x' | b'X', digits @ ..] => hexadecimal(digits),
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()),
        _ => named(name),
    };
    code.and_then(char::from_u32).map_or(Read::Not, Read::Char)
}

fn named(name: &[u8]) -> Option<u32> {
    let ascii = ASCII_NAMES.iter().find(|(own, _)| own.as_bytes() == name).map(|(_, character)| u32::from(*character));
    ascii.or_else(|| {
        let at = LATIN1_NAMES.split_ascii_whitespace().position(|own| own.as_bytes() == name)?;
        u32::try_from(at).ok().map(|at| 0xa0 + at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_is_read_as_soon_as_it_is_complete() {
        use Notation::{Backslash, Percent, Quoted, Reference, Wide};
        for (notation, escape, expected) in [
            (Backslash, "\\\"", Read::Byte(b'"')),
            (Backslash, "\\/", Read::Byte(b'/')),
            (Backslash, "\\u003c", Read::Char('<')),
            (Backslash, "\\u00E9", Read::Char('é')),
            (Backslash, "\\ud83d\\ude00", Read::Char('😀')),
            (Backslash, "\\ude00", Read::Byte(0)),
            (Backslash, "\\ud83d\\n", Read::Not),
            (Backslash, "\\ud83dx", Read::Not),
            (Backslash, "\\x41", Read::Byte(b'A')),
            (Backslash, "\\xg", Read::Not),
            (Backslash, "\\z", Read::Not),
            (Percent, "%2f", Read::Byte(b'/')),
            (Percent, "%u00e9", Read::Char('é')),
            (Percent, "%2", Read::More),
            (Percent, "%%", Read::Not),
            (Reference, "&amp;", Read::Char('&')),
            (Reference, "&#39;", Read::Char('\'')),
            (Reference, "&#x27;", Read::Char('\'')),
            (Reference, "&eacute;", Read::Char('é')),
            (Reference, "&yuml;", Read::Char('ÿ')),
            (Reference, "&no such", Read::Not),
            (Reference, "&nothing;", Read::Not),
            (Reference, "&aaaaaaaaaaaaaaaa", Read::Not),
            (Quoted, "=3D", Read::Byte(b'=')),
            (Quoted, "=\r\n", Read::Nothing),
            (Quoted, "=\n", Read::Nothing),
            (Quoted, "=x", Read::Not),
            (Wide, "\0", Read::Nothing),
        ] {
            let bytes = escape.as_bytes();
            assert_eq!(bytes[0], notation.mark(), "{escape}");
            let ends = (1..=bytes.len()).map(|end| notation.read(&bytes[..end])).find(|read| *read != Read::More);
            assert_eq!(ends.unwrap_or(Read::More), expected, "{escape}");
            assert!(bytes.len() <= MAX_ESCAPE_BYTES || expected == Read::Not, "{escape}");
        }
        assert_eq!(LATIN1_NAMES.split_ascii_whitespace().count(), 96);
    }
}
