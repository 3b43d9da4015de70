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
    digest::Digest,
    failed::failed,
    text::{self, escaped},
};
use wharf_config::{
    config::{
        Config, PluginConfig,
        reference::{OciReference, OciVersion, SourceReference, check_tag},
        sources::PublishedPlugin,
    },
    lock::{Lock, Release, Source, Surface, same_version},
};
use wharf_supply::{Fetched, Supply, parse_version};

use super::{
    Policy, Trust, add::vouched, describe, download, fetch::bring, look_at, open, published, release, signed, store,
};
use crate::cli::{
    accept::lines as lines_of,
    answers,
    arguments::{OnePlugin, Update},
    file::File,
    load::print,
    lock_file::LockFile,
    person::Person,
};

/// Runs `wharf update`.
pub async fn run(command: Update) -> Result<ExitCode> {
    let Update { ids, dry_run: is_dry, to, digest, accept_signer, print: only_print, config } = command;
    if is_dry {
        return dry_run(&ids, config.config.as_deref()).await;
    }
    let (file, config) = open(config.config.as_deref())?;
    let plugins = published(&config, &ids)?;
    ensure!(!plugins.is_empty(), "{} has no plugin with `source`; `wharf add SOURCE` adds one", text::path(&file.path));
    ensure!(
        to.is_none() && digest.is_none() || ids.len() == 1,
        "--to and --digest are about one plugin; name it: wharf update ID --to VERSION"
    );
    let supply = Supply::new(&config);
    let mut update = Updating {
        lock: LockFile::open(&file.path)?,
        file,
        config: &config,
        supply: &supply,
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

/// Asks the sources which versions they have, and changes nothing.
async fn dry_run(ids: &[String], config: Option<&Path>) -> Result<ExitCode> {
    let (file, config) = open(config)?;
    let lock = LockFile::open(&file.path)?;
    let (supply, mut problems) = (Supply::new(&config), 0);
    for (plugin, of) in published(&config, ids)? {
        let said = match Box::pin(newer(&supply, &lock, of)).await {
            Ok(said) => said,
            Err(error) => {
                problems += 1;
                format!("{error:#}")
            }
        };
        print(&format!("{}: {said}", plugin.id))?;
    }
    ensure!(problems == 0, failed(anyhow!("{problems} of the sources did not answer")));
    Ok(ExitCode::SUCCESS)
}

async fn newer(supply: &Supply<'_>, lock: &LockFile, of: &PublishedPlugin) -> Result<String> {
    let entry = of.version_in(&lock.lock)?;
    let is = entry.release.version.as_deref().map_or_else(|| format!("sha256:{}", entry.release.digest), escaped);
    let candidate = supply.find(&of.reference).await?;
    let id = &of.id;
    let known = candidate.digest();
    if known.is_none() {
        return Ok(format!(
            "{is}; {} has no versions, so only `wharf update {id}` can tell whether it has changed",
            of.reference
        ));
    }
    if known != Some(entry.release.digest) {
        let now = candidate.version.as_deref().map_or_else(|| "another component".to_owned(), escaped);
        return Ok(format!("{is}, and {now} is there; see it with `wharf update {id}`"));
    }
    if let SourceReference::Oci(oci) = &of.reference
        && let Some(newest) = supply.newest(oci).await?
        && let Some(version) = parse_version(&newest)
        && entry.release.version.as_deref().and_then(parse_version).is_some_and(|locked| version > locked)
    {
        return Ok(format!(
            "{is}, and {newest} is there, beyond `source`; take it with `wharf update {id} --to {newest}`"
        ));
    }
    Ok(format!("{is} is up to date"))
}

struct Updating<'a> {
    file: File,
    config: &'a Config,
    supply: &'a Supply<'a>,
    lock: LockFile,
    /// The version that is asked for explicitly.
    to: Option<String>,
    digest: Option<Digest>,
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
        let supply = self.supply;
        let candidate = Box::pin(supply.find(&reference)).await?;
        let before = self.lock.lock.source(id).cloned();
        let is_same_place = before.as_ref().is_some_and(|before| before.source == reference.to_string());
        if let Some(before) = before.as_ref().filter(|_| is_same_place)
            && candidate.digest().is_some_and(|digest| digest == before.release.digest)
        {
            return self.say(&format!("{id}: up to date: {}", describe(&before.release)));
        }
        let current = before.as_ref().map(|before| &before.release);
        self.check_higher(candidate.version.as_deref(), current)?;
        let mut policy = Policy::of(plugin, published);
        let fetched = download(supply, candidate, &reference.to_string(), &policy).await?;
        if let Some(before) = current.filter(|_| is_same_place)
            && before.digest == fetched.digest
        {
            return self.say(&format!("{id}: up to date: {}", describe(before)));
        }
        let mut new_digest = None;
        if policy.vouched.is_some_and(|vouched| *vouched != fetched.digest) {
            new_digest = self.vouch(id, &fetched)?;
            let Some(digest) = &new_digest else { return Ok(()) };
            policy.vouched = Some(digest);
        }
        // Only a plugin from another place, whatever its version there, may have another name.
        let place = |source: &str| SourceReference::parse(source, &|path| Ok(path.into())).ok().map(|one| one.place());
        let is_same_plugin = before.as_ref().is_some_and(|before| place(&before.source) == Some(reference.place()));
        let known = current.cloned().map(|known| Release { name: known.name.filter(|_| is_same_plugin), ..known });
        let trust = policy.check(&signed(&fetched), &fetched.digest, fetched.version.as_deref(), known.as_ref())?;
        if let (Some(known), Some(signer)) = (known.and_then(|known| known.signer), &trust.signer)
            && known != *signer
            && !self.accept_signer
        {
            bail!(
                "the new version is signed by {}, the locked one by {}; the locked one stays; if you trust the new signer, run `wharf \
                 update {id} --accept-signer`",
                escaped(signer),
                escaped(&known)
            );
        }
        let entry = release(&fetched, &trust);
        let doubts = match before.as_ref().filter(|_| policy.vouched.is_none()) {
            Some(before) => {
                self.check_higher(entry.version.as_deref(), current)?;
                self.doubts(&entry, &trust, before, is_same_plugin)
            }
            // Nothing is locked that could be older, or the config vouches for this one.
            None => Vec::new(),
        };
        self.check_age(&fetched, plugin, published)?;
        self.take(id, &reference, &fetched, trust, before.as_ref(), (new_digest, doubts)).await
    }

    /// Why a component may be an old one although its signature counts. Then a person has to agree, whatever it tells models.
    fn doubts(&self, entry: &Release, trust: &Trust, before: &Source, is_same_plugin: bool) -> Vec<String> {
        let mut doubts = Vec::new();
        let signed = trust.said.version.as_deref().and_then(parse_version);
        let is_known = signed.is_some() && before.release.version.as_deref().and_then(parse_version).is_some();
        if !is_known && is_same_plugin && self.to.is_none() {
            doubts.push("nothing that is signed says that it is newer than the locked one".to_owned());
        }
        if let Some(last) = before.previous.iter().find(|last| last.digest == entry.digest && !self.names(entry)) {
            doubts.push(format!(
                "it was locked before, as {}, and another version has replaced it since; `wharf lock rollback` goes back",
                last.version.as_deref().map_or_else(|| "a version without a number".to_owned(), escaped)
            ));
        }
        doubts
    }

    /// Whether `--to` names this very version.
    fn names(&self, entry: &Release) -> bool {
        let is = entry.version.as_deref();
        self.to.as_deref().is_some_and(|to| is.is_some_and(|is| same_version(to, is)))
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

    /// A lower version is never an update: somebody who can write to a registry could bring back an old fault with it. So this is asked of
    /// the tag, before anything is fetched, and of the version that was signed.
    fn check_higher(&self, version: Option<&str>, before: Option<&Release>) -> Result<()> {
        let old = before.and_then(|one| one.version.as_deref()).and_then(parse_version);
        let (Some(new), Some(old)) = (version.and_then(parse_version), old) else { return Ok(()) };
        let is_named = self.to.as_deref().and_then(parse_version).is_some_and(|to| to == new);
        ensure!(
            is_named || new >= old,
            "the version is {new}, and {old} is locked; the locked one stays; to go back, run `wharf lock rollback` or name the version with \
             --to {new}"
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
        let proven = Policy::of(plugin, published).signed_at(fetched);
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
    fn vouch(&mut self, id: &str, fetched: &Fetched) -> Result<Option<Digest>> {
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
        trust: Trust,
        before: Option<&Source>,
        (new_digest, mut doubts): (Option<Digest>, Vec<String>),
    ) -> Result<()> {
        let store = store(self.config)?;
        let entry = release(fetched, &trust);
        store.put(&reference.to_string(), fetched, trust.verdicts)?;
        let seen = Box::pin(look_at(self.config.clone(), id, store.path(&fetched.digest))).await?;
        let accepted = self.lock.lock.accepted(id).cloned();
        let mut shown = shown(id, before, &entry, accepted.as_ref(), &seen.surface);
        shown.extend(doubts.iter().map(|doubt| format!("{id}: {doubt}")));
        if accepted.as_ref() != Some(&seen.surface) {
            doubts.push("it tells models or wants something else".to_owned());
        }
        if self.only_print {
            for line in &shown {
                self.say(line)?;
            }
        } else if doubts.is_empty() {
            shown.iter().try_for_each(|line| print(line))?;
        } else {
            let Some(mut person) = Person::here() else {
                shown.iter().try_for_each(|line| print(line))?;
                self.held = true;
                return print(&format!(
                    "{id}: {}, so the locked version stays; run `wharf update {id}` at a terminal, or merge the output of `wharf update {id} \
                     --print` as {}",
                    doubts.join("; "),
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

/// `wharf lock rollback`: goes back to the version before, which was accepted then.
pub async fn rollback(OnePlugin { id, config }: &OnePlugin) -> Result<ExitCode> {
    let (file, config) = open(config.config.as_deref())?;
    let (plugin, of) = published(&config, std::slice::from_ref(id))?.remove(0);
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
    Box::pin(bring(&config, &Supply::new(&config), plugin, of, &last)).await?;
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
        let name = |one: Option<&Source>| one.and_then(|one| one.release.name.clone());
        if was.is_some() && is.is_some() && name(was) != name(is) {
            lines.push(format!("{id}: its signer gives it another name"));
        }
    }
    lines.extend(told.iter().flat_map(lines_of).map(|line| format!("{id}: {line}")));
    lines
}
