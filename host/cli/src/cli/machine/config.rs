//! Checks the binary, the config, and who may write or read the files that the config names.

#![expect(clippy::disallowed_methods, reason = "looks for the files that the config names")]

use std::path::Path;

use super::finding::Finding;
use crate::cli::{missing_grants::lacking, program::version};
use wharf_base::{guard, text};
use wharf_config::config::{self, CommandLine, Config};
use wharf_egress::secrets::SecretSource;

/// Checks that no other user may replace this binary.
pub fn binary() -> Finding {
    let own = std::env::current_exe().ok();
    let version = version().replace('\n', "; ");
    let Some(own) = own else {
        return Finding::note("binary", "its path cannot be determined", "mount /proc");
    };
    match guard::check_trusted_file(&own, "binary") {
        Ok(()) => Finding::fine("binary", format!("{} is wharf {version}", text::path(&own))),
        Err(error) => Finding::error("binary", &error),
    }
}

/// Checks the config, and returns it if it can be read.
pub fn look(named: Option<&Path>) -> (Vec<Finding>, Option<Config>) {
    let file = match config::find(named) {
        Ok(Some(file)) => file,
        Ok(None) => {
            let usual = config::default_path().map(|path| text::path(&path)).unwrap_or_default();
            return (
                vec![Finding::fine("config", format!("there is no config at {usual}, and wharf needs none"))],
                None,
            );
        }
        Err(error) => return (vec![Finding::error("config", &error)], None),
    };
    let config = match config::load(Some(&file), &CommandLine::default()) {
        Ok(config) => config,
        Err(error) => return (vec![Finding::error("config", &error)], None),
    };
    let mut findings = vec![Finding::fine("config", text::path(&file))];
    for plugin in &config.plugins {
        let about = format!("plugin {}", plugin.id);
        if let Some(path) = plugin.source.path()
            && let Err(error) = guard::check_trusted_file(path, "plugin")
        {
            findings.push(Finding::error(&about, &error));
        }
        for dir in plugin.grants.dirs.0.iter().filter(|dir| !dir.host.is_dir()) {
            let says = format!("{}: there is no such folder", text::path(&dir.host));
            findings.push(Finding::wrong(&about, says, "create it, or remove it from `dirs`"));
        }
    }
    for (plugin, lack) in lacking(&config, None, false) {
        let remedy = format!("run `wharf grant {plugin}`, which asks about each grant that it wants");
        findings.push(Finding::wrong(format!("plugin {plugin}"), lack.says(&plugin, None), remedy));
    }
    for root in config.roots.fixed.iter().filter(|root| !root.is_dir()) {
        let says = format!("{}: there is no such folder", text::path(root));
        findings.push(Finding::wrong("[roots]", says, "create it, or remove it from `fixed`"));
    }
    let secrets = config.egress.secrets.iter().filter_map(|(name, source)| Some((name, source, source.file()?)));
    for (name, source, path) in secrets {
        let checked = match source {
            SecretSource::Credential(_) => guard::check_key_file(path, "secret"),
            _ => guard::check_private_file(path, "secret"),
        };
        findings.extend(checked.err().map(|error| Finding::error(format!("secret {name}"), &error)));
    }
    if let Some(tls) = &config.startup.http.tls {
        let checked = guard::check_key_file(&tls.key, "private key");
        let checked = checked.and_then(|()| guard::check_trusted_file(&tls.cert, "certificate"));
        findings.extend(checked.err().map(|error| Finding::error("[http.tls]", &error)));
    }
    if let Some(audit) = &config.startup.audit
        && let Some(folder) = audit.file.parent()
    {
        let checked = guard::check_trusted_directory(folder, "folder of the audit log");
        findings.extend(checked.err().map(|error| Finding::error("[audit]", &error)));
    }
    if findings.len() == 1 {
        findings.push(Finding::fine("files", "nobody else may change what the config names"));
    }
    (findings, Some(config))
}
