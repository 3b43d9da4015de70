//! Takes the changes of a call back.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, RawMode, RenameFlags, Timespec, Timestamps, UTIME_OMIT, Uid,
        fchmod, fchown, flock, fstat, futimens, linkat, mkdirat, openat, renameat, renameat_with, symlinkat, unlinkat,
    },
    io::Errno,
};
use wharf_scope::{changes::At, identity_of};

use crate::{
    line::{self, Call, Line, Was},
    place::{Place, Remade, Seen, seen},
    record::{copied, open_kept, regular},
    store::{LINES, UndoStore, folders, is_old, is_running},
};

#[cfg(test)]
thread_local! {
    /// How many changes are taken back until the process is killed.
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

/// The part of a mode that a file gets back: not the bits with which a program runs as another user.
const RESTORED_MODE: RawMode = 0o1777;

/// A call that has changed something.
pub struct ChangedCall {
    /// The name of its record.
    pub id: String,
    /// The call.
    pub call: Call,
    /// Whether it has not ended yet.
    pub is_running: bool,
    /// Whether its changes were taken back.
    pub is_undone: bool,
    folder: PathBuf,
    /// The changes, in the order in which they were made.
    changes: Vec<Line>,
    /// What was not kept, and why.
    missing: Vec<(String, String)>,
    /// When the call ended, and what it left.
    end: Option<(u64, Vec<(Place, Seen)>)>,
    /// How many changes were taken back, the last ones first, if that has begun.
    taken_back: Option<usize>,
    /// Where something is that could not be moved back.
    left_out: Vec<Place>,
}

/// What was done to take changes back, a line for each.
pub type Undone = Vec<String>;

/// Why the changes of a call were not taken back.
#[derive(Debug, thiserror::Error)]
pub enum NotUndone {
    /// The call has not ended, or another process takes its changes back.
    #[error("the call has not ended yet, or another wharf takes it back")]
    Running,
    /// They were taken back already.
    #[error("the changes were taken back already")]
    Already,
    /// Something has changed since, or was not kept. Nothing was done.
    #[error("{}", .0.join("; "))]
    Conflicts(Vec<String>),
    /// Something else failed, after a part was done. The next attempt continues.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ChangedCall {
    /// Reads a record. `None`: it has no call yet.
    fn read(folder: PathBuf) -> io::Result<Option<Self>> {
        // First: a call that ends in between is read as one that runs.
        let is_running = is_running(&folder)?;
        let text = match fs::read(folder.join(LINES)) {
            // It was removed in the meantime, or has just begun.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        // The last line may be incomplete, if wharf was killed; the change that it is about was not made.
        let mut lines = text.split(|byte| *byte == b'\n').map_while(|line| serde_json::from_slice(line).ok());
        let Some(Line::Call(call)) = lines.next() else { return Ok(None) };
        let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut read = Self {
            id,
            call,
            is_running,
            is_undone: false,
            folder,
            changes: Vec::new(),
            missing: Vec::new(),
            end: None,
            taken_back: None,
            left_out: Vec::new(),
        };
        for line in lines {
            match line {
                Line::Not(what, why) => read.missing.push((what, why)),
                Line::End(time, left) => read.end = Some((time, left)),
                Line::Undoing(number) => read.taken_back = Some(number),
                Line::Undone => read.is_undone = true,
                Line::LeftOut(place) => read.left_out.push(place),
                Line::NotMoved => {
                    let last = read.changes.iter().rposition(|line| matches!(line, Line::Move(..)));
                    last.map(|last| read.changes.remove(last));
                }
                Line::Call(_) => {}
                change => read.changes.push(change),
            }
        }
        Ok(Some(read))
    }

    /// The paths that the call has changed, each once. Those are left out at which something was only for a while.
    pub fn paths(&self) -> Vec<PathBuf> {
        let passing = self.passing();
        let mut seen = BTreeSet::new();
        let places = self.places().filter(|place| !passing.contains(place) && seen.insert(*place));
        places.map(Place::path).collect()
    }

    /// The places at which nothing was before the call, and nothing was afterwards.
    fn passing(&self) -> BTreeSet<&Place> {
        let mut first = BTreeSet::new();
        let mut made = BTreeSet::new();
        for line in &self.changes {
            if let Line::Make(place) | Line::Move(_, place) = line
                && !first.contains(place)
            {
                made.insert(place);
            }
            first.extend(line.places());
        }
        let left: BTreeMap<&Place, &Seen> = self.left().iter().map(|(place, seen)| (place, seen)).collect();
        made.retain(|place| left.get(*place) == Some(&&Seen::Nothing));
        made
    }

    fn left(&self) -> &[(Place, Seen)] {
        self.end.as_ref().map_or(&[], |(_, left)| left)
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.changes.iter().flat_map(Line::places)
    }

    /// Whether the call may have changed something after another one had begun.
    fn ends_after(&self, other: &Self) -> bool {
        match &self.end {
            Some((end, _)) => *end > other.call.time,
            None => self.is_running || self.call.time > other.call.time,
        }
    }

    /// Returns why the changes cannot be taken back as they are.
    fn conflicts(&self, all: &[Self], remade: &Remade) -> Vec<String> {
        let mut conflicts: Vec<String> =
            self.missing.iter().map(|(what, why)| format!("{what} was not kept: {why}")).collect();
        if self.end.is_none() {
            conflicts
                .push("wharf has not noted the end of the call, so it does not know what has changed since".into());
            return conflicts;
        }
        // What was taken back already, or may just have been, is not as the call left it.
        let begun = self.taken_back.map_or(0, |number| number + 1);
        let begun: Vec<&Line> = self.changes.iter().rev().take(begun).collect();
        let is_begun = |place: &Place| {
            begun.iter().any(|line| match line {
                Line::Move(from, to) => place.is_within(from) || place.is_within(to),
                line => line.places().any(|one| one == place),
            })
        };
        let left: BTreeMap<&Place, &Seen> =
            self.left().iter().filter(|(place, _)| !is_begun(place)).map(|(place, seen)| (place, seen)).collect();
        // Not only later ones, since another call may have run at the same time.
        let others =
            all.iter().filter(|other| other.folder != self.folder && !other.is_undone && other.ends_after(self));
        for other in others {
            let places = other.places().chain(other.left().iter().map(|(place, _)| place));
            if let Some(place) = places.into_iter().find(|place| left.contains_key(place)) {
                let Call { plugin, name, .. } = &other.call;
                let path = place.path();
                conflicts.push(format!("{} was changed by {} too ({plugin}: {name})", path.display(), other.id));
            }
        }
        if !conflicts.is_empty() {
            return conflicts;
        }
        for (place, now) in seen(left.keys().copied(), remade) {
            if now == Seen::Unknown || left.get(place) != Some(&&now) {
                conflicts.push(format!("{} has changed since", place.path().display()));
            }
        }
        conflicts
    }
}

impl UndoStore {
    /// Returns all calls whose changes are kept, the last one first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> io::Result<Vec<ChangedCall>> {
        let mut all = Vec::new();
        for folder in folders(&self.0.folder)? {
            if !is_old(&folder) {
                all.extend(ChangedCall::read(folder)?);
            }
        }
        all.reverse();
        Ok(all)
    }

    /// Takes the changes of a call back. `force`: also if something has changed since, and as far as it was kept.
    ///
    /// # Errors
    /// If nothing, or not everything, could be taken back.
    pub fn undo(&self, call: &ChangedCall, force: bool) -> Result<Undone, NotUndone> {
        let _lock = self.0.lock()?;
        let mut lines = OpenOptions::new().read(true).append(true).open(call.folder.join(LINES))?;
        // Read again, since another process may have taken it back.
        let all = self.all()?;
        let Some(call) = all.iter().find(|one| one.folder == call.folder) else { return Err(NotUndone::Already) };
        // Until this is closed, the record cannot be removed.
        if call.is_running || flock(&lines, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(NotUndone::Running);
        }
        if call.is_undone {
            return Err(NotUndone::Already);
        }
        let remade = self.0.remade()?;
        if !force {
            let conflicts = call.conflicts(&all, &remade);
            if !conflicts.is_empty() {
                return Err(NotUndone::Conflicts(conflicts));
            }
        }
        complete(&mut lines)?;
        let mut add = |line: &Line| {
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            lines.write_all(&text)
        };
        let begun = call.taken_back.unwrap_or_default();
        add(&Line::Undoing(begun))?;
        let (mut done, passing) = (Vec::new(), call.passing());
        let mut way = Way { record: &call.folder, remade, left_out: call.left_out.clone() };
        #[cfg(test)]
        let mut steps = STEPS.get();
        for (number, line) in call.changes.iter().rev().enumerate().skip(begun) {
            #[cfg(test)]
            {
                steps = steps.checked_sub(1).ok_or_else(|| io::Error::other("killed"))?;
            }
            let known = way.left_out.len();
            let said = match self.take_back(line, &mut way) {
                Err(error) if force => {
                    let path = line.places().next().map(Place::path).unwrap_or_default();
                    Some(format!("left out {}: {error}", path.display()))
                }
                said => said?,
            };
            done.extend(said.filter(|_| !line.places().any(|place| passing.contains(place))));
            for place in way.left_out.iter().skip(known) {
                add(&Line::LeftOut(place.clone()))?;
            }
            // If wharf is killed before this, it does the same once more, which changes nothing.
            add(&Line::Undoing(number + 1))?;
        }
        add(&Line::Undone)?;
        Ok(done)
    }

    /// Takes one change back, and says what was done. That does nothing if it was done already.
    fn take_back(&self, line: &Line, way: &mut Way<'_>) -> io::Result<Option<String>> {
        let Way { record, remade, left_out } = way;
        let Some(place) = line.places().next() else { return Ok(None) };
        let path = place.path();
        let shown = path.display();
        if line.places().any(|place| left_out.iter().any(|one| place.is_within(one))) {
            return Ok(Some(format!("left out {shown}: something was not moved away from there")));
        }
        let Some(folder) = place.open(remade)? else {
            // What was made in a folder is gone with it.
            let is_gone = matches!(line, Line::Make(_));
            return Ok((!is_gone).then(|| format!("left out {shown}: there is no such folder any more")));
        };
        let at = At { folder: &folder, name: place.name.as_ref() };
        let now = Seen::at(at)?;
        let restored = || Ok(Some(format!("restored {shown}")));
        match line {
            Line::Make(_) => {
                let folders = if now == Seen::Folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                match unlinkat(at.folder, at.name, folders) {
                    Ok(()) => Ok(Some(format!("removed {shown}"))),
                    Err(Errno::NOENT) => Ok(None),
                    Err(Errno::NOTEMPTY | Errno::EXIST) => {
                        Ok(Some(format!("left {shown}: something else is in it now")))
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Line::Write(..) | Line::Remove(_, Was::File(_)) if now == Seen::Folder => {
                Ok(Some(format!("left out {shown}: a folder is there now")))
            }
            Line::Write(_, file) | Line::Remove(_, Was::File(file)) if !is_same(record, at, file, &now)? => {
                restore(record, at, file)?;
                restored()
            }
            Line::Remove(_, Was::Name(name)) if now == Seen::Nothing => {
                let own = record.join(name.to_string());
                linkat(CWD, own, at.folder, at.name, AtFlags::empty())?;
                restored()
            }
            Line::Remove(_, Was::Link(target)) if now == Seen::Nothing => {
                symlinkat(target.as_str(), at.folder, at.name)?;
                restored()
            }
            Line::Remove(_, Was::Folder(mode, numbers)) if now == Seen::Nothing => {
                mkdirat(at.folder, at.name, Mode::RWXU)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let own = openat(at.folder, at.name, flags, Mode::empty())?;
                fchmod(&own, Mode::from_raw_mode(*mode))?;
                let remade_as = identity_of(&fstat(&own)?);
                self.0.add_remade((*numbers, remade_as))?;
                remade.push((*numbers, remade_as));
                restored()
            }
            Line::Move(_, to) => {
                let Some(target) = to.open(remade)? else { return Ok(None) };
                let there = At { folder: &target, name: to.name.as_ref() };
                if Seen::at(there)? == Seen::Nothing {
                    return Ok(None);
                }
                if now != Seen::Nothing {
                    // Its contents are nowhere else.
                    left_out.push(to.clone());
                    return Ok(Some(format!("left out {shown}: something else is there now")));
                }
                move_back(there, at)?;
                Ok(Some(format!("moved {} back to {shown}", to.path().display())))
            }
            _ => Ok(None),
        }
    }
}

/// What is known while changes are taken back.
struct Way<'r> {
    record: &'r Path,
    remade: Remade,
    left_out: Vec<Place>,
}

/// Removes the end of a line that was not written completely.
fn complete(lines: &mut File) -> io::Result<()> {
    let mut text = Vec::new();
    lines.read_to_end(&mut text)?;
    let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if complete < text.len() { lines.set_len(complete as u64) } else { Ok(()) }
}

/// Moves something to a place where nothing is. Some file systems cannot make sure of that.
fn move_back(from: At<'_>, to: At<'_>) -> io::Result<()> {
    match renameat_with(from.folder, from.name, to.folder, to.name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(renameat(from.folder, from.name, to.folder, to.name)?),
        moved => Ok(moved?),
    }
}

/// Whether a place still has the file that was kept.
fn is_same(record: &Path, at: At<'_>, file: &line::File, now: &Seen) -> io::Result<bool> {
    if *now != Seen::File(file.bytes, file.modified) {
        return Ok(false);
    }
    // A plugin can set the time of a file.
    let Ok((own, _)) = regular(at) else { return Ok(false) };
    let (mut own, mut kept) = (io::BufReader::new(own), io::BufReader::new(open_kept(record, file.kept)?));
    let (mut one, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = own.read(&mut one)?;
        let (Some(one), Some(other)) = (one.get(..read), other.get_mut(..read)) else { return Ok(false) };
        if read == 0 {
            return Ok(true);
        }
        if kept.read_exact(other).is_err() || one != other {
            return Ok(false);
        }
    }
}

/// Gives a place a file with the contents that were kept. Others see either the old contents or the new ones, except in a file that had
/// several names and has to stay the same file.
fn restore(record: &Path, at: At<'_>, file: &line::File) -> io::Result<()> {
    let from = open_kept(record, file.kept)?;
    let (seconds, nanoseconds) = file.modified;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds },
    };
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Some(numbers) = file.shared
        && let Ok(own) = openat(at.folder, at.name, flags, Mode::empty())
    {
        let (own, stat) = (File::from(own), regular(at)?.1);
        if identity_of(&stat) == numbers && identity_of(&fstat(&own)?) == numbers {
            own.set_len(0)?;
            copied(&from, &own)?;
            return Ok(futimens(&own, &times)?);
        }
    }
    let new = format!(".wharf-undo-{}", record.file_name().unwrap_or_default().display());
    match unlinkat(at.folder, new.as_str(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = flags | OFlags::CREATE | OFlags::EXCL;
    let own = File::from(openat(at.folder, new.as_str(), flags, Mode::RUSR | Mode::WUSR)?);
    let given =
        given(&own, &from, file, &times).and_then(|()| Ok(renameat(at.folder, new.as_str(), at.folder, at.name)?));
    if given.is_err() {
        unlinkat(at.folder, new.as_str(), AtFlags::empty()).ok();
    }
    given
}

/// Gives a new file what was kept of another.
fn given(own: &File, from: &File, file: &line::File, times: &Timestamps) -> io::Result<()> {
    copied(from, own)?;
    let (user, group) = file.owner;
    // Only root may give a file to another user.
    fchown(own, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).ok();
    fchmod(own, Mode::from_raw_mode(file.mode) & Mode::from_bits_truncate(RESTORED_MODE))?;
    futimens(own, times)?;
    own.sync_all()
}
