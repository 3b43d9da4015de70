//! Globs with the syntax of minimatch, the reference server's matcher: `*`, `?` and classes within a name, `**` for any
//! folders, braces, groups such as `+(a|b)`, and a leading `!` that negates the pattern. Names that begin with a dot are not special. No
//! library for Rust supports all of this.
//!
//! Matching follows all paths through the pattern at the same time, like a nondeterministic automaton and without backtracking, and the
//! nesting of groups is limited. So the time of a match is bounded for every pattern (no ReDoS).

use std::{collections::HashSet, ops::RangeInclusive};

use wharf_sdk::{Error, Result};

use crate::braces::braces;

/// The maximum length of a pattern, in bytes.
const MAX_BYTES: usize = 4 << 10;
/// The maximum nesting depth of groups.
const MAX_DEPTH: usize = 16;
/// The maximum nesting depth of negated groups, `!(…)`, which are tried at every position.
const MAX_NOT_DEPTH: usize = 2;

/// A pattern for paths below a folder.
pub struct Glob {
    /// The patterns after brace expansion, each split at its slashes.
    any_of: Vec<Vec<Part>>,
    negated: bool,
}

enum Part {
    /// `**`
    Folders,
    Name(Vec<Piece>),
}

#[derive(Debug)]
enum Piece {
    Char(char),
    /// `?`
    Any,
    /// `*`
    Star,
    Class(Class),
    Group(Kind, Vec<Vec<Piece>>),
}

#[derive(Debug, Default)]
struct Class {
    negated: bool,
    ranges: Vec<RangeInclusive<char>>,
    named: Vec<fn(char) -> bool>,
}

/// How many times a group's alternatives must match in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Once,
    AtMostOnce,
    Often,
    AtLeastOnce,
    /// The group matches any text that does not match any of the alternatives.
    Not,
}

impl Glob {
    pub fn new(pattern: &str) -> Result<Self> {
        // A pattern that is empty or a comment matches no path.
        if pattern.is_empty() || pattern.starts_with('#') {
            return Ok(Self { any_of: Vec::new(), negated: false });
        }
        if pattern.len() > MAX_BYTES {
            return Err(Error::failed(format!("the pattern has more than {MAX_BYTES} bytes")));
        }
        let positive = pattern.trim_start_matches('!');
        let patterns = braces(positive)?;
        Ok(Self {
            any_of: patterns.iter().map(|pattern| parts(pattern)).collect::<Result<_>>()?,
            negated: (pattern.len() - positive.len()) % 2 == 1,
        })
    }

    /// Whether the path matches. It must not begin or end with a slash.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<Vec<char>> = path.split('/').map(|name| name.chars().collect()).collect();
        self.any_of.iter().any(|parts| path_fits(parts, &names)) != self.negated
    }
}

fn parts(pattern: &str) -> Result<Vec<Part>> {
    let all: Vec<&str> = pattern.split('/').collect();
    let mut names: Vec<&str> = Vec::new();
    for (at, name) in all.iter().copied().enumerate() {
        match (name, names.last()) {
            ("**", Some(&"**")) => {}
            // `..` cancels the name before it.
            ("..", Some(last)) if !matches!(*last, "" | "." | ".." | "**") => drop(names.pop()),
            // Repeated slashes count as one.
            ("", _) if at > 0 && at + 1 < all.len() => {}
            ("", Some(&"")) => {}
            _ => names.push(name),
        }
    }
    let part = |name: &&str| match *name {
        "**" => Ok(Part::Folders),
        name => {
            let pattern: Vec<char> = name.chars().collect();
            let mut reader = Reader { pattern: &pattern, unclosed: HashSet::new(), depth: 0, is_too_deep: false };
            let found = reader.pieces(&mut 0, false).0;
            match not_depth(&found) {
                not if reader.is_too_deep || not > MAX_NOT_DEPTH => Err(Error::failed(format!(
                    "groups in the pattern are nested more than {MAX_DEPTH} deep, or `!(` more than {MAX_NOT_DEPTH}"
                ))),
                _ => Ok(Part::Name(found)),
            }
        }
    };
    names.iter().map(part).collect()
}

fn path_fits(parts: &[Part], names: &[Vec<char>]) -> bool {
    // Dynamic programming. For each number of parts: whether the first parts of that number can match exactly the names so far.
    let mut fits = vec![false; parts.len() + 1];
    let skip_folders = |fits: &mut Vec<bool>| {
        for (at, part) in parts.iter().enumerate() {
            // At the end of a pattern, `**` matches at least one name; elsewhere it also matches no names.
            if matches!(part, Part::Folders) && at + 1 < parts.len() && fits.get(at) == Some(&true) {
                set(fits, at + 1);
            }
        }
    };
    set(&mut fits, 0);
    skip_folders(&mut fits);
    for name in names {
        let mut next = vec![false; parts.len() + 1];
        for (at, part) in parts.iter().enumerate().filter(|(at, _)| fits.get(*at) == Some(&true)) {
            match part {
                Part::Folders => {
                    set(&mut next, at);
                    set(&mut next, at + 1);
                }
                Part::Name(pieces) if name_fits(pieces, name) => set(&mut next, at + 1),
                Part::Name(_) => {}
            }
        }
        skip_folders(&mut next);
        fits = next;
    }
    fits.last() == Some(&true)
}

fn set(places: &mut [bool], at: usize) {
    if let Some(place) = places.get_mut(at) {
        *place = true;
    }
}

fn name_fits(pieces: &[Piece], name: &[char]) -> bool {
    let mut from = vec![false; name.len() + 1];
    set(&mut from, 0);
    after(pieces, name, from).last() == Some(&true)
}

/// Returns the positions in a name where a match of the pieces can end, if it begins at one of the positions in `from`.
fn after(pieces: &[Piece], name: &[char], from: Vec<bool>) -> Vec<bool> {
    pieces.iter().fold(from, |from, piece| {
        let one = |fits: &dyn Fn(char) -> bool| {
            let moved = from.iter().zip(name).map(|(here, char)| *here && fits(*char));
            std::iter::once(false).chain(moved).collect::<Vec<_>>()
        };
        match piece {
            Piece::Char(wanted) => one(&|char| char == *wanted),
            Piece::Any => one(&|_| true),
            Piece::Class(class) => one(&|char| class.has(char)),
            Piece::Star => {
                let mut seen = false;
                from.iter()
                    .map(|here| {
                        seen |= here;
                        seen
                    })
                    .collect()
            }
            Piece::Group(kind, alternatives) => after_group(*kind, alternatives, name, &from),
        }
    })
}

fn after_group(kind: Kind, alternatives: &[Vec<Piece>], name: &[char], from: &[bool]) -> Vec<bool> {
    let once = |from: &[bool]| {
        let all = alternatives.iter().map(|pieces| after(pieces, name, from.to_vec()));
        all.fold(vec![false; from.len()], |all, one| either(&all, &one))
    };
    match kind {
        Kind::Once => once(from),
        Kind::AtMostOnce => either(from, &once(from)),
        Kind::Often | Kind::AtLeastOnce => {
            let mut ends = if kind == Kind::Often { either(from, &once(from)) } else { once(from) };
            loop {
                let more = either(&ends, &once(&ends));
                if more == ends {
                    return ends;
                }
                ends = more;
            }
        }
        Kind::Not => {
            let mut ends = vec![false; from.len()];
            for start in (0..from.len()).filter(|at| from.get(*at) == Some(&true)) {
                let mut only = vec![false; from.len()];
                set(&mut only, start);
                let taken = once(&only);
                for end in (start..from.len()).filter(|end| taken.get(*end) == Some(&false)) {
                    set(&mut ends, end);
                }
            }
            ends
        }
    }
}

fn either(one: &[bool], other: &[bool]) -> Vec<bool> {
    one.iter().zip(other).map(|(one, other)| *one || *other).collect()
}

/// Returns the nesting depth of negated groups.
fn not_depth(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Group(kind, alternatives) => {
            let deepest = alternatives.iter().map(|pieces| not_depth(pieces)).max().unwrap_or(0);
            deepest + usize::from(*kind == Kind::Not)
        }
        _ => 0,
    };
    pieces.iter().map(of).max().unwrap_or(0)
}

/// Parses the pattern of one name.
struct Reader<'a> {
    pattern: &'a [char],
    /// The positions of groups without an end, so that none of them is parsed twice.
    unclosed: HashSet<usize>,
    /// The nesting depth of the group that is being parsed, and whether the maximum was exceeded.
    depth: usize,
    is_too_deep: bool,
}

impl Reader<'_> {
    /// Parses pieces from `at` on: to the end of the pattern or, within a group, to the `|` or `)` that ends the alternative.
    /// Also returns whether that end was found.
    fn pieces(&mut self, at: &mut usize, in_group: bool) -> (Vec<Piece>, bool) {
        let mut found = Vec::new();
        while let Some(char) = self.pattern.get(*at) {
            if in_group && matches!(char, '|' | ')') {
                return (found, true);
            }
            if let Some(piece) = self.group(at).or_else(|| class(self.pattern, at)) {
                found.push(piece);
                continue;
            }
            *at += 1;
            found.push(match char {
                '*' => Piece::Star,
                '?' => Piece::Any,
                '\\' if *at < self.pattern.len() => {
                    *at += 1;
                    Piece::Char(self.pattern.get(*at - 1).copied().unwrap_or('\\'))
                }
                other => Piece::Char(*other),
            });
        }
        (found, !in_group)
    }

    /// Parses the group that begins at `at`; returns `None` if no group begins there, or if it has no end.
    fn group(&mut self, at: &mut usize) -> Option<Piece> {
        let kind = match self.pattern.get(*at)? {
            '@' => Kind::Once,
            '?' => Kind::AtMostOnce,
            '*' => Kind::Often,
            '+' => Kind::AtLeastOnce,
            '!' => Kind::Not,
            _ => return None,
        };
        if self.pattern.get(*at + 1) != Some(&'(') || self.unclosed.contains(at) {
            return None;
        }
        self.is_too_deep |= self.depth == MAX_DEPTH;
        if self.is_too_deep {
            return None;
        }
        let (mut end, mut alternatives) = (*at + 2, Vec::new());
        loop {
            self.depth += 1;
            let (alternative, ended) = self.pieces(&mut end, true);
            self.depth -= 1;
            if !ended {
                self.unclosed.insert(*at);
                return None;
            }
            alternatives.push(alternative);
            end += 1;
            if self.pattern.get(end - 1) == Some(&')') {
                *at = end;
                return Some(Piece::Group(kind, alternatives));
            }
        }
    }
}

/// Parses the character class that begins at `at`; returns `None` if no class begins there, or if it has no end.
fn class(pattern: &[char], at: &mut usize) -> Option<Piece> {
    if pattern.get(*at) != Some(&'[') {
        return None;
    }
    let mut class = Class::default();
    let mut end = *at + 1;
    if matches!(pattern.get(end), Some('!' | '^')) {
        class.negated = true;
        end += 1;
    }
    let first = end;
    loop {
        let mut char = *pattern.get(end)?;
        if char == ']' && end > first {
            *at = end + 1;
            return Some(Piece::Class(class));
        }
        if let Some((named, length)) = named_class(pattern.get(end..)?) {
            class.named.push(named);
            end += length;
            continue;
        }
        if char == '\\' {
            end += 1;
            char = *pattern.get(end)?;
        }
        end += 1;
        match (pattern.get(end), pattern.get(end + 1)) {
            (Some('-'), Some(last)) if *last != ']' => {
                let escaped = *last == '\\';
                let last = if escaped { *pattern.get(end + 2)? } else { *last };
                end += if escaped { 3 } else { 2 };
                // A reversed range contains no characters.
                class.ranges.push(char..=last);
            }
            _ => class.ranges.push(char..=char),
        }
    }
}

type Test = fn(char) -> bool;

const NAMED: [(&str, Test); 14] = [
    ("[:alnum:]", char::is_alphanumeric),
    ("[:alpha:]", char::is_alphabetic),
    ("[:ascii:]", |char| char.is_ascii()),
    ("[:blank:]", |char| char == ' ' || char == '\t'),
    ("[:cntrl:]", char::is_control),
    ("[:digit:]", char::is_numeric),
    ("[:graph:]", |char| !char.is_whitespace() && !char.is_control()),
    ("[:lower:]", char::is_lowercase),
    ("[:print:]", |char| !char.is_control()),
    ("[:punct:]", |char| char.is_ascii_punctuation()),
    ("[:space:]", char::is_whitespace),
    ("[:upper:]", char::is_uppercase),
    ("[:word:]", |char| char.is_alphanumeric() || char == '_'),
    ("[:xdigit:]", |char| char.is_ascii_hexdigit()),
];

fn named_class(pattern: &[char]) -> Option<(Test, usize)> {
    let begins = |name: &str| name.chars().enumerate().all(|(at, char)| pattern.get(at) == Some(&char));
    NAMED.iter().find(|(name, _)| begins(name)).map(|(name, test)| (*test, name.len()))
}

impl Class {
    fn has(&self, char: char) -> bool {
        let has = self.ranges.iter().any(|range| range.contains(&char)) || self.named.iter().any(|test| test(char));
        has != self.negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_what_the_reference_servers_matcher_does() {
        for (pattern, fits, fails) in [
            ("*.rs", &["a.rs", ".rs"][..], &["a/b.rs", "a.rss"][..]),
            ("**/*.rs", &["a.rs", "a/b.rs", ".git/b.rs"], &["a.r"]),
            ("**", &["a", "a/b"], &[]),
            ("a/**", &["a/b", "a/b/c"], &["a", "b"]),
            ("a/**/b", &["a/b", "a/x/y/b"], &["a/x", "ab"]),
            ("**/a/**", &["a/b", "x/a/b"], &["a", "x/a"]),
            ("?", &["a", "é", "日"], &["ab", ""]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a]x", &["bx"], &["ax"]),
            ("[^a]x", &["bx"], &["ax"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a-]", &["-", "a"], &["b"]),
            ("[z-a]", &[], &["z", "a", "m"]),
            ("[[:digit:]]", &["7"], &["a"]),
            ("[", &["["], &["a"]),
            ("[ab", &["[ab"], &["a"]),
            ("a{b,c}", &["ab", "ac"], &["a{b,c}"]),
            ("a{,b}", &["a", "ab"], &["ac"]),
            ("{a,b{c,d}}", &["a", "bc", "bd"], &["b"]),
            ("{y}.txt", &["{y}.txt"], &["y.txt"]),
            ("{1..3}", &["1", "3"], &["4", "{1..3}"]),
            ("{01..10}", &["01", "10"], &["1"]),
            ("{c..a}", &["a", "b", "c"], &["d"]),
            ("{a..e..2}", &["a", "c", "e"], &["b"]),
            ("${a,b}", &["${a,b}"], &["$a"]),
            ("{a", &["{a"], &["a"]),
            ("+(a|b)", &["a", "ab", "bab"], &["", "c"]),
            ("?(a)b", &["b", "ab"], &["aab"]),
            ("*(a)b", &["b", "aab"], &["cb"]),
            ("@(a|b).rs", &["a.rs"], &["ab.rs", ".rs"]),
            ("*.!(rs)", &["a.js", "a.b.js"], &["rs"]),
            ("x/!(a)", &["x/b", "x/ab"], &["x/a"]),
            ("@(a", &["@(a"], &["a"]),
            ("!*.rs", &["a.js", "a/b.rs"], &["a.rs"]),
            ("!!*.rs", &["a.rs"], &["a.js"]),
            ("#a", &[], &["#a"]),
            ("\\*", &["*"], &["a"]),
            ("\\{a,b}", &["{a,b}"], &["a"]),
            ("", &[], &["a"]),
            ("a//b", &["a/b"], &["a"]),
            ("a/", &[], &["a"]),
            ("/a", &[], &["a"]),
            ("x/../a", &["a"], &["x/a"]),
            ("**/../a", &[], &["a"]),
        ] {
            let glob = Glob::new(pattern).unwrap();
            for (paths, expected) in [(fits, true), (fails, false)] {
                for path in paths {
                    assert_eq!(glob.matches(path), expected, "{pattern} {path}");
                }
            }
        }
        assert!(Glob::new("{1..100000}").is_err());
        assert!(Glob::new("{1..999}{1..999}").is_err());
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let began = std::time::Instant::now();
        let name = "a".repeat(255);
        for pattern in [
            format!("{}b", "*(*(*(a)))".repeat(20)),
            "@(".repeat(MAX_DEPTH),
            "x!(*!(*b))*!(*!(*b))b".to_owned(),
            format!("{}b", "*".repeat(4000)),
        ] {
            assert!(!Glob::new(&pattern).unwrap().matches(&name), "{pattern}");
        }
        for pattern in [
            "x!(*!(*!(*!(a))))".to_owned(),
            format!("{}a{}", "@(".repeat(100), ")".repeat(100)),
            "@(".repeat(2000),
            "x".repeat(5000),
            "{{1..9999},{1..9999}}".to_owned(),
        ] {
            assert!(Glob::new(&pattern).is_err(), "{pattern}");
        }
        assert!(Glob::new(&format!("{{{}1..2}}", "0".repeat(3000))).is_ok());
        assert!(began.elapsed().as_secs() < 10);
    }
}
