//! The operations on a server's entries: the requests for them, and the conversion of their results.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Era,
    asking::{answered, round},
    message::{Reply, RpcError},
    reader::{not_parsed, wrong},
    request::{About, Outgoing, Param},
    talk::{At, Line, Server, Talk},
};
use crate::{
    bindings::{
        completions::{Completion, Target},
        model::{
            Body, Content, Context, Failure, FailureKind, Message, PromptResult, ResourceContents, Role, ToolResult,
        },
    },
    contract::{
        json::{NotParsed, Parsed, Room},
        operation::{
            CallError, CallTool, Complete, GetPrompt, Outcome, PromptAnswer, ReadAnswer, ReadResource, ToolAnswer,
        },
    },
};

/// The codes of JSON-RPC and MCP that have a meaning of their own in the contract.
const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The codes that the host uses towards its clients, and that plugins may not.
const RESERVED: [i64; 2] = [403, 429];

/// The members of a result that is not complete.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'a> {
    result_type: Option<String>,
    #[serde(borrow)]
    input_requests: Option<&'a RawValue>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Contents<'a> {
    #[serde(borrow)]
    contents: Vec<Piece<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Prompted<'a> {
    description: Option<String>,
    #[serde(borrow)]
    messages: Vec<Said<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    role: Speaker,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
}

#[derive(Deserialize)]
struct Completed {
    completion: Suggested,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggested {
    values: Vec<String>,
    total: Option<u32>,
    has_more: Option<bool>,
}

/// A block of text and nothing else. All other blocks are passed on as they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    #[serde(rename = "type")]
    _kind: IsText,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum IsText {
    Text,
}

impl<'a> Parsed<'a> for Kind<'a> {
    const LEVELS: usize = 1;
}

impl<'a> Parsed<'a> for Called<'a> {
    const LEVELS: usize = 2;
}

impl<'a> Parsed<'a> for Contents<'a> {
    const LEVELS: usize = 3;
}

impl<'a> Parsed<'a> for Prompted<'a> {
    const LEVELS: usize = 3;
}

impl Parsed<'_> for Completed {
    const LEVELS: usize = 3;
}

impl Parsed<'_> for Plain {
    const LEVELS: usize = 1;
}

impl Server<'_> {
    pub(crate) async fn call_tool(
        self,
        at: At<'_>,
        talk: &mut Talk,
        call: &CallTool,
    ) -> Result<Outcome<ToolAnswer>, CallError> {
        let request =
            Outgoing { name: Some(&call.name), about: About::of(&call.context), ..Outgoing::new("tools/call") };
        let request =
            request.param("name", Param::Text(&call.name)).param("arguments", Param::Raw((*call.args).as_ref()));
        let result = self.asked(at, talk, request, &call.context).await?;
        let room = Room::of(self.account);
        outcome(&room, &result, |result| {
            let Called { content, structured_content, is_error, meta } = read(&room, "tools/call", result)?;
            Ok(ToolAnswer::Result(ToolResult {
                content: blocks(&room, content)?,
                structured: structured_content.map(|json| json.get().to_owned()),
                is_error: is_error.unwrap_or(false),
                more: more(meta),
            }))
        })
    }

    pub(crate) async fn read_resource(
        self,
        at: At<'_>,
        talk: &mut Talk,
        call: &ReadResource,
    ) -> Result<Outcome<ReadAnswer>, CallError> {
        let request =
            Outgoing { name: Some(&call.uri), about: About::of(&call.context), ..Outgoing::new("resources/read") };
        let request = request.param("uri", Param::Text(&call.uri));
        let result = self.asked(at, talk, request, &call.context).await?;
        let room = Room::of(self.account);
        outcome(&room, &result, |result| {
            let Contents { contents } = read(&room, "resources/read", result)?;
            let pieces = contents.into_iter().map(|piece| {
                let Piece { uri, mime_type, text, blob, meta } = piece;
                let body = match (text, blob) {
                    (Some(text), None) => Body::Text(text),
                    (None, Some(blob)) => {
                        Body::Bytes(STANDARD.decode(blob).map_err(|_| wrong("a `blob` of a resource is not base64"))?)
                    }
                    _ => return Err(wrong("the contents of a resource have neither `text` nor `blob`, or both")),
                };
                Ok(ResourceContents { uri, mime_type, body, more: more(meta) })
            });
            pieces.collect::<Result<_, _>>().map(ReadAnswer::Contents)
        })
    }

    pub(crate) async fn get_prompt(
        self,
        at: At<'_>,
        talk: &mut Talk,
        call: &GetPrompt,
    ) -> Result<Outcome<PromptAnswer>, CallError> {
        let arguments = call.args.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let arguments = arguments.collect::<serde_json::Map<_, _>>();
        let request =
            Outgoing { name: Some(&call.name), about: About::of(&call.context), ..Outgoing::new("prompts/get") };
        let request = request.param("name", Param::Text(&call.name)).param("arguments", Param::Json(arguments.into()));
        let result = self.asked(at, talk, request, &call.context).await?;
        let room = Room::of(self.account);
        outcome(&room, &result, |result| {
            let Prompted { description, messages, meta } = read(&room, "prompts/get", result)?;
            let messages = messages.into_iter().map(|said| {
                let role = match said.role {
                    Speaker::User => Role::User,
                    Speaker::Assistant => Role::Assistant,
                };
                Ok(Message { role, content: block(&room, said.content)? })
            });
            let messages = messages.collect::<Result<_, CallError>>()?;
            Ok(PromptAnswer::Result(PromptResult { description, messages, more: more(meta) }))
        })
    }

    pub(crate) async fn complete(self, at: At<'_>, talk: &mut Talk, call: &Complete) -> Result<Completion, CallError> {
        let target = match &call.target {
            Target::Prompt(name) => serde_json::json!({ "type": "ref/prompt", "name": name }),
            Target::Template(uri) => serde_json::json!({ "type": "ref/resource", "uri": uri }),
        };
        let chosen = call.arguments.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let chosen = chosen.collect::<serde_json::Map<_, _>>();
        let mut request = Outgoing::new("completion/complete")
            .param("ref", Param::Json(target))
            .param("argument", Param::Json(serde_json::json!({ "name": call.argument, "value": call.value })));
        if !chosen.is_empty() {
            request = request.param("context", Param::Json(serde_json::json!({ "arguments": chosen })));
        }
        let reply = Line::new(self, at, talk).request(&request).await?;
        let result = settled(reply, failure)?;
        let room = Room::of(self.account);
        let Completed { completion } = read(&room, "completion/complete", &result)?;
        let Suggested { values, total, has_more } = completion;
        Ok(Completion { values, total, has_more: has_more.unwrap_or(false) })
    }

    /// Sends a request in whose result the server may ask questions. Returns the result, as JSON.
    async fn asked(
        self,
        at: At<'_>,
        talk: &mut Talk,
        request: Outgoing<'_>,
        context: &Context,
    ) -> Result<String, CallError> {
        let request = answered(request, context);
        let reads = request.method == "resources/read";
        let reply = Line::new(self, at, talk).request(&request).await?;
        let era = self.learnt.lock().as_ref().map(|learnt| learnt.era);
        settled(reply, |error| {
            // In the newest revision, a resource that does not exist is an invalid parameter.
            let missing =
                error.code == RESOURCE_NOT_FOUND || (error.code == INVALID_PARAMS && era == Some(Era::SelfDescribing));
            let mut failure = failure(error);
            if reads && missing {
                failure.kind = FailureKind::NotFound;
            }
            failure
        })
    }
}

/// Returns the result of a reply, or its error as the failure of the plugin.
fn settled(reply: Reply, failure: impl FnOnce(RpcError) -> Failure) -> Result<String, CallError> {
    match reply {
        Reply::Result(result) => Ok(result),
        Reply::Error(error) => Err(CallError::Failed(failure(error))),
    }
}

fn failure(RpcError { code, message, data }: RpcError) -> Failure {
    let kind = match i32::try_from(code) {
        _ if code == INVALID_PARAMS => FailureKind::InvalidParams,
        Ok(own) if !(-32768..=-32000).contains(&own) && !RESERVED.contains(&code) => FailureKind::Other(own),
        _ => FailureKind::Failed,
    };
    Failure { kind, message, data: data.map(|data| data.get().to_owned()) }
}

/// Converts a result, which may consist of questions.
fn outcome<T>(
    room: &Room,
    result: &str,
    done: impl FnOnce(&str) -> Result<T, CallError>,
) -> Result<Outcome<T>, CallError> {
    let Kind { result_type, input_requests, request_state } = read(room, "the request", result)?;
    match result_type.as_deref() {
        None | Some("complete") => done(result).map(Outcome::Done),
        Some("input_required") => {
            let requests = input_requests.ok_or_else(|| wrong("its result asks for input, but not for which"))?;
            round(room, requests, request_state).map(Outcome::Ask)
        }
        Some(other) => {
            let name: String = other.chars().take(100).collect();
            Err(wrong(format!("its result is of the type `{name}`, which wharf does not know")))
        }
    }
}

/// Reads a result, or a part of it.
pub(super) fn read<'a, T: Parsed<'a>>(room: &Room, method: &str, result: &'a str) -> Result<T, CallError> {
    let malformed = |why| wrong(format_args!("its result of {method} is malformed: {why}"));
    room.parse(result).map_err(|error| not_parsed(error, malformed))
}

fn blocks(room: &Room, blocks: Vec<&RawValue>) -> Result<Vec<Content>, CallError> {
    // Each may be a few bytes long, so they are charged before they are made.
    room.pay(size_of::<Content>().saturating_mul(blocks.len())).map_err(|_| CallError::TotalMemory)?;
    blocks.into_iter().map(|one| block(room, one)).collect()
}

fn block(room: &Room, block: &RawValue) -> Result<Content, CallError> {
    match room.parse::<Plain>(block.get()) {
        Ok(plain) => Ok(Content::Text(plain.text)),
        Err(NotParsed::Malformed(_)) => Ok(Content::Raw(block.get().to_owned())),
        Err(NotParsed::Full(_)) => Err(CallError::TotalMemory),
    }
}

fn more(meta: Option<&RawValue>) -> Option<String> {
    meta.map(|meta| format!(r#"{{"_meta":{}}}"#, meta.get()))
}
