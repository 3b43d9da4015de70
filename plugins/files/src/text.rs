//! Reads text whole or in part.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom},
    path::Path,
};

use wharf_sdk::{Error, Result};

use crate::{
    arguments::ReadText,
    encoding::{self, ByteOrder},
    paths::at_path,
    said::Said,
};

/// The maximum number of bytes of text in one answer. It must stay within the default limit of 4 MiB for an answer.
const MAX_BYTES: u64 = (4 << 20) - (64 << 10);
/// The number of bytes per read from the end of a file.
const CHUNK_BYTES: u64 = 64 << 10;

/// The requested part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// So many lines after the first `skipped` ones. `paged`: whether the answer says what follows.
    Lines {
        skipped: u64,
        wanted: u64,
        paged: bool,
    },
    Last(u64),
}

/// Reads the whole text.
pub fn read(path: &Path) -> Result<Said> {
    read_part(path, Part::Whole)
}

/// Reads the text for an edit. All of it must be UTF-8, because other bytes would be lost when the text is written back.
pub fn read_exact(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| at_path(path, error))?;
    String::from_utf8(bytes).map_err(|error| encoding::not_editable(path, error.as_bytes()))
}

/// Reads the requested part: the whole text, or some of its lines.
pub fn part(path: &Path, wanted: &ReadText) -> Result<Said> {
    read_part(path, wanted_part(wanted)?)
}

fn wanted_part(wanted: &ReadText) -> Result<Part> {
    // A `head`, `tail` or `limit` of zero counts as left out, as it does in the reference server.
    let (head, tail) = (count("head", wanted.head)?, count("tail", wanted.tail)?);
    let limit = wanted.limit.filter(|limit| *limit > 0);
    let page = match (wanted.offset, limit.map(u64::from)) {
        (None, None) => None,
        // From the end on. The text of a file is not counted from there, so that only its last lines can be given.
        (Some(offset @ ..0), limit) if limit.is_none_or(|limit| limit >= offset.unsigned_abs()) => {
            Some(Part::Last(offset.unsigned_abs()))
        }
        (Some(..0), Some(_)) => {
            return Err(Error::failed("a negative offset gives all lines from there to the end; leave out limit"));
        }
        (offset, limit) => Some(Part::Lines {
            skipped: offset.unwrap_or(1).max(1).unsigned_abs() - 1,
            wanted: limit.unwrap_or(u64::MAX),
            paged: true,
        }),
    };
    let range = match (wanted.start_line, wanted.end_line) {
        (None, None) => None,
        (start, end) => {
            let number = |name, line: Option<f64>, otherwise| match line {
                None => Ok(otherwise),
                Some(_) => count(name, line).map(Option::unwrap_or_default),
            };
            let (start, end) = (number("startLine", start, 1)?, number("endLine", end, u64::from(u32::MAX))?);
            if start == 0 || end < start {
                return Err(Error::failed("lines are counted from 1, and startLine comes before endLine"));
            }
            Some(Part::Lines { skipped: start - 1, wanted: end - start + 1, paged: false })
        }
    };
    let head = head.map(|wanted| Part::Lines { skipped: 0, wanted, paged: false });
    let tail = tail.map(Part::Last);
    if head.is_some() && tail.is_some() {
        return Err(Error::failed("Cannot specify both head and tail parameters simultaneously"));
    }
    let given: Vec<Part> = [head, tail, range, page].into_iter().flatten().collect();
    match given.as_slice() {
        [] => Ok(Part::Whole),
        [one] => Ok(*one),
        _ => Err(Error::failed("give only one of head, tail, startLine with endLine, and offset with limit")),
    }
}

/// Parses a number of lines. Some clients write integers as `1.0`.
fn count(name: &str, given: Option<f64>) -> Result<Option<u64>> {
    match given {
        None => Ok(None),
        Some(lines) if lines >= 0.0 && lines.fract() == 0.0 && lines <= f64::from(u32::MAX) => {
            Ok(Some(lines as u64).filter(|lines| *lines > 0))
        }
        Some(_) => Err(Error::failed(format!("{name} must be a number of lines"))),
    }
}

fn read_part(path: &Path, part: Part) -> Result<Said> {
    let failed = |error| at_path(path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut beginning = Vec::new();
    (&mut file).take(2).read_to_end(&mut beginning).map_err(failed)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let order = ByteOrder::of(&beginning);
    let too_large = match order {
        // Two bytes of UTF-16 are at most three of UTF-8. Its lines can be found only once it is decoded.
        Some(_) => (bytes / 2 * 3 > MAX_BYTES).then_some("it is UTF-16, of which parts cannot be read"),
        None => (bytes > MAX_BYTES && part == Part::Whole).then_some("read it in parts, with offset and limit"),
    };
    if let Some(way) = too_large {
        return Err(Error::failed(format!(
            "{}: its {bytes} bytes are more than fit into one answer ({MAX_BYTES}); {way}",
            path.display()
        )));
    }
    let Some(order) = order else {
        let (bytes, note) = select(path, BufReader::new(file), part)?;
        let mut said = encoding::decode(path, bytes)?;
        said.notes.extend(note);
        return Ok(said);
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let Said { text, mut notes } = encoding::utf16(path, order, &bytes)?;
    let (bytes, note) = select(path, Cursor::new(text.into_bytes()), part)?;
    notes.extend(note);
    Ok(Said { text: String::from_utf8_lossy(&bytes).into_owned(), notes })
}

/// Returns the bytes of a part, and a note about it.
fn select(path: &Path, mut from: impl BufRead + Seek, part: Part) -> Result<(Vec<u8>, Option<String>)> {
    match part {
        Part::Whole => {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).map_err(|error| at_path(path, error))?;
            Ok((bytes, None))
        }
        Part::Lines { skipped, wanted, paged } => lines(path, from, skipped, wanted, paged),
        Part::Last(wanted) => last_lines(path, from, wanted).map(|bytes| (bytes, None)),
    }
}

fn too_much(path: &Path) -> Error {
    Error::failed(format!("{}: these lines have more than {MAX_BYTES} bytes; ask for fewer", path.display()))
}

/// Reads the `wanted` lines after the first `skipped` ones, without the line ending of the last. The rest of the file is not read.
fn lines(
    path: &Path,
    mut from: impl BufRead,
    skipped: u64,
    wanted: u64,
    paged: bool,
) -> Result<(Vec<u8>, Option<String>)> {
    let failed = |error| at_path(path, error);
    for line in 0..skipped {
        if from.skip_until(b'\n').map_err(failed)? == 0 {
            let lines = if line == 1 { "1 line".to_owned() } else { format!("{line} lines") };
            return Ok((Vec::new(), Some(format!("The file has only {lines}."))));
        }
    }
    let mut bytes = Vec::new();
    let mut read = 0;
    while read < wanted {
        let left = (MAX_BYTES + 1).saturating_sub(bytes.len() as u64);
        if (&mut from).take(left).read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            break;
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_much(path));
        }
        read += 1;
    }
    let more = paged && !from.fill_buf().map_err(failed)?.is_empty();
    let next = more.then(|| format!("More lines follow, from offset {}.", skipped + read + 1));
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok((bytes, next))
}

/// Reads the last `wanted` lines, from the end of the file.
fn last_lines(path: &Path, mut from: impl Read + Seek, wanted: u64) -> Result<Vec<u8>> {
    let failed = |error| at_path(path, error);
    let mut start = from.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut pieces = VecDeque::new();
    let (mut bytes, mut ends) = (0_u64, 0_u64);
    while start > 0 {
        let length = start.min(CHUNK_BYTES);
        start -= length;
        from.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut piece = vec![0; usize::try_from(length).unwrap_or_default()];
        from.read_exact(&mut piece).map_err(failed)?;
        // The line ending at the end of the file does not separate two lines, so it is not counted.
        let text = if pieces.is_empty() { piece.strip_suffix(b"\n").unwrap_or(&piece) } else { &piece };
        for at in (0..text.len()).rev().filter(|at| text.get(*at) == Some(&b'\n')) {
            ends += 1;
            if ends == wanted {
                piece.drain(..=at);
                start = 0;
                break;
            }
        }
        bytes += piece.len() as u64;
        if bytes > MAX_BYTES {
            return Err(too_much(path));
        }
        pieces.push_front(piece);
    }
    Ok(pieces.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(json: serde_json::Value) -> Option<Part> {
        wanted_part(&serde_json::from_value(json).unwrap()).ok()
    }

    #[test]
    fn parts_are_named_in_several_ways_but_one_at_a_time() {
        use serde_json::json;
        let lines = |skipped, wanted, paged| Some(Part::Lines { skipped, wanted, paged });
        for (given, expected) in [
            (json!({ "path": "f" }), Some(Part::Whole)),
            (json!({ "path": "f", "head": 0, "tail": 0, "limit": 0 }), Some(Part::Whole)),
            (json!({ "path": "f", "offset": 5, "limit": 2 }), lines(4, 2, true)),
            (json!({ "path": "f", "offset": 0 }), lines(0, u64::MAX, true)),
            (json!({ "path": "f", "limit": 3 }), lines(0, 3, true)),
            (json!({ "path": "f", "offset": -5 }), Some(Part::Last(5))),
            (json!({ "path": "f", "offset": -5, "limit": 5 }), Some(Part::Last(5))),
            (json!({ "path": "f", "offset": -5, "limit": 2 }), None),
            (json!({ "path": "f", "offset": i64::MIN }), Some(Part::Last(1 << 63))),
            (json!({ "path": "f", "startLine": 2, "endLine": 2 }), lines(1, 1, false)),
            (json!({ "path": "f", "tail": 2.0 }), Some(Part::Last(2))),
            (json!({ "path": "f", "tail": 2, "limit": 3 }), None),
            (json!({ "path": "f", "startLine": 2, "offset": 3 }), None),
            (json!({ "path": "f", "startLine": 0 }), None),
            (json!({ "path": "f", "start_line": 3.0 }), lines(2, u64::from(u32::MAX) - 2, false)),
            (json!({ "path": "f", "head": 1.5 }), None),
        ] {
            assert_eq!(wanted(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn pages_say_what_follows_and_where_the_text_ends() {
        let page = |skipped, wanted| {
            let (bytes, note) = lines(Path::new("/f"), Cursor::new(b"a\nb\nc\n"), skipped, wanted, true).unwrap();
            (String::from_utf8(bytes).unwrap(), note)
        };
        let follows = |offset: u64| Some(format!("More lines follow, from offset {offset}."));
        assert_eq!(page(0, 2), ("a\nb".to_owned(), follows(3)));
        assert_eq!(page(1, 1), ("b".to_owned(), follows(3)));
        assert_eq!(page(2, 9), ("c".to_owned(), None));
        assert_eq!(page(3, 1).0, "");
        assert_eq!(page(5, 1), (String::new(), Some("The file has only 3 lines.".to_owned())));
    }
}
