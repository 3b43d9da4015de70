//! What a plugin's request costs: a call in a fresh sandbox that makes one request on a connection that is kept, against the same
//! request by the HTTP client itself.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use wharf_base::places::Party;
use wharf_egress::{
    Allowance, Egress,
    rule::{RawRule, Rule},
};
use wharf_sandbox::{CallTool, LoadedPlugin, NoEvents, Outcome, PluginCall, Sandbox, ToolAnswer, Traces};
use wharf_scope::{Scope, network::Network};

use crate::{
    Effort,
    report::{Report, Row, Wanted, median},
    sandboxes::{Once, load, plugin},
    servers::{Built, Http},
};

/// How many requests are in flight against the slow server.
const IN_FLIGHT: usize = 64;

/// So many at once for so long; how long each took.
async fn latencies(once: &Once, at_once: usize, duration: Duration) -> Result<Vec<f64>> {
    let start = Instant::now();
    let loops = (0..at_once).map(|_| {
        let once = Arc::clone(once);
        tokio::spawn(async move {
            let mut all = Vec::new();
            while start.elapsed() < duration {
                let begun = Instant::now();
                once().await?;
                all.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, anyhow::Error>(all)
        })
    });
    let mut all = Vec::new();
    for ended in futures_util::future::join_all(loops).await {
        all.extend(ended??);
    }
    Ok(all)
}

/// By the client itself.
fn native(url: &str) -> Result<Once> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let uri: http::Uri = url.parse()?;
    Ok(Arc::new(move || {
        let (client, uri) = (client.clone(), uri.clone());
        Box::pin(async move {
            let response = client.get(uri).await?;
            ensure!(response.status().is_success(), "{}", response.status());
            response.into_body().collect().await?;
            Ok(())
        }) as Pin<Box<dyn Future<Output = Result<()>> + Send>>
    }))
}

/// By a plugin, in a sandbox made for the call.
fn sandboxed(plugin: &LoadedPlugin, network: &Arc<dyn Network>, url: &str) -> Once {
    let (plugin, network) = (plugin.clone(), Arc::clone(network));
    let arguments: Arc<String> = Arc::new(serde_json::json!({ "url": url }).to_string());
    Arc::new(move || {
        let (plugin, network, args) = (plugin.clone(), Arc::clone(&network), Arc::clone(&arguments));
        Box::pin(async move {
            let context = bench::context();
            let operation = CallTool { name: "ping".into(), args, context };
            let scope = Scope { network: Some(network), ..Scope::default() };
            let call = PluginCall {
                operation,
                scope,
                events: Arc::new(NoEvents),
                timeout: None,
                client: None,
                party: Party::SOLE,
                traces: Traces::default(),
            };
            match plugin.call(call).await.result? {
                Outcome::Done(ToolAnswer::Text(_)) => Ok(()),
                other => anyhow::bail!("not an answer: {other:?}"),
            }
        }) as Pin<Box<dyn Future<Output = Result<()>> + Send>>
    })
}

/// Compares both, in rounds that alternate.
pub async fn compare(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let server = Http::plain(&built.bare, &[]).await?;
    let base = format!("http://{}", server.address);
    let sandbox = Sandbox::new(bench::sandbox_config())?;
    let plugin = plugin(load(&sandbox, &built.plugins.join("outgoing.wasm"))?, IN_FLIGHT)?;
    let mut rounds = [Vec::new(), Vec::new()];
    let mut counts = [0, 0];
    // The runtime that runs this may not run another, and has only one thread.
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            runtime.block_on(async {
                let allowance =
                    Allowance { rules: vec![Rule::parse(RawRule::private(&base))?], ..Allowance::default() };
                let egress = Egress::default();
                let network = egress.network("bench", &allowance).context("no network")?;
                let network: Arc<dyn Network> = network.of(Party::SOLE);
                let (now, soon) = (format!("{base}/list"), format!("{base}/soon"));
                let one = [sandboxed(&plugin, &network, &now), native(&now)?];
                let many = [sandboxed(&plugin, &network, &soon), native(&soon)?];
                for round in 0..=effort.rounds {
                    for (all, once) in rounds.iter_mut().zip(&one) {
                        let measured = latencies(once, 1, effort.round / 2).await?;
                        // The first round warms up.
                        if round > 0 {
                            all.extend(measured);
                        }
                    }
                    for (count, once) in counts.iter_mut().zip(&many) {
                        let measured = latencies(once, IN_FLIGHT, effort.round).await?;
                        if round > 0 {
                            *count += measured.len();
                        }
                    }
                }
                Ok::<_, anyhow::Error>(())
            })
        });
        measuring.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?
    })?;
    let [ours, theirs] = rounds.map(median);
    report.row(Row {
        name: "a fresh call with one request / the request alone".into(),
        figure: ours / theirs,
        unit: "×",
        wanted: Wanted::AtMost,
        target: 5.0,
        detail: format!("p50 {ours:.0} against {theirs:.0} us, on a kept connection"),
    });
    let [ours, theirs] = counts.map(|count| count as f64);
    report.row(Row {
        name: "64 fresh calls in flight to a server of 20 ms / requests".into(),
        figure: ours / theirs,
        unit: "×",
        wanted: Wanted::AtLeast,
        target: 0.9,
        detail: format!("{ours:.0} calls against {theirs:.0} requests"),
    });
    Ok(())
}
