//! Checks that every metric and label that the dashboard in `examples/grafana` uses exists.

use std::collections::BTreeSet;

use e2e::{Folder, Redis, Server, Value, json, plugin};

use crate::{Collector, Web, scrape};

const DASHBOARD: &str = include_str!("../../../examples/grafana/wharf.json");

/// All queries of a dashboard, from panels and variables.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("expr", Value::String(query)) => found.push(query.clone()),
                    ("query", Value::String(query)) if query.starts_with("label_values(") => found.push(query.clone()),
                    _ => queries(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

/// The metrics in a query: all words with the prefix of wharf's metrics, outside strings and lists of labels.
fn metrics(query: &str) -> Vec<&str> {
    // `by (a, b)` and braces contain labels.
    let word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut named = Vec::new();
    let (mut rest, mut depth) = (query, 0);
    while let Some(at) = rest.find(|character: char| word(character) || character == '{' || character == '}') {
        let from = &rest[at..];
        match from.as_bytes()[0] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        let length = from.find(|character: char| !word(character)).unwrap_or(from.len()).max(1);
        let found = &from[..length];
        rest = &from[length..];
        if found == "by" {
            rest = rest.split_once(')').expect("labels in parentheses").1;
        } else if depth == 0 && ["wharf_", "mcp_", "process_"].iter().any(|prefix| found.starts_with(prefix)) {
            named.push(found);
        }
    }
    named
}

#[test]
fn names_of_metrics_are_told_from_labels() {
    for (query, expected) in [
        ("sum by (mcp_method_name) (rate(mcp_x_count{wharf_y=\"wharf_z\"}[5m]))", &["mcp_x_count"][..]),
        ("wharf_a / wharf_b", &["wharf_a", "wharf_b"]),
        ("label_values(wharf_build_info{job=~\"$job\"}, instance)", &["wharf_build_info"]),
        ("up", &[]),
    ] {
        assert_eq!(metrics(query), expected, "{query}");
    }
}

/// All names of metrics that can exist, from servers in which every event occurs that creates one.
async fn all_names() -> BTreeSet<String> {
    let (folder, web, collector) = (Folder::new(), Web::start().await, Collector::start().await);
    let (out, rule) = (plugin("outgoing"), format!("{{ url = \"{}\", private = true }}", web.url("")));
    folder.config(&format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[audit]\nfile = \"log/audit.jsonl\"\n{}[plugins.out]\npath = {out:?}\nprefix = \"\"\n\
         [plugins.out.grants]\nhttp = [{rule}]\n",
        collector.config("")
    ));
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    session.call("send", json!({ "url": web.url("/ok") })).await;
    let mut names: BTreeSet<String> = scrape(&server).await.names().into_iter().map(str::to_owned).collect();
    let (folder, echo) = (Folder::new(), plugin("echo"));
    let redis = Redis::start(&folder).await;
    folder.config(&format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[http]\ntoken.env = \"TOKEN\"\n[protocol]\nstate_keys = [{{ env = \"STATE_KEY\" }}]\n\
         [cluster]\nredis = \"redis://{}\"\n[plugins.echo]\npath = {echo:?}\n",
        redis.address
    ));
    let key = "07f3".repeat(16);
    let guarded = Server::start_with(&folder, &[], &[("TOKEN", "a-token-of-tests"), ("STATE_KEY", &key)]).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(guarded.post(&[], &ping).await.status(), 401);
    names.extend(scrape(&guarded).await.names().into_iter().map(str::to_owned));
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_it_asks_for_is_there() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let (mut queries_of_it, names) = (Vec::new(), all_names().await);
    queries(&dashboard, &mut queries_of_it);
    assert!(queries_of_it.len() > 20, "{queries_of_it:?}");
    let mut asked = BTreeSet::new();
    for query in &queries_of_it {
        let named = metrics(query);
        assert!(!named.is_empty(), "{query}");
        for metric in named {
            assert!(names.contains(metric), "{metric} of {query} in {names:?}");
            asked.insert(metric.trim_end_matches("_count").trim_end_matches("_bucket").to_owned());
        }
    }
    // The dashboard shows nearly all metrics.
    let base = |name: &String| {
        ["_sum", "_count", "_bucket"].iter().fold(name.clone(), |name, suffix| name.trim_end_matches(suffix).to_owned())
    };
    let unasked: BTreeSet<String> = names.iter().map(base).filter(|name| !asked.contains(name)).collect();
    assert!(unasked.len() <= 1, "{unasked:?}");
}
