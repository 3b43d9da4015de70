//! Finds secrets in a stream of bytes, however they are written, by work that does not depend on them.
//!
//! A text is not searched for the forms of a secret. It is read in each notation, as the server's clients would read it, and what
//! is read is searched for the secret itself. So there is no list of which characters an encoder escapes. Only hexadecimal and
//! base64 are searched as they stand: what precedes a secret moves it in base64, where three bytes become four characters, so it is
//! one of three texts.
//!
//! The search compares a sum over the last bytes (a polynomial in a random number, modulo 2^64) with the sum of the secret. For
//! each byte it computes the same, whatever the byte and whatever the secret; there is no branch and no look-up that the beginning
//! of a secret would take and another text would not. Only where the whole sum is that of a secret are the bytes themselves
//! compared. What does depend on the text, such as whether it is read in a notation at all, depends on nothing else.
//!
//! A secret that is spread over more than [`Patterns::reach`] bytes is not found, wherever a stream is cut. What a search keeps is
//! bounded: about 20 bytes for each byte of what it may reach back to, in each of the at most eight layers that a text has; a text
//! without escapes has one.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    ops::Range,
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use memchr::{memchr, memchr_iter};

use super::notation::{LONGEST, Notation, Read};
use crate::base::text::hex;

/// What is shorter says too little to be a secret's: hiding it would harm other text.
pub const SHORTEST: usize = 12;
/// How many bytes are searched at once.
const CHUNK: usize = 512;
/// How many bytes a character of a secret may take, on average. By its number it takes six.
const EXPANSION: usize = 8;

/// The secrets to be found.
pub struct Patterns {
    /// In what was read in a notation.
    text: Sums,
    base64: Sums,
    hex: Sums,
    reach: usize,
}

/// Texts with their sums, by the length of what is summed.
struct Sums {
    base: u64,
    windows: Vec<Window>,
    longest: usize,
}

struct Window {
    bytes: usize,
    /// What a byte is multiplied with when it leaves the window.
    out: u64,
    /// Sums of the ends of texts, and the texts.
    texts: Vec<(u64, Vec<u8>)>,
}

impl Patterns {
    /// `None` if there is nothing to be found.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Option<Self> {
        // An odd number, so that no sum forgets its first bytes.
        let base = RandomState::new().hash_one(SHORTEST) | 1;
        let sums = || Sums { base, windows: Vec::new(), longest: 0 };
        let (mut text, mut base64, mut hexadecimal, mut longest) = (sums(), sums(), sums(), 0);
        for secret in secrets.filter(|secret| secret.len() >= SHORTEST) {
            longest = longest.max(secret.len());
            // UTF-16 is read without its zeros.
            let wide = [u16::to_le_bytes, u16::to_be_bytes]
                .map(|bytes| secret.encode_utf16().flat_map(bytes).filter(|byte| *byte != 0).collect());
            for form in [secret.as_bytes().to_vec()].into_iter().chain(wide) {
                // No end of a line is searched for: `mask` relies on that.
                if form.len() >= SHORTEST && !form.contains(&b'\n') {
                    text.add(form.len(), form.into_iter().map(folded).collect());
                }
            }
            hexadecimal.add(secret.len() * 2, hex(secret.as_bytes()).into_bytes());
            let forms = base64_forms(secret.as_bytes());
            let least = forms.iter().map(Vec::len).min().unwrap_or_default();
            for form in forms {
                base64.add(least, form);
            }
        }
        let reach = longest.next_power_of_two() * EXPANSION;
        (longest > 0).then_some(Self { text, base64, hex: hexadecimal, reach })
    }

    /// The most bytes that something found can take. It tells the length of the longest secret up to the next power of two.
    pub fn reach(&self) -> usize {
        self.reach
    }
}

/// A secret in base64, after so many bytes, without the characters that depend on what stands beside it.
fn base64_forms(secret: &[u8]) -> [Vec<u8>; 3] {
    [0, 1, 2].map(|before| {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
        let encoded = STANDARD_NO_PAD.encode(&padded);
        let (begin, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        encoded.get(begin..end).unwrap_or_default().bytes().map(symbol).collect()
    })
}

/// Letters are found in either case, since names of headers are written in lower case, and a blank as the `+` of forms.
fn folded(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte.to_ascii_lowercase() }
}

/// A character of either base64, letters in lower case. 0 if it is none.
fn symbol(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' => byte,
        b'A'..=b'Z' => byte.to_ascii_lowercase(),
        b'+' | b'-' => b'+',
        b'/' | b'_' => b'/',
        _ => 0,
    }
}

/// Whether a line can end after this byte inside of something that is found: after a character of base64, and after the `=` of
/// quoted-printable. A line that ends after any other byte, or is empty, stands between what is found.
pub fn may_break_after(byte: u8) -> bool {
    byte == b'=' || symbol(byte) != 0
}

impl Sums {
    /// Adds a text, of which the last `bytes` are summed.
    fn add(&mut self, bytes: usize, text: Vec<u8>) {
        let sum = |sum: u64, byte: &u8| self.next(sum, *byte, 0, 0);
        let sum = text.iter().skip(text.len() - bytes).fold(0, sum);
        self.longest = self.longest.max(text.len());
        let at = self.windows.iter().position(|window| window.bytes == bytes).unwrap_or_else(|| {
            let out = (0..bytes).fold(1, |power: u64, _| power.wrapping_mul(self.base));
            self.windows.push(Window { bytes, out, texts: Vec::new() });
            self.windows.len() - 1
        });
        if let Some(window) = self.windows.get_mut(at)
            && !window.texts.iter().any(|(_, own)| *own == text)
        {
            window.texts.push((sum, text));
        }
    }

    /// The sum when one byte has entered the window and another has left it.
    fn next(&self, sum: u64, new: u8, old: u8, out: u64) -> u64 {
        let change = u64::from(new).wrapping_sub(u64::from(old).wrapping_mul(out));
        sum.wrapping_mul(self.base).wrapping_add(change)
    }
}

/// From where to where in the stream, modulo 2^32: what is compared is never that far apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    start: u32,
    end: u32,
}

impl Place {
    fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }

    fn len(self) -> usize {
        self.end.wrapping_sub(self.start) as usize
    }

    /// Where it is in a text that begins at this offset of the stream.
    pub fn within(self, begin: u32) -> Range<usize> {
        let end = self.end.wrapping_sub(begin) as usize;
        end.saturating_sub(self.len())..end
    }
}

/// What was read, with the place of each byte, and the sums up to the last that was searched.
struct Track {
    bytes: Vec<u8>,
    places: Vec<Place>,
    searched: usize,
    sums: Vec<u64>,
}

impl Track {
    /// It begins with zeros, which no secret has in it, so that there is always something to leave the window.
    fn new(sums: &Sums) -> Self {
        let (bytes, places) = (vec![0; sums.longest], vec![Place::default(); sums.longest]);
        Self { bytes, places, searched: sums.longest, sums: vec![0; sums.windows.len()] }
    }

    fn push(&mut self, byte: u8, place: Place) {
        self.bytes.push(byte);
        self.places.push(place);
    }

    /// Marks that what follows does not belong to what is there.
    fn part(&mut self) {
        if self.bytes.last() != Some(&0) {
            self.push(0, Place::default());
        }
    }

    /// Searches what was pushed.
    fn search(&mut self, sums: &Sums, reach: usize, found: &mut Vec<Place>) {
        for (window, sum) in sums.windows.iter().zip(&mut self.sums) {
            let new = self.bytes.get(self.searched..).unwrap_or_default();
            let old = self.bytes.get(self.searched - window.bytes..).unwrap_or_default();
            for (at, (new, old)) in new.iter().zip(old).enumerate() {
                *sum = sums.next(*sum, *new, *old, window.out);
                for (_, text) in window.texts.iter().filter(|(own, _)| own == sum) {
                    let last = self.searched + at;
                    let first = last + 1 - text.len();
                    let place = |at: usize| self.places.get(at).copied().unwrap_or_default();
                    let place = place(first).to(place(last));
                    if self.bytes.get(first..=last) == Some(text) && place.len() <= reach {
                        found.push(place);
                    }
                }
            }
        }
        self.searched = self.bytes.len();
        // What may still leave a window is kept.
        let gone = self.searched - sums.longest;
        if gone > sums.longest / 2 + CHUNK / 2 {
            self.bytes.drain(..gone);
            self.places.drain(..gone);
            self.searched -= gone;
        }
    }
}

/// Runs of characters of base64 and of hexadecimal, across single ends of lines. Short runs, such as words, are left out.
struct Coded {
    base64: Track,
    hex: Track,
    /// The beginning of a run, while it is short.
    run: Vec<(u8, Place)>,
    is_long: bool,
    line: Line,
}

/// How much of the end of a line came after the last character of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Goes,
    Returns,
    Ended,
}

impl Coded {
    fn new(patterns: &Patterns) -> Self {
        let (base64, hex) = (Track::new(&patterns.base64), Track::new(&patterns.hex));
        Self { base64, hex, run: Vec::with_capacity(SHORTEST), is_long: false, line: Line::Goes }
    }

    fn feed(&mut self, patterns: &Patterns, bytes: &[u8], places: &[Place], found: &mut Vec<Place>) {
        for (byte, place) in bytes.iter().zip(places) {
            let symbol = symbol(*byte);
            if symbol != 0 {
                self.line = Line::Goes;
                if self.is_long {
                    self.push(symbol, *place);
                    continue;
                }
                self.run.push((symbol, *place));
                if self.run.len() == SHORTEST {
                    self.is_long = true;
                    let mut run = std::mem::take(&mut self.run);
                    run.drain(..).for_each(|(symbol, place)| self.push(symbol, place));
                    self.run = run;
                }
                continue;
            }
            self.line = match (byte, self.line) {
                (b'\r', Line::Goes) => Line::Returns,
                (b'\n', Line::Goes | Line::Returns) => Line::Ended,
                _ => {
                    self.run.clear();
                    if self.is_long {
                        self.base64.part();
                        self.hex.part();
                    }
                    self.is_long = false;
                    Line::Goes
                }
            };
        }
        self.base64.search(&patterns.base64, patterns.reach, found);
        self.hex.search(&patterns.hex, patterns.reach, found);
    }

    fn push(&mut self, symbol: u8, place: Place) {
        self.base64.push(symbol, place);
        match symbol.is_ascii_hexdigit() {
            true => self.hex.push(symbol, place),
            false => self.hex.part(),
        }
    }
}

/// A text as it was read so far, and the readings of it in further notations.
struct Layer {
    text: Track,
    coded: Coded,
    readings: Vec<Sleeper>,
    /// The last bytes, for notations that begin to be read: what precedes their first escape belongs to them.
    recent: (VecDeque<u8>, VecDeque<Place>),
}

/// A reading, which there is only while there are escapes: a text without any is read already.
struct Sleeper {
    notation: Notation,
    awake: Option<Box<Reading>>,
    /// For how many further bytes it stays awake.
    left: usize,
}

impl Layer {
    fn new(patterns: &Patterns, notations: &[Notation]) -> Self {
        let sleeper = |notation: &Notation| Sleeper { notation: *notation, awake: None, left: 0 };
        let (text, coded) = (Track::new(&patterns.text), Coded::new(patterns));
        Self { text, coded, readings: notations.iter().map(sleeper).collect(), recent: Default::default() }
    }

    fn feed(&mut self, patterns: &Patterns, bytes: &[u8], places: &[Place], found: &mut Vec<Place>) {
        self.text.bytes.extend(bytes.iter().map(|byte| folded(*byte)));
        self.text.places.extend_from_slice(places);
        self.text.search(&patterns.text, patterns.reach, found);
        self.coded.feed(patterns, bytes, places, found);
        if self.readings.is_empty() {
            return;
        }
        let back = patterns.reach + LONGEST;
        for Sleeper { notation, awake, left } in &mut self.readings {
            let is_marked = has_escapes(*notation, bytes);
            if is_marked && awake.is_none() {
                let mut reading = Reading::new(*notation, patterns);
                let (recent, places) = (self.recent.0.make_contiguous(), self.recent.1.make_contiguous());
                reading.feed(patterns, recent, places, found);
                *awake = Some(Box::new(reading));
            }
            if let Some(reading) = awake {
                reading.feed(patterns, bytes, places, found);
            }
            *left = if is_marked { back } else { left.saturating_sub(bytes.len()) };
            if *left == 0 {
                *awake = None;
            }
        }
        self.recent.0.extend(bytes);
        self.recent.1.extend(places);
        let gone = self.recent.0.len().saturating_sub(back);
        self.recent.0.drain(..gone);
        self.recent.1.drain(..gone);
    }
}

/// Whether there is an escape, or at the end what may become one. Many texts have the marks of
/// notations in which they are not written, and need not be read in these.
fn has_escapes(notation: Notation, bytes: &[u8]) -> bool {
    memchr_iter(notation.mark(), bytes).any(|at| {
        let rest = bytes.get(at..).unwrap_or_default();
        let reads = (1..=rest.len()).map(|end| notation.read(rest.get(..end).unwrap_or_default()));
        reads.into_iter().find(|read| *read != Read::More) != Some(Read::Not)
    })
}

/// A text that is being read in one notation.
struct Reading {
    notation: Notation,
    /// An escape that is not complete.
    escape: Vec<u8>,
    escape_places: Vec<Place>,
    /// What was read of the last piece.
    bytes: Vec<u8>,
    places: Vec<Place>,
    layer: Layer,
}

impl Reading {
    fn new(notation: Notation, patterns: &Patterns) -> Self {
        // Pages and JSON name URLs.
        let further: &[Notation] = match notation {
            Notation::Backslash | Notation::Reference => &[Notation::Percent],
            _ => &[],
        };
        let layer = Layer::new(patterns, further);
        let (escape, escape_places) = (Vec::with_capacity(LONGEST), Vec::with_capacity(LONGEST));
        Self { notation, escape, escape_places, bytes: Vec::new(), places: Vec::new(), layer }
    }

    fn feed(&mut self, patterns: &Patterns, bytes: &[u8], places: &[Place], found: &mut Vec<Place>) {
        self.bytes.clear();
        self.places.clear();
        let (mut bytes, mut places) = (bytes, places);
        while !bytes.is_empty() {
            let plain = match self.escape.is_empty() {
                true => memchr(self.notation.mark(), bytes).unwrap_or(bytes.len()),
                false => 0,
            };
            let (now, later) = bytes.split_at(plain);
            let (now_places, later_places) = places.split_at_checked(plain).unwrap_or((places, &[]));
            self.bytes.extend_from_slice(now);
            self.places.extend_from_slice(now_places);
            (bytes, places) = (later, later_places);
            if let (Some((byte, later)), Some((place, later_places))) = (bytes.split_first(), places.split_first()) {
                self.go_on(*byte, *place);
                (bytes, places) = (later, later_places);
            }
        }
        self.layer.feed(patterns, &self.bytes, &self.places, found);
    }

    /// Takes a byte of an escape.
    fn go_on(&mut self, byte: u8, place: Place) {
        self.escape.push(byte);
        self.escape_places.push(place);
        while let Some(first) = self.escape_places.first() {
            let place = first.to(place);
            let mut written = [0; 4];
            let read: &[u8] = match self.notation.read(&self.escape) {
                Read::More => return,
                Read::Not => {
                    // Its first byte stands for itself, and so do others up to what may begin another.
                    let next = self.escape.get(1..).and_then(|rest| memchr(self.notation.mark(), rest));
                    let end = next.map_or(self.escape.len(), |at| at + 1);
                    self.bytes.extend(self.escape.drain(..end));
                    self.places.extend(self.escape_places.drain(..end));
                    continue;
                }
                Read::Nothing => &[],
                Read::Byte(byte) => &[byte],
                Read::Char(character) => character.encode_utf8(&mut written).as_bytes(),
            };
            self.bytes.extend_from_slice(read);
            self.places.extend(read.iter().map(|_| place));
            self.escape.clear();
            self.escape_places.clear();
        }
    }
}

/// Searches one stream.
pub struct Search {
    layer: Layer,
    offset: u32,
    /// Those of the last piece.
    places: Vec<Place>,
}

impl Search {
    pub fn new(patterns: &Patterns) -> Self {
        use Notation::{Backslash, Percent, Quoted, Reference, Wide};
        let layer = Layer::new(patterns, &[Backslash, Percent, Reference, Quoted, Wide]);
        Self { layer, offset: 0, places: Vec::new() }
    }

    /// Takes the next piece of the stream, and adds to `found` what ends in it.
    pub fn feed(&mut self, patterns: &Patterns, piece: &[u8], found: &mut Vec<Place>) {
        for chunk in piece.chunks(CHUNK) {
            let offset = self.offset;
            let place = |at| Place { start: offset.wrapping_add(at), end: offset.wrapping_add(at).wrapping_add(1) };
            self.places.clear();
            self.places.extend((0..chunk.len() as u32).map(place));
            self.layer.feed(patterns, chunk, &self.places, found);
            self.offset = offset.wrapping_add(chunk.len() as u32);
        }
    }
}
