//! Replaces the functions of WASI's file system that make directories and links: each of these counts as bytes that a call writes, since files
//! without content take space too. And those that change something which is told before it is done.

use std::sync::Arc;

use wasmtime::component::{LinkerInstance, Resource};
use wasmtime_wasi::{
    filesystem::{Descriptor, WasiFilesystemView},
    p2::{
        FsResult,
        bindings::filesystem::types::{ErrorCode, HostDescriptor, NewTimestamp, PathFlags},
    },
};

use crate::wasi::{
    changes::{self, Will},
    store::State,
};

/// How many bytes a new entry of a directory counts for.
const ENTRY_BYTES: usize = 4096;

/// The result of a function of the file system.
pub(crate) type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;
type CreateDirectoryAt = (Resource<Descriptor>, String);
type SymlinkAt = (Resource<Descriptor>, String, String);
type LinkAt = (Resource<Descriptor>, PathFlags, String, Resource<Descriptor>, String);

type Named = (Resource<Descriptor>, String);
type SetSize = (Resource<Descriptor>, u64);
type SetTimes = (Resource<Descriptor>, NewTimestamp, NewTimestamp);

/// Replaces the functions.
pub(crate) fn link(types: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    types.func_wrap_async("[method]descriptor.create-directory-at", |mut store, (at, path): CreateDirectoryAt| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            count(state, &at)?;
            changes::before(state, &at, &path, Will::Make).await?;
            answer(state.filesystem().create_directory_at(at, path).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.symlink-at", |mut store, (at, target, path): SymlinkAt| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            count(state, &at)?;
            changes::before(state, &at, &path, Will::Make).await?;
            answer(state.filesystem().symlink_at(at, target, path).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.link-at", |mut store, (from, flags, old, to, new): LinkAt| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            count(state, &to)?;
            changes::before(state, &to, &new, Will::Make).await?;
            answer(state.filesystem().link_at(from, flags, old, to, new).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.unlink-file-at", |mut store, (at, path): Named| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            changes::before(state, &at, &path, Will::Remove).await?;
            answer(state.filesystem().unlink_file_at(at, path).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.remove-directory-at", |mut store, (at, path): Named| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            changes::before(state, &at, &path, Will::Remove).await?;
            answer(state.filesystem().remove_directory_at(at, path).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.set-size", |mut store, (file, size): SetSize| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            changes::before_write(state, &file).await?;
            answer(state.filesystem().set_size(file, size).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.set-times", |mut store, (file, accessed, modified): SetTimes| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            changes::before_write(state, &file).await?;
            answer(state.filesystem().set_times(file, accessed, modified).await)
        })
    })
}

/// Counts an entry that is about to be made in a directory.
pub(crate) fn count(state: &mut State, directory: &Resource<Descriptor>) -> wasmtime::Result<()> {
    let written = Arc::clone(&state.written);
    if let Descriptor::Dir(directory) = state.filesystem().table.get(directory)? {
        written.count(&directory.dir, ENTRY_BYTES, &mut None)?;
    }
    Ok(())
}

/// Turns a result into one for the guest. Errors that are not WASI's end the call.
pub(crate) fn answer<T>(result: FsResult<T>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => error.downcast().map(|code| (Err(code),)),
    }
}
