//! An identity provider on this machine, which signs whatever a test needs.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use e2e::{Value, json};
use parking_lot::Mutex;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::RESOURCE;

type Signs = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// A key, and its id in the published key set.
#[derive(Clone)]
pub struct Key {
    pub kid: &'static str,
    signs: Signs,
    algorithm: &'static str,
    public: Value,
}

impl Key {
    pub fn new(kid: &'static str) -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
        // A byte that names the format of the point, and its two coordinates.
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let public = json!({ "kty": "EC", "crv": "P-256", "x": base64(x), "y": base64(y), "kid": kid, "use": "sig" });
        let signs = Arc::new(move |message: &[u8]| pair.sign(&random, message).unwrap().as_ref().to_vec());
        Self { kid, signs, algorithm: "ES256", public }
    }

    pub fn ed(kid: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let x = base64(pair.public_key().as_ref());
        let public = json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "alg": "EdDSA" });
        let signs = Arc::new(move |message: &[u8]| pair.sign(message).as_ref().to_vec());
        Self { kid, signs, algorithm: "EdDSA", public }
    }

    /// The published form.
    pub fn public(&self) -> Value {
        self.public.clone()
    }

    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let signature = base64((self.signs)(message.as_bytes()));
        format!("{message}.{signature}")
    }

    pub fn header(&self) -> Value {
        json!({ "typ": "JWT", "alg": self.algorithm, "kid": self.kid })
    }

    /// Signs claims.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }
}

#[derive(Default)]
struct Shared {
    url: Mutex<String>,
    published: Mutex<Vec<Value>>,
    down: AtomicBool,
    asked: AtomicUsize,
    /// The introspection responses for opaque tokens.
    known: Mutex<HashMap<String, Value>>,
    introspected: AtomicUsize,
    /// Whether introspection requests for unknown tokens get no answer.
    slow: watch::Sender<bool>,
    /// The name and password of the last introspection request.
    asked_as: Mutex<Option<String>>,
}

pub struct Issuer {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl Issuer {
    pub async fn start(keys: &[&Key]) -> Self {
        let shared = Arc::new(Shared::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        *shared.url.lock() = format!("http://{address}");
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(published))
            .route("/introspect", post(introspect))
            .with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        let issuer = Self { shared, _tasks: tasks };
        issuer.publish(keys);
        issuer
    }

    pub fn url(&self) -> String {
        self.shared.url.lock().clone()
    }

    pub fn publish(&self, keys: &[&Key]) {
        *self.shared.published.lock() = keys.iter().map(|key| key.public()).collect();
    }

    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::SeqCst);
    }

    /// How often its keys were fetched.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// Adds an opaque token.
    pub fn know(&self, token: &str, claims: Value) {
        self.shared.known.lock().insert(token.to_owned(), claims);
    }

    /// Makes it answer no introspection requests for unknown tokens from now on, until it is told otherwise.
    pub fn set_slow_about_unknown(&self, slow: bool) {
        self.shared.slow.send_replace(slow);
    }

    /// The number of introspection requests for unknown tokens.
    pub fn introspected(&self) -> usize {
        self.shared.introspected.load(Ordering::SeqCst)
    }

    pub fn asked_as(&self) -> Option<String> {
        self.shared.asked_as.lock().clone()
    }

    /// The claims of a valid token.
    pub fn claims(&self) -> Value {
        let now = now();
        json!({
            "iss": self.url(), "aud": RESOURCE, "sub": "ann", "exp": now + 300, "iat": now, "scope": "mcp",
        })
    }

    /// The same with one claim set, or removed.
    pub fn with(&self, key: &str, value: Option<Value>) -> Value {
        let mut claims = self.claims();
        match value {
            Some(value) => claims[key] = value,
            None => {
                claims.as_object_mut().unwrap().remove(key);
            }
        }
        claims
    }
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

async fn metadata(State(shared): State<Arc<Shared>>) -> Response {
    let url = shared.url.lock().clone();
    json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "authorization_endpoint": format!("{url}/authorize"),
        "introspection_endpoint": format!("{url}/introspect"),
    })
    .to_string()
    .into_response()
}

async fn published(State(shared): State<Arc<Shared>>) -> Response {
    shared.asked.fetch_add(1, Ordering::SeqCst);
    if shared.down.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    json!({ "keys": *shared.published.lock() }).to_string().into_response()
}

async fn introspect(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    shared.introspected.fetch_add(1, Ordering::SeqCst);
    if shared.down.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let basic = headers["authorization"].to_str().unwrap().strip_prefix("Basic ").unwrap().to_owned();
    *shared.asked_as.lock() = Some(String::from_utf8(STANDARD.decode(basic).unwrap()).unwrap());
    let token = body.strip_prefix("token=").unwrap().split('&').next().unwrap();
    let known = shared.known.lock().get(token).cloned();
    if known.is_none() {
        shared.slow.subscribe().wait_for(|slow| !slow).await.unwrap();
    }
    let mut said = known.unwrap_or_else(|| json!({}));
    said["active"] = json!(said.get("aud").is_some() || said.get("sub").is_some());
    said.to_string().into_response()
}
