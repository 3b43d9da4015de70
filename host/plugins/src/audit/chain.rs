//! The hash chain. Each line contains its number and the SHA-256 of the previous line, so a line that was changed, removed or moved no
//! longer fits its neighbours. Lines cut off at the end leave no trace in the chain; this is only noticed by comparing with a hash that
//! was stored elsewhere.

use std::{fmt, io::Write};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use wharf_base::text::{hex, hex_digest};

/// The SHA-256 of a line, without its line break.
pub type Hash = [u8; 32];

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of the last line; 0 if the chain is empty.
    pub seq: u64,
    /// The hash of the last line; all zeros if the chain is empty.
    pub hash: Hash,
}

/// The members of a line that link it to the previous one.
#[derive(Deserialize)]
struct Link<'a> {
    seq: u64,
    #[serde(borrow)]
    prev: &'a str,
}

impl Head {
    /// The head of a chain without lines.
    pub const NONE: Self = Self { seq: 0, hash: [0; 32] };

    /// Returns the number of the next line.
    pub fn next(self) -> u64 {
        self.seq.saturating_add(1)
    }

    /// Appends a line with these members of a JSON object, such as `"event":"start"`, to `out`. Returns the new head. `first`: a member that
    /// comes before them, with a comma, or nothing.
    pub fn append(self, first: &[u8], members: &[u8], out: &mut Vec<u8>) -> Self {
        let seq = self.next();
        let begin = out.len();
        // Room for the rest of the line.
        out.reserve(first.len() + members.len() + 128);
        // Writing to memory cannot fail.
        write!(out, "{{\"seq\":{seq},\"prev\":\"").unwrap_or_default();
        out.extend_from_slice(&hex_digest(&self.hash));
        out.extend_from_slice(b"\",");
        out.extend_from_slice(first);
        out.extend_from_slice(members);
        out.push(b'}');
        let hash = Sha256::digest(out.get(begin..).unwrap_or_default()).into();
        out.push(b'\n');
        Self { seq, hash }
    }

    /// Returns the head of a chain that ends with this line, or `None` if it is not a line of an audit log.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let link: Link<'_> = serde_json::from_slice(line).ok()?;
        let complete = link.seq > 0 && link.prev.len() == 64;
        complete.then(|| Self { seq: link.seq, hash: Sha256::digest(line).into() })
    }
}

/// Why a line does not continue the chain.
#[derive(Debug, PartialEq, Eq)]
pub enum Break {
    /// It is not a line of an audit log.
    NoLine,
    /// The number is not the next one.
    Number { expected: u64, found: u64 },
    /// The number is right, but the hash is not that of the previous line.
    Hash { before: u64 },
    /// Line 1 contains the hash of a previous line.
    Beginning,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLine => f.write_str("this is not a line of an audit log"),
            Self::Number { expected, found } if found > expected => {
                write!(
                    f,
                    "line {expected} is expected, but this is line {found}: lines are missing, or their order was changed"
                )
            }
            Self::Number { expected, found } => {
                write!(
                    f,
                    "line {expected} is expected, but this is line {found}: a line is repeated, or the order was changed"
                )
            }
            Self::Hash { before } => write!(
                f,
                "the hash in line {} is not that of line {before}: one of them was changed after it was written",
                before.saturating_add(1)
            ),
            Self::Beginning => {
                f.write_str("line 1 contains the hash of a previous line: it was changed after it was written")
            }
        }
    }
}

/// Verifies a chain, line by line.
#[derive(Default)]
pub struct Verifier {
    /// The number of the first line.
    pub first: Option<u64>,
    head: Option<Head>,
    wanted: Vec<Hash>,
    /// The hashes that are searched for and were found, with the numbers of their lines.
    pub found: Vec<(Hash, u64)>,
}

impl Verifier {
    /// Creates a verifier for an empty chain. `wanted`: hashes to search for among those of the lines.
    pub fn new(wanted: &[Hash]) -> Self {
        Self { wanted: wanted.to_vec(), ..Self::default() }
    }

    /// Verifies the next line, given without its line break. The very first line may have any number, because old files are removed.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Break> {
        let link: Link<'_> = serde_json::from_slice(line).map_err(|_| Break::NoLine)?;
        match self.head {
            Some(head) if link.seq != head.next() => {
                return Err(Break::Number { expected: head.next(), found: link.seq });
            }
            Some(head) if link.prev != hex(&head.hash) => return Err(Break::Hash { before: head.seq }),
            None if link.seq == 1 && link.prev != hex(&Head::NONE.hash) => return Err(Break::Beginning),
            _ => {}
        }
        let head = Head::of_line(line).ok_or(Break::NoLine)?;
        self.first.get_or_insert(head.seq);
        if self.wanted.contains(&head.hash) {
            self.found.push((head.hash, head.seq));
        }
        self.head = Some(head);
        Ok(())
    }

    /// Returns the end of the chain so far.
    pub fn head(&self) -> Head {
        self.head.unwrap_or(Head::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(lines: usize) -> Vec<Vec<u8>> {
        let mut head = Head::NONE;
        let mut all = Vec::new();
        for number in 0..lines {
            let mut line = Vec::new();
            head = head.append(b"", format!("\"event\":\"e{number}\"").as_bytes(), &mut line);
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(Head::of_line(&line), Some(head));
            all.push(line);
        }
        all
    }

    /// Returns the index of the line at which the chain breaks, and the kind of break.
    fn broken(lines: &[Vec<u8>]) -> Option<(usize, Break)> {
        let mut verifier = Verifier::default();
        lines.iter().enumerate().find_map(|(at, line)| verifier.line(line).err().map(|wrong| (at, wrong)))
    }

    #[test]
    fn what_is_changed_is_found() {
        let edit = |line: &mut Vec<u8>, from: &str, to: &str| {
            *line = String::from_utf8(line.clone()).unwrap().replace(from, to).into_bytes();
        };
        type Change<'a> = &'a dyn Fn(&mut Vec<Vec<u8>>);
        type Case<'a> = (&'a str, Change<'a>, Option<(usize, Break)>);
        let cases: [Case<'_>; 11] = [
            ("nothing", &|_| {}, None),
            ("the oldest lines are gone", &|all| drop(all.drain(..2)), None),
            ("an edit", &|all| edit(&mut all[2], "e2", "f2"), Some((3, Break::Hash { before: 3 }))),
            ("an edit of the first", &|all| edit(&mut all[0], "e0", "f0"), Some((1, Break::Hash { before: 1 }))),
            ("an added space", &|all| all[2].insert(1, b' '), Some((3, Break::Hash { before: 3 }))),
            ("a deletion", &|all| drop(all.remove(2)), Some((2, Break::Number { expected: 3, found: 4 }))),
            ("an exchange", &|all| all.swap(1, 2), Some((1, Break::Number { expected: 2, found: 3 }))),
            ("a repetition", &|all| all.insert(2, all[1].clone()), Some((2, Break::Number { expected: 3, found: 2 }))),
            ("a foreign line", &|all| all.insert(2, b"{}".to_vec()), Some((2, Break::NoLine))),
            ("a foreign beginning", &|all| edit(&mut all[0], "0000", "0001"), Some((0, Break::Beginning))),
            (
                "a deletion, and the numbers after it adapted",
                &|all| {
                    all.remove(2);
                    edit(&mut all[2], "\"seq\":4", "\"seq\":3");
                    edit(&mut all[3], "\"seq\":5", "\"seq\":4");
                },
                Some((2, Break::Hash { before: 2 })),
            ),
        ];
        for (what, change, expected) in cases {
            let mut lines = chain(5);
            change(&mut lines);
            assert_eq!(broken(&lines), expected, "{what}");
        }
    }

    #[test]
    fn what_is_cut_off_is_found_by_who_kept_a_head() {
        let lines = chain(5);
        let kept = Head::of_line(&lines[3]).unwrap().hash;
        for (left, found) in [(5, Some(4)), (4, Some(4)), (3, None), (0, None)] {
            let mut verifier = Verifier::new(&[[1; 32], kept]);
            lines[..left].iter().for_each(|line| verifier.line(line).unwrap());
            assert_eq!(verifier.found.pop(), found.map(|number| (kept, number)), "{left} lines");
        }
    }

    #[test]
    fn only_lines_of_a_log_have_a_head() {
        let zeros = "0".repeat(64);
        for (line, is_one) in [
            (format!("{{\"seq\":1,\"prev\":\"{zeros}\"}}"), true),
            (format!("{{\"seq\":0,\"prev\":\"{zeros}\"}}"), false),
            (format!("{{\"seq\":1,\"seq\":2,\"prev\":\"{zeros}\"}}"), false),
            ("{\"seq\":1,\"prev\":\"00\"}".into(), false),
            ("{\"seq\":1}".into(), false),
            ("[1]".into(), false),
            (String::new(), false),
        ] {
            assert_eq!(Head::of_line(line.as_bytes()).is_some(), is_one, "{line}");
        }
    }
}
