//! `[plugins.<id>]`: what a plugin is and what it may touch.

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use wharf_scope::{Limits, MAX_INSTRUCTIONS_BYTES, MemoryLimit, adapter::Adapter, network::HttpLimits};

use super::{
    adapter,
    approvals::{Approvals, Confirm},
    bounds::{calls, check_id, is_name_character, parse_hex32},
    builtin,
    command_line::{CommandLine, Named, Typed},
    defaults::CoreScaled,
    existing::{ExistingServer, Language, Package},
    raw::{self, Instances, Number},
    reference::SourceReference,
    settings::Settings,
    source::PluginSource,
    sources::{PublishedPlugin, SourceRules},
};
use crate::lock;
use wharf_base::{
    digest::Digest,
    pattern::Pattern,
    quota::Quota,
    text::{self, toml_header},
};
use wharf_policy::access::{
    capability::Absolute,
    grants::{Grants, env::RawEnv, hint::By},
};

/// Where a plugin comes from. When names clash, the plugin with the earlier origin keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Configured,
    CommandLine,
    DroppedIn,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PluginConfig {
    pub id: String,
    pub origin: Origin,
    pub source: PluginSource,
    pub sha256: Option<Digest>,
    /// The lock file that has to have accepted what the plugin tells models and wants. `None`: it may tell them anything.
    pub lock: Option<PathBuf>,
    pub prefix: String,
    /// How the plugin is served if it was not made for wharf.
    pub adapter: Arc<Adapter>,
    pub tools: Option<Vec<Pattern>>,
    pub prompts: Option<Vec<Pattern>>,
    /// The operator's text in place of the plugin's own instructions; empty for none.
    pub instructions: Option<String>,
    /// The plugin's own config.
    pub settings: Settings,
    /// The instances that calls run in; `None`: as the plugin itself says.
    pub instances: Option<Instances>,
    pub limits: Limits,
    /// How many calls of this plugin all callers together may make. None: any number.
    pub calls: Option<Quota>,
    pub tasks: TaskLimits,
    pub grants: Grants,
    /// Which calls a person has to approve. None: no call.
    pub confirm: Option<Confirm>,
    /// The command line that names it.
    pub typed: Option<Typed>,
}

/// How long a task may run, and how long it is stored, both counted from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLimits {
    pub timeout: Duration,
    pub ttl: Duration,
}

/// The limits of plugins whose own tables set none.
#[derive(Debug, Clone)]
pub struct DefaultLimits {
    pub call: Limits,
    pub tasks: TaskLimits,
}

/// What the config says for all plugins.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    pub limits: &'a DefaultLimits,
    pub approvals: &'a Approvals,
}

impl DefaultLimits {
    pub fn new(raw: &raw::Limits) -> Self {
        let concurrency = raw.concurrency.map(Number::get);
        Self {
            call: Limits {
                concurrency: concurrency.unwrap_or_else(|| CoreScaled::for_this_machine().concurrency),
                memory: raw.memory_mib.map_or(MemoryLimit::Fitted, |memory| MemoryLimit::Bytes(memory.get())),
                timeout: raw.timeout_ms.get(),
                output_bytes: raw.output_kib.get(),
                http: HttpLimits {
                    requests: raw.http_requests.get(),
                    at_once: raw.http_at_once.get(),
                    in_bytes: raw.http_in_kib.get() as u64,
                    out_bytes: raw.http_out_kib.get() as u64,
                },
            },
            tasks: TaskLimits { timeout: raw.task_timeout_ms.get(), ttl: raw.task_ttl_ms.get() },
        }
    }

    /// The limits of a plugin.
    fn of(&self, raw: &raw::PluginLimits) -> Limits {
        Limits {
            concurrency: raw.concurrency.map_or(self.call.concurrency, Number::get),
            memory: raw.memory_mib.map_or(self.call.memory, |memory| MemoryLimit::Bytes(memory.get())),
            timeout: raw.timeout_ms.map_or(self.call.timeout, Number::get),
            ..self.call.clone()
        }
    }
}

impl PluginConfig {
    /// A plugin of which nothing is written: the defaults, and no grants.
    pub fn plain(id: &str, origin: Origin, source: PluginSource, limits: &DefaultLimits) -> Self {
        Self {
            id: id.to_owned(),
            origin,
            source,
            sha256: None,
            lock: None,
            prefix: format!("{id}_"),
            adapter: Arc::default(),
            tools: None,
            prompts: None,
            instructions: None,
            settings: Settings::default(),
            instances: None,
            limits: limits.call.clone(),
            calls: None,
            tasks: limits.tasks,
            grants: Grants::default(),
            confirm: None,
            typed: None,
        }
    }

    /// Returns what the plugin may use outside calls: while it lists what it offers, and while it completes arguments. No person is
    /// asked for approval then, so a plugin whose calls a person has to approve can only read.
    pub fn unasked_grants(&self) -> Cow<'_, Grants> {
        match self.confirm {
            Some(_) => Cow::Owned(self.grants.only_reading()),
            None => Cow::Borrowed(&self.grants),
        }
    }

    /// How the operator grants it anything.
    pub fn granted_by(&self) -> By {
        match self.origin {
            Origin::CommandLine => By::Flag,
            Origin::Configured | Origin::DroppedIn => By::Config,
        }
    }

    /// Whether a tool or prompt is published under the plugin's own name for it, without the prefix: the name begins with the prefix, or is
    /// that of a built-in plugin with one tool.
    pub fn publishes_own_name(&self, own: &str) -> bool {
        own.starts_with(&self.prefix) || self.source.is_built_in() && Some(own) == self.prefix.strip_suffix('_')
    }

    /// Whether the operator allows a tool to be published. `name`: as the plugin calls it.
    pub fn allows_tool(&self, name: &str) -> bool {
        allows(self.tools.as_deref(), name)
    }

    /// Checks that the secrets that its grants name exist in `[secrets]`.
    pub fn check_secrets(&self, egress: &wharf_egress::EgressSettings) -> Result<()> {
        let known = self.grants.http.check_secrets(|name| egress.secrets.contains_key(name));
        known.with_context(|| format!("{}: grants", toml_header(&["plugins", &self.id])))
    }

    pub fn allows_prompt(&self, name: &str) -> bool {
        allows(self.prompts.as_deref(), name)
    }
}

fn allows(patterns: Option<&[Pattern]>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
}

/// `is_only`: whether it is the only plugin that is ever served.
pub fn on_command_line(
    named: &Named,
    limits: &DefaultLimits,
    command_line: &CommandLine,
    is_only: bool,
) -> Result<PluginConfig> {
    let id = named.id().to_owned();
    let mut call = limits.call.clone();
    let source = match named {
        Named::File(path) => {
            check_id(&id).with_context(|| text::path(path))?;
            PluginSource::File(std::path::absolute(path)?)
        }
        Named::Server(server) => PluginSource::Server(Arc::clone(server)),
        Named::BuiltIn(name) => {
            call.output_bytes = builtin::output_bytes(name, call.output_bytes);
            PluginSource::Bytes(builtin::find(name)?)
        }
    };
    let prefix = match (&command_line.prefix, named) {
        (Some(prefix), _) => prefix.clone(),
        // Clients know the tools of an existing server by its own names for them, and the rules and habits of people and models those of
        // the servers that a built-in plugin replaces.
        (None, Named::Server(_)) => String::new(),
        (None, Named::BuiltIn(_)) if is_only => String::new(),
        (None, _) => format!("{id}_"),
    };
    check_prefix(&prefix).context("--prefix")?;
    let mut written = raw::Plugin { instances: command_line.instances, ..raw::Plugin::default() };
    written.grants.http.clone_from(&command_line.allow_http);
    written.grants.env = command_line.allow_env.iter().cloned().map(RawEnv::Variable).collect();
    written.grants.ask.clone_from(&command_line.allow_ask);
    written.grants.roots = command_line.allow_roots.map(|access| access.as_str().to_owned());
    if let Named::BuiltIn(name) = named {
        builtin::complete(name, &mut written);
        builtin::complete_grants(name, &mut written.grants, command_line.plugins.len() < 2)?;
    }
    let grants = Grants::parse(written.grants, &|path| Ok(path.into())).context("--allow")?;
    Ok(PluginConfig {
        prefix,
        adapter: Arc::new(adapter::on_command_line(&id)),
        settings: Settings::resolve(written.config)?,
        instances: written.instances,
        limits: call,
        grants,
        typed: command_line.typed.clone(),
        ..PluginConfig::plain(&id, Origin::CommandLine, source, limits)
    })
}

pub fn resolve(
    id: &str,
    mut raw: raw::Plugin,
    source: PluginSource,
    Shared { limits, approvals }: Shared<'_>,
    absolute: Absolute<'_>,
) -> Result<PluginConfig> {
    check_id(id)?;
    let mut call = limits.of(&raw.limits);
    let of_calls = calls([raw.limits.calls_per_minute, raw.limits.calls_per_hour, raw.limits.calls_per_day, None]);
    if let Some(name) = raw.builtin.clone() {
        call.output_bytes = builtin::output_bytes(&name, call.output_bytes);
        builtin::complete(&name, &mut raw);
    }
    let prefix = raw.prefix.unwrap_or_else(|| format!("{id}_"));
    check_prefix(&prefix)?;
    let sha256 = raw.sha256.as_deref().map(|text| parse_hex32("sha256", text)).transpose()?.map(Digest::from);
    let lock = match raw.surface {
        None => source.published().map(|published| published.lock.clone()),
        Some(raw::Surface::Pinned) => Some(absolute(lock::FILE_NAME)?),
    };
    let instructions = raw.instructions;
    let bytes = instructions.as_ref().map_or(0, String::len);
    ensure!(bytes <= MAX_INSTRUCTIONS_BYTES, "`instructions` has {bytes} bytes, more than {MAX_INSTRUCTIONS_BYTES}");
    let (adapter, tools) =
        adapter::resolve(id, (raw.adapter.as_deref(), raw.endpoint.as_deref()), (raw.command, raw.tools))?;
    let patterns = |names: Vec<String>| names.into_iter().map(Pattern::new).collect();
    let settings = Settings::resolve(raw.config).context("config")?;
    let is_pinned = sha256.is_some() || source.is_built_in();
    Ok(PluginConfig {
        id: id.to_owned(),
        origin: Origin::Configured,
        source,
        sha256,
        lock,
        prefix,
        adapter: Arc::new(adapter),
        tools,
        prompts: raw.prompts.map(patterns),
        instructions,
        settings,
        instances: raw.instances,
        limits: call,
        calls: of_calls.is_limited().then(|| Quota { name: format!("plugin {id:?}"), limits: of_calls }),
        tasks: limits.tasks,
        grants: Grants::parse(raw.grants, absolute).context("grants")?,
        confirm: raw.confirm.map(|written| approvals.confirm(written, is_pinned)).transpose()?,
        typed: None,
    })
}

/// Returns where the component of a plugin in the config is: in a file, built in, in the store, or made from an existing server.
pub fn source(id: &str, raw: &raw::Plugin, sources: &SourceRules, absolute: Absolute<'_>) -> Result<PluginSource> {
    ensure!(raw.signer.is_none() || raw.source.is_some(), "`signer` is for plugins with `source`");
    match (&raw.path, &raw.builtin, &raw.source) {
        (Some(path), None, None) => {
            let file = absolute(path)?;
            if Language::of(&file).is_some() {
                return Ok(PluginSource::Server(Arc::new(ExistingServer::configured(file)?)));
            }
            Ok(PluginSource::File(file))
        }
        (None, Some(name), None) => Ok(PluginSource::Bytes(builtin::find(name)?)),
        (None, None, Some(source)) if SourceReference::is_server(source) => {
            ensure!(
                raw.signer.is_none(),
                "`signer` is for components; packages of npm and PyPI are not signed for wharf"
            );
            let package = Package::parse(source).context("`source` names no package")??;
            sources.check_package(&package, raw.sha256.is_some()).context("`source`")?;
            Ok(PluginSource::Server(Arc::new(ExistingServer::published(package)?)))
        }
        (None, None, Some(source)) => {
            Ok(PluginSource::Published(Arc::new(PublishedPlugin::resolve(id, raw, source, sources, absolute)?)))
        }
        (None, None, None) => bail!(
            "`path` is missing: the .wasm file or the file of an existing MCP server; or `builtin` with the name of a built-in plugin, or \
             `source` with where it is published"
        ),
        _ => bail!(
            "`path`, `builtin` and `source` exclude each other: a plugin is a file, a built-in one, or a published one"
        ),
    }
}

fn check_prefix(prefix: &str) -> Result<()> {
    ensure!(prefix.chars().all(is_name_character), "`prefix` may have letters, digits, `_`, `-` and `.`");
    Ok(())
}
