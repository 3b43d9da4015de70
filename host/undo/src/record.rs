//! The record of one call.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;
use rustix::{
    fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawMode, Stat, flock, fstat, linkat, openat, statat},
    io::Errno,
};
use wharf_base::appended::{self, Appended};
use wharf_scope::{
    FileIdentity,
    changes::{At, Change, Changes},
    identity_of,
};

use crate::{
    line::{self, Call, Line, Was},
    place::{Place, Remade, Seen, link, modified, seen, size},
    store::{Inner, LINES, RECORD_BYTES, UndoStore, now},
};

/// The maximum number of changes that are kept of one call, and the maximum size of their lines.
const MAX_CHANGES: usize = 10_000;
const MAX_LINES_BYTES: u64 = 4 << 20;
/// The maximum number of places that are looked at when a call has ended.
const MAX_PLACES: usize = 2 * MAX_CHANGES;
/// The mode of what is kept of files: nobody may read it without changing that, which a plugin cannot do.
const UNREADABLE: u32 = 0;

/// Keeps what one call changes. It takes no space until the first change.
pub struct Record {
    store: Arc<Inner>,
    /// Its time is that of the first change: a call may wait before it runs.
    call: Call,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: Option<Begun>,
    /// Whether a change could not be noted. Then the record gets no end, so that it is known to be incomplete.
    is_incomplete: bool,
}

/// A record of a call that has changed something.
struct Begun {
    folder: PathBuf,
    plugin: String,
    /// Locked until the call has ended.
    lines: Appended,
    kept: u32,
    /// The size of what was kept of files.
    bytes: u64,
    changes: usize,
    /// Whether the last change was a move.
    has_moved: bool,
    /// Where something was, or has come to be by a later move.
    places: BTreeSet<Place>,
    /// The files that the call has made, whose contents need not be kept.
    made: BTreeSet<Birth>,
    /// Those whose contents were kept before the call wrote to them.
    written: BTreeSet<Birth>,
}

/// A file. The system gives the numbers of one that is gone to others, which were made at another time.
type Birth = (FileIdentity, Option<SystemTime>);

impl UndoStore {
    /// Returns what keeps the changes of a call, until it is dropped.
    pub fn record(&self, plugin: String, name: String, session: String) -> Arc<Record> {
        let call = Call { time: 0, plugin, name, session };
        Arc::new(Record { store: Arc::clone(&self.0), call, state: Mutex::default() })
    }
}

impl Record {
    /// Notes something in the record, which begins with it.
    fn note(&self, work: impl FnOnce(&mut Begun, &Inner) -> io::Result<()>) {
        let mut state = self.state.lock();
        let State { begun, is_incomplete } = &mut *state;
        if *is_incomplete {
            return;
        }
        let noted = match begun {
            Some(begun) => work(begun, &self.store),
            None => Begun::new(&self.store, &self.call).and_then(|new| work(begun.insert(new), &self.store)),
        };
        if let Err(error) = noted {
            *is_incomplete = true;
            self.store.cannot(&error);
        }
    }
}

impl Changes for Record {
    fn before(&self, change: Change<'_>) {
        self.note(|begun, store| begun.change(store, change));
    }

    fn not_moved(&self) {
        self.note(|begun, store| match std::mem::take(&mut begun.has_moved) {
            true => begun.write(store, &Line::NotMoved),
            false => Ok(()),
        });
    }

    fn made(&self, file: &File) {
        self.note(|begun, store| begun.made(store, file));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let State { begun, is_incomplete } = self.state.get_mut();
        if let Some(begun) = begun.as_mut().filter(|_| !*is_incomplete)
            && let Err(error) = begun.end(&self.store)
        {
            self.store.cannot(&error);
        }
    }
}

impl Begun {
    fn new(store: &Inner, call: &Call) -> io::Result<Self> {
        store.room(&call.plugin, RECORD_BYTES)?;
        let parent = store.folder_of(&call.plugin);
        DirBuilder::new().recursive(true).mode(0o700).create(&parent)?;
        let call = Call { time: now(), ..call.clone() };
        let mut number = call.time;
        // The names are in the order in which calls have begun.
        let folder = loop {
            let folder = parent.join(format!("{number:013x}"));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                made => break made.map(|()| folder)?,
            }
        };
        let path = folder.join(LINES);
        let lines = Appended::new(&path, appended::open(&path)?)?;
        flock(lines.handle(), FlockOperation::LockExclusive)?;
        let mut begun = Self {
            folder,
            plugin: call.plugin.clone(),
            lines,
            kept: 0,
            bytes: 0,
            changes: 0,
            has_moved: false,
            places: BTreeSet::new(),
            made: BTreeSet::new(),
            written: BTreeSet::new(),
        };
        begun.write(store, &Line::Call(call))?;
        Ok(begun)
    }

    fn write(&mut self, store: &Inner, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.places.extend(line.places().cloned());
        store.room(&self.plugin, text.len() as u64)?;
        self.lines.write(&text)
    }

    fn change(&mut self, store: &Inner, change: Change<'_>) -> io::Result<()> {
        self.has_moved = false;
        if self.changes >= MAX_CHANGES || self.lines.length() > MAX_LINES_BYTES || self.places.len() > MAX_PLACES {
            self.write(store, &Line::Not("further changes".into(), "the call has changed too many things".into()))?;
            return Err(io::Error::other("a call has changed too many things"));
        }
        if let Change::Move(from, to) = change {
            // Without this, something that the call has made at the second place would be moved back.
            // And two names of one file both stay.
            let numbers =
                |at: At<'_>| statat(at.folder, at.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity_of(&stat));
            let (old, new) = (numbers(from), numbers(to));
            if old == Err(Errno::NOENT) || old.is_ok() && old == new {
                return Ok(());
            }
            self.change(store, Change::Remove(to))?;
        }
        let line = match change {
            Change::Make(at) => make(at),
            Change::Write(file) => self.contents(store, file),
            Change::Remove(at) => self.remove(store, at),
            Change::Move(from, to) => self.move_(from, to),
        };
        let line = match line {
            Ok(None) => return Ok(()),
            Ok(Some(line)) => line,
            Err(error) => Line::Not(shown(change), error.to_string()),
        };
        self.changes += 1;
        self.has_moved = matches!(line, Line::Move(..));
        self.write(store, &line)
    }

    /// The call has made a file.
    fn made(&mut self, store: &Inner, file: &File) -> io::Result<()> {
        // Another process may have made it in the same moment.
        if size(&fstat(file)?) > 0 {
            return Ok(());
        }
        self.made.insert(birth(file)?);
        match Place::of_file(file) {
            Ok((_, place)) if self.places.contains(&place) => Ok(()),
            // It lies where a link led to that the call followed.
            Ok((_, place)) => self.write(store, &Line::Make(place)),
            Err(error) => self.write(store, &Line::Not("a new file".into(), error.to_string())),
        }
    }

    fn move_(&mut self, from: At<'_>, to: At<'_>) -> io::Result<Option<Line>> {
        let is_folder = Seen::at(from)? == Seen::Folder;
        let (from, to) = (Place::of(from)?, Place::of(to)?);
        // No folder moves into itself.
        if is_folder && !to.is_within(&from) {
            // What has changed in the folder is found in its new place when the call has ended.
            let moved = from.below(&self.places).filter_map(|place| place.moved(&from, &to));
            let moved: Vec<Place> = moved.take(MAX_PLACES).collect();
            self.places.extend(moved);
        }
        Ok(Some(Line::Move(from, to)))
    }

    fn contents(&mut self, store: &Inner, file: &File) -> io::Result<Option<Line>> {
        let (identity, stat) = (birth(file)?, fstat(file)?);
        // A file without a name is gone when the call has ended.
        if stat.st_nlink == 0 || self.written.contains(&identity) || self.made.contains(&identity) {
            return Ok(None);
        }
        let (folder, place) = Place::of_file(file)?;
        let (own, stat) = regular(At { folder: &folder, name: place.name.as_ref() })?;
        if birth(&own)? != identity {
            return Err(io::Error::other("it was moved while it was written"));
        }
        let kept = self.keep(store, &own, &stat)?;
        self.written.insert(identity);
        Ok(Some(Line::Write(place, kept)))
    }

    fn remove(&mut self, store: &Inner, at: At<'_>) -> io::Result<Option<Line>> {
        let stat = match statat(at.folder, at.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        let place = Place::of(at)?;
        let was = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink > 1 => self.remove_name(store, at, size(&stat))?,
            FileType::RegularFile => {
                let (file, stat) = regular(at)?;
                if self.made.remove(&birth(&file)?) {
                    self.places.insert(place);
                    return Ok(None);
                }
                let kept = self.keep(store, &file, &stat)?;
                self.written.remove(&birth(&file)?);
                Was::File(kept)
            }
            FileType::Symlink => Was::Link(link(at)?),
            FileType::Directory => Was::Folder(mode(&stat), identity_of(&stat)),
            _ => return Err(io::Error::other("it is neither a file nor a folder nor a link")),
        };
        Ok(Some(Line::Remove(place, was)))
    }

    /// Keeps one of several names of a file, so that it is a name of the same file again afterwards.
    fn remove_name(&mut self, store: &Inner, at: At<'_>, bytes: u64) -> io::Result<Was> {
        self.room(store, bytes)?;
        let name = self.kept;
        match linkat(at.folder, at.name, CWD, self.folder.join(name.to_string()), AtFlags::empty()) {
            Ok(()) => {
                self.kept += 1;
                Ok(Was::Name(name))
            }
            // The store is on another file system.
            Err(_) => {
                let (file, stat) = regular(at)?;
                if self.written.contains(&birth(&file)?) {
                    return Err(io::Error::other("it is one of several names of a file that was written to"));
                }
                Ok(Was::File(self.keep(store, &file, &stat)?))
            }
        }
    }

    /// Makes room for the contents of a file. One call has at most a quarter of all that is kept.
    fn room(&mut self, store: &Inner, bytes: u64) -> io::Result<()> {
        let most = store.most_of_call();
        if self.bytes.saturating_add(bytes) > most {
            let most = most >> 20;
            return Err(io::Error::other(format!(
                "only {most} MiB are kept of one call, a quarter of `undo_mib` in [limits]"
            )));
        }
        store.room(&self.plugin, bytes)?;
        store.keeps_reserve(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Copies the contents of a file, without a copy of the bytes where the file system can do that.
    fn keep(&mut self, store: &Inner, file: &File, stat: &Stat) -> io::Result<line::File> {
        let bytes = size(stat);
        self.room(store, bytes)?;
        let path = self.folder.join(self.kept.to_string());
        let copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        if let Err(error) = copied(file, &copy) {
            fs::remove_file(&path).ok();
            return Err(error);
        }
        // It may have shrunk.
        let bytes = copy.metadata()?.len();
        copy.set_permissions(Permissions::from_mode(UNREADABLE))?;
        let kept = line::File {
            kept: self.kept,
            bytes,
            mode: mode(stat),
            owner: (stat.st_uid, stat.st_gid),
            modified: modified(stat),
            shared: (stat.st_nlink > 1).then(|| identity_of(stat)),
        };
        self.kept += 1;
        Ok(kept)
    }

    /// Notes what the call has left.
    fn end(&mut self, store: &Inner) -> io::Result<()> {
        let places = std::mem::take(&mut self.places);
        let left = seen(&places, &Remade::new()).map(|(place, seen)| (place.clone(), seen)).collect();
        self.write(store, &Line::End(now(), left))
    }
}

fn make(at: At<'_>) -> io::Result<Option<Line>> {
    let is_free = Seen::at(at)? == Seen::Nothing;
    if is_free { Ok(Some(Line::Make(Place::of(at)?))) } else { Ok(None) }
}

fn birth(file: &File) -> io::Result<Birth> {
    // Not all file systems know when a file was made.
    let created = file.metadata()?.created().ok();
    Ok((identity_of(&fstat(file)?), created))
}

/// Copies a file from its beginning.
pub(crate) fn copied(from: &File, to: &File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    io::copy(&mut &*from, &mut &*to)?;
    Ok(())
}

fn mode(stat: &Stat) -> RawMode {
    Mode::from_raw_mode(stat.st_mode).as_raw_mode()
}

/// Opens a file to read it, if it is one.
pub(crate) fn regular(at: At<'_>) -> io::Result<(File, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(at.folder, at.name, flags, Mode::empty())?);
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Opens a copy, which nobody may read otherwise.
pub(crate) fn open_kept(folder: &Path, kept: u32) -> io::Result<File> {
    let path = folder.join(kept.to_string());
    fs::set_permissions(&path, Permissions::from_mode(0o400))?;
    let file = File::open(&path);
    fs::set_permissions(&path, Permissions::from_mode(UNREADABLE))?;
    file
}

/// What a change is about, for people.
fn shown(change: Change<'_>) -> String {
    let place = match change {
        Change::Make(at) | Change::Remove(at) | Change::Move(at, _) => Place::of(at).map(|place| place.path()),
        Change::Write(file) => Place::of_file(file).map(|(_, place)| place.path()),
    };
    match (place, change) {
        (Ok(path), _) => path.display().to_string(),
        (Err(_), Change::Make(at) | Change::Remove(at) | Change::Move(at, _)) => at.name.to_string_lossy().into_owned(),
        (Err(_), Change::Write(_)) => "a file".into(),
    }
}
