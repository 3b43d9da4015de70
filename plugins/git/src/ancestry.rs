//! Where the histories of two commits meet. The walks of the library leave out commits that are missing; here, such a commit is an error.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    rc::Rc,
};

use gix::{ObjectId, Repository};
use wharf_sdk::Result;

use crate::side::{self, object};

/// The commit can be reached from the first or the second one of those that are compared.
const ONE: u8 = 1;
const OTHER: u8 = 2;
const BOTH: u8 = ONE | OTHER;
/// The commit comes before one that can be reached from both.
const BEFORE: u8 = 4;
const QUEUED: u8 = 8;

struct Commit {
    time: i64,
    parents: Vec<ObjectId>,
}

/// The commits of a repository. Each one is read once.
pub struct Ancestry<'a> {
    repo: &'a Repository,
    commits: HashMap<ObjectId, Rc<Commit>>,
}

/// What two commits have in common, and what they do not.
pub struct Meeting {
    /// The latest commits that both have, the latest first.
    pub bases: Vec<ObjectId>,
    /// How many commits only the first one has.
    pub ahead: usize,
    /// How many commits only the second one has.
    pub behind: usize,
}

impl<'a> Ancestry<'a> {
    pub fn new(repo: &'a Repository) -> Self {
        Self { repo, commits: HashMap::new() }
    }

    fn read(&mut self, id: ObjectId) -> Result<Rc<Commit>> {
        if let Some(commit) = self.commits.get(&id) {
            return Ok(Rc::clone(commit));
        }
        let commit = object(self.repo, id)?.try_into_commit()?;
        let read = Rc::new(Commit { time: commit.time()?.seconds, parents: side::parents(self.repo, &commit)? });
        self.commits.insert(id, Rc::clone(&read));
        Ok(read)
    }

    /// Whether the history of a commit contains another one.
    pub fn contains(&mut self, of: ObjectId, commit: ObjectId) -> Result<bool> {
        Ok(Walk::between(self, of, commit)?.bases().contains(&commit))
    }

    pub fn meeting(&mut self, one: ObjectId, other: ObjectId) -> Result<Meeting> {
        let walk = Walk::between(self, one, other)?;
        let (ahead, behind) = (walk.count(ONE), walk.count(OTHER));
        let all = walk.bases();
        let mut bases = Vec::new();
        for base in &all {
            let mut earlier = false;
            for later in all.iter().filter(|later| *later != base) {
                earlier |= self.contains(*later, *base)?;
            }
            if !earlier {
                bases.push((self.read(*base)?.time, *base));
            }
        }
        bases.sort_by_key(|(time, _)| Reverse(*time));
        Ok(Meeting { bases: bases.into_iter().map(|(_, base)| base).collect(), ahead, behind })
    }
}

/// A walk from two commits towards their first ancestors, by time, until what is left can be reached from both.
#[derive(Default)]
struct Walk {
    marks: HashMap<ObjectId, u8>,
    /// Of two commits of one time, the one that was found first comes first.
    queue: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    pushed: usize,
    /// How many commits in the queue do not come before a common one.
    open: usize,
    /// The time of the oldest commit that was not known to be common when it was found.
    oldest: Option<i64>,
    /// Commits that both have, in the order in which they were found.
    common: Vec<ObjectId>,
}

impl Walk {
    fn between(ancestry: &mut Ancestry<'_>, one: ObjectId, other: ObjectId) -> Result<Self> {
        let mut walk = Self::default();
        walk.mark(ancestry, one, ONE)?;
        walk.mark(ancestry, other, OTHER)?;
        while let Some((time, _, id)) = walk.queue.pop() {
            // What is older than all other commits cannot change what they are.
            if walk.open == 0 && walk.oldest.is_none_or(|oldest| time < oldest) {
                break;
            }
            let Some(marks) = walk.marks.get_mut(&id) else { continue };
            *marks &= !QUEUED;
            let mut pass = *marks;
            if pass & BEFORE == 0 {
                walk.open = walk.open.saturating_sub(1);
                if pass == BOTH {
                    walk.common.push(id);
                    pass |= BEFORE;
                }
            }
            for parent in &ancestry.read(id)?.parents {
                walk.mark(ancestry, *parent, pass)?;
            }
        }
        Ok(walk)
    }

    fn mark(&mut self, ancestry: &mut Ancestry<'_>, id: ObjectId, marks: u8) -> Result<()> {
        let old = self.marks.get(&id).copied().unwrap_or_default();
        let new = old | marks;
        if new == old {
            return Ok(());
        }
        let is_open = |marks: u8| marks & BEFORE == 0;
        if old & QUEUED == 0 {
            let time = ancestry.read(id)?.time;
            self.queue.push((time, Reverse(self.pushed), id));
            self.pushed += 1;
            self.open += usize::from(is_open(new));
            if new & BOTH != BOTH {
                self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
            }
        } else if is_open(old) && !is_open(new) {
            self.open = self.open.saturating_sub(1);
        }
        self.marks.insert(id, new | QUEUED);
        Ok(())
    }

    /// Returns the common commits that do not come before another one, as far as the walk met it.
    fn bases(&self) -> Vec<ObjectId> {
        let is_last = |id: &&ObjectId| self.marks.get(*id).is_some_and(|marks| marks & BEFORE == 0);
        self.common.iter().filter(is_last).copied().collect()
    }

    fn count(&self, of: u8) -> usize {
        self.marks.values().filter(|marks| **marks & BOTH == of).count()
    }
}
