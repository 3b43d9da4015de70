//! Brace expansion in globs: `{a,b}` and `{1..9}` stand for several patterns.

use wharf_sdk::{Error, Result};

/// The maximum number of patterns that a pattern may expand to.
const MAX_PATTERNS: usize = 10_000;
/// The maximum number of digits of a number in braces.
const MAX_DIGITS: usize = 20;

/// Expands the braces of a pattern: `{a,b}` and `{1..9}`, with steps as in `{a..e..2}`.
pub fn braces(pattern: &str) -> Result<Vec<String>> {
    let Some((before, body, behind)) = first_braces(pattern) else { return Ok(vec![pattern.to_owned()]) };
    let rest = braces(behind)?;
    let options: Vec<String> = if before.ends_with('$') {
        vec![format!("{{{body}}}")]
    } else if let Some(sequence) = sequence(body) {
        sequence?
    } else {
        let options = split_options(body);
        let mut nested = Vec::new();
        for option in &options {
            nested.extend(braces(option)?);
            if nested.len() > MAX_PATTERNS {
                return Err(too_many());
            }
        }
        // Braces with only one option are ordinary characters.
        if options.len() > 1 { nested } else { nested.iter().map(|option| format!("{{{option}}}")).collect() }
    };
    if options.len().saturating_mul(rest.len()) > MAX_PATTERNS {
        return Err(too_many());
    }
    let with_rest = |option: &String| rest.iter().map(|rest| format!("{before}{option}{rest}")).collect::<Vec<_>>();
    Ok(options.iter().flat_map(with_rest).collect())
}

fn too_many() -> Error {
    Error::failed(format!("the braces in the pattern stand for more than {MAX_PATTERNS} patterns"))
}

/// Returns the text before, within and after the first pair of braces.
fn first_braces(pattern: &str) -> Option<(&str, &str, &str)> {
    let mut open: Vec<usize> = Vec::new();
    let mut found: Option<(usize, usize)> = None;
    let mut escaped = false;
    for (at, char) in pattern.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => open.push(at),
            '}' => {
                if let Some(start) = open.pop() {
                    // An outer pair is found after those in it.
                    if found.is_none_or(|(first, _)| start < first) {
                        found = Some((start, at));
                    }
                    if open.is_empty() {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    let (start, end) = found?;
    Some((pattern.get(..start)?, pattern.get(start + 1..end)?, pattern.get(end + 1..)?))
}

/// Splits the text within braces at its commas, except those within inner braces.
fn split_options(body: &str) -> Vec<String> {
    let (mut options, mut depth, mut escaped) = (vec![String::new()], 0_usize, false);
    for char in body.chars() {
        let splits = char == ',' && depth == 0 && !escaped;
        match char {
            _ if escaped => {}
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = char == '\\' && !escaped;
        if splits {
            options.push(String::new());
        } else if let Some(last) = options.last_mut() {
            last.push(char);
        }
    }
    options
}

/// Expands `1..9`, `01..10`, `a..e` or `a..e..2`; returns `None` for any other text.
fn sequence(body: &str) -> Option<Result<Vec<String>>> {
    let mut ends = body.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() || first.len().max(last.len()) > MAX_DIGITS {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    let letter = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|char| char.is_ascii_alphabetic() && chars.next().is_none())
    };
    let (from, to, letters) = match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(from), Ok(to)) => (from, to, false),
        _ => (i64::from(u32::from(letter(first)?)), i64::from(u32::from(letter(last)?)), true),
    };
    let count = from.abs_diff(to) / step;
    if count >= MAX_PATTERNS as u64 {
        return Some(Err(too_many()));
    }
    let padded = [first, last].iter().any(|end| {
        let digits = end.trim_start_matches('-');
        !letters && digits.len() > 1 && digits.starts_with('0')
    });
    let width = if padded { first.len().max(last.len()) } else { 0 };
    let one = |at: u64| {
        let moved = i64::try_from(at * step).unwrap_or_default();
        let value = if to >= from { from + moved } else { from - moved };
        match u32::try_from(value).ok().and_then(char::from_u32).filter(|_| letters) {
            Some(letter) => letter.to_string(),
            None => format!("{value:0width$}"),
        }
    };
    Some(Ok((0..=count).map(one).collect()))
}
