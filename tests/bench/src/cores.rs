//! What a second core adds to each kind of request: `--cores`. wharf runs in this process and gets its requests without sockets, since the
//! client of a server takes as much of two cores as the server. On each thread, eight clients make one request after the other, each from its
//! own address and in its own session. A bare handler gets the same, which shows what the machine gains.

use std::{
    convert::Infallible, error::Error, io::Write, net::SocketAddr, os::unix::fs::OpenOptionsExt, path::Path, sync::Arc,
};

use anyhow::{Context, Result, anyhow, ensure};
use axum::{Json, Router, routing::post};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;
use wharf::Wharf;

use crate::{
    Effort,
    report::{Report, Row, Wanted},
    rows::{AUDITED, ECHO, Site, many, message},
    sandboxes::{Once, Round, apart, gains, on_core, over, round},
    servers::{Built, Era, LEGACY, MODERN, TOKEN, call, initialize, modern_meta, settled},
};

/// The clients on two threads.
const CLIENTS: u8 = 16;
/// As [`crate::rows::KEPT`]; the token is in a file, because this process is not started with its variable.
const KEPT: &str = "instances = 'reused'\n[http]\ntoken.file = 'token'\n";

/// What a row asks for.
#[derive(Clone, Copy)]
enum Asked {
    Echo { era: Era, bytes: usize },
    List,
}

/// The rows: the name, the config after the plugin, and what is asked for.
const ROWS: [(&str, &str, Asked); 7] = [
    ("HTTP modern, fresh", "", Asked::Echo { era: Era::Modern, bytes: 32 }),
    ("with sessions, fresh", "", Asked::Echo { era: Era::Legacy, bytes: 32 }),
    ("HTTP modern, reused", KEPT, Asked::Echo { era: Era::Modern, bytes: 32 }),
    ("64 KiB", "", Asked::Echo { era: Era::Modern, bytes: 64 << 10 }),
    ("1 MiB", "", Asked::Echo { era: Era::Modern, bytes: 1 << 20 }),
    ("with an audit log", AUDITED, Asked::Echo { era: Era::Modern, bytes: 32 }),
    ("tools/list of 1000 tools", "", Asked::List),
];

/// A request that is made again and again.
struct Template {
    headers: HeaderMap,
    body: Bytes,
    from: SocketAddr,
}

impl Template {
    /// `client`: the number of the client that makes it.
    fn new(client: u8, headers: &[(&'static str, &str)], body: &Value) -> Result<Self> {
        let mut all = HeaderMap::new();
        let common = [
            ("host", "127.0.0.1"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in common.iter().chain(headers) {
            all.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        }
        Ok(Self { headers: all, body: body.to_string().into(), from: ([127, 0, 1, client], 40_000).into() })
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static("/mcp");
        request.headers_mut().clone_from(&self.headers);
        request.extensions_mut().insert(self.from);
        request
    }
}

async fn exchange<S, B>(mut service: S, template: &Template) -> Result<(StatusCode, HeaderMap, Bytes)>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (head, body) = service.call(template.request()).await?.into_parts();
    let body = body.collect().await.map_err(|error| anyhow!(error.into()))?.to_bytes();
    Ok((head.status, head.headers, body))
}

/// Makes one request, and expects an answer of at least so many bytes.
fn once<S, B>(service: &S, template: Template, least: usize) -> Once
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (service, template) = (service.clone(), Arc::new(template));
    Arc::new(move || {
        let (service, template) = (service.clone(), Arc::clone(&template));
        Box::pin(async move {
            let (status, _, body) = exchange(service, &template).await?;
            let said = || format!("{status}: {}", String::from_utf8_lossy(body.get(..500).unwrap_or(&body)));
            ensure!(status == StatusCode::OK && body.len() >= least, "not an answer: {}", said());
            Ok(())
        })
    })
}

async fn echo(Json(request): Json<Value>) -> Json<Value> {
    let message = request.pointer("/params/arguments/message").cloned().unwrap_or_default();
    let result = json!({ "content": [{ "type": "text", "text": message }] });
    Json(json!({ "jsonrpc": "2.0", "id": request.get("id"), "result": result }))
}

/// The request of one client. A legacy one opens a session first.
async fn template(wharf: &Wharf, client: u8, asked: Asked) -> Result<Template> {
    match asked {
        Asked::List => {
            let body =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": modern_meta() } });
            Template::new(client, &[("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")], &body)
        }
        Asked::Echo { era: Era::Modern, bytes } => {
            let token = format!("Bearer {TOKEN}");
            let headers = [
                ("mcp-protocol-version", MODERN),
                ("mcp-method", "tools/call"),
                ("mcp-name", "echo"),
                ("authorization", &token),
            ];
            Template::new(client, &headers, &call(1, "echo", &message(bytes), Some(&modern_meta())))
        }
        Asked::Echo { era: Era::Legacy, bytes } => {
            let service = wharf.http_service("/mcp");
            let (_, head, body) = exchange(service.clone(), &Template::new(client, &[], &initialize())?).await?;
            let session = head.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
            let session = session.with_context(|| format!("no session: {}", String::from_utf8_lossy(&body)))?;
            let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", LEGACY)];
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let (status, ..) = exchange(service, &Template::new(client, &headers, &ready)?).await?;
            ensure!(status == StatusCode::ACCEPTED, "not initialized: {status}");
            Template::new(client, &headers, &call(1, "echo", &message(bytes), None))
        }
    }
}

/// wharf's side of a row, and the least size of its answer. The site is the folder of its config.
async fn served(site: &Site, cache: &Path, asked: Asked) -> Result<(Wharf, Vec<Template>, usize)> {
    let token = site.folder.path().join("token");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(token);
    file?.write_all(TOKEN.as_bytes())?;
    let wharf = Wharf::builder().config_file(site.config()).cache_dir(cache).build().await?;
    let mut templates = Vec::new();
    for client in 0..CLIENTS {
        templates.push(template(&wharf, client, asked).await?);
    }
    let least = match asked {
        Asked::Echo { bytes, .. } => bytes,
        Asked::List => 100_000,
    };
    Ok((wharf, templates, least))
}

fn report_row(report: &mut Report, name: &'static str, rounds: &[Round]) {
    let gains = gains(rounds);
    report.row(Row {
        name: format!("second core, {name}: gain / the bare handler's").into(),
        figure: gains[0] / gains[1],
        unit: "×",
        wanted: Wanted::AtLeast,
        target: 0.95,
        detail: format!(
            "{:.2} against {:.2} ×; {:.0} and {:.0} a second; {:.1} us on a core with one, {:.1} with two",
            gains[0],
            gains[1],
            over(rounds, |rates| rates[0].per_second),
            over(rounds, |rates| rates[1].per_second),
            over(rounds, |rates| rates[0].core_us),
            over(rounds, |rates| rates[1].core_us),
        ),
    });
}

fn rows(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    // wharf's own tasks run here, and requests on the threads of each round.
    let own: Runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let cache = tempfile::tempdir()?;
    for (name, config, asked) in ROWS {
        let site = match asked {
            Asked::List => many(built, 1000)?,
            Asked::Echo { .. } => Site::new(built, &format!("{ECHO}{config}"))?,
        };
        let (wharf, templates, least) = own.block_on(served(&site, cache.path(), asked))?;
        let bytes = if let Asked::Echo { bytes, .. } = asked { bytes } else { 32 };
        let request = call(1, "echo", &message(bytes), Some(&modern_meta()));
        let service = {
            let _runtime = own.enter();
            wharf.http_service("/mcp")
        };
        let ours: Vec<Once> = templates.into_iter().map(|template| once(&service, template, least)).collect();
        let handler = Router::new().route("/mcp", post(echo)).layer(axum::extract::DefaultBodyLimit::disable());
        let theirs = (0..CLIENTS).map(|client| Ok(once(&handler, Template::new(client, &[], &request)?, bytes)));
        let theirs = theirs.collect::<Result<Vec<_>>>()?;
        own.block_on(settled(|| Ok(on_core())))?;
        let rounds = (0..=effort.rounds).map(|_| round([&ours, &theirs], effort)).collect::<Result<Vec<_>>>()?;
        let (_warm_up, rounds) = rounds.split_first().context("no rounds")?;
        report_row(report, name, rounds);
    }
    Ok(())
}

/// Compares what a second core adds to wharf's requests and to those of a bare handler.
pub fn compare(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    apart(|| rows(built, effort, report))
}
