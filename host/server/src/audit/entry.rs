//! What a line of the audit log says of a run, without its place in the chain; `event` has what it says of anything else. Names are those of OpenTelemetry's conventions for MCP and for
//! generative AI where there is one, and begin with `wharf.` otherwise.
//!
//! Texts of clients and plugins are cut to a length and hold no character that could deceive a terminal. Of arguments, there is
//! what `arguments` makes of them; nothing of results, secrets or variables' values.

use std::{borrow::Cow, time::SystemTime};

use serde::Serialize;
use wharf_protocol::{Method, error::clip_to};
use wharf_sandbox::{Denial, network::HttpUse};

use crate::{
    base::{
        principal::Principal,
        text::{escaped_json, hex},
    },
    observe::{
        journal::Run,
        record::{Action, Approval, CallRecord, Ended, Transport},
    },
};

/// The most characters of one text of a client or plugin.
const MAX_CHARS: usize = 1024;
/// The most directories of which a line tells.
const MAX_DIRS: usize = 64;

/// A run, or a request that was refused before it ran.
#[derive(Serialize)]
struct Call<'a> {
    time: String,
    event: &'static str,
    /// The number of the line that says that it began.
    #[serde(rename = "wharf.begun", skip_serializing_if = "Option::is_none")]
    begun: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(rename = "error.type", skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    #[serde(rename = "mcp.method.name", skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(rename = "gen_ai.tool.name", skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(rename = "gen_ai.prompt.name", skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(rename = "mcp.resource.uri", skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    /// What is completed, which is a prompt or a template.
    #[serde(rename = "wharf.completes", skip_serializing_if = "Option::is_none")]
    completes: Option<String>,
    #[serde(rename = "mcp.protocol.version", skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(rename = "mcp.session.id", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(rename = "jsonrpc.request.id", skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    #[serde(rename = "network.transport", skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<&'a str>,
    #[serde(rename = "wharf.principal", skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    #[serde(rename = "wharf.plugin", skip_serializing_if = "str::is_empty")]
    plugin: &'a str,
    #[serde(rename = "wharf.plugin.sha256", skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(rename = "wharf.dirs", skip_serializing_if = "Vec::is_empty")]
    dirs: Vec<Dir>,
    #[serde(rename = "wharf.env", skip_serializing_if = "<[String]>::is_empty")]
    env: &'a [String],
    #[serde(rename = "wharf.approval", skip_serializing_if = "Option::is_none")]
    approval: Option<&'static str>,
    /// The requests that the plugin made, or tried to make.
    #[serde(rename = "wharf.http", skip_serializing_if = "Vec::is_empty")]
    http: Vec<Http>,
    /// What else the plugin tried and was refused.
    #[serde(rename = "wharf.denied", skip_serializing_if = "Vec::is_empty")]
    denied: Vec<&'static str>,
    #[serde(rename = "wharf.bytes.in", skip_serializing_if = "Option::is_none")]
    bytes_in: Option<usize>,
    #[serde(rename = "wharf.bytes.out", skip_serializing_if = "Option::is_none")]
    bytes_out: Option<usize>,
}

#[derive(Serialize)]
struct Dir {
    path: String,
    access: &'static str,
}

/// A request over HTTP that the plugin made, or tried to make.
#[derive(Serialize)]
struct Http {
    host: String,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(rename = "in")]
    bytes_in: u64,
    #[serde(rename = "out")]
    bytes_out: u64,
    denied: bool,
}

impl Http {
    fn of(one: &HttpUse) -> Self {
        Self {
            host: clipped(&one.authority),
            method: clipped(&one.method),
            status: one.status,
            bytes_in: one.bytes_in,
            bytes_out: one.bytes_out,
            denied: one.denied,
        }
    }
}

/// The members of a line about a run that has ended, or that was refused.
pub fn ended(run: &Run<'_>) -> String {
    let record = run.record;
    let mut call = about(record);
    call.begun = run.begun;
    call.outcome = Some(outcome(record.ended));
    call.error = record.refusal.as_deref().or_else(|| error_type(record.ended));
    call.duration_us = u64::try_from(record.took.as_micros()).ok();
    call.bytes_in = Some(record.bytes_in);
    call.bytes_out = Some(record.bytes_out);
    call.http = record.requests.iter().map(Http::of).collect();
    if record.denials.contains(&Denial::NoDirectory) {
        call.denied.push("directory");
    }
    with_arguments(&call, run.arguments)
}

/// The members of a line about a run that begins.
pub fn begun(run: &Run<'_>) -> String {
    with_arguments(&Call { event: "begun", ..about(run.record) }, run.arguments)
}

/// What is known of a run when it begins.
fn about(record: &CallRecord) -> Call<'_> {
    let mut call = Call {
        time: now(),
        event: if record.action == Action::List { "listing" } else { "call" },
        begun: None,
        outcome: None,
        error: None,
        duration_us: None,
        method: None,
        tool: None,
        prompt: None,
        resource: None,
        completes: None,
        version: None,
        session: None,
        request: None,
        transport: None,
        trace_id: None,
        span_id: None,
        principal: record.principal.as_ref().map(principal),
        plugin: &record.plugin,
        digest: record.digest.iter().any(|byte| *byte != 0).then(|| hex(&record.digest)),
        dirs: record.granted.directories.iter().take(MAX_DIRS).map(dir).collect(),
        env: &record.granted.variables,
        approval: record.approval.map(Approval::as_str),
        http: Vec::new(),
        denied: Vec::new(),
        bytes_in: None,
        bytes_out: None,
    };
    if let Action::Request { method, name } = &record.action {
        call.method = Some(method.as_str());
        let place = match method {
            Method::CallTool => &mut call.tool,
            Method::GetPrompt => &mut call.prompt,
            Method::ReadResource => &mut call.resource,
            _ => &mut call.completes,
        };
        *place = Some(clipped(name)).filter(|name| !name.is_empty());
    }
    if let Some(facts) = &record.request {
        call.version = Some(facts.revision.as_str());
        call.session = facts.session.as_deref();
        call.request = Some(clipped(facts.id.trim_matches('"')));
        call.transport = facts.transport.map(|transport| match transport {
            Transport::Pipe => "pipe",
            Transport::Http => "tcp",
        });
        call.trace_id = facts.trace.as_ref().map(|trace| trace.trace_id.as_str());
        call.span_id = facts.trace.as_ref().map(|trace| trace.span_id.as_str());
    }
    call
}

fn dir((path, writable): &(String, bool)) -> Dir {
    Dir { path: clipped(path), access: if *writable { "read-write" } else { "read" } }
}

/// Tokens are told apart by the beginning of their digest.
fn principal(principal: &Principal) -> String {
    match principal {
        Principal::Named(_) | Principal::User(_) => clipped(&principal.to_string()),
        _ => principal.short(),
    }
}

fn outcome(ended: Ended) -> String {
    ended.as_str().replace(' ', "_")
}

/// What stands under `error.type` when a run had an error.
fn error_type(ended: Ended) -> Option<&'static str> {
    match ended {
        Ended::Done | Ended::Asked => None,
        Ended::Failed => Some("tool_error"),
        Ended::Refused => Some("refused"),
        Ended::TimedOut => Some("timeout"),
        Ended::OverLimit => Some("over_limit"),
        Ended::Crashed => Some("crash"),
        Ended::Revoked => Some("revoked"),
        Ended::Cancelled => Some("cancelled"),
    }
}

pub(super) fn clipped(text: &str) -> String {
    // A text of so many bytes has no more characters.
    if text.len() <= MAX_CHARS { text.to_owned() } else { clip_to(text, MAX_CHARS) }
}

pub(super) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

fn with_arguments(call: &Call<'_>, arguments: &str) -> String {
    let mut text = members(call);
    text.push_str(&safe(arguments));
    text
}

/// The members of an object, without its braces.
pub(super) fn members(entry: &impl Serialize) -> String {
    // These types have nothing that JSON cannot hold.
    let mut text = serde_json::to_string(entry).unwrap_or_else(|_| "{\"event\":\"unwritable\"}".into());
    text.pop();
    text.remove(0);
    match safe(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(safe) => safe,
    }
}

/// JSON on one line, without characters that could deceive a terminal.
fn safe(json: &str) -> Cow<'_, str> {
    let plain = json.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if plain { Cow::Borrowed(json) } else { Cow::Owned(escaped_json(json)) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use wharf_protocol::{Revision, meta::Trace};

    use super::*;
    use crate::observe::record::{Granted, RequestFacts};

    pub fn line(members: &str) -> Value {
        assert!(members.bytes().all(|byte| byte != b'\n'), "{members}");
        let mut line: Value = serde_json::from_str(&format!("{{{members}}}")).unwrap();
        let time = line.as_object_mut().unwrap().shift_remove("time").unwrap();
        assert!(humantime::parse_rfc3339(time.as_str().unwrap()).is_ok(), "{time}");
        line
    }

    fn record() -> CallRecord {
        let mut facts = RequestFacts::new(Revision::V2025_11_25, "\"seven\"".into());
        facts.session = Some("00112233".into());
        facts.transport = Some(Transport::Http);
        facts.trace = Some(Trace { trace_id: "t".into(), span_id: "s".into() });
        CallRecord {
            principal: Some(Principal::Named("ann".into())),
            plugin: "files".into(),
            digest: [0xab; 32],
            request: Some(facts),
            action: Action::Request { method: Method::CallTool, name: "files_read".into() },
            granted: Granted { directories: vec![("/srv".into(), true)], variables: vec!["TZ".into()], http: true },
            began: SystemTime::now(),
            took: Duration::from_micros(1500),
            bytes_in: 10,
            bytes_out: 20,
            denials: vec![Denial::NoDirectory],
            requests: vec![HttpUse {
                method: "POST".into(),
                authority: "a.example".into(),
                status: Some(201),
                bytes_out: 5,
                bytes_in: 7,
                denied: false,
            }],
            ended: Ended::TimedOut,
            refusal: None,
            approval: Some(Approval::Session),
        }
    }

    #[test]
    fn a_call_says_who_did_what_with_which_rights_and_how_it_ended() {
        let record = record();
        let run = Run { record: &record, arguments: ",\"wharf.arguments.hmac\":\"00\"", begun: Some(3) };
        let both = json!({
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "files_read",
            "mcp.protocol.version": "2025-11-25",
            "mcp.session.id": "00112233",
            "jsonrpc.request.id": "seven",
            "network.transport": "tcp",
            "trace_id": "t",
            "span_id": "s",
            "wharf.principal": "named ann",
            "wharf.plugin": "files",
            "wharf.plugin.sha256": "ab".repeat(32),
            "wharf.dirs": [{ "path": "/srv", "access": "read-write" }],
            "wharf.env": ["TZ"],
            "wharf.approval": "session",
            "wharf.arguments.hmac": "00",
        });
        let with = |more: Value| {
            let mut all = both.clone();
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        assert_eq!(line(&begun(&run)), with(json!({ "event": "begun" })));
        let more = json!({
            "event": "call",
            "wharf.begun": 3,
            "outcome": "timed_out",
            "error.type": "timeout",
            "duration_us": 1500,
            "wharf.http": [
                { "host": "a.example", "method": "POST", "status": 201, "in": 7, "out": 5, "denied": false }
            ],
            "wharf.denied": ["directory"],
            "wharf.bytes.in": 10,
            "wharf.bytes.out": 20,
        });
        assert_eq!(line(&ended(&run)), with(more));
    }

    #[test]
    fn what_a_call_is_for_stands_under_the_name_of_its_kind() {
        for (method, key) in [
            (Method::CallTool, "gen_ai.tool.name"),
            (Method::GetPrompt, "gen_ai.prompt.name"),
            (Method::ReadResource, "mcp.resource.uri"),
            (Method::Complete, "wharf.completes"),
        ] {
            let action = Action::Request { method, name: "x".into() };
            let record = CallRecord { action, ..record() };
            let line = line(&begun(&Run { record: &record, arguments: "", begun: None }));
            assert_eq!((&line[key], &line["mcp.method.name"]), (&json!("x"), &json!(method.as_str())));
        }
        let record = CallRecord { action: Action::List, request: None, principal: None, ..record() };
        let line = line(&ended(&Run { record: &record, arguments: "", begun: None }));
        assert_eq!((&line["event"], line.get("mcp.method.name")), (&json!("listing"), None));
    }

    #[test]
    fn foreign_texts_are_short_and_deceive_no_terminal() {
        let name = format!("a\u{202e}\u{1b}[2J\n\"{}", "x".repeat(5000));
        let action = Action::Request { method: Method::CallTool, name };
        let record = CallRecord { action, ..record() };
        let members = ended(&Run { record: &record, arguments: ",\"wharf.arguments\":\"\u{9b}\"", begun: None });
        assert!(members.chars().all(|character| !crate::base::text::is_deceptive(character)), "{members}");
        let line = line(&members);
        let shown = line["gen_ai.tool.name"].as_str().unwrap();
        assert!(shown.starts_with("a\u{202e}\u{1b}[2J\n\"x") && shown.chars().count() == 1025);
        assert_eq!(line["wharf.arguments"], "\u{9b}");
    }
}
