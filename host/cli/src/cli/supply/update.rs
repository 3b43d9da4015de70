//! `wharf update`: takes newer versions of published plugins. A version that tells models or wants anything else, or that somebody else has
//! signed, is taken only if a person agrees; until then the locked version goes on being served.

use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use wharf_base::{
    failed::failed,
    text::{self, escaped},
};
use wharf_config::{
    config::{
        Config, PluginConfig,
        reference::{OciReference, OciVersion, SourceReference, check_tag},
        sources::PublishedPlugin,
    },
    lock::{Lock, Release, Source, Surface},
};
use wharf_supply::{Candidate, Fetched, Supply, parse_version};

use super::{Policy, add::vouched, describe, fetch, look_at, open, published, release, store};
use crate::cli::{
    accept::lines as lines_of, answers, arguments::Update, ask::Person, file::File, load::print, lock_file::LockFile,
};

/// Runs `wharf update`.
pub async fn run(command: Update) -> Result<ExitCode> {
    let Update { ids, to, digest, accept_signer, print: only_print, config } = command;
    let (file, config) = open(config.config.as_deref())?;
    let plugins = published(&config, &ids)?;
    ensure!(!plugins.is_empty(), "{} has no plugin with `source`; `wharf add SOURCE` adds one", text::path(&file.path));
    ensure!(
        to.is_none() && digest.is_none() || ids.len() == 1,
        "--to and --digest are about one plugin; name it: wharf update ID --to VERSION"
    );
    let mut update = Updating {
        lock: LockFile::open(&file.path)?,
        file,
        config: &config,
        to,
        digest: digest.as_deref().map(vouched).transpose()?,
        accept_signer,
        only_print,
        held: false,
    };
    let mut first_error = None;
    for (plugin, published) in plugins {
        if let Err(error) = Box::pin(update.one(plugin, published)).await {
            print(&format!("{}: {error:#}", plugin.id))?;
            first_error.get_or_insert(error);
        }
    }
    if only_print {
        print(update.lock.lock.text()?.trim_end())?;
    }
    if let Some(error) = first_error {
        return Err(failed(anyhow!("not every plugin is up to date: {error:#}")));
    }
    Ok(if update.held { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Updating<'a> {
    file: File,
    config: &'a Config,
    lock: LockFile,
    /// The version that is asked for explicitly.
    to: Option<String>,
    digest: Option<wharf_sandbox::Digest>,
    accept_signer: bool,
    /// Whether the new lock file is printed, for a review, in place of asking and writing.
    only_print: bool,
    /// Whether a version was not taken because nobody agreed to it.
    held: bool,
}

impl Updating<'_> {
    async fn one(&mut self, plugin: &Arc<PluginConfig>, published: &PublishedPlugin) -> Result<()> {
        let id = &plugin.id;
        let reference = self.reference(published)?;
        let supply = Supply::new(self.config);
        let candidate = Box::pin(supply.find(&reference)).await?;
        let before = self.lock.lock.source(id).cloned();
        let is_same_place = before.as_ref().is_some_and(|before| before.source == reference.to_string());
        if let Some(before) = before.as_ref().filter(|_| is_same_place)
            && candidate.digest().is_some_and(|digest| digest == before.release.digest)
        {
            return self.say(&format!("{id}: up to date: {}", describe(&before.release)));
        }
        let current = before.as_ref().map(|before| &before.release);
        self.check_higher(&candidate, current)?;
        let fetched = fetch(&supply, candidate, &reference.to_string()).await?;
        if let Some(before) = current.filter(|_| is_same_place)
            && before.digest == fetched.digest
        {
            return self.say(&format!("{id}: up to date: {}", describe(before)));
        }
        let known = current.and_then(|release| release.signer.as_deref());
        let mut policy = Policy::of(plugin, published, self.config);
        let mut new_digest = None;
        if policy.vouched.is_some_and(|vouched| *vouched != fetched.digest) {
            new_digest = self.vouch(id, &fetched)?;
            let Some(digest) = &new_digest else { return Ok(()) };
            policy.vouched = Some(digest);
        }
        let signer = policy.check(&fetched, known)?;
        if let (Some(known), Some(signer)) = (known, &signer)
            && known != signer
            && !self.accept_signer
        {
            bail!(
                "the new version is signed by {}, the locked one by {}; the locked one stays; if you trust the new signer, run `wharf \
                 update {id} --accept-signer`",
                escaped(signer),
                escaped(known)
            );
        }
        self.check_age(&fetched, plugin, published)?;
        self.take(id, &reference, &fetched, signer, before.as_ref(), new_digest).await
    }

    /// The reference of a plugin, with the version that was asked for.
    fn reference(&self, published: &PublishedPlugin) -> Result<SourceReference> {
        match (&published.reference, &self.to) {
            (reference, None) => Ok(reference.clone()),
            (SourceReference::Oci(oci), Some(tag)) => {
                check_tag(tag).context("--to")?;
                Ok(SourceReference::Oci(OciReference { version: OciVersion::Tag(tag.clone()), ..oci.clone() }))
            }
            (reference, Some(_)) => bail!("{reference} has no versions; change `source` in the config"),
        }
    }

    /// A lower version is never an update: somebody who can write to a registry could bring back an old fault with it.
    fn check_higher(&self, candidate: &Candidate<'_>, before: Option<&Release>) -> Result<()> {
        let version = |version: Option<&String>| version.and_then(|version| parse_version(version));
        let (Some(new), Some(old)) =
            (version(candidate.version.as_ref()), version(before.and_then(|one| one.version.as_ref())))
        else {
            return Ok(());
        };
        ensure!(
            self.to.is_some() || new >= old,
            "the highest version is {new}, and {old} is locked; the locked one stays; to go back, run `wharf rollback` or name the \
             version with --to"
        );
        ensure!(
            new != old || self.digest.is_some(),
            "version {new} was published again with other contents; the locked one stays; if you trust the new contents, name them with \
             --digest sha256:…"
        );
        Ok(())
    }

    fn check_age(&self, fetched: &Fetched, plugin: &PluginConfig, published: &PublishedPlugin) -> Result<()> {
        let least = self.config.sources.min_age;
        let is_first = self.lock.lock.source(&plugin.id).is_none();
        if least == Duration::ZERO || self.to.is_some() || self.digest.is_some() || is_first {
            return Ok(());
        }
        // A time that a log or an authority proved counts more than what the publisher says.
        let proven = Policy::of(plugin, published, self.config).signed_at(fetched);
        let at = proven.or(fetched.created).context(
            "when the new version was made is not known, and `min_age` in [sources] asks for it; name the version with --to if you want it",
        )?;
        let age = SystemTime::now().duration_since(at).unwrap_or_default();
        let hours =
            |age: Duration| humantime::format_duration(Duration::from_secs(age.as_secs() / 60 * 60)).to_string();
        ensure!(
            age >= least,
            "the new version is {} old, and `min_age` in [sources] is {}; the locked one stays; name the version with --to if you want it now",
            hours(age),
            hours(least)
        );
        Ok(())
    }

    /// Asks whether a component that nobody's signature is asked for is trusted. None: nobody agreed.
    fn vouch(&mut self, id: &str, fetched: &Fetched) -> Result<Option<wharf_sandbox::Digest>> {
        let is = fetched.digest;
        if self.digest == Some(is) {
            return Ok(Some(is));
        }
        let says = format!("{id}: there is another component, sha256:{is}, and the config vouches for one digest only");
        let Some(mut person) = Person::here().filter(|_| !self.only_print) else {
            self.held = true;
            self.say(&format!("{says}; if you vouch for the new one, run `wharf update {id} --digest sha256:{is}`"))?;
            return Ok(None);
        };
        person.tell(&says)?;
        if person.agrees("Do you vouch for the new component?")? {
            return Ok(Some(is));
        }
        self.held = true;
        Ok(None)
    }

    /// Compares what the version tells models with what is accepted, asks if that differs, and writes the lock file.
    async fn take(
        &mut self,
        id: &str,
        reference: &SourceReference,
        fetched: &Fetched,
        signer: Option<String>,
        before: Option<&Source>,
        new_digest: Option<wharf_sandbox::Digest>,
    ) -> Result<()> {
        let store = store(self.config)?;
        store.put(&reference.to_string(), fetched)?;
        let seen = Box::pin(look_at(self.config.clone(), id, store.path(&fetched.digest))).await?;
        let entry = release(fetched, signer);
        let accepted = self.lock.lock.accepted(id).cloned();
        let shown = shown(id, before, &entry, accepted.as_ref(), &seen.surface);
        let says_the_same = accepted.as_ref() == Some(&seen.surface);
        if self.only_print {
            for line in &shown {
                self.say(line)?;
            }
        } else if says_the_same {
            shown.iter().try_for_each(|line| print(line))?;
        } else {
            let Some(mut person) = Person::here() else {
                shown.iter().try_for_each(|line| print(line))?;
                self.held = true;
                return print(&format!(
                    "{id}: it tells models or wants something else, so the locked version stays; run `wharf update {id}` at a terminal, or \
                     merge the output of `wharf update {id} --print` as {}",
                    text::path(&self.lock.path)
                ));
            };
            shown.iter().try_for_each(|line| person.tell(line))?;
            if !person.agrees(&format!("Take this version of {id}, and accept what it tells models?"))? {
                self.held = true;
                return print(&format!("{id}: the locked version stays"));
            }
        }
        let digest = entry.digest;
        self.lock.lock.set_source(id, reference.to_string(), entry);
        self.lock.lock.accept(id, seen.surface);
        if self.only_print {
            return Ok(());
        }
        self.lock.write()?;
        let source = answers::text(&reference.to_string());
        let is_other = before.is_none_or(|before| before.source != reference.to_string()) && self.to.is_some();
        if is_other || new_digest.is_some() {
            if is_other {
                self.file.edited.set(id, "source", &source)?;
            }
            if let Some(digest) = new_digest {
                self.file.edited.set(id, "sha256", &answers::text(&digest.to_string()))?;
            }
            self.file.write(&[])?;
            self.file = File::open(Some(&self.file.path.clone()))?;
        }
        print(&format!("{id}: locked sha256:{digest} in {}", text::path(&self.lock.path)))
    }

    /// Prints a line, to stderr if stdout has the lock file.
    fn say(&self, line: &str) -> Result<()> {
        if self.only_print {
            eprintln!("{line}");
            return Ok(());
        }
        print(line)
    }
}

/// The lines that show a change of version.
pub fn shown(
    id: &str,
    before: Option<&Source>,
    now: &Release,
    accepted: Option<&Surface>,
    surface: &Surface,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(before) = before {
        lines.push(format!("{id}: - {}", describe(&before.release)));
    }
    lines.push(format!("{id}: + {}", describe(now)));
    let none = Surface::default();
    lines.extend(accepted.unwrap_or(&none).differences(surface).iter().flat_map(lines_of));
    lines
}

/// `wharf rollback`: goes back to the version before, which was accepted then.
pub async fn rollback(id: &str, config: Option<&Path>) -> Result<ExitCode> {
    let (file, config) = open(config)?;
    let (plugin, of) = published(&config, &[id.to_owned()])?.remove(0);
    let mut lock = LockFile::open(&file.path)?;
    let entry = of.version_in(&lock.lock)?.clone();
    let Some(last) = entry.previous.first().cloned() else {
        bail!("{} has no earlier version of {id}", text::path(&lock.path));
    };
    ensure!(
        plugin.sha256.is_none_or(|vouched| vouched == last.digest),
        "the config vouches for another digest than that of the earlier version; write sha256 = \"{}\" into the table of {id} first",
        last.digest
    );
    let store = store(&config)?;
    if !store.has(&last.digest)? {
        Box::pin(super::sync::fetch_locked(&config, plugin, of, &last)).await?;
    }
    let seen = Box::pin(look_at(config.clone(), id, store.path(&last.digest))).await?;
    let accepted = lock.lock.accepted(id).cloned();
    shown(id, Some(&entry), &last, accepted.as_ref(), &seen.surface).iter().try_for_each(|line| print(line))?;
    lock.lock.set_source(id, entry.source, last);
    lock.lock.accept(id, seen.surface);
    lock.write()?;
    print(&format!("wrote {}", text::path(&lock.path)))?;
    Ok(ExitCode::SUCCESS)
}

/// The differences between two lock files, for a reviewer.
pub fn compared(before: &Lock, now: &Lock, id: &str) -> Vec<String> {
    let (was, is) = (before.source(id), now.source(id));
    let none = Surface::default();
    let told = before.accepted(id).unwrap_or(&none).differences(now.accepted(id).unwrap_or(&none));
    let mut lines = Vec::new();
    if was.map(|was| &was.release) != is.map(|is| &is.release) {
        lines.extend(was.map(|was| format!("{id}: - {}", describe(&was.release))));
        lines.extend(is.map(|is| format!("{id}: + {}", describe(&is.release))));
        let signer = |one: Option<&Source>| one.and_then(|one| one.release.signer.clone());
        if was.is_some() && is.is_some() && signer(was) != signer(is) {
            lines.push(format!("{id}: another signer"));
        }
    }
    lines.extend(told.iter().flat_map(lines_of).map(|line| format!("{id}: {line}")));
    lines
}
