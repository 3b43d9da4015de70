//! Masks secrets in responses, in the notations in which servers echo them, in whole texts and in streams.
//!
//! The mask is as long as what it hides, so that announced lengths stay true. A secret that the server transforms in any other way or
//! truncates before it echoes it is not found. The protection is the allowlist of servers; masking is only a second line of defense.
//!
//! Timing must not leak a secret (a side channel). Where a stream is cut, and when each piece is passed on, depends on lengths and line
//! ends only, never on how much of the text matches a secret. Otherwise a guest that chooses the end of a response could tell from what is
//! held back whether its guess is the beginning of a secret. Therefore the last [`Patterns::reach`] bytes are always held back. The
//! exception is line ends: no secret continues across most of them (empty lines, and lines that end in neither a base64 character nor `=`),
//! and they are visible in the output anyway, so everything up to such a line end is passed on at once. This delivers events and lines of
//! JSON as soon as they are sent. Nothing is passed on after a timeout, because a guest that makes a server pause inside a secret would get
//! its beginning.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use memchr::memrchr_iter;

use super::search::{MIN_MASKED_BYTES, Patterns, Search, may_break_after};

/// The secrets to mask.
pub struct Masks(Patterns);

impl Masks {
    /// `None` if there is nothing to mask. Secrets of fewer than 12 bytes are not masked.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Option<Self> {
        Patterns::new(secrets).map(Self)
    }

    /// Masks a whole text in place. UTF-8 stays valid, since only ASCII or whole characters are replaced.
    pub fn mask(&self, text: &mut [u8]) {
        if text.len() < MIN_MASKED_BYTES {
            return;
        }
        let mut found = Vec::new();
        Search::new(&self.0).feed(&self.0, text, &mut found);
        for place in found {
            if let Some(place) = text.get_mut(place.within(0)) {
                place.fill(b'*');
            }
        }
    }

    /// The number of bytes at the end of a stream that are held back.
    pub fn held_back(&self) -> usize {
        self.0.reach()
    }
}

/// Masks a stream, piece by piece. The output does not depend on how the stream is cut into pieces.
pub struct Masker {
    masks: Arc<Masks>,
    search: Search,
    /// The bytes that have not been passed on, and below, their offset in the stream.
    held: BytesMut,
    offset: u32,
    /// The last two input bytes, before masking: whether they were masked must not make a difference.
    last: [u8; 2],
}

impl Masker {
    pub fn new(masks: Arc<Masks>) -> Self {
        let search = Search::new(&masks.0);
        Self { masks, search, held: BytesMut::new(), offset: 0, last: [0; 2] }
    }

    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Adds a piece and returns what can be passed on.
    pub fn push(&mut self, piece: &[u8]) -> Bytes {
        let line =
            memrchr_iter(b'\n', piece).find(|at| self.is_safe_break(piece, *at)).map(|at| self.held.len() + at + 1);
        for byte in piece.iter().skip(piece.len().saturating_sub(2)) {
            let [_, last] = self.last;
            self.last = [last, *byte];
        }
        self.held.extend_from_slice(piece);
        let mut found = Vec::new();
        self.search.feed(&self.masks.0, piece, &mut found);
        for place in found {
            if let Some(place) = self.held.get_mut(place.within(self.offset)) {
                place.fill(b'*');
            }
        }
        self.pass(line.unwrap_or_default().max(self.held.len().saturating_sub(self.masks.held_back())))
    }

    /// Returns everything that was held back, at the end of the stream.
    pub fn finish(&mut self) -> Bytes {
        self.pass(self.held.len())
    }

    /// Whether no secret can continue across the line end at this position of a piece.
    fn is_safe_break(&self, piece: &[u8], at: usize) -> bool {
        let back = |count: usize| match at.checked_sub(count) {
            Some(at) => piece.get(at).copied(),
            None => self.last.get(2 + at - count).copied(),
        };
        let last = back(1);
        let last = if last == Some(b'\r') { back(2) } else { last };
        last.is_none_or(|last| !may_break_after(last))
    }

    fn pass(&mut self, bytes: usize) -> Bytes {
        self.offset = self.offset.wrapping_add(bytes as u32);
        self.held.split_to(bytes).freeze()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use base64::{
        Engine,
        engine::general_purpose::{STANDARD, URL_SAFE},
    };

    use super::*;

    /// A secret with a character for each way in which encoders escape.
    const HARD: &str = "aB/+=<>&\"' ~éZ9_-x";
    const ONE: &str = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    const OTHER: &str = "ghp_Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3i2";

    fn masks(secret: &str) -> Arc<Masks> {
        Arc::new(Masks::new([secret].into_iter()).unwrap())
    }

    fn masked(masks: &Masks, text: &[u8]) -> Vec<u8> {
        let mut masked = text.to_vec();
        masks.mask(&mut masked);
        masked
    }

    fn lines(text: &str, length: usize, end: &str) -> String {
        let lines: Vec<_> = text.as_bytes().chunks(length).map(|line| std::str::from_utf8(line).unwrap()).collect();
        lines.join(end)
    }

    /// `HARD` as various programs write it. Where no other encoder computes it here, their output was copied.
    fn written() -> Vec<(&'static str, Vec<u8>)> {
        let bytes = HARD.as_bytes();
        let each = |write: &dyn Fn(u8) -> String| bytes.iter().map(|byte| write(*byte)).collect::<String>();
        let characters =
            |write: &dyn Fn(u32) -> String| HARD.chars().map(|one| write(u32::from(one))).collect::<String>();
        let wide = |bytes: fn(u16) -> [u8; 2]| HARD.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let around = |before: usize| format!("{}{HARD}{}", "u".repeat(before), "t".repeat(90));
        let mut all: Vec<(&'static str, Vec<u8>)> = [
            ("as it is", HARD.to_owned()),
            ("serde_json, JavaScript", serde_json::to_string(HARD).unwrap().trim_matches('"').to_owned()),
            ("Go encoding/json", "aB/+=\\u003c\\u003e\\u0026\\\"' ~éZ9_-x".into()),
            ("Python json", "aB/+=<>&\\\"' ~\\u00e9Z9_-x".into()),
            ("Gson", "aB/+\\u003d\\u003c\\u003e\\u0026\\\"\\u0027 ~éZ9_-x".into()),
            ("PHP json_encode", "aB\\/+=<>&\\\"' ~\\u00e9Z9_-x".into()),
            ("PHP json_encode, all flags", "aB\\/+=\\u003C\\u003E\\u0026\\u0022\\u0027 ~\\u00e9Z9_-x".into()),
            ("Rails", "aB/+=\\u003c\\u003e\\u0026\\\"' ~éZ9_-x".into()),
            (".NET", "aB/\\u002B=\\u003C\\u003E\\u0026\\u0022\\u0027 ~\\u00E9Z9_-x".into()),
            ("Python repr", "aB/+=<>&\"\\' ~éZ9_-x".into()),
            ("Python repr of bytes", "aB/+=<>&\"\\' ~\\xc3\\xa9Z9_-x".into()),
            ("encodeURIComponent", "aB%2F%2B%3D%3C%3E%26%22'%20~%C3%A9Z9_-x".into()),
            ("encodeURI", "aB/+=%3C%3E&%22'%20~%C3%A9Z9_-x".into()),
            ("escape", "aB/+%3D%3C%3E%26%22%27%20%7E%E9Z9_-x".into()),
            ("URLSearchParams", "aB%2F%2B%3D%3C%3E%26%22%27+%7E%C3%A9Z9_-x".into()),
            ("Python quote", "aB/%2B%3D%3C%3E%26%22%27%20~%C3%A9Z9_-x".into()),
            ("Python quote_plus, Go QueryEscape", "aB%2F%2B%3D%3C%3E%26%22%27+~%C3%A9Z9_-x".into()),
            ("Go PathEscape", "aB%2F+=%3C%3E&%22%27%20~%C3%A9Z9_-x".into()),
            ("small digits", "aB%2f%2b%3d%3c%3e%26%22%27%20~%c3%a9Z9_-x".into()),
            ("percent, everything", each(&|byte| format!("%{byte:02X}"))),
            ("hexadecimal", each(&|byte| format!("{byte:02x}"))),
            ("HEXADECIMAL", each(&|byte| format!("{byte:02X}"))),
            ("JSON, everything", characters(&|code| format!("\\u{code:04x}"))),
            ("Python html.escape", "aB/+=&lt;&gt;&amp;&quot;&#x27; ~éZ9_-x".into()),
            ("xmlcharrefreplace", "aB/+=&lt;&gt;&amp;&quot;&#x27; ~&#233;Z9_-x".into()),
            ("PHP htmlentities", "aB/+=&lt;&gt;&amp;&quot;&#039; ~&eacute;Z9_-x".into()),
            ("Mustache", "aB&#x2F;+&#x3D;&lt;&gt;&amp;&quot;&#39; ~éZ9_-x".into()),
            ("HTML, decimal", characters(&|code| format!("&#{code};"))),
            ("HTML, hexadecimal", characters(&|code| format!("&#x{code:X};"))),
            ("quoted-printable", "aB/+=3D<>&\"' ~=C3=A9Z9_-x".into()),
            ("quoted-printable, cut", "aB/+=3D<=\r\n>&\"'=20~=C3=\n=A9Z9_-x".into()),
            ("capitals", "AB/+=<>&\"' ~éZ9_-X".into()),
            ("a URL in JSON", "aB\\/%2B%3D%3C%3E%26%22%27%20~%C3%A9Z9_-x".into()),
            ("a URL in HTML", "aB/+=%3C%3E&amp;%22&#x27;%20~%C3%A9Z9_-x".into()),
        ]
        .map(|(name, text): (&str, String)| (name, text.into_bytes()))
        .into();
        all.push(("UTF-16 LE", wide(u16::to_le_bytes)));
        all.push(("UTF-16 BE", wide(u16::to_be_bytes)));
        for before in 0..60 {
            let standard = STANDARD.encode(around(before));
            all.push(("base64url", URL_SAFE.encode(around(before)).into()));
            all.push(("MIME", lines(&standard, 76, "\r\n").into()));
            all.push(("PEM", lines(&standard, 64, "\n").into()));
            all.push(("PEM in JSON", lines(&standard, 64, "\\n").replace('/', "\\/").into()));
            all.push(("base64 in a form", standard.replace('+', "%2B").replace('/', "%2F").into()));
            all.push(("base64", standard.into()));
        }
        all
    }

    #[test]
    fn whatever_writes_a_secret_it_is_masked_and_lengths_stay() {
        let masks = masks(HARD);
        for (name, text) in written() {
            let whole = [b"before: ".as_slice(), &text, b" after"].concat();
            let hidden = masked(&masks, &whole);
            let told = format!("{name}: {} {}", String::from_utf8_lossy(&whole), String::from_utf8_lossy(&hidden));
            assert_eq!(hidden.len(), whole.len(), "{told}");
            assert!(hidden.starts_with(b"before: ") && hidden.ends_with(b" after"), "{told}");
            let stars = hidden.iter().filter(|byte| **byte == b'*').count();
            if name.contains("64") || name.contains("PEM") || name == "MIME" {
                // Its first and last character may share bits with the neighbouring bytes.
                assert!(stars >= HARD.len() * 8 / 6 - 2, "{told}");
            } else {
                // Zero bytes at its ends reveal nothing.
                assert!(stars >= text.len() - 1, "{told}");
            }
        }
        for plain in ["nothing here", "aB/+=<>&\"' ~éZ9_-y", ""] {
            assert_eq!(masked(&masks, plain.as_bytes()), plain.as_bytes());
        }
        assert!(Masks::new(["elevenbytes"].into_iter()).is_none(), "masking it would harm other text");
        assert!(Masks::new(["twelve_bytes"].into_iter()).is_some());
    }

    #[test]
    fn any_cut_gives_what_the_whole_gives() {
        let more = format!("{HARD}-and-more");
        let masks = Arc::new(Masks::new([HARD, &more].into_iter()).unwrap());
        let mut text = Vec::new();
        for (at, (_, written)) in written().into_iter().enumerate().filter(|(at, _)| *at < 36 || at % 23 == 0) {
            text.extend(written);
            text.extend([" aB/+", "\n\n", "\r\n", "\\u00", "%c3", "&am", "=\n", " "][at % 8].bytes());
            text.extend(more.bytes());
        }
        let whole = masked(&masks, &text);
        for size in [1, 2, 3, 5, 7, 13, 64, 100, 511, 512, 513] {
            for first in [0, 1, 5, 11] {
                let mut masker = Masker::new(Arc::clone(&masks));
                let (head, tail) = text.split_at(first);
                let mut all = masker.push(head).to_vec();
                for piece in tail.chunks(size) {
                    all.extend(masker.push(piece));
                }
                all.extend(masker.finish());
                assert_eq!(String::from_utf8_lossy(&all), String::from_utf8_lossy(&whole), "{size} {first}");
            }
        }
    }

    /// The attack that holding back defends against: a server that ends its response with text that the guest chose.
    #[test]
    fn the_pieces_do_not_tell_whether_a_guess_is_right() {
        let (one, other) = (masks(ONE), masks(OTHER));
        for length in 0..ONE.len() {
            let (right, wrong) = (&ONE[..length], &OTHER[..length]);
            let mut seen = Vec::new();
            for (masks, guess) in [(&one, right), (&one, wrong), (&other, right), (&other, wrong)] {
                let mut masker = Masker::new(Arc::clone(masks));
                let pieces =
                    [format!("{}no such page: ?", "x".repeat(600)), guess.into(), "\"}\n".into(), guess.into()];
                let sizes: Vec<_> = pieces.iter().map(|piece| masker.push(piece.as_bytes()).len()).collect();
                seen.push((sizes, masker.finish().len()));
            }
            assert!(seen.iter().all(|one| *one == seen[0]), "{length}: {seen:?}");
        }
    }

    #[test]
    fn a_million_guesses_tell_nothing() {
        const GUESSES: usize = 1_000_000;
        const ROUNDS: usize = 100;
        let maskers = [masks(ONE), masks(OTHER)].map(Masker::new);
        let mut maskers = maskers;
        let mut took = [Vec::new(), Vec::new()];
        let mut random = 1_u64;
        for round in 0..ROUNDS {
            let guesses: Vec<String> = (0..GUESSES / ROUNDS)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // Never the whole secret, which would be masked visibly.
                    let length = (random >> 33) as usize % (ONE.len() - 1);
                    let next = char::from(b'0' + (random >> 40) as u8 % 75);
                    let end = if random >> 63 == 0 { "" } else { "\"\n" };
                    format!("{}{next}{end}", &ONE[..length])
                })
                .collect();
            // The order alternates, so that neither masker always finds the text in the CPU cache.
            let mut seen = [Vec::new(), Vec::new()];
            for which in [round % 2, 1 - round % 2] {
                let began = Instant::now();
                seen[which] = guesses.iter().map(|guess| maskers[which].push(guess.as_bytes())).collect();
                took[which].push(began.elapsed());
            }
            assert!(seen[0] == seen[1], "what is passed on differs");
        }
        let [right, wrong] = took.map(|mut took| {
            took.sort();
            took[ROUNDS / 2]
        });
        let apart = right.max(wrong).as_secs_f64() / right.min(wrong).as_secs_f64();
        assert!(apart < 1.1, "the medians are {right:?} and {wrong:?}");
    }

    /// A text is searched for a secret that it nearly contains and for an unrelated one, and the two must take equally long. With a search
    /// that follows the prefixes of secrets, one took up to 1.8 times as long as the other.
    #[test]
    fn the_work_is_the_same_for_what_begins_like_a_secret() {
        const PAIRS: usize = 201;
        let both = [masks(ONE), masks(OTHER)];
        let near = format!("{}!", &ONE[..ONE.len() - 1]);
        let percent: String = ONE[..30].bytes().map(|byte| format!("%{byte:02x}")).collect();
        for text in ["g", &ONE[..ONE.len() - 1], &ONE[1..], &near, &percent] {
            let text: Vec<u8> = text.bytes().cycle().take(8 << 10).collect();
            let mut ratios: Vec<f64> = (0..PAIRS)
                .map(|pair| {
                    let mut took = [0.0; 2];
                    for which in [pair % 2, 1 - pair % 2] {
                        let mut copy = text.clone();
                        let began = Instant::now();
                        both[which].mask(&mut copy);
                        took[which] = began.elapsed().as_secs_f64();
                        assert_eq!(copy, text);
                    }
                    took[0] / took[1]
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            let median = ratios[PAIRS / 2];
            assert!((0.87..1.15).contains(&median), "{median}");
        }
    }

    #[test]
    fn what_is_held_back_is_bounded_and_lines_are_not_held() {
        let mut masker = Masker::new(masks(ONE));
        assert_eq!(masker.masks().held_back(), 512);
        for event in ["data: {\"a\":1}\n\n", "event: x\r\ndata: y\r\n\r\n", "{\"line\":true}\n", "\n"] {
            assert_eq!(masker.push(event.as_bytes()), event, "an event is passed on with its end");
        }
        assert_eq!(masker.push(b"a line\n"), "", "base64 goes on after such an end");
        assert_eq!(masker.push(b"\n"), "a line\n\n");
        assert_eq!(masker.push(&[b'x'; 600]).len(), 600 - 512);
        for _ in 0..100 {
            assert_eq!(masker.push(&[b'y'; 7]).len(), 7);
        }
        assert_eq!(masker.finish().len(), 512);
        // Only the length of a secret rounded up to a power of two is revealed.
        for (length, held) in [(16, 128), (17, 256), (32, 256), (33, 512), (4096, 32 << 10)] {
            assert_eq!(masks(&"k".repeat(length)).held_back(), held);
        }
    }
}
