//! Replaces the functions of WASI's file system with which a guest could hurt the host: opening what is no file, and reading folders
//! of any size.
//!
//! Opening a pipe waits for its other end, on a thread that cannot be interrupted. A few hundred such pipes would leave no thread
//! for anybody's files. So what is to be opened is looked at without opening it, then opened in a way that never waits, then looked
//! at again; even if something else is put in its place meanwhile, nothing waits. A folder is read a few entries at a time, as the
//! guest asks for them, so that the host never holds all of its entries.
//!
//! Guests cannot see or set the modes of files. So a file that a guest puts in the place of another, as everybody does who wants
//! readers to see the old contents or the new ones, gets the mode and the owner of the one it replaces: a private file stays private.

use std::{collections::VecDeque, fs, io, path::Path, sync::Arc};

use cap_primitives::fs::{FollowSymlinks, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, fcntl_getfl, fcntl_setfl, openat, statat},
    io::Errno,
};
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::{
    FsPerms, OpenMode,
    filesystem::{Descriptor, Dir, File, WasiFilesystemCtxView, WasiFilesystemView},
    p2::{
        DynInputStream, DynOutputStream, FsResult,
        bindings::filesystem::types::{
            DescriptorFlags, DescriptorType, DirectoryEntry, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags,
            PathFlags,
        },
    },
    runtime::spawn_blocking,
};

use crate::store::State;

/// The interface with exactly the version that wasmtime links. With another version these functions would stand beside wasmtime's
/// own instead of replacing them; a test with a hostile guest notices that.
const TYPES: &str = "wasi:filesystem/types@0.2.12";
/// Entries of a folder that are read at once.
const CHUNK: usize = 64;

type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;
type OpenAt = (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags);
type RenameAt = (Resource<Descriptor>, String, Resource<Descriptor>, String);
type SetTimesAt = (Resource<Descriptor>, PathFlags, String, NewTimestamp, NewTimestamp);

/// A folder that is being read.
struct Entries {
    /// `None` when everything in it has been read.
    directory: Option<rustix::fs::Dir>,
    read: VecDeque<Result<DirectoryEntry, ErrorCode>>,
}

/// Replaces functions of `wasi:filesystem/types`. The linker must allow shadowing.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(TYPES)?;
    types.resource("directory-entry-stream", ResourceType::host::<Entries>(), |mut store, rep| {
        store.data_mut().filesystem().table.delete(Resource::<Entries>::new_own(rep))?;
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
            stream(store.data_mut(), |files| files.write_via_stream(file, offset))
        },
    )?;
    types.func_wrap("[method]descriptor.append-via-stream", |mut store, (file,): (Resource<Descriptor>,)| {
        stream(store.data_mut(), |files| files.append_via_stream(file))
    })?;
    types.func_wrap_async("[method]descriptor.open-at", |mut store, args: OpenAt| {
        Box::new(async move { open_at(store.data_mut(), args).await })
    })?;
    types.func_wrap_async("[method]descriptor.rename-at", |mut store, args: RenameAt| {
        Box::new(async move { rename_at(store.data_mut(), args).await })
    })?;
    types.func_wrap_async("[method]descriptor.set-times-at", |mut store, args: SetTimesAt| {
        Box::new(async move { set_times_at(store.data_mut(), args).await })
    })
}

/// Opens another stream of a file, if the budget has room for what it may hold.
fn stream<T>(state: &mut State, open: impl FnOnce(&mut WasiFilesystemCtxView<'_>) -> FsResult<T>) -> Answer<T> {
    let is_stream =
        |entry: &mut (dyn std::any::Any + Send)| entry.is::<DynInputStream>() || entry.is::<DynOutputStream>();
    let open_streams = state.filesystem().table.iter_mut().filter_map(|entry| is_stream(entry).then_some(())).count();
    if !state.budget.hold_streams(open_streams + 1) {
        return Ok((Err(ErrorCode::InsufficientMemory),));
    }
    answer(open(&mut state.filesystem()))
}

async fn read_directory(state: &mut State, directory: Resource<Descriptor>) -> Answer<Resource<Entries>> {
    let table = state.filesystem().table;
    let base = match table.get(&directory)? {
        Descriptor::Dir(base) => Arc::clone(&base.dir),
        Descriptor::File(_) => return Ok((Err(ErrorCode::NotDirectory),)),
    };
    match spawn_blocking(move || begin(&base)).await {
        Ok(own) => Ok((Ok(table.push(Entries { directory: Some(own), read: VecDeque::new() })?),)),
        Err(error) => Ok((Err(error.into()),)),
    }
}

fn begin(base: &fs::File) -> io::Result<rustix::fs::Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::Dir::new(openat(base, c".", flags, Mode::empty())?)?)
}

async fn next(state: &mut State, stream: Resource<Entries>) -> Answer<Option<DirectoryEntry>> {
    let table = state.filesystem().table;
    let entries = table.get_mut(&stream)?;
    if entries.read.is_empty()
        && let Some(mut own) = entries.directory.take()
    {
        let (own, read) = spawn_blocking(move || {
            let read = more(&mut own);
            ((!read.is_empty()).then_some(own), read)
        })
        .await;
        (entries.directory, entries.read) = (own, read);
    }
    Ok((entries.read.pop_front().transpose(),))
}

fn more(own: &mut rustix::fs::Dir) -> VecDeque<Result<DirectoryEntry, ErrorCode>> {
    let mut read = VecDeque::with_capacity(CHUNK);
    while read.len() < CHUNK {
        let entry = match own.read() {
            None => break,
            // The next read after an error gives nothing, so this ends.
            Some(Err(error)) => {
                read.push_back(Err(io::Error::from(error).into()));
                continue;
            }
            Some(Ok(entry)) => entry,
        };
        let name = entry.file_name();
        // A name that is no text cannot be said in WASI. It is left out: an error in its place would hide the rest of the folder.
        if name != c"." && name != c".." && name.to_str().is_ok() {
            read.push_back(describe(own, name, entry.file_type()));
        }
    }
    read
}

fn describe(own: &rustix::fs::Dir, name: &std::ffi::CStr, mut kind: FileType) -> Result<DirectoryEntry, ErrorCode> {
    if kind == FileType::Unknown {
        // Some file systems do not tell the type along with the name.
        let stat = own.fd().and_then(|fd| statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)).map_err(io::Error::from)?;
        kind = FileType::from_raw_mode(stat.st_mode);
    }
    let type_ = match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        // Pipes and sockets are unknown to WASI's own function too.
        _ => DescriptorType::Unknown,
    };
    let name = name.to_str().map_err(|_| ErrorCode::IllegalByteSequence)?.to_owned();
    Ok(DirectoryEntry { type_, name })
}

async fn open_at(
    state: &mut State,
    (directory, path_flags, path, open, flags): OpenAt,
) -> Answer<Resource<Descriptor>> {
    let table = state.filesystem().table;
    let base = match table.get(&directory)? {
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
    let opened = spawn_blocking(move || open_file(&base.dir, path.as_ref(), follow, &options, directory)).await;
    let descriptor = match opened {
        Ok((file, true)) => Descriptor::Dir(Dir::new(file, perms, mode, false)),
        Ok((file, false)) => Descriptor::File(File::new(file, perms, mode, false)),
        Err(code) => return Ok((Err(code),)),
    };
    Ok((Ok(table.push(descriptor)?),))
}

/// Makes options of the flags. The checks are those of WASI's own function, in the same order, so that guests get the same errors.
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

/// The open file, and whether it is a directory.
fn open_file(
    base: &fs::File,
    path: &Path,
    follow: FollowSymlinks,
    options: &OpenOptions,
    directory: bool,
) -> Result<(fs::File, bool), ErrorCode> {
    let mut look = OpenOptions::new();
    look.read(true)._cap_fs_ext_follow(follow).custom_flags(OFlags::PATH.bits().cast_signed());
    // If there is no such file, the open below makes it or gives the error.
    if let Ok(seen) = cap_primitives::fs::open(base, path, &look) {
        let kind = seen.metadata()?.file_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
            return Err(ErrorCode::Unsupported);
        }
    }
    let file = match cap_primitives::fs::open(base, path, options) {
        // This is a pipe that nobody reads, or a socket.
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

/// Renames as WASI's own function does. What takes the place of another file is given its mode and owner first.
async fn rename_at(state: &mut State, (from, old, to, new): RenameAt) -> Answer<()> {
    let table = state.filesystem().table;
    if let (Descriptor::Dir(source), Descriptor::Dir(target)) = (table.get(&from)?, table.get(&to)?)
        && !source.perms.write_not_permitted()
        && !target.perms.write_not_permitted()
    {
        let (source, target) = (Arc::clone(&source.dir), Arc::clone(&target.dir));
        let (old, new) = (old.clone(), new.clone());
        // What cannot be kept is as it would be without: the rename says whether it may be made at all.
        spawn_blocking(move || keep_mode(&source, old.as_ref(), &target, new.as_ref()).ok()).await;
    }
    answer(state.filesystem().rename_at(from, old, to, new).await)
}

/// Gives a file the mode and the owner of the one that it is to replace, if both are files.
fn keep_mode(source: &fs::File, old: &Path, target: &fs::File, new: &Path) -> io::Result<()> {
    let replaced = cap_primitives::fs::stat(target, new, FollowSymlinks::No)?;
    let mut look = OpenOptions::new();
    look.read(true)._cap_fs_ext_follow(FollowSymlinks::No).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    if !replaced.is_file() || !cap_primitives::fs::stat(source, old, FollowSymlinks::No)?.is_file() {
        return Ok(());
    }
    let file = cap_primitives::fs::open(source, old, &look)?;
    let own = file.metadata()?;
    if !own.is_file() {
        return Ok(());
    }
    let (uid, gid) = (MetadataExt::uid(&replaced), MetadataExt::gid(&replaced));
    if (std::os::unix::fs::MetadataExt::uid(&own), std::os::unix::fs::MetadataExt::gid(&own)) != (uid, gid) {
        // Only who may do that can; a file keeps who wrote it otherwise.
        fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).ok();
    }
    // Rights of its own, such as to run as its owner, a file that a guest wrote does not inherit.
    fchmod(&file, Mode::from_raw_mode(MetadataExt::mode(&replaced) & 0o777))?;
    Ok(())
}

/// Sets the times of what a link leads to by opening it as above: WASI's own function would open anything, even a pipe.
async fn set_times_at(state: &mut State, (directory, path_flags, path, accessed, modified): SetTimesAt) -> Answer<()> {
    if !path_flags.contains(PathFlags::SYMLINK_FOLLOW) {
        // If links are not followed, WASI's own function opens nothing but folders.
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
    let mut files = state.filesystem();
    let result = files.set_times(Resource::new_borrow(opened.rep()), accessed, modified).await;
    HostDescriptor::drop(&mut files, opened)?;
    answer(result)
}

fn answer<T>(result: FsResult<T>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => error.downcast().map(|code| (Err(code),)),
    }
}
