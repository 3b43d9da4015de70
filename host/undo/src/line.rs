//! The lines of a record.

use rustix::fs::RawMode;
use serde::{Deserialize, Serialize};
use wharf_scope::FileIdentity;

use crate::place::{Place, Seen};

/// The call that a record belongs to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// When it began, in microseconds since 1970.
    pub time: u64,
    /// The id of its plugin.
    pub plugin: String,
    /// Its tool, or what else it was for.
    pub name: String,
    /// The session that it belongs to, as a word that reveals nothing.
    pub session: String,
}

/// A line of a record. All but the first and the last are changes, in the order in which they were made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Call(Call),
    /// Something was made where nothing was.
    Make(Place),
    /// The contents of a file changed.
    Write(Place, File),
    /// Something was removed or replaced.
    Remove(Place, Was),
    /// Something moved from the first place to the second one.
    Move(Place, Place),
    /// The last of these moves was not made.
    NotMoved,
    /// This change cannot be taken back.
    Not(String, String),
    /// The call has ended at this time, and this was in the places that it had changed.
    End(u64, Vec<(Place, Seen)>),
    /// The changes are being taken back: so many, from the last one on.
    Undoing(usize),
    /// What is here is left as it is, since it could not be moved back.
    LeftOut(Place),
    /// The changes were taken back.
    Undone,
}

impl Line {
    /// The places that the change is about.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        let (one, other) = match self {
            Self::Make(place) | Self::Write(place, _) | Self::Remove(place, _) => (Some(place), None),
            Self::Move(from, to) => (Some(from), Some(to)),
            Self::Call(_)
            | Self::Not(..)
            | Self::End(..)
            | Self::Undoing(_)
            | Self::NotMoved
            | Self::LeftOut(_)
            | Self::Undone => (None, None),
        };
        one.into_iter().chain(other)
    }
}

/// What was removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Was {
    File(File),
    /// One of several names of a file. A further one is in the folder of the record.
    Name(u32),
    Link(String),
    /// An empty folder, with its mode and its numbers on disk.
    Folder(RawMode, FileIdentity),
}

/// A file whose contents were kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct File {
    /// The name of the copy in the folder of the record.
    pub kept: u32,
    pub bytes: u64,
    pub mode: RawMode,
    /// The ids of its user and group.
    pub owner: (u32, u32),
    /// When it was last changed, in seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Its numbers on disk, if it had several names.
    pub shared: Option<FileIdentity>,
}
