//! What a config protects: the files that it names. The same function says it of the config in use and of the default one, which the next
//! start may use.

#![expect(clippy::disallowed_methods, reason = "the default config is read here")]

use std::path::{Path, PathBuf};

use super::{
    approvals::Approvals,
    audit,
    default_paths::{absolute, cache_dirs, default_paths, state_dirs},
    existing::ExistingServer,
    identity,
    listen::{ListenAddress, parse_listen},
    raw,
    sources::{self, SignerRule},
};
use crate::lock;
use wharf_egress::secrets::RawSecret;
use wharf_policy::access::{protected::Protected, registry::Registry};

/// The folder in the state folder in which wharfs enter what they protect.
const REGISTRY: &str = "trusted";
/// The folder in the state folder with what calls have changed.
const UNDO: &str = "undo";
/// The folder in the state folder with the sockets of the wharfs that run.
const WINDOW: &str = "window";

/// Returns what a config protects by what is written in it. A path that cannot be made absolute names no file. `file`: the config itself.
pub fn of(raw: &raw::Config, file: Option<&Path>) -> Protected {
    // Destructured completely, so that a new table fails to compile until its files are handled here.
    let raw::Config {
        plugin_dir,
        server: _,
        http,
        admin: _,
        protocol,
        cluster,
        roots: _,
        limits: _,
        egress,
        secrets,
        sources,
        audit,
        telemetry: _,
        auth,
        roles: _,
        profiles: _,
        approvals,
        plugins,
    } = raw;
    let base = file.and_then(Path::parent);
    let absolute = |path: &str| absolute(path, base);
    let named = |path: &Option<String>| path.as_deref().and_then(|path| absolute(path).ok());
    let mut all = Protected::default();
    all.files(file.map(Path::to_path_buf));
    all.files(absolute(lock::FILE_NAME).ok().filter(|_| file.is_some()));
    all.files(named(plugin_dir).map(|folder| folder.join("*")));
    for (_, plugin) in &plugins.0 {
        if let Some(file) = named(&plugin.path) {
            // What the next build of an existing server would run, whether or not it was ever built.
            if let Ok(server) = ExistingServer::configured(file.clone()) {
                all.and(&server.source());
            }
            all.file(file);
        }
        all.files(plugin.signer.iter().flat_map(|signer| signed_by(signer, &absolute)));
    }
    all.files(sources.signers.iter().flat_map(|signer| signed_by(signer, &absolute)));
    if let Some(store) = named(&sources.store).or_else(|| sources::default_store().filter(|_| sources.store.is_none()))
    {
        all.tree(store);
    }
    all.files(audit.iter().filter_map(|audit| absolute(&audit.file).ok()).flat_map(|log| audit::trusted(&log)));
    all.files(named(&http.access_log).filter(|_| http.access_log.as_deref() != Some("stderr")));
    let listen = http.listen.as_deref().and_then(|listen| parse_listen(listen).ok()?.resolve(&absolute).ok());
    all.files(listen.iter().filter_map(ListenAddress::socket).cloned());
    if let Some(tls) = &http.tls {
        all.files([&tls.cert].into_iter().chain(&tls.client_ca).filter_map(|path| absolute(path).ok()));
        absolute(&tls.key).into_iter().for_each(|key| all.secret(key));
    }
    all.files(cluster.iter().filter_map(|cluster| named(&cluster.ca_file)));
    all.files(egress.ca.iter().filter_map(|path| absolute(path).ok()));
    for secret in secrets.0.iter().map(|(_, secret)| secret).chain(&protocol.state_keys).chain(&http.token) {
        secret_of(secret, &absolute, &mut all);
    }
    if let Some(auth) = auth {
        let keys = auth.issuers.iter().filter_map(|issuer| named(&issuer.jwks_file));
        all.files(named(&auth.keys_file).into_iter().chain(keys));
    }
    // What is asked without a file to name is wrong in another way, which is said where the config is used.
    let approvals = raw::Approvals { ask: approvals.ask.clone(), ..raw::Approvals::default() };
    all.files(Approvals::resolve(approvals, &absolute).iter().flat_map(Approvals::programs));
    all
}

fn signed_by(signer: &raw::Signer, absolute: &dyn Fn(&str) -> anyhow::Result<PathBuf>) -> Vec<PathBuf> {
    match SignerRule::resolve(signer.clone(), absolute) {
        Ok(SignerRule::Key(path)) => vec![path],
        Ok(SignerRule::Identity { trusted_root, .. }) => trusted_root.into_iter().collect(),
        Ok(SignerRule::Minisign(_)) | Err(_) => Vec::new(),
    }
}

fn secret_of(secret: &RawSecret, absolute: &dyn Fn(&str) -> anyhow::Result<PathBuf>, all: &mut Protected) {
    let Ok(source) = secret.clone().source(absolute) else { return };
    source.file().cloned().into_iter().for_each(|file| all.secret(file));
    all.files(source.programs());
}

/// Returns what is protected whichever config is used: the default config and what it names, whether or not they exist, and the folders
/// in which wharf keeps its own files.
pub fn always() -> Protected {
    let mut all = Protected::default();
    for file in default_paths() {
        // A text that cannot be parsed names no files, but the config itself is protected all the same.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        all.and(&of(&raw::parse(&text).unwrap_or_default(), Some(&file)));
    }
    // A key that wharf made itself may be read where the operator opens the state folder. Otherwise nobody could open the home directory,
    // which contains that folder. Further folders in it belong to plugins.
    for folder in state_dirs() {
        all.file(folder.join("*"));
        all.tree(folder.join(REGISTRY));
        all.tree(folder.join(UNDO));
        all.tree(folder.join(WINDOW));
    }
    for folder in cache_dirs() {
        all.tree(folder);
    }
    // The certificates that servers are checked against, if the environment names others than the system's.
    let named = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    all.files(named("SSL_CERT_FILE"));
    all.files(named("SSL_CERT_DIR").map(|folder| folder.join("*")));
    // git, which wharf runs for the built-in plugin of that name, now or at the next start.
    all.files(identity::PROGRAMS.map(PathBuf::from));
    all
}

/// Returns the folder with what calls have changed: `$XDG_STATE_HOME/wharf/undo`, else `~/.local/state/wharf/undo`. `None`: there is no home
/// directory.
pub fn undo_folder() -> Option<PathBuf> {
    state_dirs().first().map(|folder| folder.join(UNDO))
}

/// Returns the folder with the sockets on which the wharfs of this user tell windows what they do: `$XDG_STATE_HOME/wharf/window`, else
/// `~/.local/state/wharf/window`. `None`: there is no home directory.
pub fn window_folder() -> Option<PathBuf> {
    state_dirs().first().map(|folder| folder.join(WINDOW))
}

/// Returns the registry of what all wharfs of this user protect: the folder `trusted` in each state folder.
pub fn registry() -> Registry {
    let mut folders: Vec<PathBuf> = state_dirs().into_iter().map(|folder| folder.join(REGISTRY)).collect();
    folders.dedup();
    Registry::at(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_server_that_a_config_names_is_protected() {
        let place = tempfile::tempdir().unwrap();
        let folder = std::fs::canonicalize(place.path()).unwrap();
        std::fs::create_dir_all(folder.join("notes/src")).unwrap();
        for name in ["notes/package.json", "notes/src/index.ts"] {
            std::fs::write(folder.join(name), "{}").unwrap();
        }
        let text = "[plugins.a]\npath = 'notes/src/index.ts'\n[plugins.b]\npath = 'later/server.py'";
        let all = of(&raw::parse(text).unwrap(), Some(&folder.join("wharf.toml")));
        for (name, is_tree) in
            [("notes", true), ("later", true), ("notes/src/index.ts", false), ("later/server.py", false)]
        {
            let within = if is_tree { &all.trusted.trees } else { &all.trusted.files };
            assert!(within.contains(&folder.join(name)), "{name}: {all:?}");
        }
    }

    /// One file of each kind, so that none is protected only while its config is in use.
    #[test]
    fn every_file_that_a_config_names_is_protected() {
        let text = r#"
            plugin_dir = "dropped"
            [plugins.a]
            path = "a.wasm"
            signer = { key = "a.pub" }
            [http]
            listen = "unix:mcp.sock"
            access_log = "access.log"
            token = { file = "token" }
            tls = { cert = "cert.pem", key = "key.pem", client_ca = "clients.pem" }
            [protocol]
            state_keys = [{ file = "state.key" }]
            [cluster]
            ca_file = "redis.pem"
            [egress]
            ca = ["ca.pem"]
            [secrets]
            one = { file = "one.secret" }
            two = { command = ["bin/vault", "/opt/vault.conf"] }
            [sources]
            signers = [{ key = "signer.pub" }, { identity = "a", issuer = "https://i.example", trusted_root = "root.json" }]
            store = "store"
            [audit]
            file = "audit.jsonl"
            [auth]
            keys_file = "keys"
            issuers = [{ url = "https://i.example", jwks_file = "jwks.json" }]
            [approvals]
            ask = { command = ["bin/approve"] }
        "#;
        let all = of(&raw::parse(text).unwrap(), Some(Path::new("/etc/wharf/wharf.toml")));
        let named = |names: &[&str]| names.iter().map(|name| Path::new("/etc/wharf").join(name)).collect::<Vec<_>>();
        let files = [
            "wharf.toml",
            "wharf.lock",
            "dropped/*",
            "a.wasm",
            "a.pub",
            "mcp.sock",
            "access.log",
            "token",
            "cert.pem",
            "key.pem",
            "clients.pem",
            "state.key",
            "redis.pem",
            "ca.pem",
            "one.secret",
            "bin/vault",
            "/opt/vault.conf",
            "signer.pub",
            "root.json",
            "audit.jsonl",
            "keys",
            "jwks.json",
            "bin/approve",
        ];
        for file in named(&files) {
            assert!(all.trusted.files.contains(&file), "{}", file.display());
        }
        assert_eq!(all.trusted.trees, named(&["store"]));
        let mut secret = all.secret;
        secret.sort();
        assert_eq!(secret, named(&["key.pem", "one.secret", "state.key", "token"]));
        assert!(always().trusted.files.contains(&"/usr/local/bin/git".into()), "it is run at the next start");
    }
}
