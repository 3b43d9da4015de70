//! Random sequences of operations on files: what is taken back is as before, byte for byte.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use proptest::prelude::*;
use wharf_scope::changes::{At, Change, Changes};

use crate::{NotUndone, Record, UndoStore, back::STEPS};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// An operation, on the names of `NAMES`.
#[derive(Debug, Clone)]
enum Step {
    Make(String),
    Append(String),
    Empty(String),
    Resize(String, u16),
    Remove(String),
    RemoveFolder(String),
    MakeFolder(String),
    Move(String, String),
    Link(String, String),
    SecondName(String, String),
    Touch(String),
}

/// A path of one to three names.
fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&NAMES[..]), 1..=3).prop_map(|names| names.join("/"))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => path().prop_map(Step::Make),
        3 => path().prop_map(Step::Append),
        2 => path().prop_map(Step::Empty),
        1 => (path(), any::<u16>()).prop_map(|(path, size)| Step::Resize(path, size)),
        3 => path().prop_map(Step::Remove),
        2 => path().prop_map(Step::RemoveFolder),
        3 => path().prop_map(Step::MakeFolder),
        4 => (path(), path()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Step::SecondName(from, to)),
        1 => path().prop_map(Step::Touch),
    ]
}

/// A folder that a call changes, and the store of what it changes.
struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    store: UndoStore,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let store = UndoStore::new(root.with_file_name("store"), 1 << 30);
        Self { _folder: folder, root, store }
    }

    fn call(&self, number: u64) -> Arc<Record> {
        let text = |text: &str| text.to_owned();
        self.store.record(text("p"), text("n"), number.to_string())
    }

    /// Tells of an operation and then does it. It may fail, as those of a guest do.
    fn apply(&self, record: &Record, step: &Step, number: usize) {
        let at = |path: &str, change: &dyn Fn(At<'_>)| {
            let path = self.root.join(path);
            let (folder, name): (&Path, OsString) = (path.parent().unwrap(), path.file_name().unwrap().into());
            if let Ok(folder) = File::open(folder.join(".")) {
                change(At { folder: &folder, name: &name });
            }
        };
        let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let full = |path: &str| self.root.join(path);
        let write = |path: &str, work: &dyn Fn(File)| {
            let own = full(path);
            if is_file(&own)
                && let Ok(file) = OpenOptions::new().append(true).open(&own)
            {
                record.before(Change::Write(&file));
                work(file);
            }
        };
        match step {
            Step::Make(path) => {
                at(path, &|at| record.before(Change::Make(at)));
                if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(full(path)) {
                    record.made(&file);
                    file.write_all(format!("made {number}").as_bytes()).unwrap();
                    file.set_permissions(Permissions::from_mode(0o600 + u32::try_from(number % 8).unwrap())).unwrap();
                }
            }
            Step::Append(path) => write(path, &|mut file| file.write_all(format!("more {number}").as_bytes()).unwrap()),
            Step::Empty(path) => write(path, &|file| file.set_len(0).unwrap()),
            Step::Resize(path, size) => write(path, &|file| file.set_len((*size).into()).unwrap()),
            Step::Touch(path) => write(path, &|file| file.set_modified(UNIX_EPOCH).unwrap()),
            Step::Remove(path) => {
                if full(path).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
                    at(path, &|at| record.before(Change::Remove(at)));
                    fs::remove_file(full(path)).unwrap();
                }
            }
            Step::RemoveFolder(path) => {
                at(path, &|at| record.before(Change::Remove(at)));
                fs::remove_dir(full(path)).ok();
            }
            Step::MakeFolder(path) => {
                at(path, &|at| record.before(Change::Make(at)));
                fs::create_dir(full(path)).ok();
            }
            Step::Move(from, to) => {
                let told = Cell::new(false);
                at(from, &|from| {
                    at(to, &|to| {
                        told.set(true);
                        record.before(Change::Move(from, to));
                    });
                });
                if fs::rename(full(from), full(to)).is_err() && told.get() {
                    record.not_moved();
                }
            }
            Step::Link(target, path) => {
                at(path, &|at| record.before(Change::Make(at)));
                symlink(target, full(path)).ok();
            }
            Step::SecondName(of, path) => {
                if is_file(&full(of)) {
                    at(path, &|at| record.before(Change::Make(at)));
                    fs::hard_link(full(of), full(path)).ok();
                }
            }
        }
    }
}

/// What is in a folder: for each path its mode, when it was last changed, and its contents. The times of folders are left out.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, i128, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let changed = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
            let seen = if metadata.is_dir() {
                folders.push(path.clone());
                (metadata.mode(), 0, Vec::new())
            } else if metadata.is_symlink() {
                (metadata.mode(), 0, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
            } else {
                (metadata.mode(), changed, fs::read(&path).unwrap())
            };
            all.insert(path, seen);
        }
    }
    all
}

/// How many sequences are tried. `WHARF_SEQUENCES` names another number.
fn sequences() -> ProptestConfig {
    let cases = std::env::var("WHARF_SEQUENCES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(sequences())]

    /// Two calls on a folder that is not empty. The last one is taken back, then the first one. In between, the process is killed at any
    /// step.
    #[test]
    fn what_is_taken_back_is_as_before(
        before in prop::collection::vec(step(), 0..12),
        first in prop::collection::vec(step(), 1..20),
        second in prop::collection::vec(step(), 0..12),
        steps in 0..20_usize,
    ) {
        let place = Place::new();
        let nothing = place.call(1);
        for (number, step) in before.iter().enumerate() {
            place.apply(&nothing, step, number);
        }
        drop(nothing);
        let mut trees = vec![tree(&place.root)];
        for (time, call) in [&first, &second].into_iter().enumerate() {
            let record = place.call(2 + time as u64);
            for (number, step) in call.iter().enumerate() {
                place.apply(&record, step, 100 * (time + 1) + number);
            }
            drop(record);
            trees.push(tree(&place.root));
        }
        trees.pop();
        for time in [3, 2] {
            let expected = trees.pop().unwrap();
            let all = place.store.all().unwrap();
            let Some(kept) = all.iter().find(|kept| kept.call.session == time.to_string()) else {
                prop_assert_eq!(tree(&place.root), expected);
                continue;
            };
            STEPS.set(steps);
            let killed = place.store.undo(kept, false);
            STEPS.set(usize::MAX);
            let all = place.store.all().unwrap();
            let kept = all.iter().find(|kept| kept.call.session == time.to_string()).unwrap();
            match killed {
                Ok(_) => prop_assert!(kept.is_undone),
                Err(NotUndone::Io(_)) => {
                    // A further name of a file that was restored seems to have changed.
                    place.store.undo(kept, false).or_else(|_| place.store.undo(kept, true)).unwrap();
                }
                Err(error) => panic!("{error}"),
            }
            prop_assert_eq!(tree(&place.root), expected);
        }
    }
}

#[test]
fn nothing_that_has_changed_since_is_overwritten() {
    let place = Place::new();
    let file = place.root.join("a");
    fs::write(&file, "one").unwrap();
    let call = |time, step| place.apply(&place.call(time), &step, 0);
    let undo = |time: u64, force| {
        let all = place.store.all().unwrap();
        place.store.undo(all.iter().find(|kept| kept.call.session == time.to_string()).unwrap(), force)
    };
    call(1, Step::Append("a".into()));
    call(2, Step::Append("a".into()));
    let Err(NotUndone::Conflicts(why)) = undo(1, false) else { panic!("a later call has changed it") };
    assert!(why[0].contains("/root/a was changed by ") && why[0].ends_with(" too (p: n)"), "{why:?}");
    fs::write(&file, "by hand").unwrap();
    let Err(NotUndone::Conflicts(why)) = undo(2, false) else { panic!("a person has changed it") };
    assert!(why[0].ends_with("/root/a has changed since"), "{why:?}");
    assert_eq!(fs::read(&file).unwrap(), b"by hand");
    undo(2, true).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"onemore 0");
    assert!(matches!(undo(2, true), Err(NotUndone::Already)));
    undo(1, false).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"one");
}

/// What a plugin puts in the place of a folder leads nowhere.
#[test]
fn what_is_in_place_of_a_folder_is_left_alone() {
    for is_link in [true, false] {
        let place = Place::new();
        let (folder, outside) = (place.root.join("d"), place.root.with_file_name("outside"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("f"), "of the user").unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("f"), "not of the call").unwrap();
        place.apply(&place.call(1), &Step::Append("d/f".into()), 0);
        fs::rename(&folder, place.root.join("e")).unwrap();
        if is_link {
            symlink(&outside, &folder).unwrap();
        } else {
            fs::rename(&outside, &folder).unwrap();
        }
        let all = place.store.all().unwrap();
        let Err(NotUndone::Conflicts(_)) = place.store.undo(&all[0], false) else { panic!("it is elsewhere") };
        let done = place.store.undo(&all[0], true).unwrap();
        assert!(done.len() == 1 && done[0].starts_with("left out "), "{done:?}");
        assert_eq!(fs::read(folder.join("f")).unwrap(), b"not of the call");
    }
}

#[test]
fn what_is_kept_has_a_bound_and_no_mode() {
    let place = Place::new();
    let store = UndoStore::new(place.root.with_file_name("small"), 30_000);
    let place = Place { store, ..place };
    for time in 1..=5 {
        fs::write(place.root.join("a"), vec![b'x'; 4000]).unwrap();
        place.apply(&place.call(time), &Step::Empty("a".into()), 0);
    }
    let all = place.store.all().unwrap();
    let numbers: Vec<&str> = all.iter().map(|kept| &*kept.call.session).collect();
    assert_eq!(numbers, ["5", "4"], "the oldest give way, with some room to spare");
    let kept = place.store.0.folder_of("p").join(&all[0].id).join("0");
    assert_eq!(kept.metadata().unwrap().mode() & 0o777, 0);
    place.store.undo(&all[0], false).unwrap();
    assert_eq!(fs::read(place.root.join("a")).unwrap().len(), 4000);
    fs::write(place.root.join("a"), vec![b'x'; 40_000]).unwrap();
    place.apply(&place.call(6), &Step::Empty("a".into()), 0);
    let all = place.store.all().unwrap();
    let Err(NotUndone::Conflicts(why)) = place.store.undo(&all[0], false) else { panic!("too large") };
    assert!(why[0].contains("was not kept: only 0 MiB are kept of one call"), "{why:?}");
}

/// The record of a call that wharf did not survive is not taken back by default.
#[test]
fn a_call_that_wharf_did_not_survive_is_said() {
    let place = Place::new();
    fs::write(place.root.join("a"), "one").unwrap();
    let record = place.call(1);
    place.apply(&record, &Step::Append("a".into()), 0);
    let all = place.store.all().unwrap();
    assert!(matches!(place.store.undo(&all[0], true), Err(NotUndone::Running)));
    let text = fs::read_to_string(place.store.0.folder_of("p").join(&all[0].id).join("lines")).unwrap();
    drop(record);
    fs::write(place.store.0.folder_of("p").join(&all[0].id).join("lines"), text + "{\"remove\":[{\"fold").unwrap();
    let all = place.store.all().unwrap();
    let Err(NotUndone::Conflicts(why)) = place.store.undo(&all[0], false) else { panic!("it did not end") };
    assert_eq!(why, ["wharf has not noted the end of the call, so it does not know what has changed since"]);
    place.store.undo(&all[0], true).unwrap();
    assert_eq!(fs::read(place.root.join("a")).unwrap(), b"one");
}
