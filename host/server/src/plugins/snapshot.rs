//! The status of all plugins at one moment, for `wharf check` and `wharf inspect` to print and for embedding programs to show.

use std::collections::BTreeMap;

use wharf_sandbox::{Plugin, Served};

use super::{
    published::Published,
    served,
    status::{Status, Subject},
};
use crate::{
    access::{
        grants,
        scope::Scopes,
        wants::{
            compare,
            want::{Wants, What},
        },
    },
    base::text::{self, toml_header},
    bridge::Offer,
    config::{
        Origin, PluginConfig,
        approvals::{Confirm, Which},
    },
    schema::readable,
};

/// The status of a plugin, or of something that should be one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PluginStatus {
    /// What this is the status of.
    pub subject: Subject,
    /// Whether it is served as it should be.
    pub status: Status,
    /// What is served of it now, which may be the last good version.
    pub serving: Option<Serving>,
}

/// What is served of a plugin.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Serving {
    /// The SHA-256 of its component, in hexadecimal.
    pub sha256: String,
    /// How it is served, in words, if it was not made for wharf.
    pub adapted: Option<String>,
    /// Its tools. All lists are in the plugin's own order.
    pub tools: Vec<Entry>,
    /// Its resources, named by their URIs.
    pub resources: Vec<Entry>,
    /// Its resource templates, named by their URI templates.
    pub templates: Vec<Entry>,
    /// Its prompts.
    pub prompts: Vec<Entry>,
    /// Whether it completes arguments.
    pub completions: bool,
    /// What it is granted, a few words for each thing.
    pub granted: Vec<String>,
    /// Of which calls a person has to approve, in words; none if of no call.
    pub confirm: Option<String>,
    /// What its imports would let it use, if all of it were granted.
    pub could_use: Vec<&'static str>,
    /// The part of `could_use` that is not granted.
    pub not_granted: Vec<&'static str>,
    /// What it says that it wants, and whether that is granted; `None` if it says nothing.
    pub wants: Option<Vec<Wanted>>,
    /// What is granted although it does not say that it wants it; empty if it says nothing.
    pub not_wanted: Vec<String>,
    /// The part of `could_use` that it does not say it wants.
    pub unspoken: Vec<&'static str>,
    /// The interfaces that its component imports.
    pub imports: Vec<String>,
    /// Whether one instance may serve several calls of the same client, one after the other.
    pub reused: bool,
    /// What the operator should know, such as missing directories, and schemas that some clients cannot read.
    pub notes: Vec<String>,
}

/// Something that a plugin says it wants. That is a claim of its author, and grants nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Wanted {
    /// What it is, in a few words.
    pub what: String,
    /// The reason that the plugin's author gives, as it stands in the file: it may have any characters in it.
    pub why: Option<String>,
    /// Whether it is granted or, for a setting, given.
    pub granted: bool,
    /// What to write into the config for that, such as `"TZ" to `env` in [plugins.clock.grants]`, and what it needs beside that.
    pub line: String,
}

/// Something that a plugin offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Its name as clients know it.
    pub name: String,
    /// Its name as the plugin calls it.
    pub own_name: String,
    /// The description for people and models; empty if there is none.
    pub description: String,
    /// The JSON Schema of its arguments, if it is a tool.
    pub schema: Option<String>,
}

/// The note about a plugin whose instructions no longer fit.
const UNHEARD: &str = "its instructions are left out, because all together would have more than 8 KiB; `instructions` in its table \
                       can shorten them";

impl Published {
    /// The status of every plugin now.
    /// `own`: the instructions of the server itself.
    pub fn plugins(&self, scopes: &Scopes, own: Option<&str>) -> Vec<PluginStatus> {
        let catalog = self.catalog.borrow().clone();
        let (_, left_out) = catalog.instructions(own, |_| true);
        let of = |subject: &Subject| catalog.served().iter().find(|served| subject.is_plugin(&served.config.id));
        let all = self.status().into_iter().map(|(subject, status)| {
            let serving = of(&subject).map(|served| {
                let unheard = left_out.contains(&served.config.id.as_str()).then(|| UNHEARD.to_owned());
                Serving::of(served, scopes, unheard)
            });
            PluginStatus { subject, status, serving }
        });
        all.collect()
    }
}

impl Serving {
    fn of(served: &served::Served, scopes: &Scopes, unheard: Option<String>) -> Self {
        let (config, offer, code) = (&served.config, &served.offer, served.plugin.code());
        let entry = |name: &str, own_name: &str, description: &str| Entry {
            name: name.to_owned(),
            own_name: own_name.to_owned(),
            description: description.to_owned(),
            schema: None,
        };
        let variables: Vec<String> = config.settings.variables().iter().map(|name| format!("${name}")).collect();
        let seen = (!variables.is_empty()).then(|| {
            format!(
                "its config shows it {}; as `headers` of a rule of `http`, it would not see them",
                variables.join(", ")
            )
        });
        let without = served.wants.as_ref().map(|wants| wants.without_import(code.imports())).unwrap_or_default();
        let useless = without.iter().map(|ability| format!("it wants {ability}, but imports nothing to use it with"));
        let tools = offer.tools.iter().map(|tool| Entry {
            schema: Some(tool.input.text.get().to_owned()),
            ..entry(&tool.published.name, &tool.own_name, &tool.published.description)
        });
        let resources = offer.resources.iter().map(|one| entry(&one.uri, &one.uri, &one.name));
        let templates = offer
            .templates
            .iter()
            .map(|one| &one.published)
            .map(|one| entry(&one.uri_template, &one.uri_template, &one.name));
        let prompts = offer.prompts.iter().map(|prompt| {
            entry(
                &prompt.published.name,
                &prompt.own_name,
                prompt.published.description.as_deref().map_or("", |text| text),
            )
        });
        Self {
            sha256: code.digest_hex(),
            adapted: adapted(&served.plugin),
            tools: tools.collect(),
            resources: resources.collect(),
            templates: templates.collect(),
            prompts: prompts.collect(),
            completions: code.exports().completions,
            granted: config.grants.describe(),
            confirm: config.confirm.as_ref().map(Confirm::describe),
            could_use: grants::could_use(code.imports()),
            not_granted: config.grants.unused(code.imports()),
            wants: served.wants.as_ref().map(|wants| wanted(wants, config, scopes)),
            not_wanted: served.wants.as_ref().map(|wants| wants.not_wanted(&config.grants)).unwrap_or_default(),
            unspoken: compare::unspoken(served.wants.as_deref(), code.imports()),
            imports: code.imports().to_vec(),
            reused: config.reuse,
            notes: scopes
                .problems(&config.grants)
                .into_iter()
                .chain(unreadable(offer))
                .chain(unheard)
                .chain(seen)
                .chain(useless)
                .chain(unmatched(config, offer))
                .chain(not_offered(served))
                .collect(),
        }
    }
}

fn wanted(wants: &Wants, config: &PluginConfig, scopes: &Scopes) -> Vec<Wanted> {
    let Wants { grants, secrets, settings } = wants;
    let id = &config.id;
    // It has no table yet, and none counts without the path of its file.
    let table = match (config.origin, config.source.path()) {
        (Origin::DroppedIn, Some(path)) => {
            format!("; {} has to have path = {:?}", toml_header(&["plugins", id]), text::path(path))
        }
        _ => String::new(),
    };
    let grants = grants.iter().map(|want| {
        // Why a secret is needed stands with the secret, and is of use where the secret is.
        let secret = match &want.what {
            What::Http(http) => http.secret.as_ref(),
            _ => None,
        };
        let secret = secret.and_then(|injected| secrets.iter().find(|secret| secret.name == injected.name));
        let reasons = [want.why.as_deref(), secret.and_then(|secret| secret.why.as_deref())];
        let reasons: Vec<&str> = reasons.into_iter().flatten().collect();
        Wanted {
            what: want.what.words(),
            why: Some(reasons.join("; ")).filter(|why| !why.is_empty()),
            granted: want.what.is_granted(&config.grants),
            line: want.what.line(id, |name| scopes.egress.has_secret(name)) + &table,
        }
    });
    let given = config.settings.keys();
    let settings = settings.iter().map(|setting| Wanted {
        what: setting.words(),
        why: setting.why.clone(),
        granted: given.contains(&setting.key),
        line: setting.line(id) + &table,
    });
    grants.chain(settings).collect()
}

/// How a plugin is served that was not made for wharf.
fn adapted(plugin: &Plugin) -> Option<String> {
    let how = match plugin.served() {
        Served::Contract => return None,
        Served::Functions => "each function that it exports is a tool",
        Served::Command => "a command, run anew for each call",
    };
    let wrapped =
        if plugin.code().was_core_module() { "; the file is a core module, adapted when it is loaded" } else { "" };
    Some(format!("{how}{wrapped}"))
}

/// Notes about what a plugin that was not made for wharf could offer and does not.
fn not_offered(served: &served::Served) -> impl Iterator<Item = String> {
    let plugin = &served.plugin;
    let refused = match plugin.served() {
        Served::Functions => plugin.code().refused_functions(),
        Served::Contract | Served::Command => &[],
    };
    let undeclared = plugin.served() == Served::Command && served.offer.listing.tools.is_empty();
    let undeclared = undeclared.then(|| {
        format!(
            "it is a command, and offers nothing until its table declares a tool, such as {} with `description` and `argv`, or \
             has `command = true`",
            toml_header(&["plugins", &served.config.id, "tools", "NAME"])
        )
    });
    refused.iter().map(|why| format!("no tool: {why}")).chain(undeclared)
}

/// Notes about names in `confirm` that no tool has, which nobody would be asked about.
fn unmatched(config: &PluginConfig, offer: &Offer) -> impl Iterator<Item = String> {
    let patterns = match config.confirm.as_ref().map(|confirm| &confirm.which) {
        Some(Which::Tools(patterns)) => patterns.as_slice(),
        _ => &[],
    };
    let unmatched = patterns.iter().filter(|one| !offer.tools.iter().any(|tool| one.matches(&tool.own_name)));
    unmatched.map(|pattern| format!("`confirm` names `{pattern}`, and it has no such tool"))
}

/// Notes about tools whose schemas are valid but keep some clients from connecting, one for each kind of trouble.
fn unreadable(offer: &Offer) -> impl Iterator<Item = String> {
    let mut tools: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in &offer.tools {
        // The schema was parsed when it was compiled, so this cannot fail.
        let schema = serde_json::from_str(tool.input.text.get()).unwrap_or_default();
        for trouble in readable::troubles(&schema) {
            tools.entry(trouble).or_default().push(&tool.own_name);
        }
    }
    tools
        .into_iter()
        .map(|(trouble, tools)| format!("some clients cannot read the arguments of {}: {trouble}", tools.join(", ")))
}
