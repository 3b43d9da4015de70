//! Keeps secrets out of what comes back: masks them, in the forms in which servers repeat them, in texts and in streams.
//!
//! The mask has the length of what it hides, so that lengths that were announced stay true. A server that changes a secret in any
//! other way before it repeats it cannot be caught: the wall is which servers a rule allows, and this is only a net below it.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Bytes, BytesMut};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// A form that is shorter says too little to be a secret's: masking it would harm other text.
const MIN_FORM_BYTES: usize = 12;

/// What is to be masked.
pub struct Masks {
    finder: AhoCorasick,
    forms: Vec<Vec<u8>>,
    longest: usize,
}

impl Masks {
    /// `None` if there is nothing to mask.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut forms: Vec<Vec<u8>> = secrets.flat_map(forms).filter(|form| form.len() >= MIN_FORM_BYTES).collect();
        forms.sort();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max()?;
        // A DFA would be faster, and for a secret of some KiB a hundred times as large. The forms are bounded, so this cannot fail.
        let finder = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&forms).ok()?;
        Some(Self { finder, forms, longest })
    }

    /// Masks a whole text.
    pub fn mask(&self, text: &[u8]) -> Vec<u8> {
        let mut masked = text.to_vec();
        self.mask_in_place(&mut masked);
        masked
    }

    /// Masks a text where it is. What is UTF-8 stays so, since forms are ASCII or whole characters.
    pub fn mask_in_place(&self, text: &mut [u8]) {
        let found: Vec<_> = self.finder.find_overlapping_iter(&*text).map(|found| found.range()).collect();
        for range in found {
            if let Some(place) = text.get_mut(range) {
                place.fill(b'*');
            }
        }
    }

    /// Covers in `masked` what is found in `text`. Returns where the last find ends.
    fn cover(&self, text: &[u8], masked: &mut [u8]) -> usize {
        let mut end = 0;
        for found in self.finder.find_overlapping_iter(text) {
            if let Some(place) = masked.get_mut(found.range()) {
                place.fill(b'*');
            }
            end = end.max(found.end());
        }
        end
    }

    /// How many bytes at the end of a text could be the beginning of something that is to be masked.
    fn unfinished(&self, text: &[u8]) -> usize {
        let most = text.len().min(self.longest - 1);
        (1..=most)
            .rev()
            .find(|length| {
                let end = text.get(text.len() - length..).unwrap_or_default();
                self.forms.iter().any(|form| form.len() > *length && form.starts_with(end))
            })
            .unwrap_or(0)
    }
}

/// The forms in which a secret can come back.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let mut forms = vec![bytes.to_vec()];
    // JSON has many ways to write a character: as it is, with a backslash, or by its number, which some writers do for more of them.
    for (by_number, slash) in [("", false), ("", true), ("+<>&'\"`", false), ("+<>&'\"`/=", false)] {
        for upper in [false, true] {
            forms.push(in_json(secret, by_number, slash, upper).into_bytes());
        }
    }
    let whole: String = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
    forms.push(whole.to_ascii_uppercase().into_bytes());
    forms.push(whole.into_bytes());
    // What most encoders leave as it is.
    const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    for set in [NON_ALPHANUMERIC, UNRESERVED] {
        let percent = percent_encode(bytes, set).to_string();
        forms.push(small_digits(&percent).into_bytes());
        forms.push(percent.into_bytes());
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hex.to_ascii_uppercase().into_bytes());
    forms.push(hex.into_bytes());
    // In base64, three bytes become four characters, so a secret inside of a longer text has one of three forms. Characters that
    // depend on what stands beside it are left out.
    for before in 0..3 {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
        let encoded = STANDARD_NO_PAD.encode(&padded);
        let (begin, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        let own = encoded.get(begin..end).unwrap_or_default();
        forms.push(own.replace('+', "-").replace('/', "_").into_bytes());
        forms.push(own.as_bytes().to_vec());
    }
    forms
}

/// A text as it stands between quotes in JSON. `by_number`: characters that are written as `\\u` and a number.
fn in_json(text: &str, by_number: &str, slash: bool, upper: bool) -> String {
    let mut json = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            one if by_number.contains(one) && upper => json.push_str(&format!("\\u{:04X}", u32::from(one))),
            one if by_number.contains(one) => json.push_str(&format!("\\u{:04x}", u32::from(one))),
            '"' | '\\' => json.extend(['\\', character]),
            '/' if slash => json.push_str("\\/"),
            plain => json.push(plain),
        }
    }
    json
}

/// Percent encoding with small letters in its numbers, and only there.
fn small_digits(percent: &str) -> String {
    let mut left = 0;
    let small = percent.chars().map(|character| match character {
        '%' => {
            left = 2;
            '%'
        }
        digit if left > 0 => {
            left -= 1;
            digit.to_ascii_lowercase()
        }
        plain => plain,
    });
    small.collect()
}

/// Masks a stream, piece by piece. However it is cut into pieces, the result is that of the whole.
pub struct Masker {
    masks: Arc<Masks>,
    /// The end of what has come so far, which may be the beginning of a secret.
    held: BytesMut,
    /// How many bytes at the beginning of `held` belong to something that was found already.
    found: usize,
}

impl Masker {
    pub fn new(masks: Arc<Masks>) -> Self {
        Self { masks, held: BytesMut::new(), found: 0 }
    }

    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Takes a piece, and returns what can be passed on.
    pub fn push(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        let keep = self.masks.unfinished(&self.held);
        self.release(keep)
    }

    /// Returns the rest.
    pub fn finish(&mut self) -> Bytes {
        self.release(0)
    }

    /// Passes on all but the last `keep` bytes.
    fn release(&mut self, keep: usize) -> Bytes {
        let mut masked = self.held.clone();
        if let Some(known) = masked.get_mut(..self.found) {
            known.fill(b'*');
        }
        let end = self.masks.cover(&self.held, &mut masked).max(self.found);
        let pass = self.held.len() - keep;
        self.held = self.held.split_off(pass);
        self.found = end.saturating_sub(pass);
        masked.truncate(pass);
        masked.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "ghp_abc/DEF+0123456789\"xyz";

    fn masks() -> Arc<Masks> {
        Arc::new(Masks::new([SECRET, "ghp_abc/DEF+0123456789\"xyz-and-more"].into_iter()).unwrap())
    }

    fn text_of(text: &str) -> String {
        String::from_utf8(masks().mask(text.as_bytes())).unwrap()
    }

    #[test]
    fn every_form_is_masked_and_lengths_stay() {
        let base64 = |before: &str| STANDARD_NO_PAD.encode(format!("{before}{SECRET}tail"));
        for text in [
            SECRET.to_owned(),
            format!("a {SECRET} b {SECRET}"),
            serde_json::json!({ "k": SECRET }).to_string(),
            format!("https://x/?t={}", percent_encode(SECRET.as_bytes(), NON_ALPHANUMERIC)),
            SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            small_digits(&percent_encode(SECRET.as_bytes(), NON_ALPHANUMERIC).to_string()),
            SECRET.replace('+', "\\u002B").replace('"', "\\u0022"),
            SECRET.replace('/', "\\/").replace('"', "\\\""),
            base64(""),
            base64("a"),
            base64("user:"),
            base64("ab").replace('+', "-").replace('/', "_"),
            SECRET.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ] {
            let masked = text_of(&text);
            assert_eq!(masked.len(), text.len());
            assert!(masked.contains("********"), "{text} {masked}");
            assert!(!masked.contains("0123456789") && !masked.contains("MDEyMzQ1"), "{masked}");
        }
        assert_eq!(text_of("nothing here"), "nothing here");
        assert!(Masks::new(["short"].into_iter()).is_none(), "masking it would harm other text");
        assert!(Masks::new([].into_iter()).is_none());
    }

    #[test]
    fn any_cut_gives_what_the_whole_gives() {
        let text = format!(
            "ghp_ghp_abc {SECRET} ghp_abc/DEF+{SECRET}-and-more {} end ghp_abc/",
            STANDARD_NO_PAD.encode(SECRET)
        );
        let whole = masks().mask(text.as_bytes());
        for size in 1..60 {
            for first in 0..size {
                let mut masker = Masker::new(masks());
                let (head, tail) = text.as_bytes().split_at(first);
                let mut all = masker.push(head).to_vec();
                for piece in tail.chunks(size) {
                    all.extend(masker.push(piece));
                }
                all.extend(masker.finish());
                assert_eq!(all, whole, "{size} {first}");
            }
        }
    }

    #[test]
    fn what_cannot_be_a_secret_is_not_held_back() {
        let mut masker = Masker::new(masks());
        assert_eq!(&masker.push(b"data: hello\n\n")[..], b"data: hello\n\n");
        assert_eq!(&masker.push(b"data: gh")[..], b"data: ");
    }
}
