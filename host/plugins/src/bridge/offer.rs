//! Validates and sanitizes the tools, resources, templates and prompts that a plugin lists, and assigns the names under which they are
//! published.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_protocol::{
    Object, Shown,
    header::{Mirrored, mirrored},
    model as mcp,
};
use wharf_sandbox::{Listing, json::Room, model as wit};

use super::{
    charge::{OfferCharge, shown, tool_schema},
    icons,
    template::{Template, has_scheme, is_file},
    values::{ASK_BEFORE_TASK_META, PLUGIN_META, VALIDATES_META, parse_json, read_more},
};
use wharf_base::{
    ledger::Account,
    slot::Slot,
    text::{escaped, toml_header},
};
use wharf_config::config::PluginConfig;
use wharf_schema::Schema;

/// The validated entries of a plugin, with the names under which they are published.
#[derive(Debug, Default)]
pub struct Offer {
    /// The plugin's own listing. When only its config changes, the offer is built from this again.
    pub listing: Arc<Listing>,
    pub tools: Vec<Arc<OfferedTool>>,
    pub resources: Vec<mcp::Resource>,
    pub templates: Vec<OfferedTemplate>,
    pub prompts: Vec<OfferedPrompt>,
    /// How many icons are not published, because clients would have to fetch them.
    pub icons_left_out: usize,
    /// What is left out, renamed or not checked, each in a sentence for the operator.
    pub odd: Vec<String>,
    /// Digests of everything that clients see of the tools, of the resources and templates, and of the prompts; `None` for an empty list.
    fingerprints: [Option<[u8; 32]>; 3],
    /// The memory of the whole offer, released when the offer is dropped.
    _room: Option<Room>,
}

#[derive(Debug)]
pub struct OfferedTool {
    pub published: mcp::Tool,
    pub own_name: String,
    pub input: Schema,
    pub output: Option<Schema>,
    pub needs: wit::ClientCapabilities,
    /// The arguments that HTTP clients repeat in headers.
    pub mirrored: Vec<Mirrored>,
    /// Whether models may see the tool. A plugin can declare that only its user interface page may call a tool.
    pub for_models: bool,
    /// Whether the tool, when it runs as a task, asks its questions before the task begins.
    pub ask_before_task: bool,
    /// Whether the tool validates its arguments itself, so that it also gets those that do not fit its schema.
    pub validates: bool,
    /// A slot in which the meter caches the counters for calls of this tool.
    pub slot: Slot,
}

#[derive(Debug)]
pub struct OfferedTemplate {
    pub published: mcp::ResourceTemplate,
    pub template: Template,
}

#[derive(Debug)]
pub struct OfferedPrompt {
    pub published: mcp::Prompt,
    pub own_name: String,
}

impl Offer {
    /// Whether clients see a difference between the two offers: in the tools, in the resources and templates, and in the prompts.
    pub fn differs(&self, other: &Self) -> [bool; 3] {
        std::array::from_fn(|at| self.fingerprints.get(at) != other.fingerprints.get(at))
    }

    fn with_fingerprints(mut self) -> Self {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.published).collect();
        let templates: Vec<_> = self.templates.iter().map(|template| &template.published).collect();
        let prompts: Vec<_> = self.prompts.iter().map(|prompt| &prompt.published).collect();
        self.fingerprints = [
            (!tools.is_empty()).then(|| fingerprint(&tools)),
            (!templates.is_empty() || !self.resources.is_empty()).then(|| fingerprint(&(&self.resources, templates))),
            (!prompts.is_empty()).then(|| fingerprint(&prompts)),
        ];
        self
    }
}

impl OfferedTool {
    /// Returns the names of the arguments in its input schema.
    pub fn arguments(&self) -> Vec<String> {
        // Past the door: a schema has at most 64 KiB, and its tree is gone at once.
        let schema: Value = serde_json::from_str(self.input.text.get()).unwrap_or_default();
        let known = schema.get("properties").and_then(Value::as_object);
        known.into_iter().flat_map(|known| known.keys().cloned()).collect()
    }

    /// Returns a digest of everything that clients see of the tool.
    pub fn fingerprint(&self) -> [u8; 32] {
        fingerprint(&self.published)
    }
}

fn fingerprint(what: &dyn std::fmt::Debug) -> [u8; 32] {
    use std::fmt::Write;
    struct Digesting(Sha256);
    impl Write for Digesting {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.update(text);
            Ok(())
        }
    }
    let mut sha = Digesting(Sha256::new());
    // Writing into a digest never fails.
    write!(sha, "{what:?}").ok();
    sha.0.finalize().into()
}

/// The maximum number of words of a tool that are indexed for the search, and the memory charge for each of them: as a word, and as the
/// name of a tool that takes the place of a deprecated one.
pub const MAX_TOOL_WORDS: usize = 500;
const TOOL_WORD_BYTES: usize = 64;
/// The memory charge for a compiled template, which is the maximum that it can use.
const TEMPLATE_BYTES: usize = 64 << 10;
/// The maximum number of templates of one plugin. It is bounded because matching a URI may try all of them.
const MAX_TEMPLATES: usize = 256;
/// The maximum length of a URI that is published or accepted.
pub const MAX_URI_BYTES: usize = 8 * 1024;

/// Validates a listing and charges its memory to the account. Entries that are not valid are left out. If none is left, the error names the
/// first and says what is wrong with it.
pub fn offer(config: &PluginConfig, listing: Arc<Listing>, account: &Account) -> Result<Offer, String> {
    let mut charge = OfferCharge::new(account);
    warn_withheld(config, &listing);
    let mut offer = Offer::default();
    for tool in listing.tools.iter().filter(|tool| config.allows_tool(&tool.name) && !can_only_fail(config, tool)) {
        let offered = offered_tool(config, tool, &mut charge);
        let offered = offered.map(|one| (one.published.name.clone(), Arc::new(one)));
        charge.take(("tool", &tool.name), &mut offer.tools, offered)?;
    }
    for entry in listing.resources.iter().filter(|entry| !withheld(config, &entry.uri)) {
        let offered = offered_resource(config, entry, &mut charge).map(|one| (entry.uri.clone(), one));
        charge.take(("resource", &entry.uri), &mut offer.resources, offered)?;
    }
    for entry in listing.templates.iter().filter(|entry| !withheld_template(config, &entry.uri_template)) {
        if offer.templates.len() >= MAX_TEMPLATES {
            return Err(format!("it lists more than {MAX_TEMPLATES} templates"));
        }
        let offered = offered_template(config, entry, &mut charge).map(|one| (entry.uri_template.clone(), one));
        charge.take(("template", &entry.uri_template), &mut offer.templates, offered)?;
    }
    for prompt in listing.prompts.iter().filter(|prompt| config.allows_prompt(&prompt.name)) {
        let offered = offered_prompt(config, prompt, &mut charge).map(|one| (one.published.name.clone(), one));
        charge.take(("prompt", &prompt.name), &mut offer.prompts, offered)?;
    }
    let nothing =
        offer.tools.is_empty() && offer.resources.is_empty() && offer.templates.is_empty() && offer.prompts.is_empty();
    if let Some(refused) = charge.refused.take_if(|_| nothing) {
        return Err(refused);
    }
    offer.odd = charge.told();
    for odd in &offer.odd {
        tracing::warn!(plugin = config.id, "{odd}");
    }
    offer.listing = listing;
    offer.icons_left_out = charge.icons_left_out;
    offer._room = Some(charge.room);
    Ok(offer.with_fingerprints())
}

/// Whether a tool changes files and the plugin may only read them. Of other plugins than the built-in ones, nobody knows whether a tool that
/// changes something does it in files.
fn can_only_fail(config: &PluginConfig, tool: &wit::Tool) -> bool {
    let hints = tool.details.as_ref().and_then(|details| details.hints.as_ref());
    let only_reads = hints.is_some_and(|hints| hints.read_only == Some(true));
    !only_reads && config.source.is_built_in() && config.grants.any_directory() && !config.grants.can_write(true)
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.array_windows().find(|[one, other]| one == other) {
        Some([name, _]) => Err(format!("the {kind} `{}` is listed twice", shown(name))),
        None => Ok(()),
    }
}

/// Returns the name under which clients see a tool or prompt: its own name after the plugin's prefix, unless it begins with the prefix. So
/// `git` publishes `git_status`, and not `git_git_status`. Built-in plugins with one tool give it their own name, and it keeps that too.
/// Models accept few characters, so `_` stands for the other letters and separators of a name.
fn published_name(config: &PluginConfig, own: &str) -> Result<String, String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    let renamed = |character: char| character.is_alphanumeric() || matches!(character, '/' | ':' | ' ');
    let published: String = own.chars().map(|character| if plain(character) { character } else { '_' }).collect();
    let name = if config.publishes_own_name(own) { published } else { format!("{}{published}", config.prefix) };
    let valid = own.contains(|character: char| character.is_ascii_alphanumeric())
        && name.len() <= 128
        && own.chars().all(|character| plain(character) || renamed(character));
    if valid {
        Ok(name)
    } else {
        Err("a name has 1 to 128 letters, digits, `_`, `-` and `.`, including the prefix".into())
    }
}

/// Parses the `more` field of an entry and adds the id of the plugin. `own`: members that are not allowed in `more` because a separate
/// field exists for them.
fn entry_more(
    config: &PluginConfig,
    more: Option<&String>,
    own: &[&str],
    charge: &mut OfferCharge,
) -> Result<Shown<Object>, String> {
    let more = read_more(more, own, &charge.room)?;
    shown_more(config, more, charge)
}

fn shown_more(config: &PluginConfig, mut more: Object, charge: &mut OfferCharge) -> Result<Shown<Object>, String> {
    let meta = more.entry("_meta").or_insert_with(|| Value::Object(Object::new()));
    let meta = meta.as_object_mut().ok_or("`_meta` in `more` must be an object")?;
    meta.insert(PLUGIN_META.into(), config.id.clone().into());
    charge.icons_left_out += icons::keep_embedded(&mut more)?;
    if more.get("title").is_some_and(|title| !title.is_string()) {
        return Err("`title` in `more` must be a string".into());
    }
    Shown::members(more).map_err(|unseen| format!("`more`: {unseen}"))
}

/// Returns the annotations of a tool: its hints, and the `annotations` of its `more`, such as a title or members that are newer than the
/// contract.
fn annotations(hints: Option<&wit::Hints>, others: Option<Value>) -> Result<Option<Object>, String> {
    let mut annotations = match others {
        None if hints.is_none() => return Ok(None),
        None => Object::new(),
        Some(Value::Object(others)) => {
            Shown::members(others).map_err(|unseen| format!("`annotations`: {unseen}"))?.into_inner()
        }
        Some(_) => return Err("`annotations` in `more` must be an object".into()),
    };
    for (key, value) in [
        ("readOnlyHint", hints.and_then(|hints| hints.read_only)),
        ("destructiveHint", hints.and_then(|hints| hints.destructive)),
        ("idempotentHint", hints.and_then(|hints| hints.idempotent)),
        ("openWorldHint", hints.and_then(|hints| hints.open_world)),
    ] {
        if annotations.contains_key(key) {
            return Err(format!("`{key}` has its own field and is not allowed in `annotations`"));
        }
        if let Some(value) = value {
            annotations.insert(key.into(), value.into());
        }
    }
    Ok(Some(annotations))
}

fn offered_tool(config: &PluginConfig, tool: &wit::Tool, charge: &mut OfferCharge) -> Result<OfferedTool, String> {
    let name = published_name(config, &tool.name)?;
    let details = tool.details.as_ref();
    let more = details.and_then(|details| details.more.as_ref());
    let title = details.and_then(|details| details.title.as_deref());
    charge.entry(&[&tool.name, &tool.description, title.unwrap_or_default()], more)?;
    let title_bytes = title.map_or(0, str::len);
    let words = (tool.name.len() + title_bytes + tool.description.len() + tool.input_schema.len()) / 2;
    charge.pay(words.min(MAX_TOOL_WORDS) * TOOL_WORD_BYTES)?;
    let mut more =
        read_more(more, &["name", "title", "description", "inputSchema", "outputSchema", "execution"], &charge.room)?;
    let annotations = annotations(details.and_then(|details| details.hints.as_ref()), more.remove("annotations"))?;
    let ask_before_task = take_flag(&mut more, ASK_BEFORE_TASK_META)?;
    let validates = take_flag(&mut more, VALIDATES_META)?;
    let more = shown_more(config, more, charge)?;
    let (input_schema, input) = tool_schema(("input", &tool.name), &tool.input_schema, validates, charge)?;
    let output = details.and_then(|details| details.output_schema.as_deref());
    let output = output.map(|text| tool_schema(("output", &tool.name), text, validates, charge)).transpose();
    let (output_schema, output) = output?.unzip();
    let room = Room::of(&charge.account);
    let mirrored = mirrored(&parse_json(input.text.get(), &room)?).map_err(|error| format!("input schema: {error}"))?;
    drop(room);
    if let Some(nested) = mirrored.iter().find(|one| one.path.len() > 1) {
        let path = nested.path.join(".");
        tracing::warn!(
            plugin = config.id,
            "the tool {name} mirrors the nested argument {} in a header, which not all clients support",
            escaped(&path)
        );
    }
    let task = match details.map(|details| details.task) {
        Some(wit::TaskSupport::Required) => mcp::TaskSupport::Required,
        Some(wit::TaskSupport::Optional) => mcp::TaskSupport::Optional,
        _ => mcp::TaskSupport::Forbidden,
    };
    let published = mcp::Tool {
        name,
        title: title.map(Shown::from),
        description: tool.description.as_str().into(),
        input_schema,
        output_schema,
        annotations,
        task,
        more,
    };
    let needs = details.map_or(wit::ClientCapabilities::empty(), |details| details.needs);
    let (own_name, slot) = (tool.name.clone(), Slot::default());
    let for_models = is_for_models(&published.more);
    Ok(OfferedTool {
        published,
        own_name,
        input,
        output,
        needs,
        mirrored,
        for_models,
        ask_before_task,
        validates,
        slot,
    })
}

/// Takes a member of a tool's `_meta` that says something to wharf. It is not published.
fn take_flag(more: &mut Object, key: &str) -> Result<bool, String> {
    let meta = more.get_mut("_meta").and_then(Value::as_object_mut);
    match meta.and_then(|meta| meta.remove(key)) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(format!("`{key}` in `_meta` must be true or false")),
    }
}

/// Whether models may see a tool, according to the MCP extension for user interfaces: `_meta.ui.visibility` lists who may see the tool: the
/// model, the page (`app`) or both. A tool without that member is visible to both.
fn is_for_models(more: &Object) -> bool {
    let visibility = more.get("_meta").and_then(|meta| meta.get("ui")?.get("visibility"));
    visibility.is_none_or(|who| match who {
        Value::Array(all) => all.iter().any(|one| one == "model"),
        one => one == "model",
    })
}

fn shown_uri(uri: &str) -> Result<Shown, String> {
    if !has_scheme(uri) {
        return Err("it is not an absolute URI".into());
    }
    shown_template(uri)
}

/// Returns a URI template as it is shown. [`Template::compile`] has checked how it begins.
fn shown_template(template: &str) -> Result<Shown, String> {
    if template.len() > MAX_URI_BYTES {
        return Err(format!("it has more than {MAX_URI_BYTES} bytes"));
    }
    if template.chars().any(|character| character.is_control() || character == ' ') {
        return Err("it has a control character or a space".into());
    }
    Shown::exact(template).map_err(|unseen| unseen.to_string())
}

/// Whether an entry is withheld because it has a `file:` URI and no directory is granted to the plugin. Other entries are published.
fn withheld(config: &PluginConfig, uri: &str) -> bool {
    is_file(uri) && !config.grants.any_directory()
}

/// Whether a template is withheld. One that names a folder is a name of the server's own; others would match every file.
fn withheld_template(config: &PluginConfig, template: &str) -> bool {
    let prefix = template.get(5..).and_then(|path| path.split('{').next());
    withheld(config, template) && prefix.is_none_or(|prefix| prefix.trim_matches('/').is_empty())
}

/// Warns the operator, once for each listing, if entries are withheld.
fn warn_withheld(config: &PluginConfig, listing: &Listing) {
    let resources = listing.resources.iter().map(|entry| entry.uri.as_str()).filter(|uri| withheld(config, uri));
    let templates = listing.templates.iter().map(|entry| entry.uri_template.as_str());
    let mut uris = resources.chain(templates.filter(|uri| withheld_template(config, uri)));
    if let Some(uri) = uris.next() {
        tracing::warn!(
            plugin = config.id,
            "{} and its other `file:` entries are not published, because no directory is granted; grant one with `roots` or \
             `dirs` in {}",
            shown(uri),
            toml_header(&["plugins", &config.id, "grants"])
        );
    }
}

fn offered_resource(
    config: &PluginConfig,
    entry: &wit::ResourceEntry,
    charge: &mut OfferCharge,
) -> Result<mcp::Resource, String> {
    let uri = shown_uri(&entry.uri)?;
    let (description, mime_type) = (entry.description.as_deref(), entry.mime_type.as_deref());
    let texts = [&entry.uri, entry.name.as_str(), description.unwrap_or_default(), mime_type.unwrap_or_default()];
    charge.entry(&texts, entry.more.as_ref())?;
    if entry.name.is_empty() {
        return Err("it has no name".into());
    }
    let more = entry_more(config, entry.more.as_ref(), &["uri", "name", "description", "mimeType"], charge)?;
    Ok(mcp::Resource {
        uri,
        name: entry.name.as_str().into(),
        description: description.map(Shown::from),
        mime_type: mime_type.map(Shown::from),
        more,
    })
}

fn offered_template(
    config: &PluginConfig,
    entry: &wit::ResourceTemplate,
    charge: &mut OfferCharge,
) -> Result<OfferedTemplate, String> {
    let (description, mime_type) = (entry.description.as_deref(), entry.mime_type.as_deref());
    let texts =
        [&entry.uri_template, entry.name.as_str(), description.unwrap_or_default(), mime_type.unwrap_or_default()];
    charge.entry(&texts, entry.more.as_ref())?;
    charge.pay(TEMPLATE_BYTES)?;
    let template = Template::compile(&entry.uri_template)?;
    let uri_template = shown_template(&entry.uri_template)?;
    if entry.name.is_empty() {
        return Err("it has no name".into());
    }
    let more = entry_more(config, entry.more.as_ref(), &["uriTemplate", "name", "description", "mimeType"], charge)?;
    let published = mcp::ResourceTemplate {
        uri_template,
        name: entry.name.as_str().into(),
        description: description.map(Shown::from),
        mime_type: mime_type.map(Shown::from),
        more,
    };
    Ok(OfferedTemplate { published, template })
}

fn offered_prompt(
    config: &PluginConfig,
    prompt: &wit::Prompt,
    charge: &mut OfferCharge,
) -> Result<OfferedPrompt, String> {
    let name = published_name(config, &prompt.name)?;
    charge.entry(&[&prompt.name, prompt.description.as_deref().unwrap_or_default()], prompt.more.as_ref())?;
    for argument in &prompt.arguments {
        charge.entry(&[&argument.name, argument.description.as_deref().unwrap_or_default()], None)?;
    }
    unique("argument", prompt.arguments.iter().map(|argument| argument.name.as_str()))?;
    let more = entry_more(config, prompt.more.as_ref(), &["name", "description", "arguments"], charge)?;
    let argument = |argument: &wit::PromptArgument| {
        let name = Shown::exact(&argument.name).map_err(|unseen| format!("an argument's name: {unseen}"))?;
        let description = argument.description.as_deref().map(Shown::from);
        Ok(mcp::PromptArgument { name, description, required: argument.required })
    };
    let arguments = prompt.arguments.iter().map(argument).collect::<Result<_, String>>()?;
    let published = mcp::Prompt { name, description: prompt.description.as_deref().map(Shown::from), arguments, more };
    Ok(OfferedPrompt { published, own_name: prompt.name.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_are_hints_and_what_else_the_plugin_says() {
        let hints = wit::Hints { read_only: Some(true), destructive: None, idempotent: None, open_world: None };
        for (hints, others, expected) in [
            (None, None, Ok(None)),
            (Some(&hints), None, Ok(Some(json!({ "readOnlyHint": true })))),
            (None, Some(json!({ "title": "T" })), Ok(Some(json!({ "title": "T" })))),
            (Some(&hints), Some(json!({ "title": "T" })), Ok(Some(json!({ "readOnlyHint": true, "title": "T" })))),
            (None, Some(json!({ "readOnlyHint": true })), Err("`readOnlyHint` has its own field")),
            (None, Some(json!([])), Err("must be an object")),
        ] {
            let found = annotations(hints, others.clone()).map(|found| found.map(Value::Object));
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{others:?}"),
                Err(expected) => assert!(found.unwrap_err().contains(expected), "{others:?}"),
            }
        }
    }

    #[test]
    fn a_tool_for_a_page_alone_is_not_for_models() {
        for (more, expected) in [
            (json!({}), true),
            (json!({ "_meta": { "ui": { "resourceUri": "ui://a" } } }), true),
            (json!({ "_meta": { "ui": { "visibility": ["model", "app"] } } }), true),
            (json!({ "_meta": { "ui": { "visibility": ["model"] } } }), true),
            (json!({ "_meta": { "ui": { "visibility": ["app"] } } }), false),
            (json!({ "_meta": { "ui": { "visibility": [] } } }), false),
            (json!({ "_meta": { "ui": { "visibility": "app" } } }), false),
            (json!({ "_meta": { "ui": { "visibility": null } } }), false),
        ] {
            assert_eq!(is_for_models(more.as_object().unwrap()), expected, "{more}");
        }
    }

    #[test]
    fn what_a_tool_says_to_wharf_is_taken_from_its_meta() {
        const KEY: &str = ASK_BEFORE_TASK_META;
        for (mut more, expected, left) in [
            (json!({}), Ok(false), json!({})),
            (json!({ "_meta": { "a": 1 } }), Ok(false), json!({ "_meta": { "a": 1 } })),
            (json!({ "_meta": { "a": 1, KEY: true } }), Ok(true), json!({ "_meta": { "a": 1 } })),
            (json!({ "_meta": { KEY: false } }), Ok(false), json!({ "_meta": {} })),
            (
                json!({ "_meta": { KEY: "yes" } }),
                Err(format!("`{KEY}` in `_meta` must be true or false")),
                json!({ "_meta": {} }),
            ),
        ] {
            assert_eq!(take_flag(more.as_object_mut().unwrap(), KEY), expected, "{more}");
            assert_eq!(more, left);
        }
    }
}
