//! Keeps what calls of plugins change in folders, and takes it back.
//!
//! Before a call first changes, moves or removes something, its [`Record`] notes it, and copies the contents of files. An [`UndoStore`] is a
//! folder of such records, with a bound in bytes and days. [`UndoStore::undo`] takes the changes of a call back, the last one first.
//!
//! A change is found again by the path of its folder, which may lead through no link, and by the numbers of that folder on disk. So what a
//! plugin puts in the place of a folder afterwards leads nowhere else. Nothing is taken back if anything that the call left has changed since
//! it ended. Contents that were copied can be read only after a change of their mode, which a plugin cannot make, even if the folder of the
//! store is open to it.

#![deny(missing_docs)]
#![expect(clippy::disallowed_methods, reason = "what is kept is written and read here, and put back in its place")]

mod back;
mod line;
mod place;
mod record;
mod store;
#[cfg(test)]
mod tests;

pub use back::{ChangedCall, NotUndone, Undone};
pub use line::Call;
pub use record::Record;
pub use store::UndoStore;
