//! Caches compiled code on disk, and verifies every file before using it.
//!
//! An artifact is native code, so write access to the directory means that any code can be run. Therefore the directory has to belong to
//! wharf's user, be closed to others and not be a symbolic link itself. Each file ends with a SHA-256 of the rest, which is checked before
//! the file is used. A file that does not match is deleted, and its component is compiled again. A failure here costs only a warning and a
//! compilation.
//!
//! The code is at the beginning of its file, which is then mapped, so that all processes of the user share the memory of the same code. A
//! file is never changed: another one takes its name. No plugin can write here, and a program of the user that would change a file in place
//! could as well change wharf itself.

use std::{
    fs::File,
    hash::{Hash, Hasher},
    io::Write,
    os::unix::fs::FileExt,
    path::Path,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, DirBuilder, DirBuilderExt, MetadataExt, OpenOptions, OpenOptionsExt, PermissionsExt},
};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use wasmtime::Engine;

use crate::compile::child::{Artifact, NativeCode};
use wharf_base::hex::hex;

const MAGIC: &[u8; 16] = b"wharf's artifact";
/// What a file ends with: the length of the header, the digest of all before it, and the magic number.
const END_BYTES: usize = 8 + 32 + MAGIC.len();
/// The size of the pieces in which a file is read.
const PIECE_BYTES: usize = 256 << 10;
/// The suffix contains the number of the format, so that two versions of wharf that share a directory do not treat each other's files as
/// damaged. The number must also be raised when components are wrapped or prepared in another way, because the cache key does not
/// cover that.
const SUFFIX: &str = ".10.artifact";
/// The size of the whole directory above which the oldest artifacts are removed.
const MAX_BYTES: u64 = 2 << 30;

/// The directory of compiled code.
pub(crate) struct Cache {
    directory: Dir,
}

impl Cache {
    /// Opens the directory; if it is missing, creates it and its parents. The error tells the operator why it cannot be used.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let unusable = |why: &str| std::io::Error::other(format!("{}: {why}", path.display()));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(unusable("not the path of a directory"));
        };
        let parent = match Dir::open_ambient_dir(parent, ambient_authority()) {
            Ok(parent) => parent,
            Err(_) => Dir::create_ambient_dir_all(parent, ambient_authority())
                .and_then(|()| Dir::open_ambient_dir(parent, ambient_authority()))
                .map_err(|error| unusable(&error.to_string()))?,
        };
        let mut private = DirBuilder::new();
        private.mode(0o700);
        match parent.create_dir_with(name, &private) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(unusable(&error.to_string()));
            }
            _ => {}
        }
        let metadata = parent.symlink_metadata(name)?;
        if !metadata.is_dir() {
            return Err(unusable("not a directory, or a symbolic link; remove it"));
        }
        if metadata.uid() != geteuid().as_raw() {
            return Err(unusable("belongs to another user; it holds native code, so it must be your own"));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(unusable("others have access; run chmod 700 on it"));
        }
        let directory = parent.open_dir(name)?;
        let opened = directory.dir_metadata()?;
        if (opened.dev(), opened.ino()) != (metadata.dev(), metadata.ino()) {
            return Err(unusable("changed while it was opened"));
        }
        let cache = Self { directory };
        cache.tidy();
        Ok(cache)
    }

    /// Returns the artifact for a component, if there is one and it is intact. `room`: charges for the file before it is read.
    pub(crate) fn get<C, E>(
        &self,
        key: &str,
        room: impl FnOnce(usize) -> Result<C, E>,
    ) -> Result<Option<(Artifact, C)>, E> {
        let name = format!("{key}{SUFFIX}");
        // The file is opened relative to the directory, so no symbolic link leads out of it (path traversal).
        let Ok(file) = self.directory.open(&name) else { return Ok(None) };
        let file = file.into_std();
        let Some(length) = file.metadata().ok().and_then(|metadata| usize::try_from(metadata.len()).ok()) else {
            return Ok(None);
        };
        let charge = room(length)?;
        let artifact = checked(key, file, length);
        if artifact.is_none() {
            tracing::warn!("a cached artifact is damaged; its component is compiled again");
            // If it cannot be removed, it will be refused again the next time.
            self.directory.remove_file(&name).ok();
        }
        Ok(artifact.map(|artifact| (artifact, charge)))
    }

    /// Stores an artifact. The file gets its final name only when it is complete.
    pub(crate) fn put(&self, key: &str, artifact: &Artifact) {
        let Some(code) = artifact.code.bytes() else { return };
        let temporary = format!("{key}.{}.partial", std::process::id());
        let written = self
            .write(&temporary, key, (code, &artifact.head()))
            .and_then(|()| self.directory.rename(&temporary, &self.directory, format!("{key}{SUFFIX}")));
        if let Err(error) = written {
            tracing::warn!("the compiled code is not cached, so the next start compiles again: {error}");
            self.directory.remove_file(&temporary).ok();
        }
    }

    fn write(&self, name: &str, key: &str, (code, head): (&[u8], &[u8])) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o400);
        let mut file = self.directory.open_with(name, &options)?;
        let length = (head.len() as u64).to_le_bytes();
        let parts = [code, head, &length];
        let digest = parts.iter().fold(keyed(key), |sha, part| sha.chain_update(part)).finalize();
        parts.into_iter().chain([&digest[..], MAGIC]).try_for_each(|part| file.write_all(part))
    }

    /// Removes incomplete files of killed processes, and the oldest artifacts if all of them together are too large.
    fn tidy(&self) {
        let Ok(entries) = self.directory.entries() else { return };
        let mut artifacts = Vec::new();
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let age = metadata.modified().ok().and_then(|at| at.into_std().elapsed().ok()).unwrap_or_default();
            let name = entry.file_name();
            let partial = name.to_string_lossy().ends_with(".partial");
            if partial && age.as_secs() > 3600 {
                self.directory.remove_file(&name).ok();
            } else if !partial {
                artifacts.push((age, metadata.len(), name));
            }
        }
        artifacts.sort();
        let mut kept = 0;
        for (_, bytes, name) in artifacts {
            kept += bytes;
            if kept > MAX_BYTES {
                self.directory.remove_file(&name).ok();
            }
        }
    }
}

/// Begins the digest of an artifact with its file's name, so that one artifact cannot be substituted for another.
fn keyed(key: &str) -> Sha256 {
    Sha256::new().chain_update(key).chain_update(SUFFIX)
}

/// Returns the artifact in a file of `length` bytes, if the end of the file matches the rest.
fn checked(key: &str, file: File, length: usize) -> Option<Artifact> {
    let before_end = length.checked_sub(END_BYTES)?;
    let mut end = [0; END_BYTES];
    file.read_exact_at(&mut end, before_end as u64).ok()?;
    let (length, end) = end.split_first_chunk()?;
    let (expected, magic) = end.split_first_chunk::<32>()?;
    let code = before_end.checked_sub(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let (mut sha, mut head, mut at) = (keyed(key), Vec::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    while at < before_end {
        let wanted = (if at < code { code } else { before_end } - at).min(PIECE_BYTES);
        let piece = piece.get_mut(..wanted)?;
        file.read_exact_at(piece, at as u64).ok()?;
        sha.update(&*piece);
        if at >= code {
            head.extend_from_slice(piece);
        }
        at += wanted;
    }
    let intact = magic == MAGIC && sha.chain_update(length).finalize().as_slice() == expected;
    if intact { Artifact::about(&head, NativeCode::File(file, code)) } else { None }
}

/// Returns the cache key of the artifact that `engine` makes of the component with this digest. It depends on wasmtime's version and the
/// engine's settings.
pub(crate) fn key(engine: &Engine, component: &[u8; 32]) -> String {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut sha = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut sha);
    let engine = sha.0.finalize();
    format!("{}-{}", hex(component), hex(engine.get(..8).unwrap_or_default()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the folders that the cache is to open or refuse")]
mod tests {
    use super::*;
    use crate::file::sections::Sections;

    fn artifact() -> Artifact {
        Artifact {
            digest: [7; 32],
            instance_bytes: 5,
            room_bytes: 6,
            wrapped: true,
            sections: Sections::default(),
            code: NativeCode::Bytes(b"native code".to_vec(), 0),
        }
    }

    /// Writes a file in place of the one that is there, which cannot be written.
    fn write(file: &Path, bytes: &[u8]) {
        std::fs::remove_file(file).ok();
        std::fs::write(file, bytes).unwrap();
    }

    #[test]
    fn a_file_without_room_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let cache = Cache::open(&path).unwrap();
        cache.put("key", &artifact());
        let file = path.join(format!("key{SUFFIX}"));
        let whole = std::fs::read(&file).unwrap().len();
        // If it were read, it would be found to be damaged, and removed.
        write(&file, &vec![0; whole]);
        assert_eq!(cache.get("key", Err::<(), _>).unwrap_err(), whole);
        assert!(file.exists());
        assert!(cache.get("key", |_| Ok::<_, ()>(())).unwrap().is_none());
        assert!(!file.exists());
    }

    #[test]
    fn one_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let cache = Cache::open(&path).unwrap();
        let get = || cache.get("key", |_| Ok::<_, ()>(())).unwrap().map(|(artifact, ())| artifact);
        cache.put("key", &artifact());
        let read = get().unwrap();
        assert_eq!(read.head(), artifact().head());
        let NativeCode::File(mut code, length) = read.code else { panic!("the code is read from its file") };
        let mut bytes = vec![0; length];
        std::io::Read::read_exact(&mut code, &mut bytes).unwrap();
        assert_eq!(bytes, b"native code");
        let file = path.join(format!("key{SUFFIX}"));
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            write(&file, &bytes);
            assert!(get().is_none(), "byte {at}");
            assert!(!file.exists(), "byte {at}");
        }
    }

    #[test]
    fn foreign_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        std::os::unix::fs::symlink("/nowhere", base.join("dangling")).unwrap();
        std::fs::create_dir(base.join("open")).unwrap();
        std::fs::set_permissions(base.join("open"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(base.join("open"), base.join("link")).unwrap();
        std::fs::write(base.join("file"), b"").unwrap();
        for name in ["dangling", "open", "link", "file"] {
            assert!(Cache::open(&base.join(name)).is_err(), "{name}");
        }
    }
}
