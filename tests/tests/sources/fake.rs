//! A registry that a test controls: it stores what is pushed, and fails as the test wants.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::SocketAddr,
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use e2e::{Value, json};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use tokio::sync::Notify;

/// How the registry fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The answer breaks off after half of a blob.
    CutBlob,
    /// Nothing follows the first half of a blob, and the connection stays open.
    HalfBlob,
    /// Other bytes than those of the digest.
    OtherBlob,
    /// A manifest of another digest.
    OtherManifest,
    /// A manifest beyond every limit.
    HugeManifest,
    /// A page of a proxy in place of a manifest.
    Page,
    /// Blobs are somewhere else.
    Redirect(String),
    Status(u16),
    /// The list of what refers to a manifest is this.
    Referrers(u16, &'static str),
    /// The first request of each path gets this status, and may be sent again at once.
    Busy(u16),
    /// The first answer with a blob breaks off.
    CutOnce,
    /// The server for tokens is somewhere else.
    TokenElsewhere(String),
}

/// How clients log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    Open,
    Basic(&'static str, &'static str),
    /// With a token, which the registry gives to this user.
    Token(&'static str, &'static str),
    /// With a password, or with a token, which anybody gets.
    Either,
}

#[derive(Default)]
struct Stored {
    /// By repository and tag, or digest.
    manifests: BTreeMap<(String, String), (String, Bytes)>,
    blobs: HashMap<String, Bytes>,
    /// Requests, as `GET path`, and the authorization that came with each.
    seen: Vec<(String, Option<String>)>,
    /// The paths that were asked for since the registry began to fail.
    tried: HashSet<String>,
}

struct Shared {
    stored: Mutex<Stored>,
    fault: Mutex<Option<Fault>>,
    login: Mutex<Login>,
    /// Whether it lists what refers to a manifest.
    lists_referrers: Mutex<bool>,
    /// A part of a path whose requests are held until the client is gone.
    held: Mutex<Option<String>>,
    /// Told when a request is held.
    holds: Notify,
    address: SocketAddr,
}

pub struct Fake {
    shared: Arc<Shared>,
}

pub fn sha256(bytes: &[u8]) -> String {
    let digits: Vec<String> = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", digits.concat())
}

impl Fake {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            stored: Mutex::default(),
            fault: Mutex::default(),
            login: Mutex::new(Login::Open),
            lists_referrers: Mutex::new(true),
            held: Mutex::default(),
            holds: Notify::new(),
            address: listener.local_addr().unwrap(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared }
    }

    /// The reference of a repository or a version in it, such as `tools/v:1.0.0`.
    pub fn source(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.shared.address)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.shared.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    pub fn fails(&self, fault: impl Into<Option<Fault>>) {
        *self.shared.fault.lock() = fault.into();
        self.shared.stored.lock().tried.clear();
    }

    pub fn wants(&self, login: Login) {
        *self.shared.login.lock() = login;
    }

    pub fn lists_no_referrers(&self) {
        *self.shared.lists_referrers.lock() = false;
    }

    /// Holds the requests whose path has this part; `None` holds none.
    pub fn hold(&self, part: Option<&str>) {
        *self.shared.held.lock() = part.map(str::to_owned);
    }

    /// Waits until a request is held.
    pub async fn holds(&self) {
        self.shared.holds.notified().await;
    }

    /// Returns the requests so far, and forgets them.
    pub fn seen(&self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut self.shared.stored.lock().seen)
    }

    /// Stores a manifest under a name, as some other program would have pushed it.
    pub fn put_manifest(&self, repository: &str, name: &str, manifest: &Value) -> String {
        let bytes = Bytes::from(manifest.to_string());
        let digest = sha256(&bytes);
        let mut stored = self.shared.stored.lock();
        for name in [name, &digest] {
            let media_type = manifest["mediaType"].as_str().unwrap_or("application/vnd.oci.image.manifest.v1+json");
            stored.manifests.insert((repository.to_owned(), name.to_owned()), (media_type.to_owned(), bytes.clone()));
        }
        digest
    }

    /// Gives what a tag stands for another tag, with what refers to it, as somebody who may write to the registry can.
    pub fn retag(&self, (repository, tag): (&str, &str), (to, as_tag): (&str, &str)) {
        let mut stored = self.shared.stored.lock();
        let manifest = stored.manifests[&(repository.to_owned(), tag.to_owned())].clone();
        let subject = sha256(&manifest.1);
        let own = stored.manifests.iter().filter(|((of, _), _)| of == repository);
        let refers: Vec<_> = own
            .filter(|(_, (_, bytes))| String::from_utf8_lossy(bytes).contains(&subject))
            .map(|((_, name), stored)| (name.clone(), stored.clone()))
            .collect();
        let names = [(as_tag.to_owned(), manifest.clone()), (subject, manifest)];
        stored.manifests.extend(names.into_iter().chain(refers).map(|(name, one)| ((to.to_owned(), name), one)));
    }

    pub fn put_blob(&self, bytes: &[u8]) -> String {
        let digest = sha256(bytes);
        self.shared.stored.lock().blobs.insert(digest.clone(), Bytes::copy_from_slice(bytes));
        digest
    }

    /// Returns a stored manifest.
    pub fn manifest(&self, repository: &str, name: &str) -> Bytes {
        self.shared.stored.lock().manifests[&(repository.to_owned(), name.to_owned())].1.clone()
    }

    /// The names of all manifests of a repository: tags and digests.
    pub fn names(&self, repository: &str) -> Vec<String> {
        let stored = self.shared.stored.lock();
        let own = stored.manifests.keys().filter(|(of, _)| of == repository);
        own.map(|(_, name)| name.clone()).collect()
    }
}

/// A manifest with one layer.
pub fn manifest(layer_type: &str, digest: &str, size: usize) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "application/vnd.wasm.config.v0+json", "digest": sha256(b"{}"), "size": 2 },
        "layers": [{ "mediaType": layer_type, "digest": digest, "size": size }],
    })
}

fn plain(status: u16, body: impl Into<Body>) -> Response {
    Response::builder().status(status).body(body.into()).unwrap()
}

/// What is missing of a login, if anything.
fn refused(shared: &Shared, headers: &HeaderMap) -> Option<Response> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (wanted, challenge) = match *shared.login.lock() {
        Login::Open => return None,
        Login::Basic(user, password) => {
            (format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))), "Basic realm=\"fake\"".to_owned())
        }
        Login::Token(..) => (
            "Bearer short-lived".to_owned(),
            format!("Bearer realm=\"http://localhost:{}/token\",service=\"fake\"", shared.address.port()),
        ),
        Login::Either => {
            let bearer = format!("Bearer realm=\"http://{}/token\",service=\"fake\"", shared.address);
            ("Bearer short-lived".to_owned(), format!("Basic realm=\"fake\", {bearer}"))
        }
    };
    (given != Some(&wanted)).then(|| {
        Response::builder().status(401).header(header::WWW_AUTHENTICATE, challenge).body(Body::empty()).unwrap()
    })
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let authorization = parts.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    shared.stored.lock().seen.push((format!("{} {path}", parts.method), authorization.clone()));
    let body = to_bytes(body, usize::MAX).await.unwrap();
    if shared.held.lock().as_ref().is_some_and(|held| path.contains(held.as_str())) {
        shared.holds.notify_one();
        std::future::pending::<()>().await;
    }
    let is_first = shared.stored.lock().tried.insert(path.clone());
    match &*shared.fault.lock() {
        Some(Fault::Busy(status)) if is_first => {
            return Response::builder().status(*status).header(header::RETRY_AFTER, "0").body(Body::empty()).unwrap();
        }
        Some(Fault::TokenElsewhere(to)) if path == "/token" => {
            return Response::builder().status(307).header(header::LOCATION, to).body(Body::empty()).unwrap();
        }
        _ => {}
    }
    if path == "/token" {
        let (user, password) = match *shared.login.lock() {
            Login::Token(user, password) => (user, password),
            Login::Either => return plain(200, json!({ "token": "short-lived" }).to_string()),
            Login::Open | Login::Basic(..) => return plain(404, ""),
        };
        let wanted = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        return match authorization.as_deref() == Some(wanted.as_str()) {
            true => plain(200, json!({ "token": "short-lived" }).to_string()),
            false => plain(401, ""),
        };
    }
    if let Some(refused) = refused(&shared, &parts.headers) {
        return refused;
    }
    if path.starts_with("/files/") || path.starts_with("/elsewhere/") {
        let name = path.rsplit('/').next().unwrap();
        return match shared.stored.lock().blobs.get(name) {
            Some(bytes) => plain(200, bytes.clone()),
            None => plain(404, ""),
        };
    }
    let Some(rest) = path.strip_prefix("/v2/").filter(|rest| !rest.is_empty()) else { return plain(200, "{}") };
    for (part, serve) in [
        ("/manifests/", manifests as fn(&Shared, &Method, &str, &str, &HeaderMap, Bytes) -> Response),
        ("/blobs/uploads/", uploads),
        ("/blobs/", blobs),
        ("/referrers/", referrers),
        ("/tags/", tags),
    ] {
        if let Some((repository, name)) = rest.split_once(part) {
            let name = match part {
                "/blobs/uploads/" => parts.uri.query().unwrap_or_default(),
                _ => name,
            };
            return serve(&shared, &parts.method, repository, name, &parts.headers, body);
        }
    }
    plain(404, "")
}

fn manifests(
    shared: &Shared,
    method: &Method,
    repository: &str,
    name: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    if *method == Method::PUT {
        let media_type = headers[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let (key, digest) = ((repository.to_owned(), name.to_owned()), sha256(&body));
        let mut stored = shared.stored.lock();
        stored.manifests.insert((repository.to_owned(), digest), (media_type.clone(), body.clone()));
        stored.manifests.insert(key, (media_type, body.clone()));
        let is_listed = serde_json::from_slice::<Value>(&body).unwrap()["subject"].is_object();
        let mut response = Response::builder().status(StatusCode::CREATED);
        if is_listed && *shared.lists_referrers.lock() {
            response = response.header("oci-subject", "listed");
        }
        return response.body(Body::empty()).unwrap();
    }
    match &*shared.fault.lock() {
        Some(Fault::HugeManifest) => return plain(200, vec![b' '; 5 << 20]),
        Some(Fault::Page) => return plain(200, "<html>Please log in</html>"),
        Some(Fault::Status(status)) => return plain(*status, ""),
        Some(Fault::OtherManifest) => return plain(200, manifest("application/wasm", &sha256(b"x"), 1).to_string()),
        _ => {}
    }
    match shared.stored.lock().manifests.get(&(repository.to_owned(), name.to_owned())) {
        Some((media_type, bytes)) => {
            Response::builder().header(header::CONTENT_TYPE, media_type).body(bytes.clone().into()).unwrap()
        }
        None => plain(404, ""),
    }
}

fn uploads(shared: &Shared, method: &Method, repository: &str, query: &str, _: &HeaderMap, body: Bytes) -> Response {
    if *method == Method::POST {
        let location = format!("/v2/{repository}/blobs/uploads/one?state=1");
        return Response::builder().status(202).header(header::LOCATION, location).body(Body::empty()).unwrap();
    }
    let digest = query.split("digest=").nth(1).unwrap().replace("%3A", ":");
    assert_eq!(sha256(&body), digest, "what is pushed has its digest");
    shared.stored.lock().blobs.insert(digest, body);
    plain(201, "")
}

fn blobs(shared: &Shared, method: &Method, _: &str, name: &str, _: &HeaderMap, _: Bytes) -> Response {
    let mut stored = shared.stored.lock();
    let Some(bytes) = stored.blobs.get(name).cloned() else { return plain(404, "") };
    if *method == Method::HEAD {
        return plain(200, "");
    }
    let mut fault = shared.fault.lock().clone();
    if fault == Some(Fault::CutOnce) {
        fault = stored.tried.insert(format!("once {name}")).then_some(Fault::CutBlob);
    }
    match &fault {
        Some(Fault::OtherBlob) => plain(200, vec![b'x'; bytes.len()]),
        Some(fault @ (Fault::CutBlob | Fault::HalfBlob)) => {
            let (half, is_cut) = (bytes.slice(..bytes.len() / 2), *fault == Fault::CutBlob);
            let sent = stream::once(async { Ok(half) });
            // The half is sent while the rest is waited for.
            let rest = stream::once(async move {
                match is_cut {
                    true => tokio::task::yield_now().await,
                    false => std::future::pending().await,
                }
                Err(std::io::Error::other("cut"))
            });
            let body = Body::from_stream(sent.chain(rest));
            Response::builder().header(header::CONTENT_LENGTH, bytes.len()).body(body).unwrap()
        }
        Some(Fault::Redirect(to)) => {
            let location = to.replace("{}", name);
            Response::builder().status(307).header(header::LOCATION, location).body(Body::empty()).unwrap()
        }
        _ => plain(200, bytes),
    }
}

fn referrers(shared: &Shared, _: &Method, repository: &str, name: &str, _: &HeaderMap, _: Bytes) -> Response {
    if !*shared.lists_referrers.lock() {
        return plain(404, "");
    }
    if let Some(Fault::Referrers(status, body)) = *shared.fault.lock() {
        return plain(status, body);
    }
    let stored = shared.stored.lock();
    let refers = stored.manifests.iter().filter(|((of, by), _)| of == repository && by.starts_with("sha256:"));
    let listed: Vec<Value> = refers
        .filter_map(|((_, digest), (media_type, bytes))| {
            let manifest: Value = serde_json::from_slice(bytes).ok()?;
            (manifest["subject"]["digest"] == name).then(|| {
                json!({
                    "mediaType": media_type, "digest": digest, "size": bytes.len(),
                    "artifactType": manifest["artifactType"],
                })
            })
        })
        .collect();
    plain(200, json!({ "schemaVersion": 2, "manifests": listed }).to_string())
}

fn tags(shared: &Shared, _: &Method, repository: &str, _: &str, _: &HeaderMap, _: Bytes) -> Response {
    let stored = shared.stored.lock();
    let names = stored.manifests.keys().filter(|(of, name)| of == repository && !name.contains(':'));
    let names: Vec<&String> = names.map(|(_, name)| name).collect();
    plain(200, json!({ "name": repository, "tags": names }).to_string())
}
