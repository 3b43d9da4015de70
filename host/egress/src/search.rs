//! Finds secrets in a stream of bytes, in whatever notation they are written, in time that does not depend on the secrets.
//!
//! The text is not searched for every escaped form of a secret. It is decoded in each notation, as a client of the server would decode it,
//! and the decoded text is searched for the secret itself, so no list of what each encoder escapes is needed. Only hexadecimal and base64
//! are searched in encoded form. In base64, three bytes become four characters, so a secret has one of three encodings, depending on its
//! offset.
//!
//! The search is Rabin–Karp: it compares a rolling hash of the last bytes (a polynomial in a random number, modulo 2^64) with the hash of
//! the secret. The work for each byte is the same, whatever the byte and the secret; no branch or table look-up depends on whether the text
//! begins like a secret. The bytes themselves are compared only if the hashes are equal. The remaining work that depends on the text, such
//! as whether a notation is decoded at all, does not depend on the secrets.
//!
//! A secret that is spread over more than [`Patterns::reach`] bytes is not found, however the stream is cut into pieces. The memory of a
//! search is bounded: about 20 bytes for each byte of reach, in each of at most eight layers. A text without escapes has one layer.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    ops::Range,
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use memchr::{memchr, memchr_iter};

use super::notation::{MAX_ESCAPE_BYTES, Notation, Read};
use wharf_base::text::hex;

/// The shortest secret that is masked. Shorter ones occur in other text by chance.
pub const MIN_MASKED_BYTES: usize = 12;
/// The number of bytes that are searched at once.
const CHUNK_BYTES: usize = 512;
/// The most bytes that one character of a secret may take on average. A numeric character reference takes six.
const MAX_EXPANSION: usize = 8;

/// The secrets to find, with their hashes.
pub struct Patterns {
    /// The patterns for decoded text.
    text: RollingHashes,
    base64: RollingHashes,
    hex: RollingHashes,
    reach: usize,
}

/// Texts with their rolling hashes, grouped by the number of bytes that are hashed.
struct RollingHashes {
    base: u64,
    windows: Vec<Window>,
    longest: usize,
}

struct Window {
    bytes: usize,
    /// The factor of a byte when it leaves the window.
    out: u64,
    /// The texts, each with the hash of its last `bytes` bytes.
    texts: Vec<(u64, Vec<u8>)>,
}

impl Patterns {
    /// Returns `None` if there is nothing to find.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Option<Self> {
        // Odd, so that the first bytes of a window are never multiplied to zero.
        let base = RandomState::new().hash_one(MIN_MASKED_BYTES) | 1;
        let sums = || RollingHashes { base, windows: Vec::new(), longest: 0 };
        let (mut text, mut base64, mut hexadecimal, mut longest) = (sums(), sums(), sums(), 0);
        for secret in secrets.filter(|secret| secret.len() >= MIN_MASKED_BYTES) {
            longest = longest.max(secret.len());
            // UTF-16 is decoded by dropping its zero bytes.
            let wide = [u16::to_le_bytes, u16::to_be_bytes]
                .map(|bytes| secret.encode_utf16().flat_map(bytes).filter(|byte| *byte != 0).collect());
            for form in [secret.as_bytes().to_vec()].into_iter().chain(wide) {
                // Secrets with a line end are not searched for: `mask` relies on that.
                if form.len() >= MIN_MASKED_BYTES && !form.contains(&b'\n') {
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
        let reach = longest.next_power_of_two() * MAX_EXPANSION;
        (longest > 0).then_some(Self { text, base64, hex: hexadecimal, reach })
    }

    /// Returns the most bytes that a match can span. This reveals the length of the longest secret, rounded up to a power of two.
    pub fn reach(&self) -> usize {
        self.reach
    }
}

/// Returns the base64 encodings of a secret at the offsets 0, 1 and 2, without the characters that depend on neighbouring bytes.
fn base64_forms(secret: &[u8]) -> [Vec<u8>; 3] {
    [0, 1, 2].map(|before| {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
        let encoded = STANDARD_NO_PAD.encode(&padded);
        let (begin, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        encoded.get(begin..end).unwrap_or_default().bytes().map(symbol).collect()
    })
}

/// Normalizes a byte of decoded text. Case is ignored, since header names are lower-cased, and `+` equals a space, as in forms.
fn folded(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte.to_ascii_lowercase() }
}

/// Normalizes a character of base64 or base64url, with letters in lower case. Returns 0 for any other byte.
fn symbol(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' => byte,
        b'A'..=b'Z' => byte.to_ascii_lowercase(),
        b'+' | b'-' => b'+',
        b'/' | b'_' => b'/',
        _ => 0,
    }
}

/// Whether a match can continue across a line end after this byte: after a base64 character, or after the `=` of a quoted-printable soft
/// line break. Matches never continue across empty lines or lines that end in any other byte.
pub fn may_break_after(byte: u8) -> bool {
    byte == b'=' || symbol(byte) != 0
}

impl RollingHashes {
    /// Adds a text, whose last `bytes` bytes are hashed.
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

    /// Returns the hash after the byte `new` has entered the window and `old` has left it.
    fn next(&self, sum: u64, new: u8, old: u8, out: u64) -> u64 {
        let change = u64::from(new).wrapping_sub(u64::from(old).wrapping_mul(out));
        sum.wrapping_mul(self.base).wrapping_add(change)
    }
}

/// A range of the stream, modulo 2^32: compared positions are never that far apart.
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

    /// Returns the range in a text that begins at this offset of the stream.
    pub fn within(self, begin: u32) -> Range<usize> {
        let end = self.end.wrapping_sub(begin) as usize;
        end.saturating_sub(self.len())..end
    }
}

/// Decoded bytes, the place of each in the stream, and the hashes of the windows that end at the last searched byte.
struct Track {
    bytes: Vec<u8>,
    places: Vec<Place>,
    searched: usize,
    sums: Vec<u64>,
}

impl Track {
    /// Begins with zeros, which no secret contains, so that there is always a byte that leaves the window.
    fn new(sums: &RollingHashes) -> Self {
        let (bytes, places) = (vec![0; sums.longest], vec![Place::default(); sums.longest]);
        Self { bytes, places, searched: sums.longest, sums: vec![0; sums.windows.len()] }
    }

    fn push(&mut self, byte: u8, place: Place) {
        self.bytes.push(byte);
        self.places.push(place);
    }

    /// Inserts a separator: no match continues across it.
    fn separate(&mut self) {
        if self.bytes.last() != Some(&0) {
            self.push(0, Place::default());
        }
    }

    /// Searches the bytes that were pushed since the last search.
    fn search(&mut self, sums: &RollingHashes, reach: usize, found: &mut Vec<Place>) {
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
        // The bytes that may still leave a window are retained.
        let gone = self.searched - sums.longest;
        if gone > sums.longest / 2 + CHUNK_BYTES / 2 {
            self.bytes.drain(..gone);
            self.places.drain(..gone);
            self.searched -= gone;
        }
    }
}

/// Searches runs of base64 and hexadecimal characters, which may contain single line ends. Short runs, such as words, are skipped.
struct Coded {
    base64: Track,
    hex: Track,
    /// The beginning of a run, as long as the run is short.
    run: Vec<(u8, Place)>,
    is_long: bool,
    line: Line,
}

/// How much of a line end followed the last character of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Goes,
    Returns,
    Ended,
}

impl Coded {
    fn new(patterns: &Patterns) -> Self {
        let (base64, hex) = (Track::new(&patterns.base64), Track::new(&patterns.hex));
        Self { base64, hex, run: Vec::with_capacity(MIN_MASKED_BYTES), is_long: false, line: Line::Goes }
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
                if self.run.len() == MIN_MASKED_BYTES {
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
                        self.base64.separate();
                        self.hex.separate();
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
            false => self.hex.separate(),
        }
    }
}

/// A text at one level of decoding, and its further decodings.
struct Layer {
    text: Track,
    coded: Coded,
    readings: Vec<LazyReading>,
    /// The last bytes, for a notation whose first escape comes later: the match may begin before that escape.
    recent: (VecDeque<u8>, VecDeque<Place>),
}

/// A decoding in one notation that is only active while there are escapes. A text without escapes is searched as it is.
struct LazyReading {
    notation: Notation,
    active: Option<Box<Reading>>,
    /// The number of further bytes for which it stays active.
    left: usize,
}

impl Layer {
    fn new(patterns: &Patterns, notations: &[Notation]) -> Self {
        let lazy = |notation: &Notation| LazyReading { notation: *notation, active: None, left: 0 };
        let (text, coded) = (Track::new(&patterns.text), Coded::new(patterns));
        Self { text, coded, readings: notations.iter().map(lazy).collect(), recent: Default::default() }
    }

    fn feed(&mut self, patterns: &Patterns, bytes: &[u8], places: &[Place], found: &mut Vec<Place>) {
        self.text.bytes.extend(bytes.iter().map(|byte| folded(*byte)));
        self.text.places.extend_from_slice(places);
        self.text.search(&patterns.text, patterns.reach, found);
        self.coded.feed(patterns, bytes, places, found);
        if self.readings.is_empty() {
            return;
        }
        let back = patterns.reach + MAX_ESCAPE_BYTES;
        for LazyReading { notation, active, left } in &mut self.readings {
            let is_marked = has_escapes(*notation, bytes);
            if is_marked && active.is_none() {
                let mut reading = Reading::new(*notation, patterns);
                let (recent, places) = (self.recent.0.make_contiguous(), self.recent.1.make_contiguous());
                reading.feed(patterns, recent, places, found);
                *active = Some(Box::new(reading));
            }
            if let Some(reading) = active {
                reading.feed(patterns, bytes, places, found);
            }
            *left = if is_marked { back } else { left.saturating_sub(bytes.len()) };
            if *left == 0 {
                *active = None;
            }
        }
        self.recent.0.extend(bytes);
        self.recent.1.extend(places);
        let gone = self.recent.0.len().saturating_sub(back);
        self.recent.0.drain(..gone);
        self.recent.1.drain(..gone);
    }
}

/// Whether there is a complete escape, or one that may continue after the end. Many texts contain the marks of notations in which they are
/// not written; they need not be decoded in these.
fn has_escapes(notation: Notation, bytes: &[u8]) -> bool {
    memchr_iter(notation.mark(), bytes).any(|at| {
        let rest = bytes.get(at..).unwrap_or_default();
        let reads = (1..=rest.len()).map(|end| notation.read(rest.get(..end).unwrap_or_default()));
        reads.into_iter().find(|read| *read != Read::More) != Some(Read::Not)
    })
}

/// A decoder for one notation, and the search in its output.
struct Reading {
    notation: Notation,
    /// An incomplete escape.
    escape: Vec<u8>,
    escape_places: Vec<Place>,
    /// The decoded bytes of the last piece.
    bytes: Vec<u8>,
    places: Vec<Place>,
    layer: Layer,
}

impl Reading {
    fn new(notation: Notation, patterns: &Patterns) -> Self {
        // HTML and JSON contain URLs, which may be percent-encoded.
        let further: &[Notation] = match notation {
            Notation::Backslash | Notation::Reference => &[Notation::Percent],
            _ => &[],
        };
        let layer = Layer::new(patterns, further);
        let (escape, escape_places) = (Vec::with_capacity(MAX_ESCAPE_BYTES), Vec::with_capacity(MAX_ESCAPE_BYTES));
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
                self.push_escape_byte(*byte, *place);
                (bytes, places) = (later, later_places);
            }
        }
        self.layer.feed(patterns, &self.bytes, &self.places, found);
    }

    /// Adds a byte to the current escape.
    fn push_escape_byte(&mut self, byte: u8, place: Place) {
        self.escape.push(byte);
        self.escape_places.push(place);
        while let Some(first) = self.escape_places.first() {
            let place = first.to(place);
            let mut written = [0; 4];
            let read: &[u8] = match self.notation.read(&self.escape) {
                Read::More => return,
                Read::Not => {
                    // The first byte stands for itself, and so do the bytes up to the next mark.
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

/// A search of one stream.
pub struct Search {
    layer: Layer,
    offset: u32,
    /// The places of the bytes of the last chunk.
    places: Vec<Place>,
}

impl Search {
    pub fn new(patterns: &Patterns) -> Self {
        use Notation::{Backslash, Percent, Quoted, Reference, Wide};
        let layer = Layer::new(patterns, &[Backslash, Percent, Reference, Quoted, Wide]);
        Self { layer, offset: 0, places: Vec::new() }
    }

    /// Searches the next piece of the stream, and adds the places of matches that end in it to `found`.
    pub fn feed(&mut self, patterns: &Patterns, piece: &[u8], found: &mut Vec<Place>) {
        for chunk in piece.chunks(CHUNK_BYTES) {
            let offset = self.offset;
            let place = |at| Place { start: offset.wrapping_add(at), end: offset.wrapping_add(at).wrapping_add(1) };
            self.places.clear();
            self.places.extend((0..chunk.len() as u32).map(place));
            self.layer.feed(patterns, chunk, &self.places, found);
            self.offset = offset.wrapping_add(chunk.len() as u32);
        }
    }
}
