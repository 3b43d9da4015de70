//! The lists of a server, converted to those of a plugin.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Learnt,
    answers::read,
    message::{METHOD_NOT_FOUND, Reply},
    reader::wrong,
    request::{Outgoing, Param, mirrored},
    talk::{At, Line, Server, Talk, refused},
};
use crate::{
    bindings::model::{
        ClientCapabilities, Hints, Prompt, PromptArgument, ResourceEntry, ResourceTemplate, TaskSupport, Tool,
        ToolDetails,
    },
    contract::{
        json::{Parsed, Room},
        operation::{CallError, Listing},
    },
};
use wharf_scope::MAX_INSTRUCTIONS_BYTES;

/// The maximum number of pages of a list.
const MAX_PAGES: usize = 100;
/// The memory of all calls divided by this is what the lists of a server may take while they are read.
const LIST_SHARE_DIVISOR: usize = 4;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(alias = "tools", alias = "resources", alias = "resourceTemplates", alias = "prompts")]
    entries: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool<'a> {
    name: String,
    #[serde(default)]
    description: String,
    title: Option<String>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
    annotations: Option<Annotations>,
    #[serde(borrow)]
    icons: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource<'a> {
    #[serde(alias = "uriTemplate")]
    uri: String,
    name: String,
    description: Option<String>,
    mime_type: Option<String>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    size: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    icons: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ListedPrompt<'a> {
    name: String,
    description: Option<String>,
    #[serde(default)]
    arguments: Vec<Argument>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    icons: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    description: Option<String>,
    #[serde(default)]
    required: bool,
}

impl Parsed<'_> for Page {
    const LEVELS: usize = 2;
}

impl<'a> Parsed<'a> for ListedTool<'a> {
    const LEVELS: usize = 2;
}

impl<'a> Parsed<'a> for ListedResource<'a> {
    const LEVELS: usize = 1;
}

impl<'a> Parsed<'a> for ListedPrompt<'a> {
    const LEVELS: usize = 3;
}

impl Server<'_> {
    /// Asks for everything that the server has, and learns how it has to be addressed.
    pub(crate) async fn list(self, at: At<'_>, talk: &mut Talk) -> Result<Listing, CallError> {
        // Lists are on nobody's account, so that of all calls pays for them, and the calls keep most of it.
        let account = self.account.share(self.account.limit() / LIST_SHARE_DIVISOR);
        let room = Room::of(&account);
        let mut line = Line::new(Server { account: &account, ..self }, at, talk);
        let (learnt, face) = line.meet().await?;
        let mut listing = Listing { instructions: face.instructions.map(bounded), ..Listing::default() };
        let (mut mirrors, mut bytes) = (HashMap::new(), 0);
        if face.capabilities.tools.is_some() {
            for text in all(&mut line, &room, "tools/list", &mut bytes).await? {
                let tool: ListedTool<'_> = read(&room, "tools/list", text.get())?;
                let mirrored = mirrored(tool.input_schema, &room)?;
                if !mirrored.is_empty() {
                    mirrors.insert(tool.name.clone(), mirrored);
                }
                listing.tools.push(converted(tool));
            }
        }
        if face.capabilities.resources.is_some() {
            for text in all(&mut line, &room, "resources/list", &mut bytes).await? {
                let one: ListedResource<'_> = read(&room, "resources/list", text.get())?;
                let more = one.more();
                let ListedResource { uri, name, description, mime_type, .. } = one;
                listing.resources.push(ResourceEntry { uri, name, description, mime_type, more });
            }
            for text in all(&mut line, &room, "resources/templates/list", &mut bytes).await? {
                let one: ListedResource<'_> = read(&room, "resources/templates/list", text.get())?;
                let more = one.more();
                let ListedResource { uri: uri_template, name, description, mime_type, .. } = one;
                listing.templates.push(ResourceTemplate { uri_template, name, description, mime_type, more });
            }
        }
        if face.capabilities.prompts.is_some() {
            for text in all(&mut line, &room, "prompts/list", &mut bytes).await? {
                let ListedPrompt { name, description, arguments, title, icons, meta } =
                    read(&room, "prompts/list", text.get())?;
                let arguments = arguments.into_iter().map(|Argument { name, description, required }| PromptArgument {
                    name,
                    description,
                    required,
                });
                let more = members([("title", title), ("icons", icons), ("_meta", meta)]);
                listing.prompts.push(Prompt { name, description, arguments: arguments.collect(), more });
            }
        }
        let Learnt { era, completions, .. } = *learnt;
        *self.learnt.lock() = Some(Arc::new(Learnt { era, completions, mirrored: mirrors }));
        Ok(listing)
    }
}

/// Asks for all pages of a list. `bytes`: the size of the lists so far, all of which together may have as many bytes as an answer.
async fn all(
    line: &mut Line<'_>,
    room: &Room,
    method: &'static str,
    bytes: &mut usize,
) -> Result<Vec<Box<RawValue>>, CallError> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let mut request = Outgoing::new(method);
        if let Some(cursor) = &cursor {
            request = request.param("cursor", Param::Text(cursor));
        }
        let result = match line.request(&request).await? {
            Reply::Result(result) => result,
            // Servers with resources need not have templates.
            Reply::Error(error) if error.code == METHOD_NOT_FOUND && method == "resources/templates/list" => break,
            Reply::Error(error) => return Err(refused(method, &error)),
        };
        *bytes += result.len();
        if *bytes > line.server.limit {
            return Err(CallError::Output(line.server.limit));
        }
        let Page { entries, next_cursor } = read(room, method, &result)?;
        all.extend(entries);
        match next_cursor {
            None => return Ok(all),
            next => cursor = next,
        }
    }
    match cursor {
        None => Ok(all),
        Some(_) => Err(wrong(format!("its list of {method} has more than {MAX_PAGES} pages"))),
    }
}

/// Cuts instructions that are longer than those of a plugin may be. They stay longer than that, so that they are known to be too long.
fn bounded(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_INSTRUCTIONS_BYTES + 4));
    text
}

fn converted(tool: ListedTool<'_>) -> Tool {
    let ListedTool { name, description, title, input_schema, output_schema, annotations, icons, meta } = tool;
    let (mut hinted_title, mut hints) = (None, None);
    if let Some(Annotations { title, read_only_hint, destructive_hint, idempotent_hint, open_world_hint }) = annotations
    {
        hinted_title = title;
        hints = Some(Hints {
            read_only: read_only_hint,
            destructive: destructive_hint,
            idempotent: idempotent_hint,
            open_world: open_world_hint,
        });
    }
    let details = ToolDetails {
        title: title.or(hinted_title),
        output_schema: output_schema.map(|schema| schema.get().to_owned()),
        hints,
        needs: ClientCapabilities::empty(),
        task: TaskSupport::Forbidden,
        more: members([("icons", icons), ("_meta", meta)]),
    };
    Tool { name, description, input_schema: input_schema.get().to_owned(), details: Some(details) }
}

impl ListedResource<'_> {
    fn more(&self) -> Option<String> {
        let Self { title, size, annotations, icons, meta, .. } = self;
        members([
            ("title", *title),
            ("size", *size),
            ("annotations", *annotations),
            ("icons", *icons),
            ("_meta", *meta),
        ])
    }
}

/// Returns the members that are there as a JSON object; `None` if all are missing.
fn members<const N: usize>(members: [(&str, Option<&RawValue>); N]) -> Option<String> {
    let there = members.into_iter().filter_map(|(name, value)| Some(format!(r#""{name}":{}"#, value?.get())));
    let there: Vec<String> = there.collect();
    (!there.is_empty()).then(|| format!("{{{}}}", there.join(",")))
}
