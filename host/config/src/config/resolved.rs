//! The config after all checks: absolute paths, filled-in defaults, resolved environment references.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    admin::{self, Admin},
    approvals::Approvals,
    audit::{self, Audit},
    auth,
    cluster::{self, Cluster},
    command_line::{CommandLine, Named},
    default_paths, egress,
    face::{self, Face},
    http::{self, Http},
    plugin::{self, DefaultLimits, Origin, PluginConfig, Shared},
    profiles,
    protocol::{self, Protocol},
    raw, roles,
    source::PluginSource,
    sources::SourceRules,
    telemetry::{self, Telemetry},
    trusted,
};
use wharf_base::text::toml_header;
use wharf_policy::{
    access::{
        capability::Absolute,
        protected::Protected,
        scope::{FolderRules, RootsFrom},
    },
    auth::AuthSettings,
    profiles::Profiles,
    roles::Roles,
};

#[derive(Debug, Clone)]
pub struct Config {
    /// How many configs have been in use so far, this one included.
    pub number: u64,
    pub file: Option<PathBuf>,
    /// The SHA-256 of the text that it was read from, if there was one.
    pub digest: Option<[u8; 32]>,
    /// What it protects from plugins by what is written in it.
    pub named: Protected,
    pub startup: Arc<Startup>,
    pub plugin_dir: Option<PathBuf>,
    pub roots: Roots,
    pub page_items: usize,
    pub egress: wharf_egress::EgressSettings,
    pub sources: SourceRules,
    /// The limits of plugins that set none.
    pub limits: DefaultLimits,
    pub approvals: Approvals,
    pub roles: Arc<Roles>,
    /// The profiles, including the one for clients that name no profile, which `catalog` in `[server]` describes.
    pub profiles: Arc<Profiles>,
    /// The plugins in file order, then those of the command line.
    pub plugins: Vec<Arc<PluginConfig>>,
}

/// Declares [`Startup`]: each field stands next to the key or the table that it comes from.
macro_rules! startup {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $key:literal,)*) => {
        /// Settings that take effect only when wharf starts. All others take effect when the file is read again.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Startup {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Startup {
            /// The keys and tables of the file whose values differ between the two.
            pub fn differs(&self, other: &Self) -> Vec<&'static str> {
                let keys = [$(($key, self.$field != other.$field)),*];
                keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
            }
        }
    };
}

startup! {
    face: Face = "[server]",
    http: Http = "[http]",
    /// None: there is no listener for metrics, and nothing is counted.
    admin: Option<Admin> = "[admin]",
    protocol: Protocol = "[protocol]",
    /// None: this process shares nothing with others.
    cluster: Option<Cluster> = "[cluster]",
    total_concurrency: usize = "total_concurrency",
    total_memory_bytes: usize = "total_memory_mib",
    /// The memory that wharf itself may use for plugins and clients.
    total_host_memory_bytes: usize = "total_host_memory_mib",
    compile_timeout: Duration = "compile_timeout_ms",
    message_bytes: usize = "message_kib",
    /// How many tasks are stored at once, running or not.
    total_tasks: usize = "total_tasks",
    /// None: nothing is kept of what calls change in folders.
    undo_bytes: Option<usize> = "undo_mib",
    /// None: there is no audit log.
    audit: Option<Audit> = "[audit]",
    /// None: nothing is sent to any collector.
    telemetry: Option<Telemetry> = "[telemetry]",
    /// None: access tokens of identity providers are not accepted.
    auth: Option<Arc<AuthSettings>> = "[auth]",
}

/// Which folders are roots, as the operator configured it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Roots {
    /// Where the roots of clients may lie.
    pub within: Option<Vec<PathBuf>>,
    /// The roots that the operator opens.
    pub fixed: Vec<PathBuf>,
    pub from: RootsFrom,
}

impl Roots {
    fn resolve(raw: &raw::Roots, command_line: &CommandLine, absolute: Absolute<'_>) -> Result<Self> {
        let all = |paths: &[String]| paths.iter().map(|path| absolute(path)).collect::<Result<Vec<_>>>();
        let mut fixed = all(&raw.fixed)?;
        for root in command_line.roots.iter().chain(&command_line.folders) {
            fixed.push(std::path::absolute(root)?);
        }
        ensure!(
            command_line.folders.is_empty() || raw.from.is_none(),
            "`from` says whose roots count, but folders on the command line replace all other roots: remove one of the two"
        );
        let from = match raw.from {
            // A folder that was named with `--root` is meant to be open, even if the client has roots.
            None if !command_line.roots.is_empty() => RootsFrom::Both,
            // An operator who names the folders of a plugin has not allowed the client to open more.
            None if !command_line.folders.is_empty() => RootsFrom::Operator,
            None => RootsFrom::default(),
            Some(from) => from,
        };
        let mut within = raw.within.as_deref().map(all).transpose()?;
        for folder in &command_line.within {
            within.get_or_insert_default().push(std::path::absolute(folder)?);
        }
        Ok(Self { within, fixed, from })
    }
}

pub fn resolve(raw: raw::Config, file: Option<&Path>, command_line: &CommandLine) -> Result<Config> {
    let folder = file.and_then(Path::parent);
    let absolute: Absolute<'_> = &|path| default_paths::absolute(path, folder);
    let named = trusted::of(&raw, file);

    // The tables.
    let protocol = protocol::resolve(raw.protocol, absolute).context("[protocol]")?;
    let egress = egress::resolve(raw.egress, raw.secrets, absolute)?;
    let secrets = &egress.secrets;
    let sources = SourceRules::resolve(raw.sources, secrets, absolute).context("[sources]")?;
    let approvals = Approvals::resolve(raw.approvals, absolute).context("[approvals]")?;
    let limits = DefaultLimits::new(&raw.limits);
    let plugins = plugins(
        raw.plugins.0,
        &sources,
        Shared { limits: &limits, approvals: &approvals },
        (command_line, file.is_none()),
        absolute,
    )?;
    let http = http::resolve(raw.http, command_line, absolute).context("[http]")?;
    let auth = raw.auth.map(|raw| auth::resolve(raw, http.public_url.as_deref(), secrets, absolute));
    let auth = auth.transpose().context("[auth]")?;
    let roles = roles::resolve(raw.roles.0, absolute)?;
    let cluster = raw.cluster.map(|raw| cluster::resolve(raw, &protocol, secrets, absolute));
    let cluster = cluster.transpose().context("[cluster]")?;
    let replica = cluster.as_ref().map(|cluster| cluster.name.clone());
    let audit = raw.audit.map(|raw| audit::resolve(raw, replica.clone(), absolute)).transpose().context("[audit]")?;
    let admin = raw.admin.map(admin::resolve).transpose().context("[admin]")?;
    let profiles = profiles::resolve(raw.server.catalog, raw.profiles.0)?;
    let face = face::resolve(raw.server).context("[server]")?;
    let telemetry = raw.telemetry.map(|raw| telemetry::resolve(raw, &face.info.name, replica, secrets));
    let telemetry = telemetry.transpose().context("[telemetry]")?;
    let roots = Roots::resolve(&raw.roots, command_line, absolute).context("[roots]")?;
    let plugin_dir = raw.plugin_dir.as_deref().map(absolute).transpose().context("plugin_dir")?;

    check_login(&http, auth.as_deref(), &roles)?;
    for plugin in &plugins {
        plugin.check_secrets(&egress)?;
    }
    let startup = Startup {
        face,
        http,
        admin,
        protocol,
        cluster,
        total_concurrency: raw.limits.total_concurrency(),
        total_memory_bytes: raw.limits.total_memory_bytes(),
        total_host_memory_bytes: raw.limits.total_host_memory_mib.get(),
        compile_timeout: raw.limits.compile_timeout_ms.get(),
        message_bytes: raw.limits.message_kib.get(),
        total_tasks: raw.limits.total_tasks.get(),
        undo_bytes: raw.limits.undo_mib.unless_zero(),
        audit,
        telemetry,
        auth,
    };
    Ok(Config {
        number: 1,
        file: file.map(Path::to_path_buf),
        digest: None,
        named,
        startup: Arc::new(startup),
        plugin_dir,
        roots,
        page_items: raw.limits.page_items.get(),
        egress,
        sources,
        limits,
        approvals,
        roles,
        profiles,
        plugins,
    })
}

/// The plugins of the file, then those of the command line. `is_all`: whether the command line names all plugins that are ever served, since
/// there is no file.
fn plugins(
    raw: Vec<(String, raw::Plugin)>,
    sources: &SourceRules,
    shared: Shared<'_>,
    (command_line, is_all): (&CommandLine, bool),
    absolute: Absolute<'_>,
) -> Result<Vec<Arc<PluginConfig>>> {
    let mut plugins = Vec::new();
    for (id, plugin) in raw {
        let header = || toml_header(&["plugins", &id]);
        let source = plugin::source(&id, &plugin, sources, absolute).with_context(header)?;
        let plugin = plugin::resolve(&id, plugin, source, shared, absolute).with_context(header)?;
        ensure!(
            command_line.folders.is_empty() || !plugin.grants.roots.is_given(),
            "{}: this plugin has `roots`, so it would also get the folders on the command line, which are meant for the plugins \
             there; remove the folders from the command line, or use another config",
            header()
        );
        plugins.push(Arc::new(plugin));
    }
    let is_only = is_all && command_line.plugins.len() < 2;
    for named in &command_line.plugins {
        plugins.push(Arc::new(plugin::on_command_line(named, shared.limits, command_line, is_only)?));
    }
    let mut ids = HashSet::new();
    if let Some(twice) = plugins.iter().find(|plugin| !ids.insert(plugin.id.as_str())) {
        bail!(
            "two plugins have the id `{}`; the id of a plugin on the command line is its file name without .wasm, \
             or the name of the built-in one",
            twice.id
        );
    }
    Ok(plugins)
}

/// Checks that what identifies callers fits together, and that roles say what they may use.
fn check_login(http: &Http, auth: Option<&AuthSettings>, roles: &Roles) -> Result<()> {
    let Some(auth) = auth else { return Ok(()) };
    ensure!(
        http.token.is_none(),
        "[auth] and the token of [http] exclude each other, since a request has only one token; remove one of them"
    );
    ensure!(
        !roles.is_empty(),
        "[auth] says which clients may connect, and there are no [roles.*] that say what they may use; to give all of them \
         everything, add [roles.everybody] with when = \"anyone\" and plugins = [\"*\"]"
    );
    let identities = auth.issuers.len() + usize::from(auth.keys_file.is_some());
    if let (2.., Some(name)) = (identities, roles.with_ambiguous_names()) {
        bail!(
            "{}: two issuers, or an issuer and the API keys, may use the same name, so a role with `{{…}}` in `roots.within` has to \
             name an `issuer` or a `key` in `when`",
            toml_header(&["roles", name])
        );
    }
    Ok(())
}

impl Config {
    /// Returns all paths that the config names, by what plugins may do with them. `cache`: the folder for compiled code.
    pub fn folder_rules(&self, cache: Option<&Path>) -> FolderRules {
        let mut own = Protected::default();
        own.files(std::env::current_exe().ok());
        own.files(self.plugins.iter().filter_map(|plugin| plugin.source.path()).map(Path::to_path_buf));
        own.files(self.plugins.iter().filter_map(|plugin| plugin.lock.clone()));
        for folder in cache.into_iter().chain(self.sources.store.as_deref()) {
            own.tree(folder);
        }
        // The command line may name another address than the file.
        own.files(self.startup.http.listen.socket().cloned());
        FolderRules {
            within: self.roots.within.clone(),
            fixed: self.roots.fixed.clone(),
            from: self.roots.from,
            dirs: self.plugins.iter().flat_map(|plugin| &plugin.grants.dirs.0).cloned().collect(),
            named: (self.file.clone(), self.named.clone()),
            own,
            always: trusted::always(),
            egress: self.egress.clone(),
        }
    }

    /// Returns the config of the only plugin on the command line: the defaults, and what the command line grants.
    pub fn on_command_line(&self, named: &Named, command_line: &CommandLine) -> Result<PluginConfig> {
        plugin::on_command_line(named, &self.limits, command_line, true)
    }

    /// Returns the config of a plugin that is in the plugin folder: the defaults and no grants.
    pub fn dropped_in(&self, id: &str, path: PathBuf) -> PluginConfig {
        PluginConfig::plain(id, Origin::DroppedIn, PluginSource::File(path), &self.limits)
    }
}

#[cfg(test)]
mod tests {
    use wharf_scope::MemoryLimit;

    use super::*;
    use wharf_policy::access::grants::Grants;

    fn resolved(text: &str) -> Result<Config> {
        resolve(raw::parse(text).unwrap(), Some(Path::new("/etc/wharf/wharf.toml")), &CommandLine::default())
    }

    #[test]
    fn paths_are_relative_to_the_file_and_defaults_are_filled_in() {
        let config =
            resolved("plugin_dir='p'\n[plugins.a]\npath='../a.wasm'\n[plugins.a.limits]\nmemory_mib=8").unwrap();
        assert_eq!(config.plugin_dir.unwrap(), Path::new("/etc/wharf/p"));
        let plugin = &config.plugins[0];
        assert_eq!(plugin.source, PluginSource::File("/etc/wharf/../a.wasm".into()));
        assert_eq!(plugin.prefix, "a_");
        assert_eq!(plugin.limits.memory, MemoryLimit::Bytes(8 << 20));
        assert_eq!(plugin.limits.timeout, Duration::from_secs(30));
        assert_eq!(plugin.grants, Grants::default());
    }

    #[test]
    fn no_plugin_reads_the_private_key_or_writes_what_the_server_uses() {
        let tls =
            resolved("[http.tls]\ncert='c.pem'\nkey='k.pem'\nclient_ca='ca.pem'").unwrap().folder_rules(None).named.1;
        for (path, secret) in [("c.pem", false), ("k.pem", true), ("ca.pem", false)] {
            let path = Path::new("/etc/wharf").join(path);
            assert!(tls.trusted.files.contains(&path), "{}", path.display());
            assert_eq!(tls.secret.contains(&path), secret, "{}", path.display());
        }
        let socket = resolved("[http]\nlisten='unix:mcp.sock'").unwrap().folder_rules(None);
        assert!(socket.own.trusted.files.contains(&"/etc/wharf/mcp.sock".into()));
    }

    /// With `[auth]`, only roles give access to anything.
    #[test]
    fn what_a_login_opens_is_written_in_roles() {
        let login = "[auth]\nkeys_file='k'\n";
        for (roles, expected) in [
            ("", None),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']", Some(false)),
            ("[roles.a]\nwhen=[{key='x'}]\ntools=['x']\n[roles.b]\nwhen='anyone'\nplugins=['*']", Some(false)),
            ("[roles.a]\nwhen={key='x'}\nplugins=['*']", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['a*']", Some(true)),
            ("[roles.a]\nwhen='anyone'\ntools=['*']", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\ntools=['x']", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\nprompts=['x']", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\nresources=[]", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\nroots={within='/srv'}", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\nroots={access='read'}", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\nlimits={concurrency=1}", Some(true)),
            ("[roles.a]\nwhen='anyone'\nplugins=['*']\nlimits={of=[{tools=['x'], concurrency=1}]}", Some(true)),
        ] {
            let narrow = resolved(&format!("{login}{roles}")).map(|config| config.roles.narrow());
            match expected {
                Some(expected) => assert_eq!(narrow.unwrap(), expected, "{roles}"),
                None => assert!(format!("{:#}", narrow.unwrap_err()).contains("there are no [roles.*]"), "{roles}"),
            }
        }
        assert!(resolved("").is_ok_and(|config| config.roles.is_empty()), "without `[auth]`, roles are optional");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("[plugins.a]\nprefix=''", "`path` is missing"),
            ("[plugins.a]\npath='a'\nbuiltin='files'", "exclude each other"),
            ("[plugins.a]\nbuiltin='fiels'", "built-in plugin"),
            ("[plugins.a]\npath='a'\ninstances='warm'", "\"fresh\" or \"reused\""),
            ("[plugins.'a b']\npath='a'", "`a b` is not a valid id"),
            ("[plugins.wharf]\npath='a'", "begin with `wharf` are reserved"),
            ("[plugins.Wharf-x]\npath='a'", "begin with `wharf` are reserved"),
            ("[plugins.a]\npath='a'\n[plugins.a.grants]\nroots='all'", "neither \"read\" nor \"read-write\""),
            ("[plugins.a]\npath='a'\n[plugins.a.grants]\nhttp=['x']", "must begin with https://"),
            (
                "[plugins.a]\npath='a'\n[plugins.a.grants]\nhttp=[{url='https://a.example', secrets=['s']}]",
                "there is no secret `s` in [secrets]",
            ),
            (
                "[plugins.a]\npath='a'\n[plugins.a.grants]\nenv=[{name='KEY', secret='s'}]",
                "`KEY` stands for the secret `s`, but no rule",
            ),
            ("[egress]\nroots='mine'", "`roots` is \"system\" or \"built-in\", not \"mine\""),
            ("[egress]\nproxy='socks5://a'", "begins with http://"),
            ("[secrets]\na={file='x', env='Y'}", "must be one of"),
            ("[plugins.a]\npath='a'\n[plugins.a.grants]\nask=['money']", "not one of elicitation"),
            ("[plugins.a]\npath='a'\nconfig={t={env='WHARF_TEST_NO_SUCH'}}", "WHARF_TEST_NO_SUCH is not set"),
            ("[plugins.a]\npath='a'\nsha256='zz'", "64 hexadecimal"),
            ("[plugins.a]\npath='a'\nsurface='open'", "`surface` is \"pinned\", not \"open\""),
            ("[limits]\ntotal_concurrency=0", "2: `total_concurrency` is from 1 to 4096, not 0"),
            ("[server]\ncatalog='lazy'", "`catalog` is \"full\" or \"search\", not \"lazy\""),
            ("[http]\nlisten='localhost'", "not an address and port"),
            ("[admin]\nlisten='9464'", "[admin]: `listen`: `9464` is not an address and port"),
            ("[protocol]\nlegacy=false\nsse=true", "`sse` needs `legacy`"),
            (
                "[audit]\nfile='a'\narguments='none'",
                "`arguments` is \"digest\", \"redacted\" or \"full\", not \"none\"",
            ),
            ("[audit]\nfile='a'\non_failure='stop'", "`on_failure` is \"refuse\" or \"continue\", not \"stop\""),
            ("[audit]\nfile='a'\nkeep=0", "`keep` is from 1 to"),
            ("[audit]\nfile='a'\nrotate_mib=0", "`rotate_mib` is from 1 to"),
            ("[audit]\nfile=''", "a path is empty"),
            ("[audit]\nfile='/'", "names no file"),
            ("[telemetry]\notlp='127.0.0.1:4318'", "[telemetry]: `otlp`"),
            ("[telemetry]\notlp='http://a'\nsample=2", "`sample` is a share of all calls, from 0 to 1"),
            ("[telemetry]\notlp='http://a'\nheaders={host='b'}", "`host` is set by wharf"),
            ("[telemetry]\notlp='http://a'\nheaders={x={env='WHARF_TEST_NO_SUCH'}}", "WHARF_TEST_NO_SUCH is not set"),
            ("[approvals]\nask='me'", "neither \"client\" nor"),
            ("[approvals]\nask={command=[]}", "the command is empty"),
            ("[approvals]\nremember='forever'", "`remember` is \"never\", \"session\" or \"always\", not \"forever\""),
            ("[plugins.a]\npath='a'\nconfirm='write'", "stand in a list, such as [\"write\"]"),
            ("[plugins.a]\npath='a'\nconfirm=[]", "nothing would be asked"),
            ("[plugins.a]\npath='a'\nconfirm='destructive'", "needs `sha256`"),
            ("[auth]", "so nobody could connect"),
            ("[[auth.issuers]]\nurl='https://i.example'", "`public_url` in [http] is missing"),
            (
                "[http]\npublic_url='https://a.example'\n[[auth.issuers]]\nurl='https://i.example'\nintrospection={client_id='a', secret='s'}",
                "there is no secret `s` in [secrets]",
            ),
            ("[roles.a]\ntools=['x']", "missing field `when`"),
            ("[roles.a]\nwhen='all'\ntools=['x']", "is not \"anyone\""),
            ("[roles.a]\nwhen='anyone'", "it gives nothing"),
            ("[roles.a]\nwhen={}\ntools=['x']", "an empty table"),
            ("[roles.a]\nwhen=[]\ntools=['x']", "apply to nobody"),
            ("[roles.a]\nwhen={subject='x'}\ntools=['x']", "without the `issuer`"),
            ("[roles.a]\nwhen={key='x'}\nstep_up=true\ntools=['x']", "`when` names no scope"),
            ("[roles.a]\nwhen='anyone'\ntools=['x*y']", "not at its end"),
            ("[roles.a]\nwhen='anyone'\ntools=['x']\nroots={within='/srv/a-{b}'}", "the whole name of a folder"),
            ("[roles.a]\nwhen='anyone'\ntools=['x']\nlimits={concurrency=0}", "`concurrency` is from 1"),
            ("[roles.a]\nwhen='anyone'\ntools=['x']\nlimits={calls_per_day=0}", "`calls_per_day` is from 1"),
            ("[roles.a]\nwhen='anyone'\ntools=['x']\nlimits={of=[{calls_per_day=1}]}", "it selects nothing"),
            ("[roles.a]\nwhen='anyone'\ntools=['x']\nlimits={of=[{tools=['x']}]}", "it limits nothing"),
            (
                "[roles.a]\nwhen='anyone'\ntools=['x']\nlimits={of=[{tools=['x'], calls_per_day=1}, {tools=['x'], concurrency=1}]}",
                "names the same twice",
            ),
            ("[roles.a]\nwhen='anyone'\ntools=['x']\nlimits={of=[{tools=['x*y'], concurrency=1}]}", "not at its end"),
            ("[plugins.a]\npath='a'\n[plugins.a.limits]\ncalls_per_hour=0", "`calls_per_hour` is from 1"),
            ("[limits]\ncalls_per_day=1", "unknown key `calls_per_day`"),
            ("[http]\nlisten='unix:'", "the path of the socket is missing"),
            ("[http]\nlisten='unix:/a'\nsocket_mode=660", "write it in octal, such as 0o660"),
            ("[http]\nlisten='unix:/a'\n[http.tls]\ncert='a'\nkey='b'", "has no effect on a Unix socket"),
            ("[http]\ndrain_s=601", "`drain_s` is from 0 to 600"),
            ("[http]\ndrain_delay_s=601", "`drain_delay_s` is from 0 to 600"),
            ("[http.tls]\ncert='a'\nkey='b'\nclient_cert='required'", "`client_cert` needs `client_ca`"),
            (
                "[http.tls]\ncert='a'\nkey='b'\nclient_ca='c'\nclient_cert='yes'",
                "`client_cert` is \"required\" or \"optional\", not \"yes\"",
            ),
            ("[http]\npublic_url='https://a.example/mcp'\n[auth]", "there are no `[[auth.issuers]]`"),
            ("[http]\npublic_url='http://a.example/mcp'", "is not an https URL"),
            (
                "[http]\npublic_url='https://a.example'\n[[auth.issuers]]\nurl='http://id.example'",
                "`http://id.example` is not an https URL",
            ),
            (
                "[http]\npublic_url='https://a.example'\n[[auth.issuers]]\nurl='https://id.example'\nalgorithms=['HS256']",
                "HS256 uses a shared secret",
            ),
            (
                "[http]\npublic_url='https://a.example'\n[[auth.issuers]]\nurl='https://id.example'\nalgorithms=['none']",
                "`none` is not one of RS256",
            ),
            (
                "[http]\npublic_url='https://a.example'\n[auth]\nscopes=['offline_access']\n[[auth.issuers]]\nurl='https://i.example'",
                "offline_access is requested by clients",
            ),
            ("[limits]\ntask_ttl_ms=0", "`task_ttl_ms` is from 1"),
            (
                "[http]\ntoken={env='WHARF_TEST_NO_SUCH'}",
                "`token`: the environment variable WHARF_TEST_NO_SUCH is not set",
            ),
            ("[http]\ntoken={file='/nowhere'}", "/nowhere"),
            ("[http]\ntoken={command=['a']}", "it comes from a command"),
            ("[http]\ntoken={}", "it must be one of"),
            ("[http]\ntoken_env='T'", "2: unknown key `token_env`; did you mean `token`?"),
            ("[telemetry]\notlp='http://a'\nheaders={x={secret='t'}}", "there is no secret `t` in [secrets]"),
            ("[telemetry]\notlp='http://a'\nheaders={x={secrets='t'}}", "{ secret = … }"),
        ] {
            let error = match raw::parse(text) {
                Ok(_) => format!("{:#}", resolved(text).unwrap_err()),
                Err(error) => error,
            };
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
