//! A VFS (the file layer of SQLite): SQLite's own for systems without locks, with a guard before the functions that change files. A
//! connection can open one database and its journal, and no other files, whatever a statement names.

use std::{
    cell::{Cell, RefCell},
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    rc::Rc,
    sync::OnceLock,
};

use kept::Lock;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use rusqlite::{Connection, OpenFlags, ffi};

use crate::log::Log;

const VFS_NAME: &CStr = c"guarded";
/// The characters with a special meaning in a `file:` URL.
const IN_URLS: AsciiSet = CONTROLS.add(b'%').add(b'?').add(b'#').add(b'&').add(b'=');

thread_local! {
    /// The lock under which this instance may change its database, if it holds one.
    static HELD: RefCell<Option<Rc<Lock>>> = const { RefCell::new(None) };
    /// The log that the database is read with, if it has one.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
    /// Whether the next file that SQLite opens as a database is the intended one.
    static MEANT: Cell<bool> = const { Cell::new(false) };
}

/// Opens the database in immutable mode, without locks. The caller has to check that nobody changed the files meanwhile.
pub fn reading(file: &Path, log: Option<Log>) -> rusqlite::Result<Connection> {
    LOG.set(log);
    let path = percent_encode(file.as_os_str().as_encoded_bytes(), &IN_URLS);
    open(&format!("file:{path}?immutable=1"), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

/// Runs `work` with a connection that can change the database as long as the lock is valid.
pub fn writing<T>(file: &Path, lock: &Rc<Lock>, work: impl FnOnce(Connection) -> T) -> rusqlite::Result<T> {
    LOG.take();
    HELD.set(Some(lock.clone()));
    let path = percent_encode(file.as_os_str().as_encoded_bytes(), &IN_URLS);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    let done = open(&format!("file:{path}"), flags).and_then(|mut connection| {
        connection.progress_handler(10_000, Some(|| !may_change()))?;
        Ok(work(connection))
    });
    HELD.take();
    done
}

fn open(url: &str, flags: OpenFlags) -> rusqlite::Result<Connection> {
    if !registered() {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_MISUSE), None));
    }
    MEANT.set(true);
    Connection::open_with_flags_and_vfs(url, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX, VFS_NAME)
}

fn may_change() -> bool {
    HELD.with_borrow(|held| held.as_ref().is_some_and(|lock| lock.keep()))
}

/// The functions of SQLite's own VFS, and those for open files: its own and the guarded ones.
struct Own {
    vfs: ffi::sqlite3_vfs,
    methods: OnceLock<[ffi::sqlite3_io_methods; 2]>,
}

// SAFETY: SQLite does not change either table after registration, and requires nothing else.
unsafe impl Send for Own {}
// SAFETY: as above.
unsafe impl Sync for Own {}

static OWN: OnceLock<Option<Own>> = OnceLock::new();

fn own() -> Option<&'static Own> {
    OWN.get().and_then(Option::as_ref)
}

fn registered() -> bool {
    OWN.get_or_init(|| {
        // SAFETY: the built-in VFS that SQLite returns is valid for ever.
        let found = unsafe { ffi::sqlite3_vfs_find(c"unix-none".as_ptr()).as_ref() }?;
        let mut guarded = *found;
        guarded.zName = VFS_NAME.as_ptr();
        guarded.pNext = std::ptr::null_mut();
        guarded.xOpen = Some(open_file);
        guarded.xDelete = Some(delete);
        // SAFETY: the VFS is leaked, so it is valid for ever.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(guarded)), 0) };
        (code == ffi::SQLITE_OK).then(|| Own { vfs: *found, methods: OnceLock::new() })
    })
    .is_some()
}

unsafe extern "C" fn open_file(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let meant = match flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_MAIN_JOURNAL) {
        ffi::SQLITE_OPEN_MAIN_DB => MEANT.replace(false),
        ffi::SQLITE_OPEN_MAIN_JOURNAL => true,
        _ => false,
    };
    let real = own().filter(|_| meant).and_then(|own| Some((own, own.vfs.xOpen?)));
    // SAFETY: SQLite passes a file of the size that the VFS requires. It reads `pMethods` even after a failure, so that is set first.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let Some((own, real)) = real else { return ffi::SQLITE_CANTOPEN };
        let code = real(vfs, name, file, flags, out);
        if let Some(methods) = (*file).pMethods.as_ref() {
            // All files have the same methods, because they are opened in the same way.
            let [_, guarded] = own.methods.get_or_init(|| [*methods, guard(*methods)]);
            (*file).pMethods = guarded;
        }
        code
    }
}

fn guard(mut methods: ffi::sqlite3_io_methods) -> ffi::sqlite3_io_methods {
    methods.xRead = Some(read);
    methods.xFileSize = Some(length);
    methods.xWrite = Some(write);
    methods.xTruncate = Some(truncate);
    methods
}

fn methods() -> Option<&'static ffi::sqlite3_io_methods> {
    own()?.methods.get()?.first()
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, into: *mut c_void, length: c_int, at: i64) -> c_int {
    let logged = LOG.with_borrow_mut(|log| {
        let (Some(log), Ok(at), Ok(length)) = (log, u64::try_from(at), usize::try_from(length)) else {
            return Ok(false);
        };
        // SAFETY: SQLite passes a buffer of that length, which nothing else uses meanwhile.
        let buffer = unsafe {
            into.cast::<u8>().write_bytes(0, length);
            std::slice::from_raw_parts_mut(into.cast(), length)
        };
        log.read(at, buffer)
    });
    match (logged, methods().and_then(|own| own.xRead)) {
        (Ok(true), _) => ffi::SQLITE_OK,
        // SAFETY: SQLite's own function is called with the arguments that SQLite passed.
        (Ok(false), Some(read)) => unsafe { read(file, into, length, at) },
        _ => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn length(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    let logged = LOG.with_borrow(|log| log.as_ref().and_then(|log| i64::try_from(log.length).ok()));
    match (logged, methods().and_then(|own| own.xFileSize)) {
        // SAFETY: SQLite passes a place for the result.
        (Some(logged), _) => unsafe {
            *out = logged;
            ffi::SQLITE_OK
        },
        // SAFETY: SQLite's own function is called with the arguments that SQLite passed.
        (None, Some(length)) => unsafe { length(file, out) },
        (None, None) => ffi::SQLITE_IOERR_FSTAT,
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, length: c_int, at: i64) -> c_int {
    match methods().and_then(|own| own.xWrite).filter(|_| may_change()) {
        // SAFETY: SQLite's own function is called with the arguments that SQLite passed.
        Some(write) => unsafe { write(file, from, length, at) },
        None => ffi::SQLITE_IOERR_WRITE,
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    match methods().and_then(|own| own.xTruncate).filter(|_| may_change()) {
        // SAFETY: SQLite's own function is called with the arguments that SQLite passed.
        Some(truncate) => unsafe { truncate(file, size) },
        None => ffi::SQLITE_IOERR_TRUNCATE,
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    match own().and_then(|own| own.vfs.xDelete).filter(|_| may_change()) {
        // SAFETY: SQLite's own function is called with the arguments that SQLite passed.
        Some(delete) => unsafe { delete(vfs, name, sync) },
        None => ffi::SQLITE_IOERR_DELETE,
    }
}
