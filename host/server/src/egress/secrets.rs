//! `[secrets]`: values that wharf adds to requests of plugins, and that no plugin sees.
//!
//! A value is fetched when it is first needed, and kept until the config is read again. It never stands in a log line or an error.

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

use crate::base::{
    guard::{check_private_file, check_trusted_file},
    program,
};

/// The shortest secret. Whether a shorter one was masked could be used to guess it.
const MIN_BYTES: usize = 16;
const MAX_BYTES: usize = 4 << 10;
/// How long a secret that cannot be fetched is not tried again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a command may take.
const COMMAND: Duration = Duration::from_secs(10);

/// Where a secret comes from, as the file has it: one of these.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Written {
    env: Option<String>,
    file: Option<String>,
    credential: Option<String>,
    command: Option<Vec<String>>,
}

impl Written {
    /// Puts in the place of a credential what can be resolved where systemd gives none.
    pub fn forget_credential(&mut self) {
        if self.env.is_none() {
            self.env = self.credential.take();
        }
    }
}

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A variable of wharf's environment.
    Env(String),
    /// A file that only wharf's user may read.
    File(PathBuf),
    /// A file that systemd gives the service, with an entry in its access list for wharf's user. Such an entry looks like a right
    /// of the file's group, so that there is no telling from the mode who may read it; systemd sees to that.
    Credential(PathBuf),
    /// What a program prints, which is started without a shell.
    Command(Vec<String>),
}

/// All secrets of the config, by name.
pub type Sources = BTreeMap<String, Source>;

/// Reads `[secrets]`.
pub fn resolve(
    written: impl IntoIterator<Item = (String, Written)>,
    absolute: &dyn Fn(&str) -> Result<PathBuf>,
) -> Result<Sources> {
    let read = |(name, written): (String, Written)| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        ensure!(!name.is_empty() && name.bytes().all(plain), "`{name}`: a name has letters, digits, `_` and `-`");
        let source = match written {
            Written { env: Some(name), file: None, credential: None, command: None } => Source::Env(name),
            Written { env: None, file: Some(path), credential: None, command: None } => Source::File(absolute(&path)?),
            Written { env: None, file: None, credential: Some(name), command: None } => {
                ensure!(!name.contains('/') && name != "..", "`{name}`: a credential's name has no slashes");
                let folder = std::env::var_os("CREDENTIALS_DIRECTORY").with_context(|| {
                    format!("`{name}`: $CREDENTIALS_DIRECTORY is not set; systemd sets it where a unit has credentials")
                })?;
                Source::Credential(PathBuf::from(folder).join(name))
            }
            Written { env: None, file: None, credential: None, command: Some(command) } => {
                ensure!(!command.is_empty(), "`{name}`: the command is empty");
                Source::Command(command)
            }
            _ => bail!(
                "`{name}` is one of {{ env = … }}, {{ file = … }}, {{ credential = … }} and {{ command = [ … ] }}"
            ),
        };
        Ok((name, source))
    };
    written.into_iter().map(read).collect()
}

/// The value of one of [secrets], for what has to be known as soon as the config is read.
pub fn now(sources: &Sources, name: &str) -> Result<Secret> {
    let source = sources.get(name).with_context(|| format!("there is no secret `{name}` in [secrets]"))?;
    source.at_hand().and_then(|text| checked(&text)).with_context(|| format!("the secret `{name}`"))
}

impl Source {
    /// The file that it is read from.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) | Self::Credential(path) => Some(path),
            Self::Env(_) | Self::Command(_) => None,
        }
    }

    /// The files that decide what it is, if a program says it.
    pub fn programs(&self) -> Vec<PathBuf> {
        match self {
            Self::Command(command) => program::files(command),
            _ => Vec::new(),
        }
    }

    fn at_hand(&self) -> Result<String> {
        match self {
            Self::Env(name) => std::env::var(name).with_context(|| format!("the variable {name}")),
            Self::File(path) => read(path, false),
            Self::Credential(path) => read(path, true),
            Self::Command(_) => bail!("it comes from a command, which is asked only while wharf runs"),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the thread that reads is waited for")]
    async fn fetch(&self) -> Result<String> {
        if let Self::Command(command) = self {
            return program::run(command, b"", MAX_BYTES + 2, COMMAND).await;
        }
        let source = self.clone();
        tokio::task::spawn_blocking(move || source.at_hand()).await.context("reading was interrupted")?
    }
}

/// Reads a file that the operator names, of a kind that only some may read.
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
    file.take(MAX_BYTES as u64 + 2).read_to_string(&mut text).with_context(|| name.to_string())?;
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

/// How many values that a secret had before are remembered, so that they are masked.
const MAX_FORMER: usize = 4;

/// The secrets of one config, each fetched once.
#[derive(Default)]
pub struct Vault(HashMap<String, Arc<Entry>>);

struct Entry {
    source: Source,
    value: OnceLock<Secret>,
    /// The values that it had by earlier configs, the last one first. A server may still repeat them.
    former: Vec<Secret>,
    /// Held while it is fetched: when it failed last, and how.
    failed: Mutex<Option<(Instant, String)>>,
}

impl Vault {
    pub fn new(sources: &Sources) -> Self {
        Self::default().renewed(sources)
    }

    /// The secrets of a later config. They are fetched again, and what they were before stays known.
    pub fn renewed(&self, sources: &Sources) -> Self {
        let entry = |(name, source): (&String, &Source)| {
            let before = self.0.get(name);
            let values = before.into_iter().flat_map(|entry| entry.value.get().into_iter().chain(&entry.former));
            let former = values.take(MAX_FORMER).cloned().collect();
            let entry = Entry { source: source.clone(), value: OnceLock::new(), former, failed: Mutex::default() };
            (name.clone(), Arc::new(entry))
        };
        Self(sources.iter().map(entry).collect())
    }

    /// The value of a secret. The error says what keeps it from being fetched.
    ///
    /// It is fetched in a task of its own, which goes on if the request that needs it is given up. So a guest can neither end a
    /// command half way nor start one again and again.
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

    /// The values that are known of these secrets, earlier ones among them.
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
            && at.elapsed() < AGAIN
        {
            bail!("{problem}");
        }
        match self.source.fetch().await.and_then(|text| checked(&text)) {
            Ok(value) => Ok(self.value.get_or_init(|| value).clone()),
            Err(error) => {
                *failed = Some((Instant::now(), format!("{error:#}")));
                Err(error)
            }
        }
    }
}

/// The secret in what a source gives, which may end in a line break.
fn checked(text: &str) -> Result<Secret> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let bytes = text.len();
    ensure!(bytes >= MIN_BYTES, "its {bytes} bytes are fewer than {MIN_BYTES}, and could be guessed");
    ensure!(bytes <= MAX_BYTES, "it has more than {MAX_BYTES} bytes");
    ensure!(!text.chars().any(char::is_control), "it has control characters, such as line breaks, in it");
    Ok(Secret(text.into()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are to be read or refused")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sources(text: &str) -> Result<Sources> {
        let written: BTreeMap<String, Written> = toml::from_str(text)?;
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
            write("good", "0123456789abcdef\n", 0o600),
            write("open", "0123456789abcdef", 0o644),
            write("short", "0123456789", 0o600),
            write("lines", "0123456789\n0123456789", 0o600),
            "command = { command = [\"printf\", \"%s\", \"a $HOME `x` value\"] }\n".into(),
            "failing = { command = [\"false\"] }\n".into(),
            "missing = { command = [\"/nowhere/at/all\"] }\n".into(),
            "unset = { env = \"WHARF_NO_SUCH_VARIABLE\" }\n".into(),
        ];
        let vault = Vault::new(&sources(&text.concat()).unwrap());
        for (name, expected) in [
            ("good", Ok("0123456789abcdef")),
            ("command", Ok("a $HOME `x` value")),
            ("open", Err("chmod 600")),
            ("short", Err("fewer than 16")),
            ("lines", Err("control characters")),
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
        assert_eq!(known(&later), ["0123456789abcdef"], "a server may still repeat it");
        later.get("good").await.unwrap();
        assert_eq!(known(&later), ["the value of another day", "0123456789abcdef"]);
        assert_eq!(format!("{:?}", vault.get("good").await.unwrap()), "Secret(…)");
    }

    #[test]
    fn a_source_is_one_of_four() {
        for (text, expected) in [
            ("a = {}", "is one of"),
            ("a = { env = \"A\", file = \"b\" }", "is one of"),
            ("a = { command = [] }", "the command is empty"),
            ("a = { credential = \"../x\" }", "no slashes"),
            ("\"a b\" = { env = \"A\" }", "a name has letters"),
            ("a = { vault = \"x\" }", "unknown field"),
        ] {
            let error = format!("{:#}", sources(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
