//! The only place that names types of the protocol and of the sandbox together: what plugins say becomes MCP, what
//! clients say becomes the contract's types. Everything from a plugin is checked here, once.

use serde_json::{Value, json, value::RawValue};
use wharf_protocol::{
    Object, Revision, RpcError,
    capability::ClientCapabilities,
    model as mcp,
    params::RootsResult,
};
use wharf_sandbox::{Listing, model as wit};

use crate::{
    config::PluginConfig,
    schema::Schema,
    template::{Template, has_scheme},
    text::clean,
};

/// The `_meta` key under which each list entry names its plugin.
pub const PLUGIN_META: &str = "dev.wharf/plugin";

/// What a plugin offers, checked and under the names it is published as.
#[derive(Debug, Default)]
pub struct Offer {
    pub tools: Vec<OfferedTool>,
    pub resources: Vec<mcp::Resource>,
    pub templates: Vec<OfferedTemplate>,
    pub prompts: Vec<OfferedPrompt>,
}

#[derive(Debug)]
pub struct OfferedTool {
    pub published: mcp::Tool,
    pub own_name: String,
    pub input: Schema,
    pub output: Option<Schema>,
    pub needs: wit::Abilities,
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

/// Checks a listing. The error says which entry is wrong and how.
pub fn offer(config: &PluginConfig, listing: Listing) -> Result<Offer, String> {
    let allowed = |patterns: &Option<Vec<crate::config::Pattern>>, name: &str| {
        patterns.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    };
    let mut offer = Offer::default();
    for tool in listing.tools {
        if allowed(&config.tools, &tool.name) {
            let name = tool.name.clone();
            offer.tools.push(offered_tool(config, tool).map_err(|error| format!("tool `{}`: {error}", clean(&name)))?);
        }
    }
    for entry in listing.resources {
        if withheld(config, &entry.uri) {
            continue;
        }
        let uri = entry.uri.clone();
        let resource = offered_resource(config, entry).map_err(|error| format!("resource `{}`: {error}", clean(&uri)))?;
        offer.resources.push(resource);
    }
    for template in listing.templates {
        if withheld(config, &template.uri_template) {
            continue;
        }
        let text = template.uri_template.clone();
        let template = offered_template(config, template).map_err(|error| format!("template `{}`: {error}", clean(&text)))?;
        offer.templates.push(template);
    }
    for prompt in listing.prompts {
        if allowed(&config.prompts, &prompt.name) {
            let name = prompt.name.clone();
            let prompt = offered_prompt(config, prompt).map_err(|error| format!("prompt `{}`: {error}", clean(&name)))?;
            offer.prompts.push(prompt);
        }
    }
    unique("tool", offer.tools.iter().map(|tool| tool.published.name.as_str()))?;
    unique("resource", offer.resources.iter().map(|resource| resource.uri.as_str()))?;
    unique("template", offer.templates.iter().map(|template| template.published.uri_template.as_str()))?;
    unique("prompt", offer.prompts.iter().map(|prompt| prompt.published.name.as_str()))?;
    Ok(offer)
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.array_windows().find(|[one, other]| one == other) {
        Some([name, _]) => Err(format!("the {kind} `{}` is listed twice", clean(name))),
        None => Ok(()),
    }
}

fn published_name(config: &PluginConfig, own: &str) -> Result<String, String> {
    let name = format!("{}{own}", config.prefix);
    let valid = !own.is_empty()
        && name.len() <= 128
        && own.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.'));
    if valid { Ok(name) } else { Err("a name has 1 to 128 letters, digits, `_`, `-` and `.`, its prefix included".into()) }
}

/// Reads a `more` member and adds which plugin the entry comes from. `own`: members that have a field of their own.
fn entry_more(config: &PluginConfig, more: Option<&String>, own: &[&str]) -> Result<Object, String> {
    let mut more = read_more(more, own)?;
    let meta = more.entry("_meta").or_insert_with(|| Value::Object(Object::new()));
    let meta = meta.as_object_mut().ok_or("`_meta` in `more` must be an object")?;
    meta.insert(PLUGIN_META.into(), config.id.clone().into());
    if let Some(title) = more.get_mut("title") {
        *title = Value::String(clean(title.as_str().ok_or("`title` in `more` must be a string")?));
    }
    Ok(more)
}

fn read_more(more: Option<&String>, own: &[&str]) -> Result<Object, String> {
    let Some(more) = more else { return Ok(Object::new()) };
    let object: Object = serde_json::from_str(more).map_err(|error| format!("`more` is not a JSON object: {error}"))?;
    match own.iter().find(|key| object.contains_key(**key)) {
        Some(key) => Err(format!("`{key}` has a field of its own and does not belong into `more`")),
        None => Ok(object),
    }
}

fn offered_tool(config: &PluginConfig, tool: wit::Tool) -> Result<OfferedTool, String> {
    let name = published_name(config, &tool.name)?;
    let input = Schema::compile(&tool.input_schema, true).map_err(|error| format!("input schema: {error}"))?;
    let details = tool.details;
    let more = details.as_ref().and_then(|details| details.more.as_ref());
    let more = entry_more(config, more, &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"])?;
    let output = match details.as_ref().and_then(|details| details.output_schema.as_deref()) {
        Some(text) => Some(Schema::compile(text, false).map_err(|error| format!("output schema: {error}"))?),
        None => None,
    };
    if details.as_ref().is_some_and(|details| details.task == wit::TaskSupport::Required) {
        return Err("it can only run as a task, and this wharf does not run tasks yet".into());
    }
    let annotations = details.as_ref().and_then(|details| details.hints.as_ref()).map(|hints| {
        let mut annotations = Object::new();
        for (key, value) in [
            ("readOnlyHint", hints.read_only),
            ("destructiveHint", hints.destructive),
            ("idempotentHint", hints.idempotent),
            ("openWorldHint", hints.open_world),
        ] {
            if let Some(value) = value {
                annotations.insert(key.into(), value.into());
            }
        }
        annotations
    });
    let published = mcp::Tool {
        name,
        title: details.as_ref().and_then(|details| details.title.as_deref()).map(clean),
        description: clean(&tool.description),
        input_schema: input.text.clone(),
        output_schema: output.as_ref().map(|schema| schema.text.clone()),
        annotations,
        more,
    };
    let needs = details.map_or(wit::Abilities::empty(), |details| details.needs);
    Ok(OfferedTool { published, own_name: tool.name, input, output, needs })
}

fn check_uri(uri: &str) -> Result<(), String> {
    if !has_scheme(uri) || uri.chars().any(|character| character.is_control() || character == ' ') {
        return Err("it is not an absolute URI".into());
    }
    Ok(())
}

/// Files are not published for a plugin that could not read one; the rest of what it offers is.
fn withheld(config: &PluginConfig, uri: &str) -> bool {
    let files = uri.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let withheld = files && !config.grants.any_directory();
    if withheld {
        tracing::warn!(
            plugin = config.id,
            "{} is not published, because no directory is granted; `roots` or `dirs` in [plugins.{}.grants] grant one",
            crate::text::escaped(uri),
            config.id
        );
    }
    withheld
}

fn offered_resource(config: &PluginConfig, entry: wit::ResourceEntry) -> Result<mcp::Resource, String> {
    check_uri(&entry.uri)?;
    if entry.name.is_empty() {
        return Err("it has no name".into());
    }
    let more = entry_more(config, entry.more.as_ref(), &["uri", "name", "description", "mimeType"])?;
    Ok(mcp::Resource {
        uri: entry.uri,
        name: clean(&entry.name),
        description: entry.description.as_deref().map(clean),
        mime_type: entry.mime_type,
        more,
    })
}

fn offered_template(config: &PluginConfig, entry: wit::ResourceTemplate) -> Result<OfferedTemplate, String> {
    let template = Template::compile(&entry.uri_template)?;
    check_uri(&entry.uri_template)?;
    if entry.name.is_empty() {
        return Err("it has no name".into());
    }
    let more = entry_more(config, entry.more.as_ref(), &["uriTemplate", "name", "description", "mimeType"])?;
    let published = mcp::ResourceTemplate {
        uri_template: entry.uri_template,
        name: clean(&entry.name),
        description: entry.description.as_deref().map(clean),
        mime_type: entry.mime_type,
        more,
    };
    Ok(OfferedTemplate { published, template })
}

fn offered_prompt(config: &PluginConfig, prompt: wit::Prompt) -> Result<OfferedPrompt, String> {
    let name = published_name(config, &prompt.name)?;
    unique("argument", prompt.params.iter().map(|argument| argument.name.as_str()))?;
    let more = entry_more(config, prompt.more.as_ref(), &["name", "description", "arguments"])?;
    let arguments = prompt.params.into_iter().map(|argument| mcp::PromptArgument {
        name: clean(&argument.name),
        description: argument.description.as_deref().map(clean),
        required: argument.required,
    });
    let published = mcp::Prompt {
        name,
        description: prompt.description.as_deref().map(clean),
        arguments: arguments.collect(),
        more,
    };
    Ok(OfferedPrompt { published, own_name: prompt.name })
}

/// A tool's result as MCP has it; the error is the plugin's defect in words.
pub fn tool_result(outcome: wit::ToolResult) -> Result<mcp::ToolResult, String> {
    let structured = outcome.structured.as_deref().map(parse_json).transpose()?;
    let content = outcome.content.into_iter().map(content).collect::<Result<_, _>>()?;
    Ok(mcp::ToolResult { content, structured, is_error: outcome.is_error, meta: result_meta(outcome.more.as_ref())? })
}

pub fn structured_result(json: &str) -> Result<mcp::ToolResult, String> {
    Ok(mcp::ToolResult { structured: Some(parse_json(json)?), ..mcp::ToolResult::default() })
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it answered text that is not JSON: {error}"))
}

/// The `_meta` of a result, less what only the host may say.
fn result_meta(more: Option<&String>) -> Result<Option<Object>, String> {
    let meta = match read_more(more, &[])?.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        Some(_) => return Err("`_meta` in `more` must be an object".into()),
        None => return Ok(None),
    };
    Ok(Some(meta.into_iter().filter(|(key, _)| !key.starts_with("io.modelcontextprotocol/")).collect()))
}

pub fn read_result(contents: Vec<wit::ResourceContents>) -> Result<mcp::ReadResult, String> {
    if contents.is_empty() {
        return Err("it answered no contents; an unknown URI is a failure with code -32002".into());
    }
    Ok(mcp::ReadResult { contents: contents.into_iter().map(resource_contents).collect::<Result<_, _>>()? })
}

pub fn prompt_result(result: wit::PromptResult) -> Result<mcp::PromptResult, String> {
    let message = |message: wit::Message| -> Result<mcp::PromptMessage, String> {
        let role = match message.role {
            wit::Role::User => mcp::Role::User,
            wit::Role::Assistant => mcp::Role::Assistant,
        };
        Ok(mcp::PromptMessage { role, content: content(message.content)? })
    };
    Ok(mcp::PromptResult {
        description: result.description,
        messages: result.messages.into_iter().map(message).collect::<Result<_, _>>()?,
        meta: result_meta(result.more.as_ref())?,
    })
}

fn content(content: wit::Content) -> Result<mcp::Content, String> {
    Ok(match content {
        wit::Content::Text(text) => mcp::Content::Text(text),
        wit::Content::Image(media) => mcp::Content::Image { mime_type: media.mime_type, data: media.data },
        wit::Content::Audio(media) => mcp::Content::Audio { mime_type: media.mime_type, data: media.data },
        wit::Content::Link(link) => mcp::Content::Link(mcp::ResourceLink {
            more: read_more(link.more.as_ref(), &["type", "uri", "name", "mimeType"])?,
            uri: link.uri,
            name: link.name,
            mime_type: link.mime_type,
        }),
        wit::Content::Embedded(contents) => mcp::Content::Embedded(resource_contents(contents)?),
        wit::Content::Raw(json) => mcp::Content::Raw(raw_block(&json)?),
    })
}

/// A block the plugin wrote as JSON: of a kind MCP has, with the members that kind needs.
fn raw_block(json: &str) -> Result<Object, String> {
    let Value::Object(block) = parse_json(json)? else { return Err("a raw content block must be a JSON object".into()) };
    let has = |key: &str| block.get(key).is_some_and(Value::is_string);
    let complete = match block.get("type").and_then(Value::as_str) {
        Some("text") => has("text"),
        Some("image" | "audio") => has("data") && has("mimeType"),
        Some("resource_link") => has("uri") && has("name"),
        Some("resource") => block.get("resource").is_some_and(|resource| {
            resource.get("uri").is_some_and(Value::is_string)
                && (resource.get("text").is_some_and(Value::is_string) || resource.get("blob").is_some_and(Value::is_string))
        }),
        _ => return Err("a raw content block is of type text, image, audio, resource_link or resource".into()),
    };
    if complete { Ok(block) } else { Err("a raw content block lacks a member that its type needs".into()) }
}

fn resource_contents(contents: wit::ResourceContents) -> Result<mcp::ResourceContents, String> {
    Ok(mcp::ResourceContents {
        more: read_more(contents.more.as_ref(), &["uri", "mimeType", "text", "blob"])?,
        uri: contents.uri,
        mime_type: contents.mime_type,
        body: match contents.body {
            wit::Body::Text(text) => mcp::Body::Text(text),
            wit::Body::Bytes(bytes) => mcp::Body::Bytes(bytes),
        },
    })
}

pub fn completion(completion: wit::Completion) -> mcp::Completion {
    mcp::Completion { values: completion.values, total: completion.total, has_more: completion.has_more }
}

/// A plugin's own failure as a JSON-RPC error; none if it gave no code, since then what it means depends on the method.
pub fn failure_error(failure: &wit::Failure) -> Option<RpcError> {
    let code = failure.code?;
    // The bands of JSON-RPC and MCP have fixed meanings; a plugin may use those of its own kind.
    let allowed = matches!(code, -32602 | -32603 | -32002) || !(-32768..=-32000).contains(&code);
    let error = RpcError::new(if allowed { code } else { -32603 }, clean(&failure.message));
    match failure.data.as_deref().map(serde_json::from_str) {
        Some(Ok(data)) => Some(error.with_data(data)),
        _ => Some(error),
    }
}

/// What a call is told of its caller.
pub fn context(
    revision: Revision,
    client: Option<&Value>,
    capabilities: &ClientCapabilities,
    meta: &Object,
    progress: bool,
    log: bool,
) -> wit::Context {
    let mut abilities = wit::Abilities::empty();
    for (present, ability) in [
        (capabilities.form, wit::Abilities::FORM),
        (capabilities.url, wit::Abilities::PAGE),
        (capabilities.sampling, wit::Abilities::SAMPLING),
        (capabilities.sampling_tools, wit::Abilities::SAMPLING_TOOLS),
        (capabilities.roots, wit::Abilities::ROOTS),
        (progress, wit::Abilities::PROGRESS),
        (log, wit::Abilities::LOG),
    ] {
        if present {
            abilities |= ability;
        }
    }
    let more = json!({
        "revision": revision.as_str(),
        "client": client,
        "meta": meta,
        "capabilities": capabilities.raw,
    });
    wit::Context { answers: Vec::new(), state: None, abilities, more: more.to_string() }
}

/// The capabilities, as MCP shapes them, that `needs` and the client lacks; none if it lacks nothing.
pub fn missing_abilities(needs: wit::Abilities, capabilities: &ClientCapabilities) -> Option<Value> {
    let mut missing = Object::new();
    let mut elicitation = Object::new();
    if needs.contains(wit::Abilities::FORM) && !capabilities.form {
        elicitation.insert("form".into(), json!({}));
    }
    if needs.contains(wit::Abilities::PAGE) && !capabilities.url {
        elicitation.insert("url".into(), json!({}));
    }
    if !elicitation.is_empty() {
        missing.insert("elicitation".into(), Value::Object(elicitation));
    }
    if needs.contains(wit::Abilities::SAMPLING_TOOLS) && !capabilities.sampling_tools {
        missing.insert("sampling".into(), json!({ "tools": {} }));
    } else if needs.contains(wit::Abilities::SAMPLING) && !capabilities.sampling {
        missing.insert("sampling".into(), json!({}));
    }
    if needs.contains(wit::Abilities::ROOTS) && !capabilities.roots {
        missing.insert("roots".into(), json!({}));
    }
    (!missing.is_empty()).then_some(Value::Object(missing))
}

/// A plugin's question as it goes to the client: under the plugin's name, without what could deceive.
pub fn question(plugin: &str, question: &wit::Question) -> Result<mcp::Question, String> {
    let signed = |message: &str| format!("[{plugin}] {}", clean(message));
    Ok(match question {
        wit::Question::Form(form) => {
            mcp::Question::Form { message: signed(&form.message), schema: form_schema(&form.schema)? }
        }
        wit::Question::Page(page) => {
            if !page.url.starts_with("https://") || page.url.chars().any(|character| character.is_control() || character == ' ') {
                return Err("it asks to open a page that is not https".into());
            }
            mcp::Question::Page { message: signed(&page.message), url: page.url.clone() }
        }
        wit::Question::Sample(params) => {
            let Value::Object(mut params) = parse_json(params)? else {
                return Err("the parameters of a sampling question must be a JSON object".into());
            };
            if !params.get("messages").is_some_and(Value::is_array) || !params.get("maxTokens").is_some_and(Value::is_u64) {
                return Err("a sampling question needs `messages` and `maxTokens`".into());
            }
            // It would let a plugin read what other servers told the model.
            params.remove("includeContext");
            mcp::Question::Sample(params)
        }
        wit::Question::Roots => mcp::Question::Roots,
    })
}

/// A form's schema: an object of plain fields, nothing nested.
fn form_schema(text: &str) -> Result<Value, String> {
    Schema::compile(text, true).map_err(|error| format!("the schema of its form: {error}"))?;
    let schema = parse_json(text)?;
    let fields = schema.get("properties").and_then(Value::as_object).ok_or("the schema of its form has no `properties`")?;
    for (name, field) in fields {
        let plain = match field.get("type").and_then(Value::as_str) {
            Some("string" | "number" | "integer" | "boolean") => true,
            // Several out of a list.
            Some("array") => field.pointer("/items/enum").is_some() || field.pointer("/items/anyOf").is_some(),
            _ => false,
        };
        if !plain {
            return Err(format!("the field `{}` of its form is not a plain string, number, boolean or choice", clean(name)));
        }
    }
    Ok(schema)
}

/// What a question needs of the client.
pub fn ability_for(question: &mcp::Question) -> wit::Abilities {
    match question {
        mcp::Question::Form { .. } => wit::Abilities::FORM,
        mcp::Question::Page { .. } => wit::Abilities::PAGE,
        mcp::Question::Sample(params) if params.contains_key("tools") || params.contains_key("toolChoice") => {
            wit::Abilities::SAMPLING_TOOLS
        }
        mcp::Question::Sample(_) => wit::Abilities::SAMPLING,
        mcp::Question::Roots => wit::Abilities::ROOTS,
    }
}

/// The client's reply to a question, checked against it. The error is the client's.
pub fn answer(question: &mcp::Question, reply: &Value) -> Result<wit::Answer, String> {
    match question {
        mcp::Question::Form { schema, .. } => elicited(reply, || {
            let content = reply.get("content").cloned().unwrap_or_else(|| json!({}));
            Schema::compile(&schema.to_string(), true)?.check(&content)?;
            Ok(content.to_string())
        }),
        mcp::Question::Page { .. } => elicited(reply, || Ok("{}".into())),
        mcp::Question::Sample(_) => {
            let complete = reply.get("role").is_some_and(Value::is_string)
                && reply.get("content").is_some_and(|content| content.is_object() || content.is_array())
                && reply.get("model").is_some_and(Value::is_string);
            if complete { Ok(wit::Answer::Sampled(reply.to_string())) } else { Err("not a result of sampling/createMessage".into()) }
        }
        mcp::Question::Roots => {
            let roots = roots(reply)?.roots.into_iter().map(|root| wit::Root { uri: root.uri, name: root.name });
            Ok(wit::Answer::Roots(roots.collect()))
        }
    }
}

/// An answer as it is carried from round to round.
pub fn carry_answer(answer: &wit::Answer) -> Value {
    match answer {
        wit::Answer::Accepted(json) => json!({ "accepted": json }),
        wit::Answer::Declined => "declined".into(),
        wit::Answer::Cancelled => "cancelled".into(),
        wit::Answer::Sampled(json) => json!({ "sampled": json }),
        wit::Answer::Roots(roots) => {
            let roots: Vec<Value> = roots.iter().map(|root| json!({ "uri": root.uri, "name": root.name })).collect();
            json!({ "roots": roots })
        }
    }
}

/// The answer that was carried. Only what [`carry_answer`] made ever arrives here, since it travels sealed.
pub fn carried_answer((key, carried): &(String, Value)) -> Option<(String, wit::Answer)> {
    let answer = match carried {
        Value::String(text) if text == "declined" => wit::Answer::Declined,
        Value::String(_) => wit::Answer::Cancelled,
        _ if carried.get("accepted").is_some() => wit::Answer::Accepted(carried.get("accepted")?.as_str()?.to_owned()),
        _ if carried.get("sampled").is_some() => wit::Answer::Sampled(carried.get("sampled")?.as_str()?.to_owned()),
        _ => {
            let roots = roots(carried).ok()?.roots.into_iter().map(|root| wit::Root { uri: root.uri, name: root.name });
            wit::Answer::Roots(roots.collect())
        }
    };
    Some((key.clone(), answer))
}

pub fn roots(reply: &Value) -> Result<RootsResult, String> {
    serde_json::from_value(reply.clone()).map_err(|error| format!("not a result of roots/list: {error}"))
}

fn elicited(reply: &Value, accepted: impl FnOnce() -> Result<String, String>) -> Result<wit::Answer, String> {
    match reply.get("action").and_then(Value::as_str) {
        Some("accept") => accepted().map(wit::Answer::Accepted),
        Some("decline") => Ok(wit::Answer::Declined),
        Some("cancel") => Ok(wit::Answer::Cancelled),
        _ => Err("not a result of elicitation/create: `action` is accept, decline or cancel".into()),
    }
}

/// A call's arguments; `{}` if there are none.
pub fn arguments(raw: Option<&RawValue>) -> Result<Value, RpcError> {
    let text = raw.map_or("{}", RawValue::get);
    let value: Value = serde_json::from_str(text).map_err(|error| RpcError::invalid_params(format!("`arguments`: {error}")))?;
    if !value.is_object() {
        return Err(RpcError::invalid_params("`arguments` must be an object"));
    }
    Ok(value)
}

pub fn level(level: wit::Level) -> wharf_protocol::Level {
    use wharf_protocol::Level;
    match level {
        wit::Level::Debug => Level::Debug,
        wit::Level::Info => Level::Info,
        wit::Level::Notice => Level::Notice,
        wit::Level::Warning => Level::Warning,
        wit::Level::Error => Level::Error,
        wit::Level::Critical => Level::Critical,
        wit::Level::Alert => Level::Alert,
        wit::Level::Emergency => Level::Emergency,
    }
}
