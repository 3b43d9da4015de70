//! Writes results for a revision. The types of `model` are the same for all revisions; the [`Encoder`] knows since which revision each
//! member exists. Its methods for questions and tasks are in `question` and `task`.
//!
//! Answers to requests are returned as the JSON text of a complete `result`, so that those that do not change from call to call, such as
//! lists, can be encoded once and cached.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    capability::server_capabilities,
    escape::write_string,
    message::Id,
    meta::{SERVER_INFO, SUBSCRIPTION_ID},
    model::{
        Body, Completion, Content, Prompt, PromptResult, Question, ReadResult, Resource, ResourceContents,
        ResourceLink, ResourceTemplate, Role, ServerInfo, TaskSupport, Tool, ToolResult,
    },
    object::Object,
    revision::{Era, Revision},
    shown::Shown,
};

/// Writes the results of one server for one revision. A server creates one encoder for each revision and reuses them.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// The revision for which everything is written.
    pub revision: Revision,
    server: ServerInfo,
    /// The end of every result that has no `_meta` of its own: the members that every modern result has, and the closing brace.
    ending: Box<str>,
}

impl Encoder {
    /// Creates an encoder.
    pub fn new(revision: Revision, server: ServerInfo) -> Self {
        let mut encoder = Self { revision, server, ending: "}".into() };
        if encoder.modern() {
            let meta = json!({ SERVER_INFO: encoder.server_info() });
            encoder.ending = format!(r#","resultType":"complete","_meta":{meta}}}"#).into();
        }
        encoder
    }

    pub(crate) fn modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    pub(crate) fn since(&self, revision: Revision) -> bool {
        self.revision >= revision
    }

    /// Returns the short description of the server, which every modern result contains.
    fn server_info(&self) -> Object {
        let mut info = Object::new();
        info.insert("name".into(), self.server.name.clone().into());
        if self.since(Revision::V2025_06_18) {
            insert_some(&mut info, "title", self.server.title.as_deref());
        }
        info.insert("version".into(), self.server.version.clone().into());
        info
    }

    /// Returns the full description of the server, for `initialize` and `server/discover`.
    fn whole_server_info(&self) -> Value {
        let mut info = self.server_info();
        if self.since(Revision::V2025_11_25) {
            insert_some(&mut info, "description", self.server.description.as_deref());
        }
        Value::Object(info)
    }

    /// Adds the members that every modern result has: its type and the short description of the server.
    pub(crate) fn finish(&self, mut result: Object, result_type: &str) -> String {
        if self.modern() {
            let mut meta = match result.remove("_meta") {
                Some(Value::Object(meta)) => meta,
                _ => Object::new(),
            };
            meta.entry(SERVER_INFO).or_insert_with(|| Value::Object(self.server_info()));
            result.insert("resultType".into(), result_type.into());
            result.insert("_meta".into(), Value::Object(meta));
        }
        Value::Object(result).to_string()
    }

    pub(crate) fn complete(&self, result: Object) -> String {
        self.finish(result, "complete")
    }

    /// Adds the caching hints, which modern revisions require in the results of lists, reads and discovery. They forbid to cache: lists
    /// change with plugins and callers, and contents at any time.
    fn cacheable(&self, mut result: Object) -> String {
        if self.modern() {
            result.insert("ttlMs".into(), 0.into());
            result.insert("cacheScope".into(), "private".into());
        }
        self.complete(result)
    }

    /// Writes an acknowledgement without content.
    pub fn empty(&self) -> String {
        self.complete(Object::new())
    }

    /// Writes the answer to `initialize`, which selects this encoder's revision in a legacy handshake. `instructions` tell the model how to
    /// use the server.
    pub fn initialize(&self, instructions: Option<&Shown>) -> String {
        let mut result = Object::new();
        result.insert("protocolVersion".into(), self.revision.as_str().into());
        result.insert("capabilities".into(), server_capabilities(self.revision));
        result.insert("serverInfo".into(), self.whole_server_info());
        if let Some(instructions) = instructions {
            result.insert("instructions".into(), instructions.as_str().into());
        }
        self.complete(result)
    }

    /// Writes the answer to `server/discover`: the modern revisions that are served, and the server's capabilities.
    pub fn discover(&self, instructions: Option<&Shown>) -> String {
        let mut result = Object::new();
        result.insert("supportedVersions".into(), json!(Revision::MODERN.map(Revision::as_str)));
        result.insert("capabilities".into(), server_capabilities(self.revision));
        if let Some(instructions) = instructions {
            result.insert("instructions".into(), instructions.as_str().into());
        }
        result.insert("_meta".into(), json!({ SERVER_INFO: self.whole_server_info() }));
        self.cacheable(result)
    }

    /// Writes one page of a list. `key` is the name of the member with the entries, such as `tools`. Without `next_cursor` it is the last
    /// page.
    pub fn page(&self, key: &str, entries: Vec<Value>, next_cursor: Option<&str>) -> String {
        let mut result = Object::new();
        result.insert(key.into(), Value::Array(entries));
        if let Some(cursor) = next_cursor {
            result.insert("nextCursor".into(), cursor.into());
        }
        self.cacheable(result)
    }

    /// Writes an entry of `tools/list`.
    pub fn tool(&self, tool: &Tool) -> Value {
        let mut object = Object::new();
        object.insert("name".into(), tool.name.clone().into());
        if let (Some(title), true) = (&tool.title, self.since(Revision::V2025_06_18)) {
            object.insert("title".into(), title.as_str().into());
        }
        object.insert("description".into(), tool.description.as_str().into());
        object.insert("inputSchema".into(), parsed(tool.input_schema.get()));
        if let Some(schema) = &tool.output_schema
            && self.since(Revision::V2025_06_18)
        {
            let schema = parsed(schema.get());
            // Before 2026-07-28 structured content can only be an object, so a schema of anything else is left out.
            if self.modern() || schema.get("type").and_then(Value::as_str) == Some("object") {
                object.insert("outputSchema".into(), schema);
            }
        }
        if let (Some(annotations), true) = (&tool.annotations, self.since(Revision::V2025_03_26)) {
            object.insert("annotations".into(), Value::Object(annotations.clone()));
        }
        let support = match tool.task {
            TaskSupport::Forbidden => None,
            TaskSupport::Optional => Some("optional"),
            TaskSupport::Required => Some("required"),
        };
        if let Some(support) = support.filter(|_| self.revision == Revision::V2025_11_25) {
            object.insert("execution".into(), json!({ "taskSupport": support }));
        }
        self.add_more(&mut object, &tool.more);
        Value::Object(object)
    }

    /// Writes an entry of `resources/list`.
    pub fn resource(&self, resource: &Resource) -> Value {
        let mut object = Object::new();
        object.insert("uri".into(), resource.uri.as_str().into());
        object.insert("name".into(), resource.name.as_str().into());
        insert_some(&mut object, "description", resource.description.as_deref());
        insert_some(&mut object, "mimeType", resource.mime_type.as_deref());
        self.add_more(&mut object, &resource.more);
        Value::Object(object)
    }

    /// Writes an entry of `resources/templates/list`.
    pub fn template(&self, template: &ResourceTemplate) -> Value {
        let mut object = Object::new();
        object.insert("uriTemplate".into(), template.uri_template.as_str().into());
        object.insert("name".into(), template.name.as_str().into());
        insert_some(&mut object, "description", template.description.as_deref());
        insert_some(&mut object, "mimeType", template.mime_type.as_deref());
        self.add_more(&mut object, &template.more);
        Value::Object(object)
    }

    /// Writes an entry of `prompts/list`.
    pub fn prompt(&self, prompt: &Prompt) -> Value {
        let mut object = Object::new();
        object.insert("name".into(), prompt.name.clone().into());
        insert_some(&mut object, "description", prompt.description.as_deref());
        let arguments = prompt.arguments.iter().map(|argument| {
            let mut entry = Object::new();
            entry.insert("name".into(), argument.name.as_str().into());
            insert_some(&mut entry, "description", argument.description.as_deref());
            entry.insert("required".into(), argument.required.into());
            Value::Object(entry)
        });
        object.insert("arguments".into(), arguments.collect());
        self.add_more(&mut object, &prompt.more);
        Value::Object(object)
    }

    /// Writes the answer to `tools/call`. Structured content that the client does not see is written as text, unless the plugin wrote a text
    /// itself: models are then given the same twice.
    pub fn tool_result(&self, result: ToolResult) -> String {
        let mut object = Object::new();
        let structured_is_shown = result
            .structured
            .as_ref()
            .is_some_and(|value| self.since(Revision::V2025_06_18) && (self.modern() || value.is_object()));
        // Clients that know structured content may ignore it, so a result that consists of nothing else has a text too.
        let needs_text =
            if structured_is_shown { result.content.is_empty() } else { !result.content.iter().any(Content::is_text) };
        let mut content: Vec<Value> = Vec::with_capacity(result.content.len() + 1);
        content.extend(result.content.into_iter().map(|block| self.content(block)));
        if let Some(structured) = result.structured {
            if needs_text {
                content.push(text_block(structured.to_string()));
            }
            if structured_is_shown {
                object.insert("structuredContent".into(), structured);
            }
        }
        object.insert("content".into(), Value::Array(content));
        if result.is_error {
            object.insert("isError".into(), true.into());
        }
        if let Some(meta) = result.meta {
            object.insert("_meta".into(), Value::Object(meta));
        }
        self.complete(object)
    }

    /// Writes the answer to a `tools/call` whose result is one text. This is the most frequent answer, so it is written directly into its
    /// buffer instead of being built as a [`Value`] first.
    pub fn text_result(&self, text: &str) -> String {
        let start = r#"{"content":[{"type":"text","text":"#;
        let mut json = String::with_capacity(start.len() + text.len() + text.len() / 8 + self.ending.len() + 8);
        json.push_str(start);
        write_string(&mut json, text);
        json.push_str("}]");
        json.push_str(&self.ending);
        json
    }

    /// Writes the answer to `resources/read`.
    pub fn read_result(&self, result: ReadResult) -> String {
        let mut object = Object::new();
        let contents = result.contents.into_iter().map(|contents| self.contents(contents));
        object.insert("contents".into(), contents.collect());
        self.cacheable(object)
    }

    /// Writes the answer to `prompts/get`.
    pub fn prompt_result(&self, result: PromptResult) -> String {
        let mut object = Object::new();
        insert_some(&mut object, "description", result.description.as_deref());
        let messages = result.messages.into_iter().map(|message| {
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({ "role": role, "content": self.content(message.content.into_inner()) })
        });
        object.insert("messages".into(), messages.collect());
        if let Some(meta) = result.meta {
            object.insert("_meta".into(), Value::Object(meta));
        }
        self.complete(object)
    }

    /// Writes the answer to `completion/complete`. Only the first 100 suggestions are written, which is MCP's limit; if there are more, the
    /// answer says so.
    pub fn completion(&self, completion: Completion) -> String {
        let more_than_fits = completion.values.len() > MAX_COMPLETION_VALUES;
        let values: Vec<Shown> = completion.values.into_iter().take(MAX_COMPLETION_VALUES).collect();
        let mut inner = Object::new();
        inner.insert("values".into(), json!(values));
        if let Some(total) = completion.total {
            inner.insert("total".into(), total.into());
        }
        inner.insert("hasMore".into(), (completion.has_more || more_than_fits).into());
        let mut object = Object::new();
        object.insert("completion".into(), Value::Object(inner));
        self.complete(object)
    }

    /// Writes the modern answer by which a server asks questions before it continues (MRTR). Each question has the key under which the
    /// client answers it. The client sends `request_state` back with its answers.
    pub fn input_required(&self, questions: &[(String, Question)], request_state: Option<&str>) -> String {
        let mut object = Object::new();
        object.insert("inputRequests".into(), self.input_requests(questions));
        insert_some(&mut object, "requestState", request_state);
        self.finish(object, "input_required")
    }

    /// Returns the questions in the form of modern results: an object with one member for each key.
    pub(crate) fn input_requests(&self, questions: &[(String, Question)]) -> Value {
        let mut requests = Object::new();
        for (key, question) in questions {
            let (method, params) = self.question(question);
            let mut request = Object::new();
            request.insert("method".into(), method.into());
            if let Some(params) = params {
                request.insert("params".into(), params);
            }
            requests.insert(key.clone(), Value::Object(request));
        }
        Value::Object(requests)
    }

    /// Writes the answer to `subscriptions/listen`, which is sent when the subscription ends.
    pub fn listen_ended(&self, subscription: &Id) -> String {
        let mut meta = Object::new();
        meta.insert(SUBSCRIPTION_ID.into(), subscription.to_value());
        let mut object = Object::new();
        object.insert("_meta".into(), Value::Object(meta));
        self.complete(object)
    }

    /// Writes a block of content. If the revision does not support its kind, a text that says so is written instead.
    pub fn content(&self, content: Content) -> Value {
        match content {
            Content::Text(text) => text_block(text),
            Content::Image { mime_type, data } => media("image", &mime_type, &data),
            Content::Audio { mime_type, data } if self.since(Revision::V2025_03_26) => {
                media("audio", &mime_type, &data)
            }
            Content::Audio { mime_type, data } => text_block(format!(
                "[{} bytes of {mime_type}, which this protocol revision does not support]",
                data.len()
            )),
            Content::Link(link) => self.link(link),
            Content::Embedded(contents) => json!({ "type": "resource", "resource": self.contents(contents) }),
            Content::Raw(block) => self.raw_block(block),
        }
    }

    fn link(&self, link: ResourceLink) -> Value {
        if !self.since(Revision::V2025_06_18) {
            return text_block(format!("{}: {}", link.name, link.uri));
        }
        let mut object = Object::new();
        object.insert("type".into(), "resource_link".into());
        object.insert("uri".into(), link.uri.into());
        object.insert("name".into(), link.name.into());
        insert_some(&mut object, "mimeType", link.mime_type.as_deref());
        self.add_more(&mut object, &link.more);
        Value::Object(object)
    }

    /// Writes a block that the plugin provided as JSON. If the revision does not support its kind, a text that says so is written instead;
    /// members that the revision does not have are left out.
    fn raw_block(&self, block: Object) -> Value {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        let known = match kind {
            "text" | "image" | "resource" => true,
            "audio" => self.since(Revision::V2025_03_26),
            "resource_link" => self.since(Revision::V2025_06_18),
            _ => self.modern(),
        };
        if !known {
            let text = block.get("uri").and_then(Value::as_str).unwrap_or(kind);
            return text_block(format!("[{text}: a block that this protocol revision does not support]"));
        }
        let mut object = Object::new();
        self.add_more(&mut object, &block);
        Value::Object(object)
    }

    fn contents(&self, contents: ResourceContents) -> Value {
        let mut object = Object::new();
        object.insert("uri".into(), contents.uri.into());
        insert_some(&mut object, "mimeType", contents.mime_type.as_deref());
        match contents.body {
            Body::Text(text) => object.insert("text".into(), text.into()),
            Body::Bytes(bytes) => object.insert("blob".into(), STANDARD.encode(bytes).into()),
        };
        self.add_more(&mut object, &contents.more);
        Value::Object(object)
    }

    /// Adds the members that the plugin provided as JSON, without those that the revision does not have.
    fn add_more(&self, object: &mut Object, more: &Object) {
        for (key, value) in more {
            let since = match key.as_str() {
                "title" | "_meta" => Revision::V2025_06_18,
                "icons" => Revision::V2025_11_25,
                _ => Revision::V2024_11_05,
            };
            if object.contains_key(key) || !self.since(since) {
                continue;
            }
            let mut value = value.clone();
            if key == "annotations"
                && !self.since(Revision::V2025_06_18)
                && let Some(annotations) = value.as_object_mut()
            {
                annotations.remove("lastModified");
            }
            object.insert(key.clone(), value);
        }
    }
}

/// MCP's limit on the suggestions of one completion.
const MAX_COMPLETION_VALUES: usize = 100;

fn text_block(text: String) -> Value {
    json!({ "type": "text", "text": text })
}

fn media(kind: &str, mime_type: &str, data: &[u8]) -> Value {
    json!({ "type": kind, "data": STANDARD.encode(data), "mimeType": mime_type })
}

pub(crate) fn insert_some<T: AsRef<str> + ?Sized>(object: &mut Object, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        object.insert(key.into(), value.as_ref().into());
    }
}

/// Parses a schema. Every schema was parsed when its plugin was loaded, so this does not fail and the fallback is never used.
fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| json!({ "type": "object" }))
}
