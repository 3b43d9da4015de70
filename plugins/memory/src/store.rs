//! Reads and replaces the file of the graph. Readers never see it half written, and no change of another call or wharf process is lost.
//!
//! A change reads, modifies and writes the whole file, so only one call may do that at a time.

use std::{fs, io::ErrorKind, path::Path, time::Duration};

use kept::{Lock, Patience, at};
use wharf_sdk::{Error, Result};

use crate::graph::Graph;

pub const PATIENCE: Patience =
    Patience { held: Duration::from_secs(3), stale: Duration::from_secs(6), waited: Duration::from_secs(20) };

/// Reads the graph, which is empty as long as the file does not exist.
pub fn read(file: &Path) -> Result<Graph> {
    match fs::read(file) {
        Ok(bytes) => {
            let damaged =
                |what| Error::failed(format!("{}: {what}. Nothing was changed; repair the file", file.display()));
            let text = String::from_utf8(bytes).map_err(|error| {
                let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
                let number = 1 + before.filter(|byte| **byte == b'\n').count();
                damaged(format!("line {number} is damaged: it is not UTF-8"))
            })?;
            Graph::read(&text).map_err(damaged)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Graph::default()),
        Err(error) => Err(at(file, &error)),
    }
}

/// Changes the graph under the lock. The file is written only if the graph differs afterwards; returns whether it was.
pub fn change<T>(file: &Path, patience: Patience, change: impl FnOnce(&mut Graph) -> Result<T>) -> Result<(T, bool)> {
    let lock = Lock::take(file, patience)?;
    let old = read(file)?;
    let mut new = old.clone();
    let done = change(&mut new)?;
    let changed = new != old;
    if changed {
        lock.replace(&new.write()?)?;
    }
    Ok((done, changed))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use kept::with_suffix;
    use tempfile::TempDir;

    use super::*;
    use crate::graph::Entity;

    fn add(file: &Path, name: String) -> Result<()> {
        let entity = Entity { name, entity_type: "thing".into(), observations: vec![] };
        change(file, PATIENCE, |graph| Ok(graph.create_entities(vec![entity]))).map(drop)
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_that_many_write_at_once_is_lost() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        thread::scope(|scope| {
            for writer in 0..8 {
                let file = &file;
                scope.spawn(move || (0..25).for_each(|entity| add(file, format!("{writer}-{entity}")).unwrap()));
            }
        });
        assert_eq!(read(&file).unwrap().whole().entities.len(), 8 * 25);
        assert_eq!(names(&folder), ["memory.jsonl"]);
    }

    #[test]
    fn a_lock_that_was_left_is_taken_away_with_what_was_begun() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        fs::write(with_suffix(&file, ".lock"), "0123456789abcdef").unwrap();
        fs::write(with_suffix(&file, ".0123456789abcdef"), "half").unwrap();
        let short = Patience { stale: Duration::from_millis(50), ..PATIENCE };
        let (_, changed) = change(&file, short, |graph| Ok(graph.create_entities(vec![]))).unwrap();
        assert!(!changed);
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn who_held_it_too_long_writes_nothing() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        let short = Patience { held: Duration::ZERO, ..PATIENCE };
        let entity = Entity { name: "a".into(), entity_type: "b".into(), observations: vec![] };
        let Err(Error::Failed(why)) = change(&file, short, |graph| Ok(graph.create_entities(vec![entity]))) else {
            panic!("it was written")
        };
        assert!(why.contains("took too long"), "{why}");
        assert_eq!(names(&folder), ["memory.jsonl.lock"]);
    }

    #[test]
    fn a_file_behind_a_link_is_changed_and_others_can_append_to_it() {
        let folder = TempDir::new().unwrap();
        let (file, link) = (folder.path().join("real"), folder.path().join("link"));
        std::os::unix::fs::symlink("real", folder.path().join("between")).unwrap();
        std::os::unix::fs::symlink("between", &link).unwrap();
        let target = kept::target(&link).unwrap();
        assert_eq!(target, file);
        add(&target, "a".into()).unwrap();
        let line = "{\"type\":\"entity\",\"name\":\"b\",\"entityType\":\"t\",\"observations\":[]}";
        fs::write(&file, fs::read_to_string(&file).unwrap() + line).unwrap();
        add(&kept::target(&link).unwrap(), "c".into()).unwrap();
        assert_eq!(read(&link).unwrap().whole().entities.len(), 3);
        assert!(link.is_symlink());
        let round = folder.path().join("round");
        std::os::unix::fs::symlink("round", &round).unwrap();
        let Err(Error::Failed(why)) = kept::target(&round) else { panic!("it leads nowhere") };
        assert!(why.contains("lead round in a circle"), "{why}");
    }

    #[test]
    fn a_damaged_file_stays_as_it_is() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("memory.jsonl");
        for (bytes, line) in
            [(b"{\"type\":\"note\"}\n\n{\"type\"".as_slice(), 3), (b"{\"type\":\"note\"}\n\"\xff\"", 2)]
        {
            fs::write(&file, bytes).unwrap();
            let Err(Error::Failed(why)) = add(&file, "a".into()) else { panic!("it was written") };
            assert!(why.contains(&format!("memory.jsonl: line {line} is damaged")), "{why}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
            assert_eq!(names(&folder), ["memory.jsonl"]);
        }
    }
}
