//! `state_keys` in `[protocol]`: the keys that seal what clients carry. They are read when wharf begins to serve, not with the config, so
//! that a config can be checked, and an audit log verified, where the keys cannot be read.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::bounds::parse_key;
use wharf_base::{
    state_keys::{StateKey, StateKeys},
    text,
};
use wharf_egress::secrets::{RawSecret, SecretSource};
use wharf_policy::access::capability::Absolute;

/// The most keys.
const MAX_KEYS: usize = 16;

/// The source of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateKeySource {
    Secret(SecretSource),
    /// A credential of a service, and this process is not started as that service. The text says so.
    Elsewhere(String),
}

impl StateKeySource {
    /// Returns the file that the key is read from.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::Secret(source) => source.file(),
            Self::Elsewhere(_) => None,
        }
    }

    /// Reads the key. The error does not contain it.
    pub fn read(&self) -> Result<StateKey> {
        let source = match self {
            Self::Secret(source) => source,
            Self::Elsewhere(problem) => bail!("{problem}"),
        };
        let name = match source {
            SecretSource::Env(name) => format!("the variable {name}"),
            SecretSource::File(path) | SecretSource::Credential(path) => text::path(path),
            SecretSource::Command(_) => "a command".into(),
        };
        let secret = source.now().with_context(|| name.clone())?;
        parse_key(&name, secret.expose().trim())
    }
}

/// Reads all keys. None: the config names none.
pub(super) fn read_all(sources: &[StateKeySource]) -> Result<Option<StateKeys>> {
    let keys = sources.iter().map(StateKeySource::read).collect::<Result<Vec<_>>>();
    let keys = keys.context("[protocol]: a key that seals what clients carry cannot be read")?;
    Ok(keys.split_first().map(|(first, others)| StateKeys::new(*first, others.to_vec())))
}

pub(super) fn resolve(written: Vec<RawSecret>, absolute: Absolute<'_>) -> Result<Vec<StateKeySource>> {
    ensure!(written.len() <= MAX_KEYS, "`state_keys` has more than {MAX_KEYS} keys");
    let source = |written: RawSecret| {
        let is_elsewhere = written.is_credential_elsewhere();
        match written.source(absolute) {
            Ok(SecretSource::Command(_)) => {
                bail!("a key cannot come from a command; use {{ file = … }}, {{ env = … }} or {{ credential = … }}")
            }
            Ok(source) => Ok(StateKeySource::Secret(source)),
            Err(problem) if is_elsewhere => Ok(StateKeySource::Elsewhere(format!("{problem:#}"))),
            Err(problem) => Err(problem),
        }
    };
    written.into_iter().map(source).collect::<Result<_>>().context("`state_keys`")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are to be read")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::{Config, from_text};

    fn config(protocol: &str) -> Result<Config> {
        from_text(&format!("[protocol]\n{protocol}"), None, &crate::config::CommandLine::default())
    }

    #[test]
    fn keys_are_read_when_they_are_needed_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        let (one, two) = ("01f3".repeat(16), "abf3".repeat(16));
        let (first, second) = (write("one", &format!("{one}\n"), 0o600), write("two", &two, 0o600));
        let (open, short) = (write("open", &one, 0o644), write("short", &one[2..], 0o600));
        let example = write("example", &"0".repeat(64), 0o600);
        let file = |path: &PathBuf| format!("{{ file = {path:?} }}");
        let key = |digits: &str| parse_key("key", digits).unwrap();
        for (keys, expected) in [
            ("state_keys = []".to_owned(), Ok(None)),
            (format!("state_keys = [{}]", file(&first)), Ok(Some(StateKeys::new(key(&one), vec![])))),
            (
                format!("state_keys = [{}, {}]", file(&second), file(&first)),
                Ok(Some(StateKeys::new(key(&two), vec![key(&one)]))),
            ),
            (format!("state_keys = [{}, {}]", file(&first), file(&open)), Err("chmod 600")),
            (format!("state_keys = [{}]", file(&short)), Err("is 64 hexadecimal digits")),
            (format!("state_keys = [{}]", file(&example)), Err("as in an example")),
            ("state_keys = [{ file = '/nowhere/at/all' }]".into(), Err("/nowhere/at/all")),
            ("state_keys = [{ env = 'WHARF_TEST_NO_SUCH' }]".into(), Err("WHARF_TEST_NO_SUCH")),
            ("state_keys = [{ credential = 'k' }]".into(), Err("$CREDENTIALS_DIRECTORY is not set")),
        ] {
            // The config itself is good, even if its keys cannot be read here.
            let sources = config(&keys).unwrap().startup.protocol.state_keys.clone();
            match (read_all(&sources), expected) {
                (Ok(read), Ok(expected)) => assert!(read == expected, "{keys}"),
                (Err(error), Err(part)) => {
                    let error = format!("{error:#}");
                    assert!(error.contains(part) && !error.contains(&one[2..]), "{keys}: {error}");
                }
                (read, _) => panic!("{keys}: {read:?}"),
            }
        }
    }

    #[test]
    fn what_names_no_key_is_refused_at_once() {
        for (keys, expected) in [
            ("state_keys = [{}]".to_owned(), "must be one of"),
            ("state_keys = [{ command = ['a'] }]".into(), "cannot come from a command"),
            ("state_keys = [{ credential = '../k' }]".into(), "no slashes"),
            ("state_keys = [{ credential = 'k', env = 'A' }]".into(), "must be one of"),
            (format!("state_keys = [{}]", "{ env = 'A' },".repeat(MAX_KEYS + 1)), "more than 16"),
        ] {
            let error = format!("{:#}", config(&keys).unwrap_err());
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }
}
