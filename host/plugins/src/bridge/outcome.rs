//! Converts the results, failures and content blocks that plugins return.

use serde_json::Value;
use wharf_protocol::{
    Object, RpcError, Shown,
    error::{INSUFFICIENT_SCOPE, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, TOO_MANY_REQUESTS},
    model as mcp,
};
use wharf_sandbox::model as wit;

use super::{
    icons,
    paid::Paid,
    values::{clean_meta, parse_json, read_more},
};
use wharf_base::text::clean;

/// Converts a tool's result. The error describes how the plugin violated its contract.
pub fn tool_result(outcome: wit::ToolResult, paid: &Paid) -> Result<mcp::ToolResult, String> {
    let structured = outcome.structured.as_deref().map(|json| parse_json(json, paid.room())).transpose()?;
    let content = outcome.content.into_iter().map(|one| content(one, paid)).collect::<Result<_, _>>()?;
    let meta = result_meta(outcome.more.as_ref(), paid)?;
    Ok(mcp::ToolResult { content, structured, is_error: outcome.is_error, meta })
}

pub fn structured_result(json: &str, paid: &Paid) -> Result<mcp::ToolResult, String> {
    Ok(mcp::ToolResult { structured: Some(parse_json(json, paid.room())?), ..mcp::ToolResult::default() })
}

/// Returns the `_meta` of a result, without the keys that are reserved for the protocol.
fn result_meta(more: Option<&String>, paid: &Paid) -> Result<Option<Object>, String> {
    let meta = match read_more(more, &[], paid.room())?.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        Some(_) => return Err("`_meta` in `more` must be an object".into()),
        None => return Ok(None),
    };
    Ok(Some(meta))
}

pub fn read_result(contents: Vec<wit::ResourceContents>, paid: &Paid) -> Result<mcp::ReadResult, String> {
    if contents.is_empty() {
        return Err("it returned no contents; for an unknown URI, return a failure of the kind `not-found`".into());
    }
    let contents = contents.into_iter().map(|one| resource_contents(one, paid)).collect::<Result<_, _>>()?;
    Ok(mcp::ReadResult { contents })
}

/// Builds a prompt that consists of one text message of the user.
pub fn prompt_text(text: String, description: Option<Shown>) -> Result<mcp::PromptResult, String> {
    let message = mcp::PromptMessage { role: mcp::Role::User, content: message(mcp::Content::Text(text))? };
    Ok(mcp::PromptResult { description, messages: vec![message], meta: None })
}

fn message(content: mcp::Content) -> Result<Shown<mcp::Content>, String> {
    Shown::message(content).map_err(|unseen| format!("a block of its prompt: {unseen}"))
}

pub fn prompt_result(result: wit::PromptResult, paid: &Paid) -> Result<mcp::PromptResult, String> {
    let message = |message: wit::Message| -> Result<mcp::PromptMessage, String> {
        let role = match message.role {
            wit::Role::User => mcp::Role::User,
            wit::Role::Assistant => mcp::Role::Assistant,
        };
        Ok(mcp::PromptMessage { role, content: self::message(content(message.content, paid)?)? })
    };
    Ok(mcp::PromptResult {
        description: result.description.map(Shown::from),
        messages: result.messages.into_iter().map(message).collect::<Result<_, _>>()?,
        meta: result_meta(result.more.as_ref(), paid)?,
    })
}

fn content(content: wit::Content, paid: &Paid) -> Result<mcp::Content, String> {
    Ok(match content {
        wit::Content::Text(text) => mcp::Content::Text(text),
        wit::Content::Image(media) => mcp::Content::Image { mime_type: media.mime_type, data: media.data },
        wit::Content::Audio(media) => mcp::Content::Audio { mime_type: media.mime_type, data: media.data },
        wit::Content::Link(link) => {
            let mut more = read_more(link.more.as_ref(), &["type", "uri", "name", "mimeType"], paid.room())?;
            icons::keep_embedded(&mut more)?;
            mcp::Content::Link(mcp::ResourceLink { more, uri: link.uri, name: link.name, mime_type: link.mime_type })
        }
        wit::Content::Embedded(contents) => mcp::Content::Embedded(resource_contents(contents, paid)?),
        wit::Content::Raw(json) => mcp::Content::Raw(raw_block(&json, paid)?),
    })
}

/// Checks a content block that the plugin wrote as JSON: its type must exist in MCP, and the members that this type requires must be
/// present.
fn raw_block(json: &str, paid: &Paid) -> Result<Object, String> {
    let Value::Object(mut block) = parse_json(json, paid.room())? else {
        return Err("a raw content block must be a JSON object".into());
    };
    clean_meta(&mut block);
    icons::keep_embedded(&mut block)?;
    if let Some(Value::Object(resource)) = block.get_mut("resource") {
        clean_meta(resource);
    }
    let has = |key: &str| block.get(key).is_some_and(Value::is_string);
    let complete = match block.get("type").and_then(Value::as_str) {
        Some("text") => has("text"),
        Some("image" | "audio") => has("data") && has("mimeType"),
        Some("resource_link") => has("uri") && has("name"),
        Some("resource") => block.get("resource").is_some_and(|resource| {
            resource.get("uri").is_some_and(Value::is_string)
                && (resource.get("text").is_some_and(Value::is_string)
                    || resource.get("blob").is_some_and(Value::is_string))
        }),
        _ => return Err("a raw content block must be of type text, image, audio, resource_link or resource".into()),
    };
    if complete { Ok(block) } else { Err("a raw content block lacks a member that its type requires".into()) }
}

fn resource_contents(contents: wit::ResourceContents, paid: &Paid) -> Result<mcp::ResourceContents, String> {
    Ok(mcp::ResourceContents {
        more: read_more(contents.more.as_ref(), &["uri", "mimeType", "text", "blob"], paid.room())?,
        uri: contents.uri,
        mime_type: contents.mime_type,
        body: match contents.body {
            wit::Body::Text(text) => mcp::Body::Text(text),
            wit::Body::Bytes(bytes) => mcp::Body::Bytes(bytes),
        },
    })
}

/// Converts a completion. Suggestions with hidden characters are dropped, not sanitized, because the client sends a suggestion back as an
/// argument and a changed one would not match.
pub fn completion(completion: wit::Completion) -> mcp::Completion {
    let values = completion.values.iter().filter_map(|value| Shown::exact(value).ok()).collect();
    mcp::Completion { values, total: completion.total, has_more: completion.has_more }
}

/// Converts a plugin's failure to a JSON-RPC error. Returns `None` if the operation itself failed; how that is reported depends on the
/// method.
pub fn failure_error(failure: &wit::Failure, paid: &Paid) -> Option<RpcError> {
    let code = match failure.kind {
        wit::FailureKind::Failed => return None,
        wit::FailureKind::InvalidParams => INVALID_PARAMS,
        wit::FailureKind::NotFound => RESOURCE_NOT_FOUND,
        // The codes that JSON-RPC reserves have fixed meanings, and wharf's own tell the client that its token or role does not allow the
        // call. A plugin may use neither.
        wit::FailureKind::Other(code) if (-32768..=-32000).contains(&code) => INTERNAL_ERROR,
        wit::FailureKind::Other(INSUFFICIENT_SCOPE | TOO_MANY_REQUESTS) => INTERNAL_ERROR,
        wit::FailureKind::Other(code) => code,
    };
    let error = RpcError::new(code, clean(&failure.message));
    match failure.data.as_deref().map(|data| parse_json(data, paid.room())) {
        Some(Ok(data)) => Some(error.with_data(Shown::data(data).into_inner())),
        _ => Some(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_cannot_ask_for_a_login() {
        use wit::FailureKind::{InvalidParams, NotFound, Other};
        let code = |kind: wit::FailureKind| {
            let data = r#"{"scopes":["admin"],"retryAfter":1000000000}"#;
            let failure = wit::Failure { kind, message: "no".into(), data: Some(data.into()) };
            failure_error(&failure, &Paid::in_test()).unwrap().code
        };
        for (given, told) in [
            (Other(INSUFFICIENT_SCOPE), -32603),
            (Other(TOO_MANY_REQUESTS), -32603),
            (Other(-32601), -32603),
            (Other(-32000), -32603),
            (Other(-32602), -32603),
            (InvalidParams, -32602),
            (NotFound, -32002),
            (Other(404), 404),
            (Other(7), 7),
        ] {
            assert_eq!(code(given), told, "{given:?}");
        }
    }
}
