//! Replaces the functions of WASI's file system that make directories and links: each of these counts as bytes that a call writes, since files
//! without content take space too.

use std::sync::Arc;

use wasmtime::component::{LinkerInstance, Resource};
use wasmtime_wasi::{
    filesystem::{Descriptor, WasiFilesystemView},
    p2::{
        FsResult,
        bindings::filesystem::types::{ErrorCode, HostDescriptor, PathFlags},
    },
};

use crate::wasi::store::State;

/// How many bytes a new entry of a directory counts for.
const ENTRY_BYTES: usize = 4096;

/// The result of a function of the file system.
pub(crate) type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;
type CreateDirectoryAt = (Resource<Descriptor>, String);
type SymlinkAt = (Resource<Descriptor>, String, String);
type LinkAt = (Resource<Descriptor>, PathFlags, String, Resource<Descriptor>, String);

/// Replaces the functions.
pub(crate) fn link(types: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    types.func_wrap_async("[method]descriptor.create-directory-at", |mut store, (at, path): CreateDirectoryAt| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            count(state, &at)?;
            answer(state.filesystem().create_directory_at(at, path).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.symlink-at", |mut store, (at, target, path): SymlinkAt| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            count(state, &at)?;
            answer(state.filesystem().symlink_at(at, target, path).await)
        })
    })?;
    types.func_wrap_async("[method]descriptor.link-at", |mut store, (from, flags, old, to, new): LinkAt| {
        Box::new(async move {
            let state: &mut State = store.data_mut();
            count(state, &to)?;
            answer(state.filesystem().link_at(from, flags, old, to, new).await)
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
