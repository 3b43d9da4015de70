//! Opening files, less what is none: pipes, sockets and devices among the files of a folder are refused.
//!
//! Opening a pipe waits for its other end, on a thread that nothing can take back, so that a few hundred of them would
//! leave none for anybody's files. WASI's own function does everything else.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::{
    filesystem::{Descriptor, WasiFilesystemView},
    p2::bindings::filesystem::types::{
        DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
    },
};

use crate::store::State;

/// The version does not matter: the linker matches all of 0.2.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

type OpenAt = (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags);

/// Takes the place of one function of `wasi:filesystem/types`; shadowing must be allowed.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.instance(TYPES)?.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store, (directory, path_flags, path, open_flags, flags): OpenAt| {
            Box::new(async move {
                let mut files = store.data_mut().filesystem();
                let same = Resource::new_borrow(directory.rep());
                // Missing files are for the real function to speak of, or to make.
                let special = match files.stat_at(same, path_flags, path.clone()).await {
                    Ok(stat) => !matches!(
                        stat.type_,
                        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink
                    ),
                    Err(_) => false,
                };
                if special {
                    return Ok((Err(ErrorCode::Unsupported),));
                }
                match files.open_at(directory, path_flags, path, open_flags, flags).await {
                    Ok(opened) => Ok((Ok(opened),)),
                    Err(error) => error.downcast().map(|code| (Err(code),)),
                }
            })
        },
    )
}
