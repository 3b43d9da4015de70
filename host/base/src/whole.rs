//! Detects whether a file is completely written, or a program is still writing it (debounce).
//!
//! A file that was renamed into its place is complete at once. A file that is written in place is complete when no writer has it open
//! any more and it has not changed for a while. A config that is read earlier may lack its end, and a limit that is missing there
//! would open something that the operator closed.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, ModifyKind, RenameMode},
};
use parking_lot::Mutex;

use super::paths::{Stamp, hops};

/// How long a file that is written in place has to stay unchanged before it is read.
pub const SETTLE_INTERVAL: Duration = Duration::from_secs(1);

/// Whether the system reports when a writer closes a file.
const REPORTS_CLOSE: bool = cfg!(target_os = "linux");

/// What is known about writes to one file.
#[derive(Debug, Default)]
pub struct Writing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The file, and each link through which it is reached.
    paths: HashSet<PathBuf>,
    /// The file as it was when it was renamed into its place.
    placed: Option<Stamp>,
    /// Whether something was written to it since a writer last closed it.
    open: bool,
    /// The file as it was last seen, and since when it has not changed.
    seen: Option<(Stamp, Instant)>,
}

/// Whether a file may be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Ready {
    Now,
    /// Not before it has stayed unchanged for this long.
    After(Duration),
    /// A writer has it open.
    WhenClosed,
}

impl Writing {
    /// Sets the file that is followed, through the links as they are now.
    pub fn follow(&self, file: &Path) {
        let paths = hops(file).into_iter().collect();
        self.0.lock().paths = paths;
    }

    /// Takes a file system event into account.
    pub fn on_event(&self, event: &Event) {
        let mut state = self.0.lock();
        if event.need_rescan() {
            // Some events were missed, so only the current state of the file is known.
            (state.open, state.placed) = (false, None);
            return;
        }
        let Some(path) = event.paths.last().filter(|path| state.paths.contains(*path)) else { return };
        match event.kind {
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {}
            EventKind::Modify(ModifyKind::Name(_)) => (state.placed, state.open) = (Stamp::of(path).ok(), false),
            EventKind::Modify(ModifyKind::Metadata(_)) => {}
            EventKind::Modify(_) => (state.placed, state.open) = (None, REPORTS_CLOSE),
            EventKind::Create(_) => state.placed = None,
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => (state.placed, state.open) = (None, false),
            _ => {}
        }
    }

    /// Whether a writer has the file open, as far as the system reports it.
    pub fn is_open(&self) -> bool {
        self.0.lock().open
    }

    /// Returns whether the file may be read. `now`: its current state.
    pub fn ready(&self, now: &Stamp) -> Ready {
        self.ready_at(Instant::now(), now)
    }

    fn ready_at(&self, at: Instant, now: &Stamp) -> Ready {
        let mut state = self.0.lock();
        if state.open {
            state.seen = None;
            return Ready::WhenClosed;
        }
        if state.placed.as_ref() == Some(now) {
            return Ready::Now;
        }
        let since = match &state.seen {
            Some((seen, since)) if seen == now => *since,
            _ => {
                state.seen = Some((now.clone(), at));
                at
            }
        };
        match SETTLE_INTERVAL.checked_sub(at.duration_since(since)) {
            Some(left) if !left.is_zero() => Ready::After(left),
            _ => Ready::Now,
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write files")]
mod tests {
    use notify::event::{CreateKind, DataChange, Flag, MetadataKind};

    use super::*;

    #[test]
    fn a_file_is_read_when_nobody_writes_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let other = folder.path().join("b.toml");
        std::fs::write(&file, "a").unwrap();
        let stamp = Stamp::of(&file).unwrap();
        let (renamed, written, closed, created, touched, lost) = (
            EventKind::Modify(ModifyKind::Name(RenameMode::To)),
            EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            EventKind::Create(CreateKind::File),
            EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
            EventKind::Other,
        );
        let (settles, open) = (Ready::After(SETTLE_INTERVAL), Ready::WhenClosed);
        for (events, of, expected) in [
            (&[][..], &file, &settles),
            (&[renamed], &file, &Ready::Now),
            (&[renamed], &other, &settles),
            (&[created], &file, &settles),
            (&[written], &file, &open),
            (&[created, written], &file, &open),
            (&[written, closed], &file, &settles),
            (&[written, closed, written], &file, &open),
            (&[written, touched], &file, &open),
            (&[written, renamed], &file, &Ready::Now),
            (&[renamed, written], &file, &open),
            (&[renamed, written, closed], &file, &settles),
            (&[renamed, touched], &file, &Ready::Now),
            (&[written, lost], &file, &settles),
            (&[renamed, lost], &file, &settles),
        ] {
            let writing = Writing::default();
            writing.follow(&file);
            for kind in events {
                let event = Event::new(*kind).add_path(of.clone());
                writing.on_event(&if *kind == lost { event.set_flag(Flag::Rescan) } else { event });
            }
            let at = Instant::now();
            assert_eq!(&writing.ready_at(at, &stamp), expected, "{events:?}");
            // In the end it is read, unless a writer has it open.
            let later = writing.ready_at(at + SETTLE_INTERVAL, &stamp);
            assert_eq!(later == Ready::Now, *expected != Ready::WhenClosed, "{events:?}: {later:?}");
        }
    }

    #[test]
    fn each_change_begins_the_wait_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let (writing, at) = (Writing::default(), Instant::now());
        let half = SETTLE_INTERVAL / 2;
        let mut stamps = Vec::new();
        for text in ["a", "ab", "abc"] {
            std::fs::write(&file, text).unwrap();
            stamps.push(Stamp::of(&file).unwrap());
        }
        for (nth, stamp) in (0..).zip(&stamps) {
            assert_eq!(writing.ready_at(at + half * nth, stamp), Ready::After(SETTLE_INTERVAL));
        }
        let last = stamps.last().unwrap();
        assert_eq!(writing.ready_at(at + half * 3, last), Ready::After(half));
        assert_eq!(writing.ready_at(at + half * 4, last), Ready::Now);
    }
}
