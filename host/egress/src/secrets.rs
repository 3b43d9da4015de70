//! `[secrets]`: values that wharf adds to requests of plugins, and that plugins never see.
//!
//! A value is loaded when it is first needed, and cached until the config is read again. It never appears in a log line or an error.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tokio::sync::Mutex;

use wharf_base::{
    guard::{check_private_file, check_trusted_file},
    guessable,
    program::{self, Command},
};

/// The shortest secret. A shorter one could be guessed by watching what is masked.
const MIN_SECRET_BYTES: usize = 16;
const MAX_SECRET_BYTES: usize = 4 << 10;
/// How long to wait before a secret that could not be loaded is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The time limit of a command that prints a secret.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The source of a secret as written in the config; exactly one of these keys is set.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawSecret {
    /// The name of an environment variable of wharf.
    env: Option<String>,
    /// A file that only wharf's user may read.
    file: Option<String>,
    /// The name of a credential that systemd gives the service.
    credential: Option<String>,
    /// A program and its arguments, which prints the secret within 10 s. It is started without a shell.
    command: Option<Vec<String>>,
}

/// The variable with the folder of the credentials that systemd gives a service.
const CREDENTIALS_FOLDER: &str = "CREDENTIALS_DIRECTORY";

impl RawSecret {
    /// Returns the source, after checking that there is exactly one.
    pub fn source(self, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Result<SecretSource> {
        Ok(match self {
            RawSecret { env: Some(name), file: None, credential: None, command: None } => SecretSource::Env(name),
            RawSecret { env: None, file: Some(path), credential: None, command: None } => {
                SecretSource::File(absolute(&path)?)
            }
            RawSecret { env: None, file: None, credential: Some(name), command: None } => {
                ensure!(is_credential_name(&name), "`{name}`: a credential's name has no slashes");
                let folder = std::env::var_os(CREDENTIALS_FOLDER).with_context(|| {
                    format!("`{name}`: ${CREDENTIALS_FOLDER} is not set; systemd sets it where a unit has credentials")
                })?;
                SecretSource::Credential(PathBuf::from(folder).join(name))
            }
            RawSecret { env: None, file: None, credential: None, command: Some(command) } => {
                SecretSource::Command(Command::resolve(command, absolute)?)
            }
            _ => {
                bail!("it must be one of {{ env = … }}, {{ file = … }}, {{ credential = … }} and {{ command = [ … ] }}")
            }
        })
    }

    /// Whether the secret is a credential, and systemd gives this process none.
    pub fn is_credential_elsewhere(&self) -> bool {
        let Self { env: None, file: None, credential: Some(name), command: None } = self else { return false };
        is_credential_name(name) && std::env::var_os(CREDENTIALS_FOLDER).is_none()
    }

    /// Replaces a credential with an environment variable of the same name, for a process that systemd gives no credentials.
    pub fn forget_credential(&mut self) {
        if self.env.is_none() {
            self.env = self.credential.take();
        }
    }
}

fn is_credential_name(name: &str) -> bool {
    !name.contains('/') && name != ".."
}

/// The source of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of wharf.
    Env(String),
    /// A file that only wharf's user may read.
    File(PathBuf),
    /// A credential file that systemd gives the service. Its access list has an entry for wharf's user, which looks like group permission
    /// in the mode. The mode therefore does not say who may read it; systemd ensures that.
    Credential(PathBuf),
    /// The output of a program, which is started without a shell.
    Command(Command),
}

/// The sources of all secrets of the config, by name.
pub type SecretSources = BTreeMap<String, SecretSource>;

/// Parses `[secrets]`.
pub fn resolve(
    written: impl IntoIterator<Item = (String, RawSecret)>,
    absolute: &dyn Fn(&str) -> Result<PathBuf>,
) -> Result<SecretSources> {
    let read = |(name, written): (String, RawSecret)| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        ensure!(
            !name.is_empty() && name.bytes().all(plain),
            "`{name}`: a name consists of letters, digits, `_` and `-`"
        );
        let source = written.source(absolute).with_context(|| format!("`{name}`"))?;
        Ok((name, source))
    };
    written.into_iter().map(read).collect()
}

/// Loads a secret at once, for settings that are needed while the config is read. Fails for a secret from a command.
pub fn now(sources: &SecretSources, name: &str) -> Result<Secret> {
    let source = sources.get(name).with_context(|| format!("there is no secret `{name}` in [secrets]"))?;
    source.now().with_context(|| format!("the secret `{name}`"))
}

impl SecretSource {
    /// Returns the file that the secret is read from.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) | Self::Credential(path) => Some(path),
            Self::Env(_) | Self::Command(_) => None,
        }
    }

    /// Returns the files of the command that prints the secret, which decide its value.
    pub fn programs(&self) -> Vec<PathBuf> {
        match self {
            Self::Command(command) => command.files(),
            _ => Vec::new(),
        }
    }

    /// Loads the secret at once. Fails for a secret from a command.
    pub fn now(&self) -> Result<Secret> {
        validated(&self.read_now()?)
    }

    /// Reads the secret, and runs the command if it comes from one.
    pub async fn load(&self) -> Result<Secret> {
        validated(&self.fetch().await?)
    }

    fn read_now(&self) -> Result<String> {
        match self {
            Self::Env(name) => std::env::var(name).with_context(|| format!("the variable {name}")),
            Self::File(path) => read(path, false),
            Self::Credential(path) => read(path, true),
            Self::Command(_) => bail!(
                "it comes from a command, which cannot run while the config is read; use `env`, `file` or `credential`"
            ),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the thread that reads is waited for")]
    async fn fetch(&self) -> Result<String> {
        if let Self::Command(command) = self {
            return program::run(command, b"", MAX_SECRET_BYTES + 2, COMMAND_TIMEOUT).await;
        }
        let source = self.clone();
        tokio::task::spawn_blocking(move || source.read_now()).await.context("reading was interrupted")?
    }
}

/// Reads a secret from a file of the operator, after checking its permissions.
#[expect(clippy::disallowed_methods, reason = "it is read where waiting is allowed")]
fn read(path: &Path, is_credential: bool) -> Result<String> {
    use std::io::Read;
    match is_credential {
        true => check_trusted_file(path, "credential")?,
        false => check_private_file(path, "file of a secret")?,
    }
    let name = path.display();
    let file = std::fs::File::open(path).with_context(|| name.to_string())?;
    let mut text = String::new();
    file.take(MAX_SECRET_BYTES as u64 + 2).read_to_string(&mut text).with_context(|| name.to_string())?;
    Ok(text)
}

/// A secret's value.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The number of former values of a secret that are remembered, so that they are still masked.
const MAX_FORMER: usize = 4;

/// The secrets of one config, each loaded at most once.
#[derive(Default)]
pub struct Vault(HashMap<String, Arc<Entry>>);

struct Entry {
    source: SecretSource,
    value: OnceLock<Secret>,
    /// The values from earlier configs, the latest first. A server may still echo them.
    former: Vec<Secret>,
    /// Locked while the secret is loaded. Holds the time and the error of the last failure.
    failed: Mutex<Option<(Instant, String)>>,
}

impl Vault {
    pub fn new(sources: &SecretSources) -> Self {
        Self::default().renewed(sources)
    }

    /// Creates the vault of a later config. Secrets are loaded again, and their former values are remembered.
    pub fn renewed(&self, sources: &SecretSources) -> Self {
        let entry = |(name, source): (&String, &SecretSource)| {
            let before = self.0.get(name);
            let values = before.into_iter().flat_map(|entry| entry.value.get().into_iter().chain(&entry.former));
            let former = values.take(MAX_FORMER).cloned().collect();
            let entry = Entry { source: source.clone(), value: OnceLock::new(), former, failed: Mutex::default() };
            (name.clone(), Arc::new(entry))
        };
        Self(sources.iter().map(entry).collect())
    }

    /// Returns the value of a secret. The error says why it cannot be loaded.
    ///
    /// It is loaded in a separate task, which continues if the request that needs it is cancelled. So a guest can neither interrupt a
    /// command nor start it again and again.
    pub async fn get(&self, name: &str) -> Result<Secret> {
        let entry = self.0.get(name).with_context(|| format!("there is no `{name}` in [secrets]"))?;
        if let Some(value) = entry.value.get() {
            return Ok(value.clone());
        }
        let entry = Arc::clone(entry);
        #[expect(clippy::disallowed_methods, reason = "it ends by itself, within the time that a command has")]
        let fetching = tokio::spawn(async move { entry.get().await });
        fetching.await.context("it was interrupted")?.with_context(|| format!("the secret `{name}`"))
    }

    /// Returns the values of these secrets that have been loaded, including former values.
    pub fn known<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a Secret> {
        names.filter_map(|name| self.0.get(name)).flat_map(|entry| entry.value.get().into_iter().chain(&entry.former))
    }
}

impl Entry {
    async fn get(&self) -> Result<Secret> {
        let mut failed = self.failed.lock().await;
        if let Some(value) = self.value.get() {
            return Ok(value.clone());
        }
        if let Some((at, problem)) = &*failed
            && at.elapsed() < RETRY_INTERVAL
        {
            bail!("{problem}");
        }
        match self.source.fetch().await.and_then(|text| validated(&text)) {
            Ok(value) => Ok(self.value.get_or_init(|| value).clone()),
            Err(error) => {
                *failed = Some((Instant::now(), format!("{error:#}")));
                Err(error)
            }
        }
    }
}

/// Validates the text of a source, without a trailing line break.
fn validated(text: &str) -> Result<Secret> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let bytes = text.len();
    ensure!(bytes >= MIN_SECRET_BYTES, "it has {bytes} bytes, fewer than {MIN_SECRET_BYTES}, and could be guessed");
    if let Some(why) = guessable::why(text) {
        bail!("it is {why}, as in an example, so everybody can guess it; `openssl rand -hex 32` makes another");
    }
    ensure!(bytes <= MAX_SECRET_BYTES, "it has more than {MAX_SECRET_BYTES} bytes");
    ensure!(!text.chars().any(char::is_control), "it contains control characters, such as line breaks");
    Ok(Secret(text.into()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are to be read or refused")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sources(text: &str) -> Result<SecretSources> {
        let written: BTreeMap<String, RawSecret> = toml::from_str(text)?;
        resolve(written, &|path| Ok(PathBuf::from(path)))
    }

    #[tokio::test]
    async fn each_source_gives_its_value_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            format!("{name} = {{ file = {:?} }}\n", path)
        };
        let text = [
            write("good", "0123456789abcdeg\n", 0o600),
            write("open", "0123456789abcdef", 0o644),
            write("short", "0123456789", 0o600),
            write("lines", "0123456789\n0123456789", 0o600),
            write("zeros", &"0".repeat(64), 0o600),
            "command = { command = [\"printf\", \"%s\", \"a $HOME `x` value\"] }\n".into(),
            "failing = { command = [\"false\"] }\n".into(),
            "missing = { command = [\"/nowhere/at/all\"] }\n".into(),
            "unset = { env = \"WHARF_NO_SUCH_VARIABLE\" }\n".into(),
        ];
        let vault = Vault::new(&sources(&text.concat()).unwrap());
        for (name, expected) in [
            ("good", Ok("0123456789abcdeg")),
            ("command", Ok("a $HOME `x` value")),
            ("open", Err("chmod 600")),
            ("short", Err("fewer than 16")),
            ("lines", Err("control characters")),
            ("zeros", Err("openssl rand -hex 32")),
            ("failing", Err("ended with")),
            ("missing", Err("cannot be started")),
            ("unset", Err("WHARF_NO_SUCH_VARIABLE")),
            ("other", Err("there is no `other`")),
        ] {
            match (vault.get(name).await, expected) {
                (Ok(secret), Ok(value)) => assert_eq!(secret.expose(), value, "{name}"),
                (Err(error), Err(text)) => assert!(format!("{error:#}").contains(text), "{name}: {error:#}"),
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
        assert_eq!(vault.known(["good", "command", "open"].into_iter()).count(), 2);
        let good = folder.path().join("good");
        std::fs::write(&good, "the value of another day").unwrap();
        let later = vault.renewed(&sources(&format!("good = {{ file = {good:?} }}")).unwrap());
        let known =
            |vault: &Vault| vault.known(["good"].into_iter()).map(|one| one.expose().to_owned()).collect::<Vec<_>>();
        assert_eq!(known(&later), ["0123456789abcdeg"], "a server may still repeat it");
        later.get("good").await.unwrap();
        assert_eq!(known(&later), ["the value of another day", "0123456789abcdeg"]);
        assert_eq!(format!("{:?}", vault.get("good").await.unwrap()), "Secret(…)");
    }

    #[test]
    fn a_source_is_one_of_four() {
        for (text, expected) in [
            ("a = {}", "must be one of"),
            ("a = { env = \"A\", file = \"b\" }", "must be one of"),
            ("a = { command = [] }", "the command is empty"),
            ("a = { credential = \"../x\" }", "no slashes"),
            ("\"a b\" = { env = \"A\" }", "a name consists of letters"),
            ("a = { vault = \"x\" }", "unknown field"),
        ] {
            let error = format!("{:#}", sources(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
