//! `wharf add` and `wharf grant`: ask a person about each grant that a plugin wants, and write those that they allow into the config. An existing
//! server is built first, since its component says what it wants.

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, bail, ensure};
use wharf_sandbox::Outside;

use super::{
    answers,
    arguments::{Add, OnePlugin},
    check::{all_or_nothing, granted},
    file::{File, component},
    grant_dialogue::{Decisions, GrantDialogue},
    load::print,
    person::Person,
    suggest,
};
use crate::authoring::{
    build::Until,
    existing::{line, make::make, started::meant},
};
use wharf_base::{
    guard,
    text::{self, clip, escaped, toml_header},
};
use wharf_config::config::{self, Origin, PluginConfig, PluginSource, Positional, existing::ExistingServer};
use wharf_policy::access::{
    grants::could_use,
    wants::{
        parse,
        want::{WantedGrant, Wants},
    },
};

/// Runs `wharf add`, which adds a plugin that is not in the config yet.
pub async fn add(command: Add) -> Result<ExitCode> {
    let Add { plugin, id, signer, digest, config } = command;
    ensure!(
        signer.is_none() && digest.is_none(),
        "--signer and --digest are for published plugins, such as oci://…; a file is trusted by its digest, which `wharf add` writes"
    );
    ensure!(
        !line::begins(&plugin),
        "name the server itself, and not the program that starts it: `wharf add npm:NAME`, `wharf add pypi:NAME`, or its file"
    );
    let (path, id, config) = (Path::new(&plugin), id.as_deref(), config.config.as_deref());
    let server = Positional::tell(path).map_or(Ok(None), meant)?;
    if let Some(server) = &server {
        make(server, Until::Interrupted).await?;
    }
    let made = server.as_ref().map(ExistingServer::component);
    let file_of_it = made.as_deref().unwrap_or(path);
    guard::check_trusted_file(file_of_it, "plugin")?;
    let (_, outside) = component(file_of_it)?;
    let wants = wants(&outside)?.unwrap_or_default();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let id = id.or(server.as_ref().map(|server| server.id.as_str())).unwrap_or(&stem);
    config::check_id(id).context("choose another id with --id")?;
    let mut file = File::open(config)?;
    let known = file.config()?.plugins.iter().any(|plugin| plugin.id == id);
    ensure!(
        !known,
        "{} already has a plugin `{id}`; run `wharf grant {id}` to change its grants, or add this file under another id with --id",
        text::path(&file.path)
    );
    // The component of a server is another one after each build, so its digest is not written.
    let (key, value, sha256) = match &server {
        Some(ExistingServer { package: Some(package), .. }) => ("source", package.to_string(), None),
        Some(_) => ("path", file.relative(path)?, None),
        None => ("path", file.relative(path)?, Some(outside.sha256.as_str())),
    };
    let Some(mut person) = Person::here() else {
        let lines = suggest::table(id, key, &value, sha256)?
            + &suggest::wanted(id, &wants, |name| file.edited.has_secret(name))?;
        bail!("{}", suggest::by_hand("add", &file, &lines));
    };
    introduce(&mut person, id, &outside)?;
    file.edited.set(id, key, &answers::text(&value))?;
    if let Some(sha256) = sha256 {
        file.edited.set(id, "sha256", &answers::text(sha256))?;
    }
    let (sha256, is_pinned) = (&outside.sha256, true);
    let asking = GrantDialogue { person, file, id, sha256, no_table: None, is_pinned, decisions: Decisions::default() };
    asking.go_through(&wants).await
}

/// Runs `wharf grant`, which asks about everything that a plugin of the config wants and does not have yet.
pub async fn grant(OnePlugin { id, config }: &OnePlugin) -> Result<ExitCode> {
    let mut file = File::existing(config.config.as_deref())?;
    let config = file.config()?;
    let plugin = plugin(&config, id).with_context(|| text::path(&file.path))?;
    let outside = match &plugin.source {
        PluginSource::File(path) => {
            guard::check_trusted_file(path, "plugin")?;
            component(path)?.1
        }
        PluginSource::Published(published) => {
            let (_, path) = published.locked()?;
            component(&path).context("`wharf lock fetch` fetches it")?.1
        }
        PluginSource::Server(server) => {
            make(server, Until::Interrupted).await?;
            component(&server.component())?.1
        }
        PluginSource::Bytes(built_in) => Outside::of(&built_in.bytes()?)?,
    };
    let said = wants(&outside)?;
    let says_nothing = said.is_none();
    let wants = lacking(said.unwrap_or_default(), &plugin);
    let trusted = plugin.sha256.map(|known| known.to_string());
    let is_other = trusted.as_ref().is_some_and(|trusted| *trusted != outside.sha256);
    if !is_other && says_nothing {
        let table = toml_header(&["plugins", id, "grants"]);
        bail!("{id} does not say what it wants; write its grants into {table} by hand");
    }
    if !is_other && wants == Wants::default() {
        print(&format!("{id} already has everything that it wants"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let no_table = match plugin.origin {
        Origin::DroppedIn => plugin.source.path().map(|path| file.relative(path)).transpose()?,
        Origin::Configured | Origin::CommandLine => None,
    };
    let other = trusted.filter(|_| is_other).map(|trusted| {
        format!("the file of {id} has the sha256 {}, but the config trusts the one with {trusted}", outside.sha256)
    });
    let Some(mut person) = Person::here() else {
        let table = no_table.map(|path| suggest::table(id, "path", &path, Some(&outside.sha256)));
        let table = table.transpose()?.unwrap_or_default();
        let lines = table + &suggest::wanted(id, &wants, |name| file.edited.has_secret(name))?;
        let other = other.map(|other| {
            format!("{other}; if you trust the new file, change sha256 in {}\n", toml_header(&["plugins", id]))
        });
        bail!("{}{}", other.unwrap_or_default(), suggest::by_hand("grant", &file, &lines));
    };
    introduce(&mut person, id, &outside)?;
    if let Some(other) = other {
        person.tell(&other)?;
        person.tell(&format!("the new file would keep these grants: {}", granted(&plugin.grants.describe())))?;
        if !person.agrees("Trust this file from now on?")? {
            bail!("the file is not trusted, so nothing was written");
        }
        file.edited.set(id, "sha256", &answers::text(&outside.sha256))?;
    }
    let is_file = matches!(plugin.source, PluginSource::File(_));
    let (sha256, is_pinned) = (&outside.sha256, plugin.sha256.is_some() || !is_file);
    let asking = GrantDialogue { person, file, id, sha256, no_table, is_pinned, decisions: Decisions::default() };
    asking.go_through(&wants).await
}

/// Finds a plugin that has a table in the config or is in the plugin folder.
fn plugin(config: &config::Config, id: &str) -> Result<Arc<PluginConfig>> {
    if let Some(plugin) = config.plugins.iter().find(|plugin| plugin.id == id) {
        return Ok(Arc::clone(plugin));
    }
    config::check_id(id)?;
    let dropped_in = config.plugin_dir.as_ref().map(|folder| folder.join(format!("{id}.wasm")));
    match dropped_in.filter(|path| wharf_base::paths::FileId::at(path).is_some()) {
        Some(path) => Ok(Arc::new(config.dropped_in(id, path))),
        None => {
            let ids: Vec<&str> = config.plugins.iter().map(|plugin| plugin.id.as_str()).collect();
            bail!("there is no plugin `{id}`; the config has: {}", all_or_nothing(&ids));
        }
    }
}

pub(super) fn wants(outside: &Outside) -> Result<Option<Wants>> {
    let parsed = outside.sections.wants.as_deref().map(parse::json).transpose();
    parsed.map_err(|error| anyhow::anyhow!("the section wharf:wants: {}", clip(&escaped(&format!("{error:#}")))))
}

/// Returns the wants that the config does not fulfil yet.
fn lacking(wants: Wants, plugin: &PluginConfig) -> Wants {
    let given = plugin.settings.keys();
    let Wants { mut grants, secrets, mut settings } = wants;
    grants.retain(|want| !want.what.is_granted(&plugin.grants));
    settings.retain(|setting| !given.contains(&setting.key));
    let used = |name: &str| {
        grants.iter().any(
            |want| matches!(&want.what, WantedGrant::Http(http) if http.secret.as_ref().is_some_and(|one| one.name == name)),
        )
    };
    let secrets = secrets.into_iter().filter(|secret| used(&secret.name)).collect();
    Wants { grants, secrets, settings }
}

fn introduce(person: &mut Person, id: &str, outside: &Outside) -> Result<()> {
    person.tell(&format!("{id}: sha256 {}", outside.sha256))?;
    person.tell(&format!("could use, if granted: {}", all_or_nothing(&could_use(&outside.imports))))
}
