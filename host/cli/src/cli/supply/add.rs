//! `wharf add SOURCE`: fetches a published plugin, shows who signed it and what it tells models, and adds it to the config with the grants
//! that a person agrees to. Without a terminal, `--signer` or `--digest` says whom to trust, and nothing is granted.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use wharf_base::{
    digest::Digest,
    failed::{OrFailed, failed},
    text::{self, clip, escaped},
};
use wharf_config::config::{self, parse_hex32, reference::SourceReference, sources::SignerRule};
use wharf_policy::access::wants::{parse, want::Wants};
use wharf_sandbox::Outside;
use wharf_supply::Supply;

use super::{Policy, describe, download, look_at, release, signed, store};
use crate::cli::{
    accept::lines as lines_of,
    answers,
    arguments::Add,
    file::File,
    grant_dialogue::{Decisions, GrantDialogue},
    inspect::offers,
    load::print,
    lock_file::LockFile,
    person::Person,
    suggest,
};

pub async fn run(command: Add) -> Result<ExitCode> {
    let Add { plugin, id, signer, digest, config } = command;
    let mut file = File::open(config.config.as_deref())?;
    let absolute = |path: &str| config::absolute_here(path);
    let reference = SourceReference::parse(&plugin, &absolute).with_context(|| escaped(&plugin))?;
    let id = id.unwrap_or_else(|| reference.name());
    config::check_id(&id).context("choose another id with --id")?;
    let before = file.config()?;
    ensure!(
        !before.plugins.iter().any(|plugin| plugin.id == id),
        "{} already has a plugin `{id}`; add this one under another id with --id",
        text::path(&file.path)
    );
    let digest = digest.as_deref().map(vouched).transpose()?;
    let own = signer.as_deref().map(Signer::parse).transpose()?;
    let mut person = Person::here();
    let supply = Supply::new(&before);
    let candidate = Box::pin(supply.find(&reference)).await.or_failed()?;
    let signers = match &own {
        Some(own) => vec![own.rule()?],
        None => before.sources.signers.clone(),
    };
    let mut policy = Policy { signers, vouched: digest.as_ref() };
    let fetched = download(&supply, candidate, &reference.to_string(), &policy).await?;

    if policy.vouched.is_none() && policy.signers.is_empty() {
        let Some(person) = &mut person else {
            bail!(
                "nobody is trusted to sign {reference}, and this is not a terminal; name the signer with --signer, or the component with \
                 --digest sha256:{} if you vouch for it",
                fetched.digest
            );
        };
        person.tell(&format!("{reference} is the component sha256:{}.", fetched.digest))?;
        person.tell(
            "No signer is trusted yet (`signers` in [sources], or --signer), so nobody's signature was checked.",
        )?;
        if !person.agrees("Do you vouch for this component yourself, until you trust another one?")? {
            return Err(failed(anyhow!("it is not trusted, so nothing was written")));
        }
        policy.vouched = Some(&fetched.digest);
    }
    let vouched = policy.vouched.copied();
    let trust = policy.check(&signed(&fetched), &fetched.digest, fetched.version.as_deref(), None);
    let trust = trust.with_context(|| format!("{reference} is not trusted")).or_failed()?;

    let outside = Outside::of(&fetched.component).with_context(|| reference.to_string()).or_failed()?;

    file.edited.set(&id, "source", &answers::text(&reference.to_string()))?;
    if let Some(own) = own.filter(|_| vouched.is_none()) {
        file.edited.set(&id, "signer", &own.toml())?;
    }
    if let Some(vouched) = &vouched {
        file.edited.set(&id, "sha256", &answers::text(&vouched.to_string()))?;
    }
    let config = file.edited_config().context("nothing was written")?;
    let store = store(&config)?;
    store.put(&reference.to_string(), &fetched, trust.verdicts.clone()).or_failed()?;
    let seen = look_at(config, &id, store.path(&fetched.digest)).await?;
    let wants = outside.sections.wants.as_deref().map(parse::json).transpose().context("the section wharf:wants")?;
    let says_wants = wants.is_some();
    let wants = wants.unwrap_or_default();
    let entry = release(&fetched, &trust);

    let mut lines = vec![format!("{id}: {reference}"), describe(&entry)];
    lines.extend(entry.name.as_deref().map(|name| format!("its signer calls it {}", clip(&escaped(name)))));
    lines.extend(seen.serving.iter().flat_map(offers));
    if !says_wants {
        lines.push("it does not say which grants it wants".to_owned());
    }
    let mut lock = LockFile::open(&file.path)?;
    lock.lock.remove(&id);
    lock.lock.set_source(&id, reference.to_string(), entry);
    lock.lock.accept(&id, seen.surface);
    let Some(mut person) = person else {
        return without_person(&id, &file, &mut lock, &wants, &lines);
    };
    lines.iter().try_for_each(|line| person.tell(line))?;
    if !person.agrees(&format!("Add {id}, and accept what it tells models?"))? {
        return Err(failed(anyhow!("nothing was added, so nothing was written")));
    }
    let (path, sha256) = (file.path.clone(), fetched.digest.to_string());
    let mut asking = GrantDialogue {
        person,
        file,
        id: &id,
        sha256: &sha256,
        no_table: None,
        is_pinned: true,
        decisions: Decisions::default(),
    };
    asking.ask(&wants)?;
    // What a plugin lists may depend on what it may reach.
    let granted = Box::pin(look_at(asking.file.edited_config()?, &id, store.path(&fetched.digest))).await?.surface;
    let accepted = lock.lock.accepted(&id).cloned().unwrap_or_default();
    let differences = accepted.differences(&granted);
    if !differences.is_empty() {
        asking.person.tell("With these grants and settings, it tells models something else:")?;
        differences.iter().flat_map(lines_of).try_for_each(|line| asking.person.tell(&line))?;
        if !asking.person.agrees("Accept this as well?")? {
            return Err(failed(anyhow!("nothing was added, so nothing was written")));
        }
    }
    lock.lock.accept(&id, granted);
    lock.write()?;
    let done = Box::pin(asking.finish()).await;
    if done.is_err() {
        // The config does not have the plugin, so the lock file must not have it either.
        let mut lock = LockFile::open(&path)?;
        if lock.lock.remove(&id) {
            lock.write()?;
        }
    }
    done
}

/// Adds the plugin without any grants, because nobody can be asked.
fn without_person(id: &str, file: &File, lock: &mut LockFile, wants: &Wants, lines: &[String]) -> Result<ExitCode> {
    lock.write()?;
    file.write(lines)?;
    let wanted = suggest::wanted(id, wants, |name| file.edited.has_secret(name))?;
    if !wanted.is_empty() {
        print("it has no grants; write those that you agree to into the config:")?;
        print(wanted.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses a digest, with or without the name of its algorithm.
pub fn vouched(text: &str) -> Result<Digest> {
    Ok(parse_hex32("--digest", text.strip_prefix("sha256:").unwrap_or(text))?.into())
}

/// The value of `--signer`.
pub struct Signer(Vec<(&'static str, String)>);

const SIGNER_KEYS: [&str; 5] = ["key", "minisign", "identity", "issuer", "trusted_root"];

impl Signer {
    /// Parses `key=acme.pub`, `minisign=RW…`, or `identity=…,issuer=…`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts: Vec<(&str, String)> = Vec::new();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let known = SIGNER_KEYS.into_iter().find(|one| *one == key);
            match (known, parts.last_mut()) {
                (Some(key), _) => parts.push((key, value.to_owned())),
                // A comma within a value.
                (None, Some((_, last))) => last.extend([",", part]),
                (None, None) => {
                    bail!("--signer is key=FILE, minisign=RW…, or identity=…,issuer=https://…, not `{}`", escaped(text))
                }
            }
        }
        // A path that was typed is relative to the working directory, and one in the config to the config's folder.
        for (key, value) in &mut parts {
            if matches!(*key, "key" | "trusted_root") {
                let path = config::absolute_here(value)?;
                *value = path.to_str().context("--signer: the path is not UTF-8")?.to_owned();
            }
        }
        let signer = Self(parts);
        signer.rule()?;
        Ok(signer)
    }

    pub fn rule(&self) -> Result<SignerRule> {
        config::sources::signer(&self.toml()).context("--signer")
    }

    /// The value for the config.
    pub fn toml(&self) -> String {
        let members: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{key} = {}", answers::text(value))).collect();
        format!("{{ {} }}", members.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signers_are_named_on_the_command_line() {
        for (text, toml) in [
            ("key=/etc/acme.pub", "{ key = \"/etc/acme.pub\" }"),
            ("minisign=RWabc", "{ minisign = \"RWabc\" }"),
            (
                "identity=https://forge.example/a@refs/tags/*,issuer=https://token.example",
                "{ identity = \"https://forge.example/a@refs/tags/*\", issuer = \"https://token.example\" }",
            ),
        ] {
            assert_eq!(Signer::parse(text).unwrap().toml(), toml);
        }
        for wrong in ["", "acme.pub", "identity=a", "key=/a,minisign=b", "issuer=b"] {
            assert!(Signer::parse(wrong).is_err(), "{wrong}");
        }
    }
}
