//! A snapshot of the status of all plugins, for `wharf check` and `wharf inspect` to print and for embedding programs to show.

use std::collections::BTreeMap;

use wharf_sandbox::LoadedPlugin;
use wharf_scope::{MAX_INSTRUCTIONS_BYTES, adapter::ServedAs};

use super::{
    lacking,
    published::Published,
    served::{self, Sharing},
    status::{Status, Subject},
};
use crate::bridge::Offer;
use wharf_base::{
    digest::Digest,
    text::{self, toml_header},
};
use wharf_config::config::{
    Origin, PluginConfig,
    approvals::{Confirm, Which},
};
use wharf_policy::access::{
    grants,
    scope::Scopes,
    wants::{
        compare,
        want::{WantedGrant, Wants},
    },
};
use wharf_schema::readable;

/// The status of a plugin, of a file that should be one, or of the plugin folder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PluginStatus {
    /// The plugin, file or folder that has this status.
    pub subject: Subject,
    /// Whether the plugin is served as configured.
    pub status: Status,
    /// What is served now, which may be the last working version.
    pub serving: Option<Serving>,
}

/// A plugin as it is served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Serving {
    /// The SHA-256 of its component.
    pub sha256: Digest,
    /// How an adapted component is served, in words; `None` if it implements wharf's own interface.
    pub adapted: Option<String>,
    /// Its tools. All lists are in the plugin's own order.
    pub tools: Vec<OfferedEntry>,
    /// Its resources, named by their URIs.
    pub resources: Vec<OfferedEntry>,
    /// Its resource templates, named by their URI templates.
    pub templates: Vec<OfferedEntry>,
    /// Its prompts.
    pub prompts: Vec<OfferedEntry>,
    /// Whether it completes arguments.
    pub completions: bool,
    /// Its grants, each described in a few words.
    pub granted: Vec<String>,
    /// The calls that a person has to approve, in words; `None` if no call needs approval.
    pub confirm: Option<String>,
    /// The abilities that its imports give access to, granted or not.
    pub could_use: Vec<&'static str>,
    /// The abilities in `could_use` that are not granted.
    pub not_granted: Vec<&'static str>,
    /// The grants that it declares it wants, and whether it has them; `None` if it declares nothing.
    pub wants: Option<Vec<Wanted>>,
    /// What it lacks of that, in sentences: grants, with what to type, values of variables, and access to directories in its calls so far.
    pub lacks: Vec<String>,
    /// Its grants that it does not declare it wants; empty if it declares nothing.
    pub not_wanted: Vec<String>,
    /// The abilities in `could_use` that it does not declare it wants.
    pub unspoken: Vec<&'static str>,
    /// The interfaces that its component imports.
    pub imports: Vec<String>,
    /// How calls of the same client share instances, in words; `None` if each call has a new one.
    pub instances: Option<&'static str>,
    /// Notes for the operator, such as missing directories, and schemas that some clients cannot read.
    pub notes: Vec<String>,
}

/// A grant or setting that a plugin declares it wants. The declaration itself grants nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Wanted {
    /// The grant or setting, in a few words.
    pub what: String,
    /// The reason that the plugin's author gives, exactly as in the file: it may contain any characters.
    pub why: Option<String>,
    /// Whether the grant is given or, for a setting, whether it has a value.
    pub granted: bool,
    /// The change to the config that grants it, such as `"TZ" to `env` in [plugins.clock.grants]`, and what else that change requires.
    pub line: String,
}

/// A tool, resource, template or prompt that a plugin offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OfferedEntry {
    /// Its name as clients know it.
    pub name: String,
    /// Its name in the plugin, without the prefix.
    pub own_name: String,
    /// The description for people and models; empty if the plugin gives no description.
    pub description: String,
    /// The JSON Schema of its arguments, if it is a tool.
    pub schema: Option<String>,
}

/// The bytes of a token, approximately.
const TOKEN_BYTES: usize = 4;

/// The note about a plugin whose instructions did not fit.
const INSTRUCTIONS_LEFT_OUT: &str = "its instructions are left out, because the instructions of all plugins together would exceed \
                                     8 KiB; set a shorter text with `instructions` in its table";

impl Published {
    /// Returns the current status of every plugin. `own`: the server's own instructions.
    pub fn plugins(&self, scopes: &Scopes, own: Option<&str>) -> Vec<PluginStatus> {
        let catalog = self.catalog.borrow().clone();
        let (_, left_out) = catalog.instructions(own, |_| true);
        let of = |subject: &Subject| catalog.served().iter().find(|served| subject.is_plugin(&served.config.id));
        let all = self.status().into_iter().map(|(subject, status)| {
            let serving = of(&subject).map(|served| {
                let unheard = left_out.contains(&served.config.id.as_str());
                Serving::of(served, scopes, unheard.then(|| INSTRUCTIONS_LEFT_OUT.to_owned()))
            });
            PluginStatus { subject, status, serving }
        });
        all.collect()
    }
}

impl Serving {
    /// The approximate number of tokens that a model reads of its tools.
    pub fn tokens(&self) -> usize {
        let bytes = |tool: &OfferedEntry| {
            tool.name.len() + tool.description.len() + tool.schema.as_ref().map_or(0, String::len)
        };
        self.tools.iter().map(bytes).sum::<usize>() / TOKEN_BYTES
    }

    fn of(served: &served::Served, scopes: &Scopes, unheard: Option<String>) -> Self {
        let (config, offer, code) = (&served.config, &served.offer, served.plugin.code());
        let entry = |name: &str, own_name: &str, description: &str| OfferedEntry {
            name: name.to_owned(),
            own_name: own_name.to_owned(),
            description: description.to_owned(),
            schema: None,
        };
        let variables: Vec<String> = config.settings.variables().iter().map(|name| format!("${name}")).collect();
        let seen = (!variables.is_empty()).then(|| {
            format!(
                "its `config` lets it read the value of {}; `headers` in a rule of `http` would send a secret without showing it to \
                 the plugin",
                variables.join(", ")
            )
        });
        let without = served.wants.as_ref().map(|wants| wants.without_import(code.imports())).unwrap_or_default();
        let useless =
            without.iter().map(|ability| format!("it wants {ability}, but does not import an interface that uses it"));
        let tools = offer.tools.iter().map(|tool| OfferedEntry {
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
            sha256: *code.digest(),
            adapted: adapted(&served.plugin),
            tools: tools.collect(),
            resources: resources.collect(),
            templates: templates.collect(),
            prompts: prompts.collect(),
            completions: served.plugin.completes(),
            granted: config.grants.describe(),
            confirm: config.confirm.as_ref().map(Confirm::describe),
            could_use: grants::could_use(code.imports()),
            not_granted: config.grants.unused(code.imports()),
            wants: served.wants.as_ref().map(|wants| wanted(wants, config, scopes)),
            lacks: lacking::sentences(served, scopes),
            not_wanted: served.wants.as_ref().map(|wants| wants.not_wanted(&config.grants)).unwrap_or_default(),
            unspoken: compare::unspoken(served.wants.as_deref(), code.imports()),
            imports: code.imports().to_vec(),
            instances: match served.sharing() {
                Sharing::None => None,
                Sharing::Reused => Some("reused, by calls of the same client with the same access"),
                Sharing::One => Some("one for each client, which keeps what the server has in memory"),
            },
            notes: scopes
                .problems(&config.grants)
                .into_iter()
                .chain(offer.odd.iter().cloned())
                .chain(unreadable(offer))
                .chain(unheard)
                .chain(seen)
                .chain(useless)
                .chain(unmatched(config, offer))
                .chain(not_offered(served))
                .chain(too_long(served))
                .chain(fetched_icons(offer))
                .collect(),
        }
    }
}

fn wanted(wants: &Wants, config: &PluginConfig, scopes: &Scopes) -> Vec<Wanted> {
    let Wants { grants, secrets, settings } = wants;
    let id = &config.id;
    // A plugin from the plugin folder has no table yet, and a table needs the path of its file.
    let table = match (config.origin, config.source.path()) {
        (Origin::DroppedIn, Some(path)) => {
            format!("; {} must contain path = {:?}", toml_header(&["plugins", id]), text::path(path))
        }
        _ => String::new(),
    };
    let grants = grants.iter().map(|want| {
        // The reason for a secret is declared with the secret, and shown with the HTTP rule that sends the secret.
        let secret = match &want.what {
            WantedGrant::Http(http) => http.secret.as_ref(),
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

/// Describes how an adapted component is served; `None` if it implements wharf's own interface.
fn adapted(plugin: &LoadedPlugin) -> Option<String> {
    let how = match plugin.served() {
        ServedAs::Contract => return None,
        ServedAs::Functions => "each function that it exports is a tool",
        ServedAs::Command => "a command, which runs from the start for each call",
        ServedAs::Http => "an MCP server over HTTP, and wharf is its only client",
    };
    let wrapped =
        if plugin.code().was_core_module() { "; the file is a core module, adapted when it is loaded" } else { "" };
    Some(format!("{how}{wrapped}"))
}

/// Returns notes about functions or commands of an adapted component that are not offered as tools.
fn not_offered(served: &served::Served) -> impl Iterator<Item = String> {
    let plugin = &served.plugin;
    let refused = match plugin.served() {
        ServedAs::Functions => plugin.code().refused_functions(),
        ServedAs::Contract | ServedAs::Command | ServedAs::Http => &[],
    };
    let undeclared = plugin.served() == ServedAs::Command && served.offer.listing.tools.is_empty();
    let undeclared = undeclared.then(|| {
        format!(
            "it is a command, and offers nothing until its table declares a tool, such as {} with `description` and `argv`, or \
             contains `command = true`",
            toml_header(&["plugins", &served.config.id, "tools", "NAME"])
        )
    });
    let other = matches!(plugin.served(), ServedAs::Functions | ServedAs::Command) && plugin.code().handles_http();
    let other = other.then(|| {
        format!(
            "it also exports wasi:http/incoming-handler; if it is an MCP server, `adapter = \"http\"` in {} serves it as one",
            toml_header(&["plugins", &served.config.id])
        )
    });
    refused.iter().map(|why| format!("not offered as a tool: {why}")).chain(undeclared).chain(other)
}

/// Returns a note if an MCP server over HTTP has instructions that are too long.
fn too_long(served: &served::Served) -> Option<String> {
    let told = served.offer.listing.instructions.as_ref().filter(|_| served.config.instructions.is_none())?;
    (told.len() > MAX_INSTRUCTIONS_BYTES).then(|| {
        format!(
            "its instructions are left out, because they have more than {} KiB; set a shorter text with `instructions` in its table",
            MAX_INSTRUCTIONS_BYTES >> 10
        )
    })
}

/// Returns a note if icons are left out because clients would have to fetch them.
fn fetched_icons(offer: &Offer) -> Option<String> {
    let left_out = offer.icons_left_out;
    (left_out > 0).then(|| {
        format!("icons are left out, since clients would fetch them from where the plugin says ({left_out}); embed them as data: URLs")
    })
}

/// Returns notes about patterns in `confirm` that match no tool, and so have no effect.
fn unmatched(config: &PluginConfig, offer: &Offer) -> impl Iterator<Item = String> {
    let patterns = match config.confirm.as_ref().map(|confirm| &confirm.which) {
        Some(Which::Tools(patterns)) => patterns.as_slice(),
        _ => &[],
    };
    let unmatched = patterns.iter().filter(|one| !offer.tools.iter().any(|tool| one.matches(&tool.own_name)));
    unmatched.map(|pattern| format!("`confirm` contains `{pattern}`, which matches none of its tools"))
}

/// Returns notes about tools whose schemas are valid but keep some clients from connecting, one for each kind of problem.
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
