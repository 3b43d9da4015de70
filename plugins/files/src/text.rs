//! Reads text whole or in part, and replaces a file atomically.

use std::{
    collections::VecDeque,
    fs::{self, File},
    hash::{BuildHasher, Hasher, RandomState},
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use wharf_sdk::{Error, Result};

use crate::{
    arguments::ReadText,
    paths::{at_path, follow},
};

/// The maximum number of bytes of a file in one answer. They are sent twice, as text and as structured content, and both together must stay
/// within the default limit of 4 MiB for an answer.
const MAX_BYTES: u64 = (2 << 20) - (64 << 10);
/// The number of bytes per read from the end of a file.
const CHUNK_BYTES: u64 = 64 << 10;

/// Reads the whole text. Bytes that are not UTF-8 become U+FFFD.
pub fn read(path: &Path) -> Result<String> {
    let bytes = fs::metadata(path).map_err(|error| at_path(path, error))?.len();
    if bytes > MAX_BYTES {
        return Err(Error::failed(format!(
            "{}: its {bytes} bytes are more than fit into one answer ({MAX_BYTES}); read it in parts, with head, tail, or startLine \
             and endLine",
            path.display()
        )));
    }
    let bytes = fs::read(path).map_err(|error| at_path(path, error))?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Reads the text for an edit. All of it must be UTF-8, because other bytes would be lost when the text is written back.
pub fn read_exact(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| at_path(path, error))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::failed(format!("{}: it is not UTF-8, so editing it would damage it", path.display())))
}

/// Reads the requested part: the whole text, or some of its lines.
pub fn part(path: &Path, wanted: &ReadText) -> Result<String> {
    // A `head` or `tail` of zero counts as left out, as it does in the reference server.
    let (head, tail) = (count("head", wanted.head)?, count("tail", wanted.tail)?);
    let range = (wanted.start_line.is_some() || wanted.end_line.is_some())
        .then(|| (wanted.start_line.unwrap_or(1), wanted.end_line.unwrap_or(u32::MAX)));
    match (head, tail, range) {
        (None, None, None) => read(path),
        (Some(head), None, None) => lines(path, 0, head),
        (None, Some(tail), None) => last_lines(path, tail),
        (None, None, Some((start, end))) if start > 0 && end >= start => {
            lines(path, u64::from(start) - 1, u64::from(end - start) + 1)
        }
        (None, None, Some(_)) => Err(Error::failed("lines are counted from 1, and startLine comes before endLine")),
        (Some(_), Some(_), _) => Err(Error::failed("Cannot specify both head and tail parameters simultaneously")),
        _ => Err(Error::failed("give only one of head, tail, and startLine with endLine")),
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

fn too_much(path: &Path) -> Error {
    Error::failed(format!("{}: these lines have more than {MAX_BYTES} bytes; ask for fewer", path.display()))
}

/// Reads the `wanted` lines after the first `skipped` ones, without the line ending of the last. The rest of the file is not read.
fn lines(path: &Path, skipped: u64, wanted: u64) -> Result<String> {
    let failed = |error| at_path(path, error);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    for _ in 0..skipped {
        if file.skip_until(b'\n').map_err(failed)? == 0 {
            return Ok(String::new());
        }
    }
    let mut bytes = Vec::new();
    for _ in 0..wanted {
        let left = (MAX_BYTES + 1).saturating_sub(bytes.len() as u64);
        if (&mut file).take(left).read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            break;
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_much(path));
        }
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the last `wanted` lines, from the end of the file.
fn last_lines(path: &Path, wanted: u64) -> Result<String> {
    let failed = |error| at_path(path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut start = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut pieces = VecDeque::new();
    let (mut bytes, mut ends) = (0_u64, 0_u64);
    while start > 0 {
        let length = start.min(CHUNK_BYTES);
        start -= length;
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut piece = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact(&mut piece).map_err(failed)?;
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
    let bytes: Vec<u8> = pieces.into_iter().flatten().collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces the text of a file. The text is written to a temporary file, which is then renamed, so that readers see either the old text or
/// the new one.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    if path.is_dir() {
        return Err(Error::failed(format!("{}: is a directory", path.display())));
    }
    // If the path is a link, the file that it leads to is replaced, and the link stays. If only the sandbox can resolve the link, the file
    // is written in place.
    let leads = if path.is_symlink() { follow(path) } else { Some(path.to_path_buf()) };
    let Some(path) = leads.as_deref() else {
        return fs::write(path, text).map_err(|error| at_path(path, error));
    };
    // The name is random, because others may write the same file at the same time. It does not contain the file's own name,
    // which may be as long as names can be.
    let temporary = path.with_file_name(format!(".wharf-{:016x}", RandomState::new().build_hasher().finish()));
    let mut new = File::create_new(&temporary).map_err(|error| at_path(path, error))?;
    let written = std::io::Write::write_all(&mut new, text.as_bytes()).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        fs::remove_file(&temporary).ok();
        at_path(path, error)
    })
}
