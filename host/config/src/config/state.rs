//! What `wharf serve` keeps from one start to the next: the key that seals what clients carry, if the config names none, and the ids of
//! sessions that have ended. Each config file has files of its own.

#![expect(clippy::disallowed_methods, reason = "wharf's own files are made and read here, at the start")]

use std::{
    fs::{DirBuilder, Permissions},
    io::{ErrorKind, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::{bounds::parse_key, default_paths::state_dirs, listen::ListenAddress, protocol::Protocol, state_keys};
use wharf_base::{
    guard::check_private_file,
    state_keys::{StateKey, StateKeys, random_key},
    text::{self, hex},
};

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing, and the keys of the config are not needed: nothing is served to clients that could come back.
    #[default]
    Nothing,
    /// The keys of the config. Without any, a random one is used until the process ends.
    Configured,
    /// The keys of the config. Without any, a key in the state folder. Ended sessions are remembered there too.
    All,
}

/// What a process begins with.
#[derive(Debug)]
pub struct KeptState {
    pub keys: StateKeys,
    /// The file of what is remembered of sessions. None: it is remembered until the process ends.
    pub sessions: Option<PathBuf>,
}

/// The files of one config in the state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    pub key: PathBuf,
    pub sessions: PathBuf,
}

/// Returns the files for a config: in `$XDG_STATE_HOME/wharf`, else `~/.local/state/wharf`. Without a config file, they belong to the
/// address. None: there is no home directory.
pub fn files(config: Option<&Path>, listen: &ListenAddress) -> Option<Files> {
    let folder = state_dirs().into_iter().next()?;
    let digest = match config {
        Some(file) => Sha256::digest(file.as_os_str().as_bytes()),
        None => Sha256::digest(format!("listen {listen}")),
    };
    let mut name = hex(&digest);
    name.truncate(16);
    Some(Files { key: folder.join(format!("{name}.key")), sessions: folder.join(format!("{name}.sessions")) })
}

/// Reads the keys, and makes one where that is needed. Without a usable state folder, this says so and uses a random key.
pub fn open(keeps: Keeps, protocol: &Protocol, files: Option<Files>) -> Result<KeptState> {
    let configured = match keeps {
        Keeps::Nothing => None,
        Keeps::Configured | Keeps::All => state_keys::read_all(&protocol.state_keys)?,
    };
    let files = match keeps {
        Keeps::All if protocol.legacy || configured.is_none() => files.context("there is no home directory").map(Some),
        Keeps::All | Keeps::Nothing | Keeps::Configured => Ok(None),
    };
    let kept = files.and_then(|files| {
        let Some(Files { key, sessions }) = files else { return Ok((None, None)) };
        let own = match &configured {
            Some(_) => {
                make_folder(&sessions)?;
                None
            }
            None => Some(StateKeys::new(kept_key(&key)?, Vec::new())),
        };
        Ok((own, Some(sessions)))
    });
    let (own, sessions) = kept.unwrap_or_else(|problem: anyhow::Error| {
        let problem = text::escaped(&format!("{problem:#}"));
        let folder = "set XDG_STATE_HOME to a folder that only wharf's user may write";
        match &configured {
            Some(_) => {
                tracing::info!("{problem}: sessions that clients have ended can be used after a restart; {folder}")
            }
            None => tracing::warn!(
                "{problem}: clients lose their sessions when wharf restarts; {folder}, or `state_keys` in [protocol]"
            ),
        }
        (None, None)
    });
    let keys = match configured.or(own) {
        Some(keys) => keys,
        None => StateKeys::random().map_err(|error| anyhow::anyhow!("no randomness: {error}"))?,
    };
    Ok(KeptState { keys, sessions })
}

fn make_folder(file: &Path) -> Result<&Path> {
    let folder = file.parent().with_context(|| text::path(file))?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| text::path(folder))?;
    Ok(folder)
}

/// Returns the key in a file. Makes the file if it is missing, so that a reader finds all of it or nothing.
fn kept_key(path: &Path) -> Result<StateKey> {
    if !path.try_exists().with_context(|| text::path(path))? {
        let key = random_key().map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
        let folder = make_folder(path)?;
        let made = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(folder);
        let mut file = made.with_context(|| text::path(folder))?;
        writeln!(file, "{}", hex(&key)).and_then(|()| file.as_file().sync_all()).with_context(|| text::path(path))?;
        match file.persist_noclobber(path) {
            // Another process made it at the same time.
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {}
            made => drop(made.with_context(|| text::path(path))?),
        }
    }
    check_private_file(path, "key")?;
    let written = std::fs::read_to_string(path).with_context(|| text::path(path))?;
    parse_key(&text::path(path), written.trim()).context("remove the file, and wharf makes another key")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::config::{CommandLine, from_text};

    fn protocol(text: &str) -> Protocol {
        let config = from_text(&format!("[protocol]\n{text}"), None, &CommandLine::default()).unwrap();
        config.startup.protocol.clone()
    }

    #[test]
    fn a_key_is_made_once_and_for_its_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let files = |name: &str| {
            let at = folder.path().join("state/wharf");
            Some(Files { key: at.join(format!("{name}.key")), sessions: at.join(format!("{name}.sessions")) })
        };
        let plain = protocol("");
        let first = open(Keeps::All, &plain, files("a")).unwrap();
        assert_eq!(first.sessions, files("a").map(|files| files.sessions));
        let key = files("a").unwrap().key;
        assert_eq!(key.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(open(Keeps::All, &plain, files("a")).unwrap().keys == first.keys, "the next start has the same");
        assert!(open(Keeps::All, &plain, files("b")).unwrap().keys != first.keys, "another config has its own");
        for keeps in [Keeps::Nothing, Keeps::Configured] {
            let other = open(keeps, &plain, files("a")).unwrap();
            assert!(other.keys != first.keys && other.sessions.is_none(), "{keeps:?}");
        }
        // What cannot be used is not used, and wharf starts all the same.
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let unsafe_key = open(Keeps::All, &plain, files("a")).unwrap();
        assert!(unsafe_key.keys != first.keys && unsafe_key.sessions.is_none());
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        for unusable in ["abc", &"07".repeat(32)] {
            std::fs::write(&key, unusable).unwrap();
            assert!(open(Keeps::All, &plain, files("a")).unwrap().keys != first.keys);
        }
        assert!(open(Keeps::All, &plain, None).unwrap().sessions.is_none());
    }

    #[test]
    fn the_keys_of_the_config_come_first_and_are_needed_only_to_serve() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k");
        std::fs::write(&path, "07f3".repeat(16)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let configured = protocol(&format!("state_keys = [{{ file = {path:?} }}]"));
        let files = Files { key: folder.path().join("s/a.key"), sessions: folder.path().join("s/a.sessions") };
        let kept = open(Keeps::All, &configured, Some(files.clone())).unwrap();
        assert!(
            kept.keys == StateKeys::new(parse_key("k", &"07f3".repeat(16)).unwrap(), Vec::new())
                && kept.sessions == Some(files.sessions.clone())
        );
        assert!(!files.key.exists(), "no other key is made");
        let missing = protocol("state_keys = [{ file = '/nowhere/at/all' }]");
        for (keeps, reads) in [(Keeps::Nothing, true), (Keeps::Configured, false), (Keeps::All, false)] {
            assert_eq!(open(keeps, &missing, Some(files.clone())).is_ok(), reads, "{keeps:?}");
        }
    }
}
