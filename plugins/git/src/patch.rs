//! Formats changes as text, like `git diff`.

use gix::{
    Repository,
    bstr::{BStr, BString, ByteSlice},
    diff::blob::{Algorithm, Diff, InternedInput, sources::byte_lines},
    prelude::ObjectIdExt,
};
use wharf_sdk::Result;

use crate::{
    changes::Change,
    side::{File, shown},
};

/// The number of bytes at the start of a file in which a zero marks it as binary.
const SNIFFED_BYTES: usize = 8000;
/// The maximum length of the function name in a hunk header, in bytes.
const MAX_SECTION_BYTES: usize = 80;

/// Formats changes as a patch.
pub fn text(repo: &Repository, changes: &[Change], context: u32) -> Result<String> {
    let mut text = Vec::new();
    for change in changes {
        one(repo, change, context, &mut text)?;
    }
    Ok(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn one(repo: &Repository, change: &Change, context: u32, to: &mut Vec<u8>) -> Result<()> {
    let path = |side: &Option<(BString, File)>| side.as_ref().map(|(path, _)| path.clone());
    let (Some(old_path), Some(new_path)) =
        (path(&change.old).or_else(|| path(&change.new)), path(&change.new).or_else(|| path(&change.old)))
    else {
        return Ok(());
    };
    let (old_name, new_name) = (named("a/", old_path.as_bstr()), named("b/", new_path.as_bstr()));
    line(to, format!("diff --git {old_name} {new_name}"));
    let (old, new) = (change.old.as_ref().map(|(_, file)| file), change.new.as_ref().map(|(_, file)| file));
    let mut mode = None;
    match (old, new) {
        (None, Some(new)) => line(to, format!("new file mode {:06o}", new.mode)),
        (Some(old), None) => line(to, format!("deleted file mode {:06o}", old.mode)),
        (Some(old), Some(new)) if old.mode != new.mode => {
            line(to, format!("old mode {:06o}", old.mode));
            line(to, format!("new mode {:06o}", new.mode));
        }
        (_, new) => mode = new.map(|file| format!(" {:06o}", file.mode)),
    }
    if let Some(similar) = change.similar {
        line(to, format!("similarity index {similar}%"));
        line(to, format!("rename from {}", shown(old_path.as_bstr())));
        line(to, format!("rename to {}", shown(new_path.as_bstr())));
    }
    let same = old.map(|file| file.id) == new.map(|file| file.id);
    // A submodule with changes has the same commit, and the patch says that it differs.
    if same && old.map(|file| file.dirty) == new.map(|file| file.dirty) {
        return Ok(());
    }
    let id = |file: Option<&File>| short(repo, file.map_or_else(|| repo.object_hash().null(), |file| file.id));
    if !same {
        line(to, format!("index {}..{}{}", id(old), id(new), mode.unwrap_or_default()));
    }
    let missing =
        |file: Option<&File>, name: &str| if file.is_some() { name.to_owned() } else { "/dev/null".to_owned() };
    let names = [missing(old, &old_name), missing(new, &new_name)];
    let hunks = hunks(repo, old, new, context)?;
    match hunks {
        None => line(to, format!("Binary files {} and {} differ", names[0], names[1])),
        Some(hunks) if hunks.is_empty() => {}
        Some(hunks) => {
            // A name with a space is followed by a tab, which marks its end.
            let tab = |name: &str| if name.contains(' ') && !name.starts_with('"') { "\t" } else { "" };
            line(to, format!("--- {}{}", names[0], tab(&names[0])));
            line(to, format!("+++ {}{}", names[1], tab(&names[1])));
            to.extend(hunks);
        }
    }
    Ok(())
}

fn line(to: &mut Vec<u8>, text: String) {
    to.extend(text.into_bytes());
    to.push(b'\n');
}

fn named(prefix: &str, path: &BStr) -> String {
    let mut name = BString::from(prefix);
    name.extend_from_slice(path);
    shown(name.as_bstr())
}

/// Abbreviates an id to the length that git uses in this repository.
pub fn short(repo: &Repository, id: gix::ObjectId) -> String {
    match id.attach(repo).shorten() {
        Ok(prefix) => prefix.to_string(),
        Err(_) => id.to_hex_with_len(7).to_string(),
    }
}

/// Returns the hunks, or `None` if one of the two versions is binary.
pub fn hunks(repo: &Repository, old: Option<&File>, new: Option<&File>, context: u32) -> Result<Option<Vec<u8>>> {
    let bytes = |file: Option<&File>| file.map_or_else(|| Ok(Default::default()), |file| file.bytes(repo));
    let (old, new) = (bytes(old)?, bytes(new)?);
    let binary = |bytes: &[u8]| bytes.iter().take(SNIFFED_BYTES).any(|byte| *byte == 0);
    if binary(&old) || binary(&new) {
        return Ok(None);
    }
    Ok(Some(unified(&old, &new, context)))
}

fn unified(old: &[u8], new: &[u8], context: u32) -> Vec<u8> {
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let (before, after): (Vec<&[u8]>, Vec<&[u8]>) =
        (old.lines_with_terminator().collect(), new.lines_with_terminator().collect());
    let mut groups: Vec<Vec<_>> = Vec::new();
    for hunk in diff.hunks() {
        match groups.last_mut() {
            Some(group)
                if group.last().is_some_and(|last: &gix::diff::blob::Hunk| {
                    hunk.before.start - last.before.end <= context.saturating_mul(2)
                }) =>
            {
                group.push(hunk)
            }
            _ => groups.push(vec![hunk]),
        }
    }
    let mut text = Vec::new();
    for group in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let lead = context.min(first.before.start).min(first.after.start);
        let end = |end: u32, lines: usize| end.saturating_add(context).min(lines as u32);
        let trail = (end(last.before.end, before.len()) - last.before.end)
            .min(end(last.after.end, after.len()) - last.after.end);
        let old_range = first.before.start - lead..last.before.end + trail;
        let new_range = first.after.start - lead..last.after.end + trail;
        text.extend(format!("@@ -{} +{} @@", range(&old_range), range(&new_range)).into_bytes());
        let above = before.get(..old_range.start as usize).unwrap_or_default();
        if let Some(section) = above.iter().rev().find(|line| begins_section(line)) {
            let section = section.get(..section.len().min(MAX_SECTION_BYTES)).unwrap_or_default();
            text.push(b' ');
            text.extend(section.trim_end());
        }
        text.push(b'\n');
        let mut at = old_range.start;
        let mut put = |sign: u8, lines: &[&[u8]], from: u32, to: u32| {
            for content in lines.get(from as usize..to as usize).unwrap_or_default() {
                text.push(sign);
                text.extend(*content);
                if !content.ends_with(b"\n") {
                    text.extend(b"\n\\ No newline at end of file\n");
                }
            }
        };
        for hunk in &group {
            put(b' ', &before, at, hunk.before.start);
            put(b'-', &before, hunk.before.start, hunk.before.end);
            put(b'+', &after, hunk.after.start, hunk.after.end);
            at = hunk.before.end;
        }
        put(b' ', &before, at, old_range.end);
    }
    text
}

/// Whether a line looks like the start of a function.
fn begins_section(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'))
}

/// Formats the range of a hunk: its first line and the number of lines. An empty range has the number of the line before it.
fn range(lines: &std::ops::Range<u32>) -> String {
    match lines.end - lines.start {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        many => format!("{},{many}", lines.start + 1),
    }
}
