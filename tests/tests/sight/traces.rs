//! Traces and metrics as a collector receives them: their contents, data that they never contain, and that wharf is not affected by a
//! collector that is slow, broken or gone.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use e2e::{Folder, Pipe, Server, is_error, json, plugin, text};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use tokio::{io::AsyncReadExt, net::TcpListener};

use crate::{
    Collector, Web,
    collector::{attributes, counted},
    scrape,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

fn has(span: &Span, expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = attributes(&span.attributes);
    for (key, value) in expected {
        assert_eq!(all.get(*key).map(String::as_str), Some(*value), "{key} in {all:?}");
    }
    all
}

/// A config with the plugin `out`, which may send requests to the server.
fn reaching(web: &Web, more: &str) -> String {
    let (out, rule) = (plugin("outgoing"), format!("{{ url = \"{}\", private = true }}", web.url("")));
    format!("{more}[plugins.out]\npath = {out:?}\nprefix = \"\"\n[plugins.out.grants]\nhttp = [{rule}]\n")
}

/// Arguments of a call of `send` that belongs to a client's trace.
fn traced(url: &str, flags: &str, headers: serde_json::Value) -> serde_json::Value {
    let meta = json!({ "traceparent": format!("00-{TRACE}-{SPAN}-{flags}"), "tracestate": "vendor=1", "baggage": "user=hunter2" });
    json!({ "name": "send", "arguments": { "url": url, "headers": headers }, "_meta": meta })
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    assert!(headers.get_all(name).iter().count() <= 1, "{headers:?}");
    headers.get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_and_what_its_plugin_sends_are_one_trace() {
    let (folder, web, collector) = (Folder::new(), Web::start().await, Collector::start().await);
    let more = "sample = 1.0\npropagate = true\nattributes = { \"deployment.environment.name\" = \"test\" }\n\
                headers = { Authorization = { env = \"OTLP_TOKEN\" } }\nmetrics_ms = 100\n";
    folder.config(&format!("[server]\nname = \"shop\"\n{}", reaching(&web, &collector.config(more))));
    let server = Server::start_with(&folder, &[], &[("OTLP_TOKEN", "Bearer the-token")]).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let forged =
        json!({ "traceparent": "00-11111111111111111111111111111111-2222222222222222-01", "tracestate": "forged=1" });
    let url = format!("{}?secret=hunter2", web.url("/hunter2"));
    let sent = session.request("tools/call", traced(&url, "01", forged)).await.unwrap();
    assert!(!is_error(&sent), "{sent}");
    let headers = web.headers(1).await.remove(0);
    let seen = collector.until(|seen| seen.spans.len() >= 3).await;
    let (call, run) = (named(&seen.spans, "tools/call send"), named(&seen.spans, "run out"));
    let get = named(&seen.spans, "GET");
    // All belong to the client's trace, each with the enclosing one as its parent.
    for span in [call, run, get] {
        assert_eq!(hex(&span.trace_id), TRACE);
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    }
    assert_eq!((hex(&call.parent_span_id).as_str(), call.kind()), (SPAN, SpanKind::Server));
    assert_eq!((&run.parent_span_id, run.kind()), (&call.span_id, SpanKind::Internal));
    assert_eq!((&get.parent_span_id, get.kind()), (&run.span_id, SpanKind::Client));
    assert!(run.start_time_unix_nano >= call.start_time_unix_nano && run.end_time_unix_nano <= call.end_time_unix_nano);
    // The contacted server gets the id of the span that contacted it, from wharf and not from the plugin.
    let expected = format!("00-{TRACE}-{}-01", hex(&get.span_id));
    assert_eq!((header(&headers, "traceparent"), header(&headers, "tracestate")), (Some(&*expected), Some("vendor=1")));
    assert_eq!(header(&headers, "baggage"), None);
    let session_id = has(
        call,
        &[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "send"),
            ("gen_ai.operation.name", "execute_tool"),
            ("mcp.protocol.version", "2025-11-25"),
            ("network.transport", "tcp"),
            ("wharf.plugin", "out"),
            ("wharf.outcome", "done"),
        ],
    );
    assert_ne!(session_id["mcp.session.id"], session.id, "a session's id is as good as a token");
    let port = web.address.port().to_string();
    let own = [("http.request.method", "GET"), ("server.address", "127.0.0.1"), ("server.port", port.as_str())];
    has(get, &own);
    has(get, &[("http.response.status_code", "200"), ("url.scheme", "http")]);
    let resource = &seen.resources[0];
    assert_eq!((resource["service.name"].as_str(), resource["deployment.environment.name"].as_str()), ("shop", "test"));
    assert!(seen.authorizations.iter().all(|one| one == "Bearer the-token"), "{:?}", seen.authorizations);
    let texts = format!("{:?}", seen.spans);
    assert!(!texts.contains("hunter2") && !texts.contains("the-token"), "{texts}");
    // The metrics are those that Prometheus would read.
    let operations = |seen: &crate::collector::Seen| {
        seen.metrics.iter().filter(|metric| metric.name == "mcp.server.operation.duration").map(counted).max()
    };
    let seen = collector.until(|seen| operations(seen) >= Some(1)).await;
    let names: Vec<&str> = seen.metrics.iter().map(|metric| metric.name.as_str()).collect();
    for name in
        ["wharf_plugin_runs", "wharf_egress_requests", "wharf_guest_memory", "wharf_catalog_info", "process_cpu"]
    {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(server.terminate().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_marked_and_named_by_nobody_else() {
    let (folder, web, collector) = (Folder::new(), Web::start().await, Collector::start().await);
    folder.config(&reaching(&web, &collector.config("sample = 1.0\nmetrics_ms = 0\n")));
    let server = Server::loaded(&folder).await;
    let call = |name: &'static str, arguments: serde_json::Value| {
        let server = &server;
        async move { server.modern("tools/call", json!({ "name": name, "arguments": arguments }), json!({})).await }
    };
    call("send", json!({ "url": web.url("/gone") })).await.unwrap();
    call("send", json!({ "url": "http://hunter2.example/" })).await.unwrap();
    assert!(is_error(&call("send", json!({ "url": 7 })).await.unwrap()));
    call("hunter2_no_such", json!({})).await.unwrap_err();
    server.modern("resources/read", json!({ "uri": "note:///hunter2" }), json!({})).await.unwrap_err();
    let seen = collector.until(|seen| seen.spans.len() >= 9).await;
    let with = |name: &str, error: Option<&str>| {
        let fits = |span: &&Span| {
            span.name == name && attributes(&span.attributes).get("error.type").map(String::as_str) == error
        };
        let found: Vec<&Span> = seen.spans.iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{name} {error:?} in {:#?}", seen.spans);
        let failed = found[0].status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        assert_eq!(failed, error.is_some(), "{found:?}");
        found[0].clone()
    };
    with("GET", Some("410"));
    let denied = attributes(&with("GET", Some("denied")).attributes);
    assert!(!denied.contains_key("server.address"), "where it may not go, it can say anything: {denied:?}");
    with("tools/call send", Some("invalid"));
    let unknown = attributes(&with("tools/call", Some("-32602")).attributes);
    assert!(!unknown.contains_key("gen_ai.tool.name"), "{unknown:?}");
    with("resources/read", Some("-32002"));
    assert!(!format!("{:?}", seen.spans).contains("hunter2"), "{:#?}", seen.spans);
    assert!(seen.metrics.is_empty());
    // No trace is propagated unless the operator enables it, and the plugin's own headers are unchanged.
    let own = json!({ "traceparent": "00-11111111111111111111111111111111-2222222222222222-01" });
    server.modern("tools/call", traced(&web.url("/"), "01", own), json!({})).await.unwrap();
    let headers = web.headers(2).await.remove(1);
    assert_eq!(header(&headers, "traceparent"), Some("00-11111111111111111111111111111111-2222222222222222-01"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_http_request_is_a_link_and_not_the_parent() {
    let (folder, collector) = (Folder::new(), Collector::start().await);
    let echo = plugin("echo");
    folder.config(&format!("{}[plugins.echo]\npath = {echo:?}\n", collector.config("sample = 1.0\n")));
    let server = Server::loaded(&folder).await;
    let params = json!({ "name": "echo_echo", "arguments": { "message": "x" } });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": e2e::modern_params(params, json!({})) });
    let headers = e2e::http::modern_headers(&body);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let traceparent = format!("00-{TRACE}-{SPAN}-01");
    headers.push(("traceparent", &traceparent));
    assert_eq!(server.probe(&headers, &body).await.1, 0);
    let seen = collector.until(|seen| seen.spans.len() >= 2).await;
    let call = named(&seen.spans, "tools/call echo_echo");
    assert!(call.parent_span_id.is_empty() && hex(&call.trace_id) != TRACE, "{call:?}");
    assert_eq!(call.links.len(), 1);
    assert_eq!((hex(&call.links[0].trace_id).as_str(), hex(&call.links[0].span_id).as_str()), (TRACE, SPAN));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_decide_about_their_traces_only_if_they_are_trusted() {
    for (more, flags, kept) in [
        ("sample = 0.0\n", "01", false),
        ("sample = 0.0\ntrust_parent = true\n", "01", true),
        ("sample = 1.0\n", "00", true),
        ("sample = 1.0\ntrust_parent = true\n", "00", false),
    ] {
        let (folder, web, collector) = (Folder::new(), Web::start().await, Collector::start().await);
        folder.config(&reaching(&web, &collector.config(&format!("{more}propagate = true\n"))));
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-11-25", json!({})).await;
        pipe.request("tools/call", traced(&web.url("/"), flags, json!({}))).await.unwrap();
        let headers = web.headers(1).await.remove(0);
        // The next server learns the sampling decision, and the trace continues either way.
        let carried = header(&headers, "traceparent").unwrap();
        assert!(carried.starts_with(&format!("00-{TRACE}-")), "{carried}");
        assert_eq!(carried.ends_with("-01"), kept, "{more}{flags}: {carried}");
        // The queue is sent before wharf exits.
        assert!(pipe.close().await.status.success());
        let seen = collector.until(|seen| !seen.metrics.is_empty()).await;
        assert_eq!(!seen.spans.is_empty(), kept, "{more}{flags}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_or_never_answers_harms_nobody() {
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for address in [deaf.local_addr().unwrap(), gone] {
        let folder = Folder::new();
        let echo = plugin("echo");
        folder.config(&format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n[telemetry]\notlp = \"http://{address}\"\nsample = 1.0\nmetrics_ms = 100\n\
             [plugins.echo]\npath = {echo:?}\n"
        ));
        let server = Server::loaded(&folder).await;
        for _ in 0..50 {
            let params = json!({ "name": "echo_echo", "arguments": { "message": "x" } });
            assert_eq!(text(&server.modern("tools/call", params, json!({})).await.unwrap()), "x");
        }
        let told = server.wait_for_log("telemetry cannot be sent to").await;
        assert!(told.contains(&address.to_string()), "{told}");
        if address == gone {
            // Retried once, then counted; reading the metrics does not wait for any of this.
            let lost = async {
                while scrape(&server).await.sum("wharf_spans_lost_total", &[("reason", "sending")]) < 50.0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(e2e::PATIENCE, lost).await.expect("they are lost");
        }
        let log = server.log();
        assert!(log.matches("telemetry cannot be sent").count() <= 2, "told too often:\n{log}");
        let began = std::time::Instant::now();
        assert!(server.terminate().await.0.success());
        assert!(began.elapsed() < e2e::prompt(), "{:?}", began.elapsed());
    }
    // Connections to the silent collector were made.
    let (mut stream, _) = deaf.accept().await.unwrap();
    assert!(stream.read(&mut [0; 16]).await.unwrap() > 0);
}
