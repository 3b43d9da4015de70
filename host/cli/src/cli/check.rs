//! `wharf check`: loads the config and every plugin once, and prints all problems.

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::{Result, bail};

use super::load::{load, print};
use wharf_app::operator::{ShownRole, check_certificate};
use wharf_base::text;
use wharf_config::config::{self, CommandLine};
use wharf_egress::secrets::SecretSource;
use wharf_plugins::{
    audit,
    plugins::{
        snapshot::{Serving, Wanted},
        status::Status,
    },
};
use wharf_policy::{access::wants::want::because, auth::AuthSettings};

pub async fn run(file: Option<&Path>) -> Result<ExitCode> {
    let Some(file) = config::find(file)? else {
        let default = config::default_path().map(|path| text::path(&path)).unwrap_or_default();
        bail!("there is no config to check: name one with -c, or create {default}");
    };
    let mut config = config::load(Some(&file), &CommandLine::default())?;
    // Another process may write the audit log, and no call is made here.
    let audit = Arc::make_mut(&mut config.startup).audit.take();
    print(&format!("config {}", text::path(&file)))?;
    if let Some(audit) = audit {
        audit::check(&audit)?;
        print(&format!("audit log {}", text::path(&audit.file)))?;
    }
    let mut failed = false;
    if let Some(files) = &config.startup.http.tls {
        let (is_valid, text) = match check_certificate(files).await {
            Ok(checked) => checked,
            Err(error) => (false, format!("{error:#}")),
        };
        print(&format!("[http.tls] {}{}", if is_valid { "" } else { "FAILED: " }, text::escaped(&text)))?;
        failed |= !is_valid;
    }
    // Only `wharf serve` and `wharf run` need these keys, and perhaps only their user may read them.
    for problem in config.startup.protocol.state_keys.iter().filter_map(|key| key.read().err()) {
        print(&format!("[protocol] a key cannot be read here: {}", text::escaped(&format!("{problem:#}"))))?;
    }
    if let Some(cluster) = &config.startup.cluster {
        print(&format!("replica {}: shares with others through Redis at {}", cluster.name, cluster.redis))?;
        if let Some(Err(problem)) = cluster.password.as_ref().map(SecretSource::now) {
            print(&format!("[cluster] the password cannot be read here: {}", text::escaped(&format!("{problem:#}"))))?;
        }
    }
    let (login, token) = (config.startup.auth.clone(), config.startup.http.token.is_some());
    let operator = load(config).await?;
    let (plugins, secrets) = (operator.wharf.plugins(), operator.missing_secrets().await);
    for plugin in &plugins {
        let subject = &plugin.subject;
        if let Status::Failed { problem, .. } = &plugin.status {
            failed = true;
            print(&format!("\n{subject}: FAILED ({}): {}", problem.stage, problem.text))?;
            continue;
        }
        let Some(serving) = &plugin.serving else { continue };
        print(&format!(
            "\n{subject}: ok, {} tools, {} resources, {} templates, {} prompts",
            serving.tools.len(),
            serving.resources.len(),
            serving.templates.len(),
            serving.prompts.len()
        ))?;
        print(&format!("  sha256 {}", serving.sha256))?;
        if let Some(adapted) = &serving.adapted {
            print(&format!("  served: {adapted}"))?;
        }
        print(&format!("  granted: {}", granted(&serving.granted)))?;
        if let Some(calls) = &serving.confirm {
            print(&format!("  needs a person's approval: {calls}"))?;
        }
        if let Some(instances) = serving.instances {
            print(&format!("  instances: {instances}"))?;
        }
        if !serving.not_granted.is_empty() {
            print(&format!("  could use, not granted: {}", serving.not_granted.join(", ")))?;
        }
        show_wants(serving)?;
        for note in &serving.notes {
            print(&format!("  note: {note}"))?;
        }
        let missing = secrets.iter().filter(|(id, _)| subject.is_plugin(id)).flat_map(|(_, missing)| missing);
        for problem in missing {
            failed = true;
            print(&format!("  MISSING: {problem}"))?;
        }
    }
    for (name, [tools, prompts, resources]) in operator.profiles() {
        if tools + prompts + resources == 0 {
            failed = true;
            print(&format!("\nprofile {name}: NOTHING: it matches no plugin, tool, prompt or resource"))?;
        } else {
            print(&format!("\nprofile {name}: {tools} tools, {prompts} prompts, {resources} resources and templates"))?;
        }
    }
    if plugins.is_empty() {
        print("no plugins")?;
    }
    print(&format!("\nover HTTP: {}", admission(login.as_deref(), token)))?;
    show_roles(&operator.roles())?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Describes which clients wharf admits over HTTP.
fn admission(login: Option<&AuthSettings>, token: bool) -> String {
    let Some(login) = login else {
        return if token { "clients need the token" } else { "every client that can connect is admitted" }.to_owned();
    };
    let tokens = login.issuers.iter().map(|issuer| format!("access tokens of {}", issuer.url));
    let keys = login.keys_file.as_ref().map(|file| format!("API keys of {}", text::path(file)));
    let accepted: Vec<String> = tokens.chain(keys).collect();
    let scopes = if login.scopes.is_empty() {
        String::new()
    } else {
        format!(", and need the scopes {}", login.scopes.join(" "))
    };
    format!("clients log in with {}{scopes}", text::escaped(&accepted.join(", ")))
}

/// Prints who may use what. A role that grants nothing or opens a missing folder gets a note, since it is probably a mistake.
fn show_roles(roles: &[ShownRole]) -> Result<()> {
    if roles.is_empty() {
        return print("no roles: every admitted client may use everything");
    }
    for ShownRole { name, when, gives: [tools, prompts, resources], missing } in roles {
        let (name, when) = (text::escaped(name), text::escaped(when));
        print(&format!(
            "role {name}, for {when}: {tools} tools, {prompts} prompts, {resources} resources and templates"
        ))?;
        if tools + prompts + resources == 0 {
            print("  note: it grants nothing: it matches no plugin, tool, prompt or resource")?;
        }
        if let Some(folder) = missing {
            print(&format!("  note: the folder {} does not exist, so the role opens no roots", text::path(folder)))?;
        }
    }
    Ok(())
}

/// Prints the grants that the plugin wants and lacks, and those that it has and does not want.
fn show_wants(serving: &Serving) -> Result<()> {
    let Some(wants) = &serving.wants else { return print("  it does not say what it wants") };
    for Wanted { what, why, line, .. } in wants.iter().filter(|wanted| !wanted.granted) {
        print(&format!("  wanted, not granted: {what}{}", because(why.as_deref())))?;
        print(&format!("    add {line}"))?;
    }
    if !serving.not_wanted.is_empty() {
        print(&format!("  granted, not wanted: {}", serving.not_wanted.join("; ")))?;
    }
    Ok(())
}

/// Joins grants in one line. Variables are named as `wharf grant --revoke` takes them: without the `$`, which a shell would expand.
pub fn granted<T: AsRef<str>>(all: &[T]) -> String {
    let plain: Vec<&str> = all.iter().map(|one| one.as_ref().strip_prefix('$').unwrap_or(one.as_ref())).collect();
    all_or_nothing(&plain)
}

/// Joins a list for people; an empty one is "nothing".
pub fn all_or_nothing<T: AsRef<str>>(all: &[T]) -> String {
    if all.is_empty() {
        return "nothing".to_owned();
    }
    all.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}
