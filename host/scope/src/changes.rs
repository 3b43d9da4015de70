//! What a call changes in its directories, as it is told before each change, and what it opens in them.

use std::{ffi::OsStr, fs::File};

/// A place in a folder, whether or not something is there.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The open folder.
    pub folder: &'a File,
    /// The name in it.
    pub name: &'a OsStr,
}

/// A change that is about to be made.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Something is made where nothing is.
    Make(At<'a>),
    /// The contents or the times of this file change.
    Write(&'a File),
    /// What is there is removed, or something else takes its place.
    Remove(At<'a>),
    /// What is at the first place moves to the second one, and replaces what is there.
    Move(At<'a>, At<'a>),
}

/// What was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// Is told of each change of a call before it is made, and keeps what it needs to take the change back. The last owner drops it when the
/// call has ended.
pub trait Changes: Send + Sync {
    /// Blocks until everything is kept. A change that cannot be taken back is made all the same.
    fn before(&self, change: Change<'_>);
    /// The last move of which this was told was not made.
    fn not_moved(&self);
    /// The call has made this file.
    fn made(&self, file: &File);
    /// The call has opened this file, or this folder, to read what is in it.
    fn opened(&self, _file: &File, _opened: Opened) {}
}
