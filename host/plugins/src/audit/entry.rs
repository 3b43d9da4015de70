//! Builds the members of the lines about runs; `chain` adds the links, and `event` builds all other lines. Members are named by
//! OpenTelemetry's semantic conventions for MCP and generative AI where these define a name, and begin with `wharf.` otherwise.
//!
//! Texts of clients and plugins are shortened and contain no characters that could deceive a terminal. Arguments appear as `arguments`
//! encodes them; results, secrets and the values of variables never appear.

use std::borrow::Cow;

use serde::Serialize;
use wharf_protocol::Method;
use wharf_scope::{Denial, network::HttpUse};

use super::members::{Members, clipped};
use crate::observe::{
    journal::Run,
    record::{Action, CallRecord, Transport},
};
use wharf_base::principal::Principal;
use wharf_policy::access::capability::Access;

/// The maximum number of directories in a line.
const MAX_DIRS: usize = 64;

#[derive(Serialize)]
struct Dir<'a> {
    path: Cow<'a, str>,
    access: &'static str,
}

/// An HTTP request that the plugin made, or tried to make.
#[derive(Serialize)]
struct Http<'a> {
    host: Cow<'a, str>,
    method: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(rename = "in")]
    bytes_in: u64,
    #[serde(rename = "out")]
    bytes_out: u64,
    denied: bool,
}

impl<'a> Http<'a> {
    fn of(one: &'a HttpUse) -> Self {
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

/// Returns the members of the line about a run that has ended or was refused.
pub fn ended(run: &Run<'_>) -> Vec<u8> {
    let record = run.record;
    let mut line = Members::of(if record.action == Action::List { "listing" } else { "call" });
    // The number of the `begun` line of this run.
    if let Some(begun) = run.begun {
        line.number("wharf.begun", begun);
    }
    line.word("outcome", record.ended.as_str());
    if let Some(kind) = record.error_type() {
        line.text("error.type", kind);
    }
    line.number("duration_us", u64::try_from(record.took.as_micros()).unwrap_or(u64::MAX));
    about(record, &mut line);
    if !record.requests.is_empty() {
        line.json("wharf.http", &record.requests.iter().map(Http::of).collect::<Vec<_>>());
    }
    // Other actions of the plugin that the sandbox refused.
    if record.denials.iter().any(|denied| matches!(denied.0, Denial::NoDirectory { .. })) {
        line.json("wharf.denied", &["directory"]);
    }
    line.number("wharf.bytes.in", record.bytes_in as u64);
    line.number("wharf.bytes.out", record.bytes_out as u64);
    line.and(run.arguments)
}

/// Returns the members of the line about a run that begins.
pub fn begun(run: &Run<'_>) -> Vec<u8> {
    let mut line = Members::of("begun");
    about(run.record, &mut line);
    line.and(run.arguments)
}

/// Adds the members that are known when a run begins.
fn about(record: &CallRecord, line: &mut Members) {
    if let Action::Request { method, name } = &record.action {
        line.word("mcp.method.name", method.as_str());
        if !name.is_empty() {
            let key = match method.0 {
                Method::CallTool => "gen_ai.tool.name",
                Method::GetPrompt => "gen_ai.prompt.name",
                Method::ReadResource => "mcp.resource.uri",
                // `completion/complete` is for a prompt or a template.
                _ => "wharf.completes",
            };
            line.text(key, name);
        }
    }
    if let Some(facts) = &record.request {
        line.word("mcp.protocol.version", facts.revision.as_str());
        if let Some(session) = &facts.session {
            line.text("mcp.session.id", session);
        }
        line.text("jsonrpc.request.id", facts.id.trim_matches('"'));
        match facts.transport {
            Some(Transport::Pipe) => line.word("network.transport", "pipe"),
            Some(Transport::Http) => line.word("network.transport", "tcp"),
            Some(Transport::Unix) => line.word("network.transport", "unix"),
            None => {}
        }
        if let Some(address) = facts.address {
            line.text("client.address", &address.to_canonical().to_string());
        }
        if let Some(id) = &facts.request_id {
            line.text("wharf.request_id", id);
        }
        if let Some(trace) = &facts.trace {
            line.text("trace_id", &trace.trace_id);
            line.text("span_id", &trace.span_id);
        }
    }
    if let Some(principal) = &record.principal {
        match (principal.word(), principal) {
            (Some(word), _) => line.word("wharf.principal", word),
            (None, Principal::Named(_) | Principal::User(_) | Principal::Key(_) | Principal::Certificate(_)) => {
                line.text("wharf.principal", &principal.to_string());
            }
            // Tokens are identified by the beginning of their digest.
            (None, _) => line.text("wharf.principal", &principal.short()),
        }
    }
    if !record.plugin.is_empty() {
        line.text("wharf.plugin", &record.plugin);
    }
    if let Some(digest) = &record.digest {
        line.digest("wharf.plugin.sha256", digest.as_bytes());
    }
    let granted = &record.granted;
    if !granted.directories.is_empty() {
        line.json("wharf.dirs", &granted.directories.iter().take(MAX_DIRS).map(dir).collect::<Vec<_>>());
    }
    if !granted.variables.is_empty() {
        line.json("wharf.env", &granted.variables);
    }
    if let Some(approval) = record.approval {
        line.word("wharf.approval", approval.as_str());
    }
}

fn dir((path, access): &(String, Access)) -> Dir<'_> {
    Dir { path: clipped(path), access: access.as_str() }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::{Value, json};
    use wharf_protocol::{Revision, meta::Trace};

    use super::*;
    use crate::observe::record::{ApprovalOutcome, Denied, Ended, Granted, request_facts};

    pub fn line(members: &[u8]) -> Value {
        let members = str::from_utf8(members).unwrap();
        assert!(members.bytes().all(|byte| byte != b'\n'), "{members}");
        let mut line: Value = serde_json::from_str(&format!("{{{members}}}")).unwrap();
        let time = line.as_object_mut().unwrap().shift_remove("time").unwrap();
        assert!(humantime::parse_rfc3339(time.as_str().unwrap()).is_ok(), "{time}");
        line
    }

    fn record() -> CallRecord {
        let mut facts = request_facts(Revision::V2025_11_25, "\"seven\"".into());
        facts.session = Some("00112233".into());
        facts.transport = Some(Transport::Http);
        facts.address = Some([192, 0, 2, 1].into());
        facts.request_id = Some("r-1".to_owned());
        facts.trace = Trace::parse(&format!("00-{}-{}-01", "7".repeat(32), "5".repeat(16)), None);
        CallRecord {
            principal: Some(Principal::Named("ann".into())),
            plugin: "files".into(),
            digest: Some([0xab; 32].into()),
            request: Some(facts),
            action: Action::Request { method: Method::CallTool.into(), name: "files_read".into() },
            granted: Granted {
                directories: vec![("/srv".into(), Access::ReadWrite)],
                variables: vec!["TZ".into()],
                http: true,
            },
            began: SystemTime::now(),
            took: Duration::from_micros(1500),
            waited: None,
            bytes_in: 10,
            bytes_out: 20,
            denials: vec![Denied(Denial::NoDirectory { asked: true })],
            requests: vec![{
                let mut sent = HttpUse::new("POST".into(), "a.example".into());
                (sent.status, sent.bytes_out, sent.bytes_in) = (Some(201), 5, 7);
                sent
            }],
            ended: Ended::TimedOut,
            refusal: None,
            approval: Some(ApprovalOutcome::Session),
            slot: None,
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
            "client.address": "192.0.2.1",
            "wharf.request_id": "r-1",
            "trace_id": "7".repeat(32),
            "span_id": "5".repeat(16),
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
            let action = Action::Request { method: method.into(), name: "x".into() };
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
        let action = Action::Request { method: Method::CallTool.into(), name };
        let record = CallRecord { action, ..record() };
        let members = ended(&Run { record: &record, arguments: ",\"wharf.arguments\":\"\u{9b}\"", begun: None });
        let text = str::from_utf8(&members).unwrap();
        assert!(text.chars().all(|character| !wharf_base::text::is_deceptive(character)), "{text}");
        let line = line(&members);
        let shown = line["gen_ai.tool.name"].as_str().unwrap();
        assert!(shown.starts_with("a\u{202e}\u{1b}[2J\n\"x") && shown.chars().count() == 1025);
        assert_eq!(line["wharf.arguments"], "\u{9b}");
    }
}
