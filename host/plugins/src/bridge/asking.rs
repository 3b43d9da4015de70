//! Converts the questions of plugins (elicitation, sampling, roots), the answers of clients, and the context that a plugin gets with each
//! call.

use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};
use wharf_protocol::{Object, Revision, Shown, capability::ClientCapabilities, model as mcp, params::RootsResult};
use wharf_sandbox::model as wit;

use super::{offer::MAX_URI_BYTES, paid::Paid, values::parse_json};
use wharf_base::text::clean;
use wharf_schema::Schema;

/// What a request says about itself and its caller, for [`context`].
#[derive(Debug)]
pub struct RequestInfo<'a> {
    pub revision: Revision,
    pub client: Option<wit::ClientInfo>,
    pub capabilities: &'a ClientCapabilities,
    /// The request's `_meta`, as JSON.
    pub meta: &'a str,
    /// Whether the client asked for the progress of the request.
    pub progress: bool,
    /// Whether the client gets log records.
    pub log: bool,
}

/// Builds the context that a plugin gets with a call. `caller`: the plugin's own id of the caller.
pub fn context(asker: RequestInfo<'_>, caller: Option<String>) -> wit::Context {
    let RequestInfo { revision, client, capabilities: can, meta, progress, log } = asker;
    let mut capabilities = wit::ClientCapabilities::empty();
    for (present, capability) in [
        (can.form, wit::ClientCapabilities::FORM),
        (can.url, wit::ClientCapabilities::URL),
        (can.sampling, wit::ClientCapabilities::SAMPLING),
        (can.sampling_tools, wit::ClientCapabilities::SAMPLING_TOOLS),
        (can.roots, wit::ClientCapabilities::ROOTS),
    ] {
        if present {
            capabilities |= capability;
        }
    }
    let mut reports = wit::Reports::empty();
    for (wanted, report) in [(progress, wit::Reports::PROGRESS), (log, wit::Reports::LOG)] {
        if wanted {
            reports |= report;
        }
    }
    // Both values are JSON already, so nothing has to be escaped.
    let more = format!(r#"{{"meta":{meta},"capabilities":{}}}"#, can.text);
    wit::Context {
        answers: Vec::new(),
        state: None,
        revision: revision.as_str().to_owned(),
        client,
        caller,
        capabilities,
        reports,
        more,
    }
}

/// Reads the `clientInfo` of a client. Returns `None` if it has no name.
pub fn client_info(json: &str) -> Option<wit::ClientInfo> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
        #[serde(default)]
        version: String,
        title: Option<String>,
    }
    // Past the door: the client's message is charged, and this is a small part of it.
    let Named { name, version, title } = serde_json::from_str(json).ok()?;
    Some(wit::ClientInfo { name, version, title })
}

/// Returns the capabilities in `needs` that the client lacks, as an MCP capabilities object, or `None` if it lacks nothing.
pub fn missing_capabilities(needs: wit::ClientCapabilities, capabilities: &ClientCapabilities) -> Option<Value> {
    let mut missing = Object::new();
    let mut elicitation = Object::new();
    if needs.contains(wit::ClientCapabilities::FORM) && !capabilities.form {
        elicitation.insert("form".into(), json!({}));
    }
    if needs.contains(wit::ClientCapabilities::URL) && !capabilities.url {
        elicitation.insert("url".into(), json!({}));
    }
    if !elicitation.is_empty() {
        missing.insert("elicitation".into(), Value::Object(elicitation));
    }
    if needs.contains(wit::ClientCapabilities::SAMPLING_TOOLS) && !capabilities.sampling_tools {
        missing.insert("sampling".into(), json!({ "tools": {} }));
    } else if needs.contains(wit::ClientCapabilities::SAMPLING) && !capabilities.sampling {
        missing.insert("sampling".into(), json!({}));
    }
    if needs.contains(wit::ClientCapabilities::ROOTS) && !capabilities.roots {
        missing.insert("roots".into(), json!({}));
    }
    (!missing.is_empty()).then_some(Value::Object(missing))
}

/// Converts a plugin's question to the one that the client gets: puts the plugin's name before the message, and removes deceptive
/// characters.
pub fn question(plugin: &str, question: &wit::Question, paid: &Paid) -> Result<mcp::Question, String> {
    let signed = |message: &str| Shown::from(format!("[{plugin}] {message}"));
    Ok(match question {
        wit::Question::Form(form) => {
            mcp::Question::Form { message: signed(&form.message), schema: form_schema(&form.schema, paid)? }
        }
        wit::Question::Url(page) => mcp::Question::Page { message: signed(&page.message), url: page_url(&page.url)? },
        wit::Question::Sampling(params) => {
            let Value::Object(mut params) = parse_json(params, paid.room())? else {
                return Err("the parameters of a sampling question must be a JSON object".into());
            };
            if !params.get("messages").is_some_and(Value::is_array)
                || !params.get("maxTokens").is_some_and(Value::is_u64)
            {
                return Err("a sampling question needs `messages` and `maxTokens`".into());
            }
            check_tool_results(&params)?;
            // `includeContext` would let a plugin read the model's context from other servers.
            params.remove("includeContext");
            let params = Shown::sampling(params).map_err(|unseen| format!("its sampling question: {unseen}"))?;
            mcp::Question::Sample(params)
        }
        wit::Question::Roots => mcp::Question::Roots,
    })
}

/// Checks the rules of MCP for tool results in sampling: a message with tool results contains nothing else, and directly follows the
/// message that used the tools.
fn check_tool_results(params: &Object) -> Result<(), String> {
    let blocks = |message: &Value, kind: &str, id: &str| -> (Vec<String>, usize) {
        let content = message.get("content");
        let all: Vec<&Value> = match content {
            Some(Value::Array(blocks)) => blocks.iter().collect(),
            other => other.into_iter().collect(),
        };
        let ids = all.iter().filter(|block| block.get("type").is_some_and(|one| one == kind));
        let ids = ids.map(|block| block.get(id).and_then(Value::as_str).unwrap_or_default().to_owned()).collect();
        (ids, all.len())
    };
    let mut used: Vec<String> = Vec::new();
    for message in params.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let (mut results, all) = blocks(message, "tool_result", "toolUseId");
        if !results.is_empty() && results.len() != all {
            return Err("a message with tool results must not contain anything else".into());
        }
        results.sort();
        used.sort();
        if results != used {
            return Err("each `tool_use` must have a `tool_result` in the next message".into());
        }
        used = blocks(message, "tool_use", "id").0;
    }
    if used.is_empty() { Ok(()) } else { Err("the last message uses tools, but their results are missing".into()) }
}

/// Checks the schema of a form: an object whose fields are plain values, without nesting.
fn form_schema(text: &str, paid: &Paid) -> Result<Shown<Value>, String> {
    Schema::small(text).map_err(|error| format!("the schema of its form: {error}"))?;
    let schema = parse_json(text, paid.room())?;
    let fields =
        schema.get("properties").and_then(Value::as_object).ok_or("the schema of its form has no `properties`")?;
    for (name, field) in fields {
        let plain = match field.get("type").and_then(Value::as_str) {
            Some("string" | "number" | "integer" | "boolean") => true,
            // A multiple choice from a list.
            Some("array") => field.pointer("/items/enum").is_some() || field.pointer("/items/anyOf").is_some(),
            _ => false,
        };
        if !plain {
            return Err(format!(
                "the field `{}` of its form is not a plain string, number, boolean or choice",
                clean(name)
            ));
        }
    }
    Shown::schema(schema).map_err(|unseen| format!("the schema of its form: {unseen}"))
}

/// Checks the URL of a page. A person decides by reading it whether to open the page, so it must not contain hidden characters, and the
/// host must come first, without a user name that could be taken for it.
fn page_url(url: &str) -> Result<Shown, String> {
    if url.len() > MAX_URI_BYTES {
        return Err(format!("it asks to open a page whose URL has more than {MAX_URI_BYTES} bytes"));
    }
    if !url.starts_with("https://") {
        return Err("it asks to open a page that is not https".into());
    }
    // Browsers treat a backslash as a slash.
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return Err("it asks to open a page whose URL has characters that must be percent-encoded".into());
    }
    let uri: Uri = url.parse().map_err(|_| "it asks to open a page whose URL is malformed")?;
    if uri.host().is_none_or(str::is_empty) || uri.authority().is_none_or(|authority| authority.as_str().contains('@'))
    {
        return Err("it asks to open a page whose URL contains a user name or password, or has no host".into());
    }
    Shown::exact(url).map_err(|unseen| format!("the URL of its page: {unseen}"))
}

/// Returns the capability that the client needs for a question.
pub fn capability_for(question: &mcp::Question) -> wit::ClientCapabilities {
    match question {
        mcp::Question::Form { .. } => wit::ClientCapabilities::FORM,
        mcp::Question::Page { .. } => wit::ClientCapabilities::URL,
        mcp::Question::Sample(params) if params.contains_key("tools") || params.contains_key("toolChoice") => {
            wit::ClientCapabilities::SAMPLING_TOOLS
        }
        mcp::Question::Sample(_) => wit::ClientCapabilities::SAMPLING,
        mcp::Question::Roots => wit::ClientCapabilities::ROOTS,
    }
}

/// Checks and converts the client's reply to a question. An error means that the reply is invalid.
pub fn read_answer(question: &mcp::Question, reply: &Value) -> Result<wit::Answer, String> {
    match question {
        mcp::Question::Form { schema, .. } => elicited(reply, || {
            let content = reply.get("content").cloned().unwrap_or_else(|| json!({}));
            Schema::small(&schema.to_string())?.check(&content)?;
            Ok(content.to_string())
        }),
        mcp::Question::Page { .. } => elicited(reply, || Ok("{}".into())),
        mcp::Question::Sample(_) => {
            let complete = reply.get("role").is_some_and(Value::is_string)
                && reply.get("content").is_some_and(|content| content.is_object() || content.is_array())
                && reply.get("model").is_some_and(Value::is_string);
            if complete {
                Ok(wit::Answer::Sampled(reply.to_string()))
            } else {
                Err("not a result of sampling/createMessage".into())
            }
        }
        mcp::Question::Roots => {
            let roots = roots(reply)?.roots.into_iter().map(|root| wit::Root { uri: root.uri, name: root.name });
            Ok(wit::Answer::Roots(roots.collect()))
        }
    }
}

/// Encodes an answer for the sealed request state, in which clients carry earlier answers from round to round (MRTR).
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

/// Decodes an answer from the request state. The state is sealed, so only values made by [`carry_answer`] arrive here.
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

/// Parses the result of `roots/list`.
pub fn roots(reply: &Value) -> Result<RootsResult, String> {
    RootsResult::deserialize(reply).map_err(|error| format!("not a result of roots/list: {error}"))
}

/// Converts the result of `elicitation/create`. `accepted` checks the content and is called if the person accepted.
fn elicited(reply: &Value, accepted: impl FnOnce() -> Result<String, String>) -> Result<wit::Answer, String> {
    match reply.get("action").and_then(Value::as_str) {
        Some("accept") => accepted().map(wit::Answer::Accepted),
        Some("decline") => Ok(wit::Answer::Declined),
        Some("cancel") => Ok(wit::Answer::Cancelled),
        _ => Err("not a result of elicitation/create: `action` is accept, decline or cancel".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(messages: &Value) -> Result<mcp::Question, String> {
        let params = json!({ "messages": messages, "maxTokens": 1, "includeContext": "allServers" });
        question("p", &wit::Question::Sampling(params.to_string()), &Paid::in_test())
    }

    #[test]
    fn results_of_tools_follow_their_use() {
        let used =
            json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "t", "input": {} }] });
        let result = json!({ "type": "tool_result", "toolUseId": "1", "content": [] });
        let answered = json!({ "role": "user", "content": [result] });
        let mixed = json!({ "role": "user", "content": [result, { "type": "text", "text": "x" }] });
        let text = json!({ "role": "user", "content": { "type": "text", "text": "x" } });
        for (messages, fits) in [
            (json!([text]), true),
            (json!([text, used, answered]), true),
            (json!([text, used]), false),
            (json!([text, used, text]), false),
            (json!([text, answered]), false),
            (json!([text, used, mixed]), false),
        ] {
            assert_eq!(sample(&messages).is_ok(), fits, "{messages}");
        }
    }

    #[test]
    fn tools_in_sampling_are_a_capability_of_their_own_and_context_is_not_asked_for() {
        let Ok(plain) = sample(&json!([])) else { panic!("it is a question") };
        assert_eq!(capability_for(&plain), wit::ClientCapabilities::SAMPLING);
        let mcp::Question::Sample(params) = plain else { panic!("of another kind") };
        assert!(!params.contains_key("includeContext"));
        let mut params = params.into_inner();
        params.insert("tools".into(), json!([]));
        assert_eq!(
            capability_for(&mcp::Question::Sample(Shown::sampling(params).unwrap())),
            wit::ClientCapabilities::SAMPLING_TOOLS
        );
    }

    #[test]
    fn pages_are_https() {
        for (url, fits) in [
            ("https://example.com/a", true),
            ("http://example.com/a", false),
            ("javascript:alert(1)", false),
            ("https://example.com/ a", false),
            ("https://example.com/\n", false),
            ("https://xn--bcher-kva.example:8443/a?b=c%20d#e", true),
            ("https://example.com@evil.example/", false),
            ("https://user:word@example.com/", false),
            ("https://example.com%40evil.example/", false),
            ("https://example.com\\@evil.example/", false),
            ("https://example.com/\u{202e}cod.exe", false),
            ("https://ex\u{430}mple.com/", false),
            ("https://example.com/\u{200b}", false),
            ("https:///a", false),
            ("https://", false),
            ("https://@/", false),
            ("HTTPS://example.com/", false),
        ] {
            let page = wit::Question::Url(wit::Url { message: "m".into(), url: url.into() });
            assert_eq!(question("p", &page, &Paid::in_test()).is_ok(), fits, "{url:?}");
        }
    }
}
