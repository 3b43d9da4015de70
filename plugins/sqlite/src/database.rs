//! The file of the database, and what has to be true of it before and after a statement.
//!
//! Calls run at once, in instances that know nothing of each other, and WASI has no locks. Who changes the database holds a lock
//! file. Who reads it looks whether anybody changes it before and after, and otherwise reads again. A journal in which there is
//! something is of a change that goes on or was cut off: if a lock was inherited with it, it is of a call of this plugin that
//! has ended, and is rolled back; otherwise it is another program's.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read},
    path::PathBuf,
    rc::Rc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use kept::{Lock, Patience, at, beside, random};
use rusqlite::Connection;
use wharf_sdk::{Error, Result};

use crate::{guard, statement::said};

pub const PATIENCE: Patience =
    Patience { held: Duration::from_secs(5), stale: Duration::from_secs(10), waited: Duration::from_secs(20) };

const MAGIC: &[u8] = b"SQLite format 3\0";

pub struct Database {
    pub file: PathBuf,
    pub writable: bool,
    pub patience: Patience,
}

/// What is another if somebody changed the file meanwhile.
#[derive(PartialEq)]
struct Seen {
    length: u64,
    changed: Option<SystemTime>,
    /// What the file begins with, if there is anything: SQLite counts the changes there.
    begin: Option<[u8; 100]>,
}

impl Seen {
    /// Whether it is in the mode in which changes are in a file of their own at first.
    fn logs(&self) -> bool {
        self.begin.is_some_and(|begin| begin.get(18..20).is_some_and(|versions| versions.contains(&2)))
    }
}

impl Database {
    /// Works on the database as it is at one moment. The work is done again if somebody changed it meanwhile.
    pub fn read<T>(&self, work: impl Fn(&mut Connection) -> Result<T>) -> Result<T> {
        let began = Instant::now();
        loop {
            let before = self.settled(began)?;
            let opened = match &before {
                Some(Seen { begin: Some(_), .. }) => guard::reading(&self.file),
                _ => Connection::open_in_memory(),
            };
            let done = opened.map_err(|error| said(&error)).and_then(|mut connection| work(&mut connection));
            if !self.disturbed()? && self.seen()? == before {
                return done;
            }
            if began.elapsed() > self.patience.waited {
                return Err(self.busy());
            }
        }
    }

    /// Changes the database while nobody else does.
    pub fn write<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        if !self.writable {
            return Err(Error::failed(format!(
                "{} is read only here; the operator can grant more, with `access = \"read-write\"`",
                self.file.display()
            )));
        }
        let lock = self.lock(Instant::now())?;
        // First what a call left that was cut off: without the lock that is inherited with it, it would be another program's for good.
        if lock.inherited() && self.journal()? {
            self.roll_back(&lock)?;
        }
        if self.seen()?.is_some_and(|seen| seen.logs()) || self.logged()? {
            return Err(self.unshared());
        }
        let done = guard::writing(&self.file, &lock, |mut connection| {
            let done = work(&mut connection);
            drop(connection);
            done
        });
        let counts = lock.counts();
        if self.journal()? {
            lock.leave();
        }
        match done.map_err(|error| said(&error)).and_then(|done| done) {
            Err(Error::Failed(_)) if !counts => {
                Err(Error::failed("the disk was too slow, and nothing was changed; try again"))
            }
            done => done,
        }
    }

    /// Waits until nobody changes it, and mends what a call left that was cut off.
    fn settled(&self, began: Instant) -> Result<Option<Seen>> {
        while self.disturbed()? {
            if began.elapsed() > self.patience.waited {
                return Err(self.busy());
            }
            // A change is over soon, and who only reads takes the lock from nobody before.
            if !self.writable || began.elapsed() < self.patience.stale / 10 {
                pause();
                continue;
            }
            let lock = self.lock(began)?;
            if self.journal()? {
                self.roll_back(&lock)?;
            }
        }
        if self.logged()? {
            return Err(self.unshared());
        }
        self.seen()
    }

    /// Takes the lock once no other program changes the database.
    fn lock(&self, began: Instant) -> Result<Rc<Lock>> {
        loop {
            let lock = Lock::take(&self.file, self.patience)?;
            if lock.inherited() || !self.journal()? {
                return Ok(Rc::new(lock));
            }
            drop(lock);
            if began.elapsed() > self.patience.waited {
                return Err(self.busy());
            }
            pause();
        }
    }

    /// SQLite does that as soon as it reads anything.
    fn roll_back(&self, lock: &Rc<Lock>) -> Result<()> {
        let done = guard::writing(&self.file, lock, |connection| {
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
        });
        if self.journal()? {
            lock.leave();
        }
        done.and_then(|done| done).map_err(|error| said(&error))
    }

    /// Whether somebody changes it, or was cut off when changing it.
    fn disturbed(&self) -> Result<bool> {
        let lock = beside(&self.file, ".lock");
        let locked = lock.try_exists().map_err(|error| at(&lock, &error))?;
        Ok(locked || self.journal()?)
    }

    /// Whether there is a journal with something in it. Some programs leave an empty one, or one that begins with zeros.
    fn journal(&self) -> Result<bool> {
        let journal = beside(&self.file, "-journal");
        let mut first = [0];
        match File::open(&journal).and_then(|mut file| file.read(&mut first)) {
            Ok(length) => Ok(length > 0 && first != [0]),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(at(&journal, &error)),
        }
    }

    /// Whether there are changes that are not in the file of the database yet.
    fn logged(&self) -> Result<bool> {
        let log = beside(&self.file, "-wal");
        match fs::metadata(&log) {
            Ok(found) => Ok(found.len() > 0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(at(&log, &error)),
        }
    }

    fn seen(&self) -> Result<Option<Seen>> {
        let told = |error| at(&self.file, &error);
        match fs::symlink_metadata(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(told(error)),
            // Beside the one name there would be another lock than beside the other.
            Ok(found) if found.is_symlink() => {
                return Err(Error::failed(format!(
                    "{} is a link; the operator can name the file that it leads to",
                    self.file.display()
                )));
            }
            Ok(_) => {}
        }
        let mut file = File::open(&self.file).map_err(told)?;
        let found = file.metadata().map_err(told)?;
        let mut begin = [0; 100];
        let begin = match file.read_exact(&mut begin) {
            Ok(()) if begin.starts_with(MAGIC) => Some(begin),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && found.len() == 0 => None,
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(told(error)),
            _ => return Err(Error::failed(format!("{} is not an SQLite database", self.file.display()))),
        };
        Ok(Some(Seen { length: found.len(), changed: found.modified().ok(), begin }))
    }

    fn busy(&self) -> Error {
        Error::failed(format!(
            "{} is being changed, or another program was cut off while it changed it; try again. If nobody changes it, open it once with \
             that program, which rolls back what is in {}",
            self.file.display(),
            beside(&self.file, "-journal").display()
        ))
    }

    fn unshared(&self) -> Error {
        Error::failed(format!(
            "{} is in WAL mode, in which programs share memory, which this one cannot. Have its program close it to read it here; to \
             change it here, first run `PRAGMA journal_mode = DELETE` on it with another program",
            self.file.display()
        ))
    }
}

fn pause() {
    thread::sleep(Duration::from_millis(1 + random() % 20));
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::statement;

    fn database(folder: &TempDir, patience: Patience) -> Database {
        Database { file: folder.path().join("a b?%23.db"), writable: true, patience }
    }

    fn write(database: &Database, query: &str) -> Result<String> {
        database.write(|connection| statement::write(connection, query))
    }

    fn read(database: &Database, query: &str) -> Result<String> {
        database.read(|connection| statement::read(connection, query))
    }

    fn why(done: Result<String>) -> String {
        match done {
            Err(Error::Failed(why)) => why,
            Err(_) => panic!("another error"),
            Ok(done) => panic!("{done}"),
        }
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn who_reads_and_writes_at_once_sees_and_loses_nothing() {
        let folder = TempDir::new().unwrap();
        let database = database(&folder, PATIENCE);
        write(&database, "CREATE TABLE t (a, b)").unwrap();
        write(&database, "INSERT INTO t VALUES (0, 0)").unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        // In two rows, so that half of it could be seen.
                        write(
                            &database,
                            "INSERT INTO t SELECT max(a) + 1, 1 FROM t UNION ALL SELECT max(a) + 1, -1 FROM t",
                        )
                        .unwrap();
                    }
                });
                scope.spawn(|| {
                    for _ in 0..10 {
                        assert_eq!(read(&database, "SELECT sum(b) AS b FROM t").unwrap(), r#"[{"b":0}]"#);
                    }
                });
            }
        });
        assert_eq!(read(&database, "SELECT count(*) AS n, max(a) AS m FROM t").unwrap(), r#"[{"n":81,"m":40}]"#);
        assert_eq!(names(&folder), ["a b?%23.db"]);
    }

    /// A database whose change was cut off, and that database with all that is beside it.
    fn cut_off() -> (TempDir, Database) {
        let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let short = Patience { stale: Duration::from_millis(50), waited: Duration::from_millis(200), ..PATIENCE };
        let [whole, half] = [&first, &second].map(|folder| database(folder, short));
        write(&whole, "CREATE TABLE t (a)").unwrap();
        let many =
            "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9000) INSERT INTO t SELECT 'before' FROM c";
        write(&whole, many).unwrap();
        let done = whole.write(|connection| {
            connection.execute_batch("PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = 'after!'").unwrap();
            for more in ["", "-journal"] {
                fs::copy(beside(&whole.file, more), beside(&half.file, more)).unwrap();
            }
            Ok(())
        });
        assert!(done.is_ok());
        let text = fs::read(&half.file).unwrap();
        assert!(text.windows(6).any(|part| part == b"after!"), "nothing was changed before it was cut off");
        (second, half)
    }

    const ALL: &str = "SELECT a, count(*) AS n FROM t GROUP BY a";

    #[test]
    fn a_change_that_was_cut_off_is_rolled_back() {
        for first in [read, write] {
            let (folder, database) = cut_off();
            fs::write(beside(&database.file, ".lock"), "gone").unwrap();
            let query = if std::ptr::fn_addr_eq(first, read as fn(&Database, &str) -> Result<String>) {
                ALL
            } else {
                "DELETE FROM t WHERE a = ''"
            };
            first(&database, query).unwrap();
            assert_eq!(read(&database, ALL).unwrap(), r#"[{"a":"before","n":9000}]"#);
            assert_eq!(names(&folder), ["a b?%23.db"]);
        }
    }

    #[test]
    fn what_another_program_was_doing_is_its_own_business() {
        let (folder, mut database) = cut_off();
        let before = fs::read(&database.file).unwrap();
        for writable in [true, false] {
            database.writable = writable;
            assert!(why(read(&database, ALL)).contains("a b?%23.db-journal"));
        }
        database.writable = true;
        assert!(why(write(&database, "DELETE FROM t")).contains("a b?%23.db-journal"));
        assert_eq!(fs::read(&database.file).unwrap(), before);
        assert_eq!(names(&folder), ["a b?%23.db", "a b?%23.db-journal"]);
    }

    #[test]
    fn who_is_silent_for_too_long_changes_nothing() {
        let folder = TempDir::new().unwrap();
        let whole = database(&folder, PATIENCE);
        write(&whole, "CREATE TABLE t (a)").unwrap();
        let late = database(&folder, Patience { held: Duration::ZERO, stale: Duration::from_millis(50), ..PATIENCE });
        assert!(why(write(&late, "INSERT INTO t VALUES (1)")).contains("too slow"));
        // The journal is empty.
        assert_eq!(names(&folder), ["a b?%23.db", "a b?%23.db-journal", "a b?%23.db.lock"]);
        let next = database(&folder, Patience { stale: Duration::from_millis(50), ..PATIENCE });
        assert_eq!(read(&next, "SELECT * FROM t").unwrap(), "[]");
        assert_eq!(write(&next, "INSERT INTO t VALUES (2)").unwrap(), r#"[{"affected_rows":1}]"#);
        assert_eq!(names(&folder), ["a b?%23.db"]);
    }

    #[test]
    fn wal_mode_is_read_when_all_is_in_the_file_and_never_written() {
        let folder = TempDir::new().unwrap();
        let database = database(&folder, PATIENCE);
        let other = Connection::open(&database.file).unwrap();
        other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (7)").unwrap();
        assert!(why(read(&database, "SELECT * FROM t")).contains("journal_mode = DELETE"));
        drop(other);
        let before = fs::read(&database.file).unwrap();
        assert_eq!(read(&database, "SELECT * FROM t").unwrap(), r#"[{"a":7}]"#);
        assert!(why(write(&database, "DELETE FROM t")).contains("journal_mode = DELETE"));
        assert_eq!(fs::read(&database.file).unwrap(), before);
        assert_eq!(names(&folder), ["a b?%23.db"]);
    }

    #[test]
    fn what_is_no_database_stays_as_it_is() {
        let folder = TempDir::new().unwrap();
        let mut database = database(&folder, PATIENCE);
        assert_eq!(read(&database, "SELECT name FROM sqlite_master").unwrap(), "[]");
        assert_eq!(names(&folder), [""; 0]);
        fs::write(&database.file, "a".repeat(200)).unwrap();
        for done in [read(&database, "SELECT 1"), write(&database, "CREATE TABLE t (a)")] {
            assert!(why(done).contains("is not an SQLite database"));
        }
        std::os::unix::fs::symlink(&database.file, folder.path().join("link")).unwrap();
        database.file = folder.path().join("link");
        assert!(why(read(&database, "SELECT 1")).contains("is a link"));
        database.writable = false;
        assert!(why(write(&database, "CREATE TABLE t (a)")).contains("is read only here"));
    }
}
