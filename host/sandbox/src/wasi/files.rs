//! Replaces the functions of WASI's file system with which a guest could harm the host: those that open special files such as pipes and
//! devices, and those that read directories of any size.
//!
//! Opening a pipe blocks until its other end is opened, on a thread that cannot be interrupted. A few hundred such pipes would occupy all
//! threads for blocking work. So each path is first examined without opening it, then opened with `O_NONBLOCK`, then examined again. Even
//! if the file is replaced by a pipe in between (TOCTOU), nothing blocks. A directory is read a few entries at a time, as the guest asks
//! for them, so that the host never holds all of its entries.
//!
//! A name that is not UTF-8 is listed with U+FFFD in place of its other bytes. A guest cannot open such a file; the error says that the
//! name is the reason.
//!
//! After each entry of a directory, a guest's C library asks for the identity of that file. It is known from reading the directory, so it
//! is answered without another system call. A guest may read an absolute symbolic link only if it leads into a directory that is open to
//! the guest, because other links would reveal paths of the host.
//!
//! Guests cannot see or set the modes of files. But programs often replace a file by renaming a new one over it, so that
//! readers see either the old contents or the new ones. The new file then gets the mode and the owner of the one that it
//! replaces, so that a private file stays private. That gives rights only to what the call wrote itself: any other file that is renamed only
//! loses rights, and a file that has another name keeps its mode.

use std::{
    collections::{BTreeSet, VecDeque},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Weak},
};

use cap_primitives::fs::{FollowSymlinks, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, fchown, fcntl_getfl, fcntl_setfl, openat, statat},
    io::Errno,
};
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::{
    FsPerms, OpenMode,
    filesystem::{Descriptor, Dir, File, WasiFilesystemCtxView, WasiFilesystemView},
    p2::{
        DynInputStream, DynOutputStream, FsResult,
        bindings::filesystem::types::{
            DescriptorFlags, DescriptorType, DirectoryEntry, ErrorCode, HostDescriptor, MetadataHashValue,
            NewTimestamp, OpenFlags, PathFlags,
        },
    },
};

use crate::wasi::{
    blocking::blocking,
    changes::{self, Will},
    new_entries::{self, Answer, answer},
    store::{Listed, State},
    told::FileStream,
};
use wharf_scope::{FileIdentity, changes::Opened, identity_of};

/// The interface with exactly the version that wasmtime links. With another version these functions would be added next to wasmtime's own
/// instead of replacing them; a test with a hostile guest notices that.
const TYPES: &str = "wasi:filesystem/types@0.2.12";
/// The maximum number of directory entries that are buffered for one instance, over all directories that it reads. Each read takes as many
/// as are left of these, but at least `MIN_READ_AHEAD`.
const MAX_READ_AHEAD: usize = 1024;
const MIN_READ_AHEAD: usize = 16;
/// The maximum number of files of a call that are known to be its own.
const MAX_BEGUN: usize = 1024;

type OpenAt = (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags);
type MetadataHashAt = (Resource<Descriptor>, PathFlags, String);
type ReadlinkAt = (Resource<Descriptor>, String);
type RenameAt = (Resource<Descriptor>, String, Resource<Descriptor>, String);
type WriteAt = (Resource<Descriptor>, Vec<u8>, u64);
type SetTimesAt = (Resource<Descriptor>, PathFlags, String, NewTimestamp, NewTimestamp);

/// A directory that a guest is reading.
struct Entries {
    /// The guest's own handle of the directory, which this does not keep open.
    base: Weak<fs::File>,
    /// `None` once all entries have been read.
    directory: Option<rustix::fs::Dir>,
    read: VecDeque<Result<Entry, ErrorCode>>,
}

struct Entry {
    entry: DirectoryEntry,
    identity: FileIdentity,
}

/// Replaces functions of `wasi:filesystem/types`. The linker must allow shadowing.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(TYPES)?;
    types.resource("directory-entry-stream", ResourceType::host::<Entries>(), |mut store, rep| {
        let state = store.data_mut();
        let entries = state.filesystem().table.delete(Resource::<Entries>::new_own(rep))?;
        state.read_ahead -= entries.read.len();
        state.listed = None;
        Ok(())
    })?;
    types.func_wrap_async(
        "[method]descriptor.read-directory",
        |mut store, (directory,): (Resource<Descriptor>,)| {
            Box::new(async move { read_directory(store.data_mut(), directory).await })
        },
    )?;
    types.func_wrap_async(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store, (stream,): (Resource<Entries>,)| Box::new(async move { next(store.data_mut(), stream).await }),
    )?;
    types.func_wrap(
        "[method]descriptor.read-via-stream",
        |mut store, (file, offset): (Resource<Descriptor>, u64)| {
            stream(store.data_mut(), |files| files.read_via_stream(file, offset))
        },
    )?;
    types.func_wrap(
        "[method]descriptor.write-via-stream",
        |mut store, (file, offset): (Resource<Descriptor>, u64)| {
            let known = Resource::new_borrow(file.rep());
            counted(store.data_mut(), &known, |files| files.write_via_stream(file, offset))
        },
    )?;
    types.func_wrap("[method]descriptor.append-via-stream", |mut store, (file,): (Resource<Descriptor>,)| {
        let known = Resource::new_borrow(file.rep());
        counted(store.data_mut(), &known, |files| files.append_via_stream(file))
    })?;
    types.func_wrap_async("[method]descriptor.write", |mut store, args: WriteAt| {
        Box::new(async move { write(store.data_mut(), args).await })
    })?;
    new_entries::link(&mut types)?;
    types.func_wrap_async("[method]descriptor.open-at", |mut store, args: OpenAt| {
        Box::new(async move { open_at(store.data_mut(), args).await })
    })?;
    types.func_wrap_async("[method]descriptor.metadata-hash-at", |mut store, args: MetadataHashAt| {
        Box::new(async move { metadata_hash_at(store.data_mut(), args).await })
    })?;
    types.func_wrap_async("[method]descriptor.readlink-at", |mut store, args: ReadlinkAt| {
        Box::new(async move { readlink_at(store.data_mut(), args).await })
    })?;
    types.func_wrap_async("[method]descriptor.rename-at", |mut store, args: RenameAt| {
        Box::new(async move { rename_at(store.data_mut(), args).await })
    })?;
    types.func_wrap_async("[method]descriptor.set-times-at", |mut store, args: SetTimesAt| {
        Box::new(async move { set_times_at(store.data_mut(), args).await })
    })
}

/// Opens another stream of a file, if the memory budget has room for what the stream may buffer.
fn stream<T>(state: &mut State, open: impl FnOnce(&mut WasiFilesystemCtxView<'_>) -> FsResult<T>) -> Answer<T> {
    if !has_room_for_stream(state) {
        return Ok((Err(ErrorCode::InsufficientMemory),));
    }
    answer(open(&mut state.filesystem()))
}

/// Opens a stream to a file, whose bytes are counted.
fn counted(
    state: &mut State,
    file: &Resource<Descriptor>,
    open: impl FnOnce(&mut WasiFilesystemCtxView<'_>) -> FsResult<Resource<DynOutputStream>>,
) -> Answer<Resource<DynOutputStream>> {
    let opened = match stream(state, open)? {
        (Ok(opened),) => opened,
        refused => return Ok(refused),
    };
    let (written, told) = (Arc::clone(&state.written), Arc::clone(&state.told));
    let table = state.filesystem().table;
    let Descriptor::File(file) = table.get(file)? else { return Ok((Ok(opened),)) };
    let file = Arc::clone(&file.file);
    let stream = table.delete(opened)?;
    Ok((Ok(table.push(FileStream::of(stream, file, (written, told)))?),))
}

/// Writes to a file as WASI's own function does, and counts the bytes.
async fn write(state: &mut State, (file, bytes, offset): WriteAt) -> Answer<u64> {
    let written = Arc::clone(&state.written);
    if let Descriptor::File(file) = state.filesystem().table.get(&file)? {
        written.count(&file.file, bytes.len(), &mut None)?;
    }
    changes::before_write(state, &file).await?;
    answer(state.filesystem().write(file, bytes, offset).await)
}

/// Charges for one more stream, of a file or of a directory's entries, if there is room for what it may buffer.
fn has_room_for_stream(state: &mut State) -> bool {
    let is_stream = |entry: &(dyn std::any::Any + Send)| {
        entry.is::<DynInputStream>() || entry.is::<DynOutputStream>() || entry.is::<Entries>()
    };
    let open_streams = state.filesystem().table.iter_mut().filter(|(_, entry)| is_stream(&**entry)).count();
    state.budget.hold_streams(open_streams + 1)
}

async fn read_directory(state: &mut State, directory: Resource<Descriptor>) -> Answer<Resource<Entries>> {
    if !has_room_for_stream(state) {
        return Ok((Err(ErrorCode::InsufficientMemory),));
    }
    let base = match state.filesystem().table.get(&directory)? {
        Descriptor::Dir(base) => Arc::clone(&base.dir),
        Descriptor::File(_) => return Ok((Err(ErrorCode::NotDirectory),)),
    };
    changes::after_opened(state, &base, Opened::Folder);
    let (known, table) = (Arc::downgrade(&base), state.filesystem().table);
    match blocking(move || begin(&base)).await {
        Ok(own) => Ok((Ok(table.push(Entries { base: known, directory: Some(own), read: VecDeque::new() })?),)),
        Err(error) => Ok((Err(error.into()),)),
    }
}

fn begin(base: &fs::File) -> io::Result<rustix::fs::Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::Dir::new(openat(base, c".", flags, Mode::empty())?)?)
}

async fn next(state: &mut State, stream: Resource<Entries>) -> Answer<Option<DirectoryEntry>> {
    let most = MAX_READ_AHEAD.saturating_sub(state.read_ahead).max(MIN_READ_AHEAD);
    let entries = state.filesystem().table.get_mut(&stream)?;
    if entries.read.is_empty()
        && let Some(mut own) = entries.directory.take()
    {
        let (own, read) = blocking(move || {
            let read = more(&mut own, most);
            ((!read.is_empty()).then_some(own), read)
        })
        .await;
        let length = read.len();
        (entries.directory, entries.read) = (own, read);
        state.read_ahead += length;
    }
    let entries = state.filesystem().table.get_mut(&stream)?;
    let (next, base) = (entries.read.pop_front(), Weak::clone(&entries.base));
    if entries.read.len() < entries.read.capacity() / 4 {
        // A queue does not shrink by itself.
        entries.read.shrink_to_fit();
    }
    state.read_ahead -= usize::from(next.is_some());
    state.listed = None;
    Ok((match next {
        Some(Ok(Entry { entry, identity })) => {
            state.listed = Some(Listed { base, name: entry.name.clone(), identity });
            Ok(Some(entry))
        }
        Some(Err(code)) => Err(code),
        None => Ok(None),
    },))
}

fn more(own: &mut rustix::fs::Dir, most: usize) -> VecDeque<Result<Entry, ErrorCode>> {
    let device = own.stat().map(|stat| identity_of(&stat).0);
    // Whether directory entries have the inode numbers that `stat` returns: overlay file systems list others. The first file of each chunk
    // shows it.
    let mut has_stat_numbers = None;
    let mut read = VecDeque::new();
    while read.len() < most {
        let entry = match own.read() {
            None => break,
            // The next read after an error returns no entry, so the loop ends.
            Some(Err(error)) => {
                read.push_back(Err(io::Error::from(error).into()));
                continue;
            }
            Some(Ok(entry)) => entry,
        };
        let name = entry.file_name();
        if name != c"." && name != c".." {
            read.push_back(match device {
                Ok(device) => describe(own, name, entry.file_type(), (device, entry.ino()), &mut has_stat_numbers),
                Err(error) => Err(io::Error::from(error).into()),
            });
        }
    }
    read
}

fn describe(
    own: &rustix::fs::Dir,
    name: &std::ffi::CStr,
    mut kind: FileType,
    mut identity: FileIdentity,
    has_stat_numbers: &mut Option<bool>,
) -> Result<Entry, ErrorCode> {
    // Some file systems do not return the type along with the name. If something is mounted on a directory, its identity differs from the
    // one that the parent directory lists.
    if matches!(kind, FileType::Unknown | FileType::Directory) || *has_stat_numbers != Some(true) {
        match own.fd().and_then(|fd| statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => {
                kind = FileType::from_raw_mode(stat.st_mode);
                let own = identity_of(&stat);
                if kind != FileType::Directory && has_stat_numbers.is_none() {
                    *has_stat_numbers = Some(own == identity);
                }
                identity = own;
            }
            Err(error) if kind == FileType::Unknown => return Err(io::Error::from(error).into()),
            // The directory may be gone by now. The guest gets the error when it opens the directory.
            Err(_) => {}
        }
    }
    let type_ = match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        // WASI's own function reports pipes and sockets as unknown too.
        _ => DescriptorType::Unknown,
    };
    // WASI cannot express a name that is not UTF-8. An error in its place would hide the rest of the directory.
    let name = name.to_string_lossy().into_owned();
    Ok(Entry { entry: DirectoryEntry { type_, name }, identity })
}

/// Answers from memory for the entry that the guest has just read from a directory. For everything else, WASI's own function is called; it
/// would give the same answer.
async fn metadata_hash_at(
    state: &mut State,
    (directory, path_flags, path): MetadataHashAt,
) -> Answer<MetadataHashValue> {
    if let Some(Listed { base, name, identity }) = state.listed.take()
        && name == path
        && !path_flags.contains(PathFlags::SYMLINK_FOLLOW)
        && let Descriptor::Dir(asked) = state.filesystem().table.get(&directory)?
        && std::ptr::eq(Arc::as_ptr(&asked.dir), Weak::as_ptr(&base))
    {
        return Ok((Ok(hash(identity)),));
    }
    answer(state.filesystem().metadata_hash_at(directory, path_flags, path).await)
}

/// Returns the hash that wasmtime's own function computes for the same identity. The two must agree, because guests compare files by it; a
/// test with a guest checks that.
fn hash(identity: FileIdentity) -> MetadataHashValue {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    let lower = hasher.finish();
    MetadataHashValue { lower, upper: lower ^ 4_614_256_656_552_045_848 }
}

/// Reads a symbolic link as WASI's own function does. Besides, it reads an absolute link that leads into a directory of the guest. Links
/// contain paths of the host, so the guest has to know that directory by its path on the host.
async fn readlink_at(state: &mut State, (directory, path): ReadlinkAt) -> Answer<String> {
    let base = match state.filesystem().table.get(&directory)? {
        Descriptor::Dir(base) => Arc::clone(&base.dir),
        Descriptor::File(_) => return Ok((Err(ErrorCode::NotDirectory),)),
    };
    let link = PathBuf::from(&path);
    let target = blocking(move || cap_primitives::fs::read_link_contents(&base, &link)).await;
    if let Ok(target) = target
        && target.is_absolute()
        && !target.components().any(|part| part == Component::ParentDir)
        && state.directories().iter().any(|open| open.is_above(&target))
        && let Some(target) = target.to_str()
    {
        return Ok((Ok(target.to_owned()),));
    }
    answer(state.filesystem().readlink_at(directory, path).await)
}

async fn open_at(state: &mut State, (at, path_flags, path, open, flags): OpenAt) -> Answer<Resource<Descriptor>> {
    state.listed = None;
    let base = match state.filesystem().table.get(&at)? {
        Descriptor::Dir(base) => base.clone(),
        Descriptor::File(_) => return Ok((Err(ErrorCode::NotDirectory),)),
    };
    let perms = base.perms;
    let follow = FollowSymlinks::follow(path_flags.contains(PathFlags::SYMLINK_FOLLOW));
    let (options, mode) = match options(perms, follow, open, flags) {
        Ok(options) => options,
        Err(code) => return Ok((Err(code),)),
    };
    let directory = open.contains(OpenFlags::DIRECTORY);
    let is_emptied = open.contains(OpenFlags::TRUNCATE) || open.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
    let is_replaced = path.contains(char::REPLACEMENT_CHARACTER);
    let mut is_new = false;
    if open.contains(OpenFlags::CREATE) {
        let (base, own) = (Arc::clone(&base.dir), PathBuf::from(&path));
        if blocking(move || cap_primitives::fs::stat(&base, &own, follow).is_err()).await {
            new_entries::count(state, &at)?;
            changes::before(state, &at, &path, Will::Make).await?;
            is_new = true;
        }
    }
    if open.contains(OpenFlags::TRUNCATE) {
        changes::before(state, &at, &path, Will::Empty(follow)).await?;
    }
    let opened = blocking(move || {
        let (file, is_directory) = open_file(&base.dir, path.as_ref(), follow, &options, directory)?;
        let own = match is_emptied && !is_directory {
            true => Some(identity_of(&rustix::fs::fstat(&file).map_err(io::Error::from)?)),
            false => None,
        };
        Ok((file, is_directory, own))
    })
    .await;
    let descriptor = match opened {
        Ok((file, true, _)) => Descriptor::Dir(Dir::new(file, perms, mode, false)),
        Ok((file, false, own)) => {
            if state.begun.len() < MAX_BEGUN {
                state.begun.extend(own);
            }
            Descriptor::File(File::new(file, perms, mode, false))
        }
        // The guest has the name from a list.
        Err(ErrorCode::NoEntry) if is_replaced => return Ok((Err(ErrorCode::IllegalByteSequence),)),
        Err(code) => return Ok((Err(code),)),
    };
    if let Descriptor::File(file) = &descriptor {
        if is_new {
            changes::after_made(state.told.keeper(), Arc::clone(&file.file)).await;
        }
        if flags.contains(DescriptorFlags::READ) {
            changes::after_opened(state, &file.file, Opened::File);
        }
    }
    let opened = state.filesystem().table.push(descriptor)?;
    state.touched.forget(opened.rep());
    Ok((Ok(opened),))
}

/// Turns the flags into options for opening. The checks are those of WASI's own function, in the same order, so that guests get
/// the same errors.
fn options(
    perms: FsPerms,
    follow: FollowSymlinks,
    open: OpenFlags,
    flags: DescriptorFlags,
) -> Result<(OpenOptions, OpenMode), ErrorCode> {
    let [create, exclusive, truncate, directory] =
        [OpenFlags::CREATE, OpenFlags::EXCLUSIVE, OpenFlags::TRUNCATE, OpenFlags::DIRECTORY]
            .map(|flag| open.contains(flag));
    let sync = [
        DescriptorFlags::FILE_INTEGRITY_SYNC,
        DescriptorFlags::DATA_INTEGRITY_SYNC,
        DescriptorFlags::REQUESTED_WRITE_SYNC,
    ];
    if sync.into_iter().any(|flag| flags.contains(flag)) {
        return Err(ErrorCode::Unsupported);
    }
    if directory && (create || exclusive || truncate) {
        return Err(ErrorCode::Invalid);
    }
    let write = create || truncate || flags.contains(DescriptorFlags::WRITE);
    let read = flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
    if write && perms.write_not_permitted() {
        return Err(ErrorCode::NotPermitted);
    }
    let mut options = OpenOptions::new();
    options
        .read(read)
        .write(write)
        .truncate(truncate)
        .create(create && !exclusive)
        .create_new(create && exclusive)
        ._cap_fs_ext_follow(follow)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    let mut mode = OpenMode::empty();
    mode.set(OpenMode::READ, read);
    mode.set(OpenMode::WRITE, write);
    Ok((options, mode))
}

/// Opens a file. Returns it, and whether it is a directory.
fn open_file(
    base: &fs::File,
    path: &Path,
    follow: FollowSymlinks,
    options: &OpenOptions,
    directory: bool,
) -> Result<(fs::File, bool), ErrorCode> {
    // If there is no such file, the open below creates it or returns the error.
    if let Ok(seen) = cap_primitives::fs::stat(base, path, follow) {
        let kind = seen.file_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
            return Err(ErrorCode::Unsupported);
        }
    }
    let file = match cap_primitives::fs::open(base, path, options) {
        // This is a pipe without a reader, or a socket.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => return Err(ErrorCode::Unsupported),
        opened => opened?,
    };
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Ok((file, true));
    }
    if !kind.is_file() {
        return Err(ErrorCode::Unsupported);
    }
    if directory {
        return Err(ErrorCode::NotDirectory);
    }
    let flags = fcntl_getfl(&file).map_err(io::Error::from)?;
    fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK)).map_err(io::Error::from)?;
    Ok((file, false))
}

/// Renames as WASI's own function does. A file that will replace another one is given that one's mode and owner first.
async fn rename_at(state: &mut State, (from, old, to, new): RenameAt) -> Answer<()> {
    state.listed = None;
    let (begun, keeper) = (state.begun.clone(), state.told.keeper());
    let table = state.filesystem().table;
    let (mut places, mut told) = (None, None);
    if let (Descriptor::Dir(source), Descriptor::Dir(target)) = (table.get(&from)?, table.get(&to)?)
        && !source.perms.write_not_permitted()
        && !target.perms.write_not_permitted()
    {
        let both = (Arc::clone(&source.dir), Arc::clone(&target.dir), old.clone(), new.clone());
        places = Some(both.clone());
        if let Some(keeper) = keeper
            && changes::before_move(Arc::clone(&keeper), both.clone()).await
        {
            told = Some(keeper);
        }
        let (source, target, old, new) = both;
        // If this fails, the new file keeps its own mode or owner. The rename itself checks whether the file may be renamed.
        blocking(move || keep_mode(&source, old.as_ref(), &target, new.as_ref(), &begun).ok()).await;
    }
    let renamed = answer(state.filesystem().rename_at(from, old, to, new).await)?;
    if let Some(keeper) = told.filter(|_| renamed.0.is_err()) {
        blocking(move || keeper.not_moved()).await;
    }
    // WASI's own function calls a move to another file system an I/O error.
    if let ((Err(ErrorCode::Io),), Some((source, target, old, new))) = (&renamed, places)
        && blocking(move || are_on_two_devices(&source, old.as_ref(), &target, new.as_ref()).unwrap_or_default()).await
    {
        return Ok((Err(ErrorCode::CrossDevice),));
    }
    Ok(renamed)
}

/// Whether a file and the folder that it is to be moved to are on different file systems.
fn are_on_two_devices(source: &fs::File, old: &Path, target: &fs::File, new: &Path) -> io::Result<bool> {
    let folder = match new.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let moved = cap_primitives::fs::stat(source, old, FollowSymlinks::No)?;
    Ok(moved.dev() != cap_primitives::fs::stat(target, folder, FollowSymlinks::Yes)?.dev())
}

/// Gives a file the mode and the owner of the one that it is to replace, if both are files. A file that is not among `begun`, whose contents
/// are all the call's own, only loses rights. A file that has another name stays as it is.
fn keep_mode(
    source: &fs::File,
    old: &Path,
    target: &fs::File,
    new: &Path,
    begun: &BTreeSet<FileIdentity>,
) -> io::Result<()> {
    let replaced = cap_primitives::fs::stat(target, new, FollowSymlinks::No)?;
    let mut look = OpenOptions::new();
    look.read(true)._cap_fs_ext_follow(FollowSymlinks::No).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    if !replaced.is_file() || !cap_primitives::fs::stat(source, old, FollowSymlinks::No)?.is_file() {
        return Ok(());
    }
    let file = cap_primitives::fs::open(source, old, &look)?;
    let own = file.metadata()?;
    if !own.is_file() || std::os::unix::fs::MetadataExt::nlink(&own) != 1 {
        return Ok(());
    }
    let is_own = begun.contains(&identity_of(&rustix::fs::fstat(&file)?));
    let rights = if is_own { 0o777 } else { own.permissions().mode() & 0o777 };
    let (uid, gid) = (MetadataExt::uid(&replaced), MetadataExt::gid(&replaced));
    let owner = (std::os::unix::fs::MetadataExt::uid(&own), std::os::unix::fs::MetadataExt::gid(&own));
    if is_own && owner != (uid, gid) {
        // The system may not allow this; then the file keeps its owner.
        fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).ok();
    }
    // Set-user-ID and similar bits are not copied: a file that a guest wrote must not run with the rights of its owner.
    file.set_permissions(fs::Permissions::from_mode(MetadataExt::mode(&replaced) & rights))
}

/// Sets the times of a file. If links are followed, the file is opened with `open_at`: WASI's own function would open anything, even a
/// pipe.
async fn set_times_at(state: &mut State, (directory, path_flags, path, accessed, modified): SetTimesAt) -> Answer<()> {
    if !path_flags.contains(PathFlags::SYMLINK_FOLLOW) {
        // If links are not followed, WASI's own function opens only directories.
        return answer(state.filesystem().set_times_at(directory, path_flags, path, accessed, modified).await);
    }
    let mut opened = Err(ErrorCode::Access);
    for flags in [DescriptorFlags::WRITE, DescriptorFlags::READ] {
        let same = Resource::new_borrow(directory.rep());
        (opened,) = open_at(state, (same, path_flags, path.clone(), OpenFlags::empty(), flags)).await?;
        if !matches!(opened, Err(ErrorCode::Access | ErrorCode::IsDirectory)) {
            break;
        }
    }
    let opened = match opened {
        Ok(opened) => opened,
        Err(code) => return Ok((Err(code),)),
    };
    changes::before_write(state, &opened).await?;
    let mut files = state.filesystem();
    let result = files.set_times(Resource::new_borrow(opened.rep()), accessed, modified).await;
    HostDescriptor::drop(&mut files, opened)?;
    answer(result)
}
