//! Converts a run to spans: one for the client's request, one for the run of the plugin, and one for each HTTP request that the plugin
//! sent. Names and attributes follow OpenTelemetry's semantic conventions for MCP and for HTTP.
//!
//! Attributes never contain an argument, an answer, the path of a URL, or anything else that could be a secret.

use std::time::{Duration, SystemTime};

use http::Method as Verb;
use opentelemetry_proto::tonic::{
    common::v1::KeyValue,
    trace::v1::{
        Span as Wire, Status,
        span::{Link, SpanKind},
        status::StatusCode,
    },
};
use wharf_protocol::Method;

use super::attributes::{text, whole};
use crate::observe::{
    record::{Action, CallRecord, Ended, RequestFacts, Transport},
    trace::{Sent, Span, bytes},
};
use wharf_base::text::clip;

/// The HTTP methods that spans name. All others appear as `_OTHER`.
const VERBS: [Verb; 9] = [
    Verb::GET,
    Verb::HEAD,
    Verb::POST,
    Verb::PUT,
    Verb::DELETE,
    Verb::CONNECT,
    Verb::OPTIONS,
    Verb::TRACE,
    Verb::PATCH,
];
/// The span flags for a parent in another process.
const REMOTE: u32 = 0x300;
/// The span flags for a parent in this process, or for a span without a parent.
const LOCAL: u32 = 0x100;
/// The trace flag for a sampled trace.
const SAMPLED: u32 = 1;

/// Returns the spans of a run, the outermost first.
pub fn of(record: &CallRecord, span: &Span) -> Vec<Wire> {
    let mut all = vec![request(record, span)];
    // A refused call did not run.
    if record.ended != Ended::Refused {
        all.push(run(record, span));
        all.extend(span.sent().iter().map(|sent| sent_by(span, sent)));
    }
    all
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn wire(span: &Span, id: &[u8; 8], kind: SpanKind, (began, took): (SystemTime, Duration)) -> Wire {
    Wire {
        trace_id: span.trace.to_vec(),
        span_id: id.to_vec(),
        trace_state: span.state.clone().unwrap_or_default(),
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(began),
        end_time_unix_nano: nanoseconds(began + took),
        ..Wire::default()
    }
}

fn failed(error: &str, attributes: &mut Vec<KeyValue>) -> Status {
    attributes.push(text("error.type", error));
    Status { code: StatusCode::Error.into(), message: String::new() }
}

fn request(record: &CallRecord, span: &Span) -> Wire {
    let mut attributes = Vec::with_capacity(12);
    let mut name = String::new();
    if let Action::Request { method, name: target } = &record.action {
        attributes.push(text("mcp.method.name", method.as_str()));
        name.push_str(method.as_str());
        // Names of tools and prompts that do not exist come from clients and are unbounded, so they are left out.
        let key = match method.0 {
            _ if record.plugin.is_empty() => None,
            Method::CallTool => Some("gen_ai.tool.name"),
            Method::GetPrompt => Some("gen_ai.prompt.name"),
            // Clients can choose the URI of a resource, and the target of a completion, freely.
            _ => None,
        };
        if let Some(key) = key {
            attributes.push(text(key, target));
            name = format!("{name} {target}");
        }
        if method.0 == Method::CallTool {
            attributes.push(text("gen_ai.operation.name", "execute_tool"));
        }
    }
    let mut links = Vec::new();
    if let Some(facts) = &record.request {
        about(facts, &mut attributes);
        let link = facts.link.as_ref();
        let link = link.and_then(|link| Some((bytes::<16>(&link.trace_id)?, bytes::<8>(&link.span_id)?)));
        links.extend(link.map(|(trace, id)| Link {
            trace_id: trace.to_vec(),
            span_id: id.to_vec(),
            flags: REMOTE,
            ..Link::default()
        }));
    }
    if !record.plugin.is_empty() {
        attributes.push(text("wharf.plugin", &record.plugin));
    }
    attributes.push(text("wharf.outcome", record.ended.as_str()));
    let status = record.error_type().map(|error| failed(error, &mut attributes));
    Wire {
        name,
        parent_span_id: span.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        flags: SAMPLED | if span.parent.is_some() { REMOTE } else { LOCAL },
        attributes,
        links,
        status,
        ..wire(span, &span.id, SpanKind::Server, (record.began, record.took))
    }
}

fn about(facts: &RequestFacts, attributes: &mut Vec<KeyValue>) {
    attributes.push(text("mcp.protocol.version", facts.revision.as_str()));
    attributes.push(text("jsonrpc.request.id", clip(facts.id.trim_matches('"'))));
    if let Some(session) = &facts.session {
        attributes.push(text("mcp.session.id", session));
    }
    match facts.transport {
        Some(Transport::Pipe) => attributes.push(text("network.transport", "pipe")),
        Some(transport @ (Transport::Http | Transport::Unix)) => {
            attributes.push(text("network.transport", if transport == Transport::Http { "tcp" } else { "unix" }));
            attributes.push(text("network.protocol.name", "http"));
        }
        None => {}
    }
}

fn run(record: &CallRecord, span: &Span) -> Wire {
    let waited = record.waited.unwrap_or_default().min(record.took);
    let mut attributes = vec![
        text("wharf.plugin", &record.plugin),
        whole("wharf.bytes.in", i64::try_from(record.bytes_in).unwrap_or(i64::MAX)),
        whole("wharf.bytes.out", i64::try_from(record.bytes_out).unwrap_or(i64::MAX)),
    ];
    attributes.extend(record.digest.map(|digest| text("wharf.plugin.sha256", digest.to_string())));
    let status = record.error_type().map(|error| failed(error, &mut attributes));
    Wire {
        name: format!("run {}", record.plugin),
        parent_span_id: span.id.to_vec(),
        flags: SAMPLED | LOCAL,
        attributes,
        status,
        ..wire(span, &span.run, SpanKind::Internal, (record.began + waited, record.took - waited))
    }
}

fn sent_by(span: &Span, sent: &Sent) -> Wire {
    // Plugins can choose the method freely, so only known methods are used as names.
    let method = if VERBS.contains(&sent.method) { sent.method.as_str() } else { "_OTHER" };
    let mut attributes = vec![text("http.request.method", method)];
    if let Some((scheme, host, port)) = &sent.to {
        attributes.push(text("url.scheme", scheme));
        attributes.push(text("server.address", host.trim_matches(['[', ']'])));
        let port = port.unwrap_or(if scheme == "http" { 80 } else { 443 });
        attributes.push(whole("server.port", port));
    }
    if let Some(status) = sent.status {
        attributes.push(whole("http.response.status_code", status));
    }
    let refused = sent.status.filter(|status| *status >= 400).map(|status| status.to_string());
    let status = sent.error.or(refused.as_deref()).map(|error| failed(error, &mut attributes));
    Wire {
        name: if method == "_OTHER" { "HTTP".to_owned() } else { method.to_owned() },
        parent_span_id: span.run.to_vec(),
        flags: SAMPLED | LOCAL,
        attributes,
        status,
        ..wire(span, &sent.id, SpanKind::Client, (sent.began, sent.took))
    }
}
