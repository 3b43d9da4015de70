//! Reads and replaces the file of the graph. Readers never see it half written, and no change of another call or wharf process is lost.
//!
//! A change reads, modifies and writes the whole file, so only one call may do that at a time.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use kept::{Lock, Patience, at};
use wharf_sdk::{Error, Result};

use crate::graph::Graph;

pub const PATIENCE: Patience =
    Patience { held: Duration::from_secs(3), stale: Duration::from_secs(6), waited: Duration::from_secs(20) };

/// The most links that are followed to the file.
const MAX_LINKS: usize = 16;

/// Returns the file that a path leads to. It is replaced itself, so that links to it stay.
fn real(path: &Path) -> Result<PathBuf> {
    let mut file = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        if !file.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(file);
        }
        let target = fs::read_link(&file).map_err(|error| at(&file, &error))?;
        file = file.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(Error::failed(format!("{}: it leads through more than {MAX_LINKS} links", path.display())))
}

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
    let file = real(file)?;
    let lock = Lock::take(&file, patience)?;
    let old = read(&file)?;
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
    fn links_to_the_file_stay() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("below")).unwrap();
        std::os::unix::fs::symlink("below/real.jsonl", at("link")).unwrap();
        std::os::unix::fs::symlink("link", at("memory.jsonl")).unwrap();
        for name in ["a", "b"] {
            add(&at("memory.jsonl"), name.into()).unwrap();
        }
        assert_eq!(read(&at("below/real.jsonl")).unwrap().whole().entities.len(), 2);
        assert!(at("memory.jsonl").is_symlink() && at("link").is_symlink());
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        assert!(matches!(add(&at("round"), "c".into()), Err(Error::Failed(why)) if why.contains("links")));
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
