//! Tells what keeps the changes of a call of each one before it is made.

use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_primitives::fs::{FollowSymlinks, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView};

use crate::wasi::{blocking::blocking, store::State};
use wharf_scope::changes::{At, Change, Changes, Opened};

/// What is about to happen at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Will {
    Make,
    Remove,
    /// A file is emptied when it is opened, through links or not.
    Empty(FollowSymlinks),
}

/// Tells of a change of an entry of a directory. A place that cannot be found is one that nothing happens at.
pub(crate) async fn before(
    state: &mut State,
    at: &Resource<Descriptor>,
    path: &str,
    will: Will,
) -> wasmtime::Result<()> {
    let Some(changes) = state.told.keeper() else { return Ok(()) };
    let Descriptor::Dir(base) = state.filesystem().table.get(at)? else { return Ok(()) };
    if base.perms.write_not_permitted() {
        return Ok(());
    }
    let (base, path) = (Arc::clone(&base.dir), PathBuf::from(path));
    blocking(move || {
        if let Will::Empty(follow) = will {
            let mut options = OpenOptions::new();
            options.read(true)._cap_fs_ext_follow(follow).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
            if !cap_primitives::fs::stat(&base, &path, follow).is_ok_and(|stat| stat.is_file()) {
                return;
            }
            match cap_primitives::fs::open(&base, &path, &options) {
                Ok(file) => changes.before(Change::Write(&file)),
                // It cannot be read, which is noted.
                Err(_) => {
                    if let Some((folder, name)) = place(&base, &path) {
                        changes.before(Change::Remove(At { folder: &folder, name: &name }));
                    }
                }
            }
        } else if let Some((folder, name)) = place(&base, &path) {
            let at = At { folder: &folder, name: &name };
            changes.before(if matches!(will, Will::Make) { Change::Make(at) } else { Change::Remove(at) });
        }
    })
    .await;
    Ok(())
}

/// Tells that a file was made.
pub(crate) async fn after_made(changes: Option<Arc<dyn Changes>>, file: Arc<File>) {
    if let Some(changes) = changes {
        blocking(move || changes.made(&file)).await;
    }
}

/// Tells that a file or folder was opened to be read.
pub(crate) fn after_opened(state: &State, file: &File, opened: Opened) {
    if let Some(changes) = state.told.keeper() {
        changes.opened(file, opened);
    }
}

/// Tells that something moves. Returns false if nothing was told.
pub(crate) async fn before_move(changes: Arc<dyn Changes>, places: (Arc<File>, Arc<File>, String, String)) -> bool {
    let (source, target, old, new) = places;
    blocking(move || {
        let places = place(&source, old.as_ref()).zip(place(&target, new.as_ref()));
        let Some(((from, old), (to, new))) = places else { return false };
        let (from, to) = (At { folder: &from, name: &old }, At { folder: &to, name: &new });
        changes.before(Change::Move(from, to));
        true
    })
    .await
}

/// Tells that a file is written to, before the first write of the call.
pub(crate) async fn before_write(state: &mut State, file: &Resource<Descriptor>) -> wasmtime::Result<()> {
    let Some(changes) = state.told.keeper() else { return Ok(()) };
    if state.touched.contains(file.rep()) {
        return Ok(());
    }
    if let Descriptor::File(file) = state.filesystem().table.get(file)? {
        let file = Arc::clone(&file.file);
        blocking(move || changes.before(Change::Write(&file))).await;
    }
    state.touched.insert(file.rep());
    Ok(())
}

/// Opens the folder of a path below `base`, and returns it with the name in it.
fn place(base: &File, path: &Path) -> Option<(File, OsString)> {
    let name = path.file_name()?.to_owned();
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    Some((cap_primitives::fs::open_dir(base, parent).ok()?, name))
}
