//! The config after all checks: absolute paths, filled-in defaults, resolved environment references.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use wharf_sandbox::Limits;

use super::{defaults, raw};

#[derive(Debug, Clone)]
pub struct Config {
    pub file: Option<PathBuf>,
    pub plugin_dir: Option<PathBuf>,
    pub http: Http,
    pub roots: Roots,
    pub total_concurrency: usize,
    pub total_memory_bytes: usize,
    pub message_bytes: usize,
    pub page_items: usize,
    /// Defaults for plugins that say nothing.
    pub limits: Limits,
    /// In file order, then those of the command line.
    pub plugins: Vec<Arc<PluginConfig>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Http {
    pub listen: SocketAddr,
    pub token: Option<Token>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub sessions: usize,
    pub listens: usize,
    pub in_flight: usize,
}

/// A bearer token, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Compares without telling by its time how much was right.
    pub fn matches(&self, other: &str) -> bool {
        let difference = self.0.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        self.0.len() == other.len() && difference == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where client roots may lie, as the operator wrote it; and directories for clients that have no roots.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Roots {
    pub within: Option<Vec<PathBuf>>,
    pub fixed: Vec<PathBuf>,
}

/// Where a plugin comes from; earlier ones win a clash of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Configured,
    DroppedIn,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PluginConfig {
    pub id: String,
    pub origin: Origin,
    pub path: PathBuf,
    pub sha256: Option<[u8; 32]>,
    pub prefix: String,
    pub tools: Option<Vec<Pattern>>,
    pub prompts: Option<Vec<Pattern>>,
    /// JSON.
    pub config: Arc<str>,
    pub limits: Limits,
    pub grants: Grants,
}

/// A name, or a beginning of names with `*` at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.0,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grants {
    pub roots: Option<Access>,
    pub dirs: Vec<DirGrant>,
    pub env: Vec<String>,
    pub ask: AskGrant,
}

impl Grants {
    /// Whether any file could ever be within reach.
    pub fn any_directory(&self) -> bool {
        self.roots.is_some() || !self.dirs.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    ReadWrite,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirGrant {
    pub host: PathBuf,
    pub guest: String,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskGrant {
    pub elicitation: bool,
    pub sampling: bool,
    pub roots: bool,
}

/// What the command line adds to the file.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    pub plugins: Vec<PathBuf>,
    pub roots: Vec<PathBuf>,
    /// Granted to the plugins named here.
    pub allow_roots: Option<Access>,
    pub listen: Option<SocketAddr>,
}

pub fn resolve(raw: raw::Config, file: Option<&Path>, command_line: &CommandLine) -> Result<Config> {
    let base = file.and_then(Path::parent).map(Path::to_path_buf);
    let absolute = |path: &str| -> Result<PathBuf> {
        ensure!(!path.is_empty(), "a path is empty");
        let path = match path.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((rest, home)) => home.join(rest),
            None if path == "~" => std::env::home_dir().context("`~`: there is no home directory")?,
            None => PathBuf::from(path),
        };
        match &base {
            Some(base) => Ok(base.join(path)),
            None => Ok(std::path::absolute(path)?),
        }
    };
    let limits = default_limits(&raw.limits)?;
    let mut plugins = Vec::new();
    for (id, plugin) in raw.plugins.0 {
        let resolved = resolve_plugin(&id, plugin, &limits, &absolute).with_context(|| format!("[plugins.{id}]"))?;
        plugins.push(Arc::new(resolved));
    }
    for path in &command_line.plugins {
        plugins.push(Arc::new(on_command_line(path, &limits, command_line)?));
    }
    let mut ids: Vec<&str> = plugins.iter().map(|plugin| plugin.id.as_str()).collect();
    ids.sort_unstable();
    if let Some([id, _]) = ids.array_windows().find(|[one, other]| one == other) {
        bail!("two plugins have the id `{id}`; the id of a plugin on the command line is its file name without .wasm");
    }
    let within =
        raw.roots.within.as_ref().map(|paths| paths.iter().map(|path| absolute(path)).collect()).transpose()?;
    Ok(Config {
        file: file.map(Path::to_path_buf),
        plugin_dir: raw.plugin_dir.as_deref().map(absolute).transpose().context("plugin_dir")?,
        http: resolve_http(raw.http, command_line).context("[http]")?,
        roots: Roots {
            within,
            fixed: command_line.roots.iter().map(std::path::absolute).collect::<std::io::Result<_>>()?,
        },
        total_concurrency: within_bounds(
            "total_concurrency",
            raw.limits.total_concurrency,
            defaults::TOTAL_CONCURRENCY,
            4096,
        )?,
        total_memory_bytes: mib("total_memory_mib", raw.limits.total_memory_mib, defaults::TOTAL_MEMORY_MIB)?,
        message_bytes: kib("message_kib", raw.limits.message_kib, defaults::MESSAGE_KIB)?,
        page_items: within_bounds("page_items", raw.limits.page_items, defaults::PAGE_ITEMS, 100_000)?,
        limits,
        plugins,
    })
}

impl Config {
    /// The config of a plugin named on the command line: the defaults, and what was allowed there.
    pub fn on_command_line(&self, path: &Path, command_line: &CommandLine) -> Result<PluginConfig> {
        on_command_line(path, &self.limits, command_line)
    }

    /// The config of a plugin that was only dropped into the folder: the defaults and no grants.
    pub fn dropped_in(&self, id: &str, path: PathBuf) -> PluginConfig {
        PluginConfig {
            id: id.to_owned(),
            origin: Origin::DroppedIn,
            path,
            sha256: None,
            prefix: format!("{id}_"),
            tools: None,
            prompts: None,
            config: "{}".into(),
            limits: self.limits.clone(),
            grants: Grants::default(),
        }
    }
}

fn on_command_line(path: &Path, limits: &Limits, command_line: &CommandLine) -> Result<PluginConfig> {
    let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    check_id(&id).with_context(|| path.display().to_string())?;
    Ok(PluginConfig {
        prefix: format!("{id}_"),
        id,
        origin: Origin::Configured,
        path: std::path::absolute(path)?,
        sha256: None,
        tools: None,
        prompts: None,
        config: "{}".into(),
        limits: limits.clone(),
        grants: Grants { roots: command_line.allow_roots, ..Grants::default() },
    })
}

fn resolve_plugin(
    id: &str,
    raw: raw::Plugin,
    limits: &Limits,
    absolute: &dyn Fn(&str) -> Result<PathBuf>,
) -> Result<PluginConfig> {
    check_id(id)?;
    match raw.instances.as_deref() {
        None | Some("fresh") => {}
        Some("reused") => {
            bail!("instances = \"reused\" does not exist yet; leave the key out: every call gets a fresh instance")
        }
        Some(_) => bail!("`instances` is \"fresh\""),
    }
    let prefix = raw.prefix.unwrap_or_else(|| format!("{id}_"));
    ensure!(prefix.chars().all(is_name_character), "`prefix` may have letters, digits, `_`, `-` and `.`");
    let sha256 = raw.sha256.as_deref().map(parse_sha256).transpose()?;
    let patterns = |names: Vec<String>| names.into_iter().map(Pattern).collect();
    let config = resolve_environment(&toml::Value::Table(raw.config)).context("config")?;
    Ok(PluginConfig {
        id: id.to_owned(),
        origin: Origin::Configured,
        path: absolute(&raw.path)?,
        sha256,
        prefix,
        tools: raw.tools.map(patterns),
        prompts: raw.prompts.map(patterns),
        config: config.to_string().into(),
        limits: Limits {
            concurrency: within_bounds("concurrency", raw.limits.concurrency, limits.concurrency, 4096)?,
            memory_bytes: mib("memory_mib", raw.limits.memory_mib, limits.memory_bytes >> 20)?,
            timeout: timeout(raw.limits.timeout_ms, limits.timeout)?,
            output_bytes: kib("output_kib", raw.limits.output_kib, limits.output_bytes >> 10)?,
        },
        grants: resolve_grants(raw.grants, absolute).context("grants")?,
    })
}

fn resolve_grants(raw: raw::Grants, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Grants> {
    ensure!(raw.http.is_empty(), "`http`: plugins cannot be given network access yet; leave it empty");
    let mut ask = AskGrant::default();
    for ability in &raw.ask {
        match ability.as_str() {
            "elicitation" => ask.elicitation = true,
            "sampling" => ask.sampling = true,
            "roots" => ask.roots = true,
            other => bail!("`ask`: `{other}` is none of elicitation, sampling, roots"),
        }
    }
    let mut dirs = Vec::new();
    for dir in raw.dirs {
        let host = absolute(&dir.host)?;
        let guest = match dir.guest {
            Some(guest) => guest,
            None => host.to_str().context("`dirs`: a path that is not UTF-8 needs a `guest` path")?.to_owned(),
        };
        ensure!(guest.starts_with('/'), "`dirs`: the guest path `{guest}` must begin with /");
        ensure!(
            dirs.iter().all(|other: &DirGrant| other.guest != guest),
            "`dirs`: two directories share the guest path `{guest}`"
        );
        dirs.push(DirGrant { host, guest, access: parse_access(&dir.access)? });
    }
    for name in &raw.env {
        ensure!(!name.is_empty() && !name.contains('='), "`env`: `{name}` is no name of a variable");
    }
    Ok(Grants { roots: raw.roots.as_deref().map(parse_access).transpose()?, dirs, env: raw.env, ask })
}

pub fn parse_access(text: &str) -> Result<Access> {
    match text {
        "read" => Ok(Access::Read),
        "read-write" => Ok(Access::ReadWrite),
        other => bail!("`{other}` is neither \"read\" nor \"read-write\""),
    }
}

/// Replaces each table that is just `{ env = "NAME" }` by the variable's value.
fn resolve_environment(value: &toml::Value) -> Result<serde_json::Value> {
    Ok(match value {
        toml::Value::Table(table) => match (table.len(), table.get("env").and_then(toml::Value::as_str)) {
            (1, Some(name)) => match std::env::var(name) {
                Ok(value) => value.into(),
                Err(_) => bail!("the environment variable {name} is not set, or not UTF-8"),
            },
            _ => {
                let entries: Result<serde_json::Map<_, _>> =
                    table.iter().map(|(key, value)| Ok((key.clone(), resolve_environment(value)?))).collect();
                entries?.into()
            }
        },
        toml::Value::Array(items) => items.iter().map(resolve_environment).collect::<Result<_>>()?,
        toml::Value::String(text) => text.clone().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
    })
}

fn resolve_http(raw: raw::Http, command_line: &CommandLine) -> Result<Http> {
    let listen = match command_line.listen {
        Some(listen) => listen,
        None => {
            let text = raw.listen.as_deref().unwrap_or(defaults::LISTEN);
            text.parse().with_context(|| {
                format!("`listen`: `{text}` is not an address and port such as {}", defaults::LISTEN)
            })?
        }
    };
    let token = match raw.token_env {
        None => None,
        Some(name) => {
            let token = std::env::var(&name).unwrap_or_default();
            ensure!(!token.is_empty(), "`token_env`: the environment variable {name} is not set");
            Some(Token(token))
        }
    };
    for origin in &raw.allowed_origins {
        let known = ["http://", "https://"].iter().any(|scheme| origin.starts_with(scheme));
        ensure!(known && !origin.ends_with('/'), "`allowed_origins`: `{origin}` is not like https://example.com");
    }
    Ok(Http {
        listen,
        token,
        allowed_hosts: raw.allowed_hosts,
        allowed_origins: raw.allowed_origins,
        sessions: within_bounds("sessions", raw.sessions, defaults::SESSIONS, 1_000_000)?,
        listens: within_bounds("listens", raw.listens, defaults::LISTENS, 1_000_000)?,
        in_flight: within_bounds("in_flight", raw.in_flight, defaults::IN_FLIGHT, 100_000)?,
    })
}

fn default_limits(raw: &raw::Limits) -> Result<Limits> {
    Ok(Limits {
        concurrency: within_bounds("concurrency", raw.concurrency, defaults::CONCURRENCY, 4096)?,
        memory_bytes: mib("memory_mib", raw.memory_mib, defaults::MEMORY_MIB)?,
        timeout: timeout(raw.timeout_ms, Duration::from_millis(defaults::TIMEOUT_MS))?,
        output_bytes: kib("output_kib", raw.output_kib, defaults::OUTPUT_KIB)?,
    })
}

fn within_bounds(key: &str, value: Option<usize>, default: usize, most: usize) -> Result<usize> {
    let value = value.unwrap_or(default);
    ensure!((1..=most).contains(&value), "`{key}` is from 1 to {most}");
    Ok(value)
}

fn mib(key: &str, value: Option<usize>, default: usize) -> Result<usize> {
    Ok(within_bounds(key, value, default, 1 << 20)? << 20)
}

fn kib(key: &str, value: Option<usize>, default: usize) -> Result<usize> {
    Ok(within_bounds(key, value, default, 1 << 20)? << 10)
}

fn timeout(value: Option<u64>, default: Duration) -> Result<Duration> {
    let timeout = value.map_or(default, Duration::from_millis);
    let most = Duration::from_secs(24 * 3600);
    ensure!(timeout >= Duration::from_millis(1) && timeout <= most, "`timeout_ms` is from 1 to {}", most.as_millis());
    Ok(timeout)
}

fn parse_sha256(text: &str) -> Result<[u8; 32]> {
    let wrong = || anyhow::anyhow!("`sha256` is 64 hexadecimal digits");
    ensure!(text.len() == 64 && text.is_ascii(), wrong());
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        let digits = text.get(at..at + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(digest)
}

/// The id of a plugin: what prefixes and `[plugins.<id>]` are made of.
pub fn check_id(id: &str) -> Result<()> {
    ensure!(
        !id.is_empty() && id.len() <= 64 && id.chars().all(is_name_character),
        "`{}` is no id for a plugin; an id has 1 to 64 letters, digits, `_`, `-` and `.`",
        id.escape_debug()
    );
    Ok(())
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<Config> {
        resolve(raw::parse(text).unwrap(), Some(Path::new("/etc/wharf/wharf.toml")), &CommandLine::default())
    }

    #[test]
    fn paths_are_relative_to_the_file_and_defaults_are_filled_in() {
        let config =
            resolved("plugin_dir='p'\n[plugins.a]\npath='../a.wasm'\n[plugins.a.limits]\nmemory_mib=8").unwrap();
        assert_eq!(config.plugin_dir.unwrap(), Path::new("/etc/wharf/p"));
        let plugin = &config.plugins[0];
        assert_eq!(plugin.path, Path::new("/etc/wharf/../a.wasm"));
        assert_eq!(plugin.prefix, "a_");
        assert_eq!(plugin.limits.memory_bytes, 8 << 20);
        assert_eq!(plugin.limits.timeout, Duration::from_secs(30));
        assert_eq!(plugin.grants, Grants::default());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("[plugins.a]\npath='a'\ninstances='warm'", "`instances` is \"fresh\""),
            ("[plugins.'a b']\npath='a'", "`a b` is no id"),
            ("[plugins.a]\npath='a'\n[plugins.a.grants]\nroots='all'", "neither \"read\" nor \"read-write\""),
            ("[plugins.a]\npath='a'\n[plugins.a.grants]\nhttp=['x']", "leave it empty"),
            ("[plugins.a]\npath='a'\n[plugins.a.grants]\nask=['money']", "none of elicitation"),
            ("[plugins.a]\npath='a'\nconfig={t={env='WHARF_TEST_NO_SUCH'}}", "WHARF_TEST_NO_SUCH is not set"),
            ("[plugins.a]\npath='a'\nsha256='zz'", "64 hexadecimal"),
            ("[limits]\ntotal_concurrency=0", "from 1 to"),
            ("[http]\nlisten='localhost'", "not an address and port"),
            ("[http]\ntoken_env='WHARF_TEST_NO_SUCH'", "is not set"),
        ] {
            let error = format!("{:#}", resolved(text).unwrap_err());
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }

    #[test]
    fn tokens_match_only_themselves() {
        let token = Token("secret".into());
        for (other, matches) in [("secret", true), ("secreT", false), ("secre", false), ("secrets", false), ("", false)]
        {
            assert_eq!(token.matches(other), matches, "{other}");
        }
        assert!(!format!("{token:?}").contains("secret"));
    }
}
