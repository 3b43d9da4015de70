//! What wharf remembers of sessions that are not in memory: which ones their clients have ended, and when lists last changed. It stands in
//! a file, one line for each, so that a session that has ended does not come back after a restart.
//!
//! Ids of sessions are made known by nobody, so only their digests are kept, and only for as long as an id lives.

#![expect(clippy::disallowed_methods, reason = "wharf's own file is read here, at the start")]

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wharf_base::{
    appended::{self, Appended, AtPath},
    guard::check_private_file,
    party::Party,
    rewrite::{lock, rewrite},
    session_id::{lives, now},
    text::escaped,
};

/// The most ended sessions that are remembered. If there are more, the oldest of the client with the most are forgotten.
const MAX_ENDED: usize = 1 << 16;
/// How many lines may be added to the file before it is replaced.
const MAX_ADDED_LINES: usize = 2 * MAX_ENDED;

/// A part of the SHA-256 of an id.
type IdDigest = u128;

pub struct Remembered {
    lifetime: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ended: HashMap<IdDigest, Ended>,
    /// The digests of each client, the oldest first.
    by_owner: HashMap<u64, VecDeque<IdDigest>>,
    lists: Option<Lists>,
    /// When the last id was issued, in milliseconds since 1970.
    last_issued: u64,
    /// None: nothing outlives the process.
    file: Option<Appended>,
    /// How many lines were added since the file was last replaced.
    added: usize,
}

#[derive(Clone, Copy)]
struct Ended {
    /// The number of the client's party. After a restart it may be another one, which only tells what a client ended before from the rest.
    owner: u64,
    /// When the id was issued, in milliseconds since 1970.
    issued: u64,
}

/// The lists as they last were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lists {
    digest: u64,
    /// Since when they have been so, in milliseconds since 1970.
    since: u64,
}

fn digest_of(text: &str) -> u128 {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

impl Remembered {
    /// Reads the file, and forgets what is too old. `lifetime`: how long ids live. If the file cannot be used, this says so, and nothing is
    /// remembered beyond this process.
    pub fn open(path: Option<PathBuf>, lifetime: Duration) -> Self {
        let mut state = State::default();
        if let Some(path) = path
            && let Err(problem) = state.begin(&path, lifetime)
        {
            state = State::default();
            not_written(&problem);
        }
        Self { lifetime, state: Mutex::new(state) }
    }

    /// Remembers that a session of a client has ended.
    pub fn end(&self, id: &str, party: Party, issued: u64) {
        let (digest, ended) = (digest_of(id), Ended { owner: party.number(), issued });
        let mut state = self.state.lock();
        if state.add(digest, ended, self.lifetime) {
            state.write(&line_of(digest, ended), self.lifetime);
        }
    }

    pub fn has_ended(&self, id: &str) -> bool {
        self.state.lock().ended.contains_key(&digest_of(id))
    }

    /// Stores the lists as they are now, and returns since when they have been so, in milliseconds since 1970. `digest`: that of all lists,
    /// and of what decides who sees which of them.
    pub fn lists(&self, digest: u64) -> u64 {
        self.state.lock().lists(digest, self.lifetime)
    }

    /// Returns the time at which an id is issued: later than the last change of the lists, and not later than the next one.
    pub fn issue(&self, digest: u64) -> u64 {
        let mut state = self.state.lock();
        let since = state.lists(digest, self.lifetime);
        let issued = now().max(since + 1);
        state.last_issued = state.last_issued.max(issued);
        issued
    }
}

fn not_written(problem: &anyhow::Error) {
    let problem = escaped(&format!("{problem:#}"));
    tracing::warn!(
        "sessions that clients have ended can be used again after a restart, because they cannot be written: {problem}"
    );
}

fn line_of(digest: IdDigest, Ended { owner, issued }: Ended) -> String {
    format!("ended {digest:032x} {owner:016x} {issued}\n")
}

fn line_of_lists(Lists { digest, since }: Lists) -> String {
    format!("lists {digest:016x} {since}\n")
}

impl State {
    fn lists(&mut self, digest: u64, lifetime: Duration) -> u64 {
        match self.lists {
            Some(lists) if lists.digest == digest => lists.since,
            _ => {
                let lists = Lists { digest, since: now().max(self.last_issued) };
                self.lists = Some(lists);
                self.write(&line_of_lists(lists), lifetime);
                lists.since
            }
        }
    }

    /// Reads the file, replaces it by one without what is too old, and opens that.
    fn begin(&mut self, path: &Path, lifetime: Duration) -> Result<()> {
        rewrite(path, || {
            if path.try_exists()? {
                check_private_file(path, "file")?;
                self.read(&std::fs::read_to_string(path).context("it cannot be read")?, lifetime);
            }
            Ok(self.text())
        })?;
        let name = || path.display().to_string();
        self.file = Some(appended::open(path).and_then(|file| Appended::new(path, file)).with_context(name)?);
        self.added = 0;
        Ok(())
    }

    /// Adds what the lines of the file say. Half a line is left when a process is killed, and says nothing.
    fn read(&mut self, text: &str, lifetime: Duration) {
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["ended", digest, owner, issued] => {
                    let parsed = || {
                        let ended = Ended { owner: u64::from_str_radix(owner, 16).ok()?, issued: issued.parse().ok()? };
                        Some((u128::from_str_radix(digest, 16).ok()?, ended))
                    };
                    if let Some((digest, ended)) = parsed() {
                        self.add(digest, ended, lifetime);
                    }
                }
                ["lists", digest, since] => {
                    if let (Ok(digest), Ok(since)) = (u64::from_str_radix(digest, 16), since.parse()) {
                        self.lists = Some(Lists { digest, since });
                    }
                }
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        let mut text = self.lists.map(line_of_lists).unwrap_or_default();
        for digest in self.by_owner.values().flatten() {
            if let Some(ended) = self.ended.get(digest) {
                // Writing to a string does not fail.
                let _ = text.write_str(&line_of(*digest, *ended));
            }
        }
        text
    }

    /// Adds an ended session, unless its id has expired. Returns false if it is known already or has expired.
    fn add(&mut self, digest: IdDigest, ended: Ended, lifetime: Duration) -> bool {
        let now = now();
        let lives = |ended: &Ended| lives(now, ended.issued, lifetime);
        if !lives(&ended) || self.ended.contains_key(&digest) {
            return false;
        }
        if self.ended.len() >= MAX_ENDED {
            self.ended.retain(|_, ended| lives(ended));
            self.by_owner.retain(|_, own| {
                own.retain(|digest| self.ended.contains_key(digest));
                !own.is_empty()
            });
        }
        while self.ended.len() >= MAX_ENDED {
            let most = self.by_owner.iter().max_by_key(|(_, own)| own.len()).map(|(owner, _)| *owner);
            let Some(own) = most.and_then(|most| self.by_owner.get_mut(&most)) else { break };
            if let Some(oldest) = own.pop_front() {
                self.ended.remove(&oldest);
            }
        }
        self.ended.insert(digest, ended);
        self.by_owner.entry(ended.owner).or_default().push_back(digest);
        true
    }

    /// Appends a line to the file, which another process of the same config may have replaced.
    fn write(&mut self, line: &str, lifetime: Duration) {
        let Some(mut file) = self.file.take() else { return };
        let path = file.path().to_owned();
        let written = lock(&path).and_then(|_lock| {
            if file.place() != AtPath::Same {
                file.reopen()?;
            }
            Ok(file.write(line.as_bytes())?)
        });
        if let Err(problem) = written {
            not_written(&problem);
        }
        self.file = Some(file);
        self.added += 1;
        if self.added > MAX_ADDED_LINES
            && let Err(problem) = self.begin(&path, lifetime)
        {
            not_written(&problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use wharf_base::{party::party, principal::Principal};

    use super::*;

    const LIFETIME: Duration = Duration::from_secs(3600);

    fn at(folder: &tempfile::TempDir) -> Option<PathBuf> {
        Some(folder.path().join("state/x.sessions"))
    }

    #[test]
    fn what_has_ended_stays_ended_for_as_long_as_its_id_lives() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::open(at(&folder), LIFETIME);
        let now = now();
        for (id, issued) in [("new", now), ("old", now - 3_000_000), ("expired", now - 3_601_000)] {
            remembered.end(id, Party::of(1), issued);
        }
        let known = |remembered: &Remembered| ["new", "old", "expired", "other"].map(|id| remembered.has_ended(id));
        assert_eq!(known(&remembered), [true, true, false, false]);
        // As if a process had been killed while it wrote.
        let path = at(&folder).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("nonsense\n{text}ended 00ff")).unwrap();
        assert_eq!(known(&Remembered::open(at(&folder), LIFETIME)), [true, true, false, false]);
        let shorter = Remembered::open(at(&folder), LIFETIME / 2);
        assert_eq!(known(&shorter), [true, false, false, false]);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1, "the file is replaced");
        assert_eq!(known(&Remembered::open(None, LIFETIME)), [false; 4]);
    }

    #[test]
    fn processes_of_one_config_share_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let one = Remembered::open(at(&folder), LIFETIME);
        one.end("a", Party::of(1), now());
        let two = Remembered::open(at(&folder), LIFETIME);
        // The second one has replaced the file that the first one has open.
        one.end("b", Party::of(1), now());
        two.end("c", Party::of(1), now());
        let later = Remembered::open(at(&folder), LIFETIME);
        assert_eq!(["a", "b", "c"].map(|id| later.has_ended(id)), [true; 3]);
    }

    #[test]
    fn who_ends_most_is_forgotten_first() {
        let at = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let token = Principal::Token("t".into());
        for (principal, greedy, other) in [
            // Clients without credentials of their own are one principal, and differ by their address.
            (Principal::Anonymous, party(&Principal::Anonymous, at(1)), party(&Principal::Anonymous, at(2))),
            (token.clone(), party(&token, at(1)), party(&token, at(2))),
            (Principal::from("ann"), party(&"ann".into(), at(1)), party(&"ben".into(), at(1))),
        ] {
            let remembered = Remembered::open(None, LIFETIME);
            remembered.end("of another", other, now());
            for number in 0..MAX_ENDED {
                remembered.end(&number.to_string(), greedy, now());
            }
            let last = (MAX_ENDED - 1).to_string();
            let known = ["of another", "0", &last].map(|id| remembered.has_ended(id));
            assert_eq!(known, [true, false, true], "{principal}");
            assert_eq!(remembered.state.lock().ended.len(), MAX_ENDED);
        }
    }

    #[test]
    fn an_id_is_issued_between_two_changes_of_the_lists() {
        let folder = tempfile::tempdir().unwrap();
        let first = Remembered::open(at(&folder), LIFETIME);
        let (before, issued) = (first.lists(1), first.issue(1));
        assert!(before < issued && first.lists(1) == before);
        let again = Remembered::open(at(&folder), LIFETIME);
        assert_eq!(again.lists(1), before, "a restart alone changes nothing");
        // The lists are others for a while, and their clients are told so.
        assert!(first.lists(2) >= issued);
        let back = first.lists(1);
        assert!(back >= issued && first.issue(1) > back);
        assert_eq!(Remembered::open(at(&folder), LIFETIME).lists(1), back);
        assert!(Remembered::open(None, LIFETIME).lists(1) >= before, "nothing is known of before");
    }
}
