//! Outbound HTTP of one plugin: checks each request, adds the headers of its rule, sends it over the plugin's own connections, and masks
//! secrets in the response.

use std::{
    error::Error as StdError,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
    request, response,
};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::rt::Executor;
use hyper_util::{
    client::legacy::{Client, Error as ClientError},
    rt::TokioTimer,
};
use memchr::memmem::Finder;
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::timeout};
use wharf_scope::network::{Body, HttpFailure, HttpRefusal, Network, Sending, Unsent};

use super::{
    allowance::{Allowance, Placeholder},
    connect::{Allowed, Connector, Dialer},
    header,
    line::{HoldingBody, MAX_REQUESTS_PER_PLUGIN, REQUESTS, Used},
    mask::Masks,
    masking::{Masking, mask_headers},
    route::{Proxy, Route, Unconnected},
    rule::{HostPattern, Part, Rule, Template, choice},
    secrets::{Secret, Vault},
    target::{Host, Scheme, Target},
    tls::{Roots, Tls},
};
use wharf_base::{party::Party, places::Places, text::hex};

/// How long an idle connection stays in the pool.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a request waits for a place.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// The most bytes that are read from a connection ahead of the guest.
const BUFFER_BYTES: usize = 64 << 10;
/// The most header lines of a response. Sites that set a cookie for each of their partners send more than a hundred.
pub(crate) const MAX_HEADER_LINES: usize = 1024;

/// Headers that belong to the connection and that a guest may not set. They are removed rather than refused, because the runtimes of some
/// languages always set them.
static CONNECTION_HEADERS: [HeaderName; 10] = [
    HOST,
    EXPECT,
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Headers that make some servers use another method or path than the one that was checked.
const OVERRIDE_HEADERS: [&str; 17] = [
    "destination",
    "x-amz-copy-source",
    "x-copy-from",
    "x-envoy-original-path",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-goog-copy-source",
    "x-http-destinationurl",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-ms-copy-source",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-url-override",
];

/// Headers that ask some servers for a part of a resource.
const RANGE_HEADERS: [&str; 4] = ["range", "x-goog-range", "x-ms-range", "x-range"];

type Sender = Client<Connector, Body>;

/// The network of one plugin.
pub struct PluginNetwork(Arc<Inner>);

/// The network of a plugin in a call of one client, which the requests count for.
struct ClientNetwork {
    inner: Arc<Inner>,
    party: Party,
}

struct Inner {
    allowance: Allowance,
    placeholders: Arc<[IssuedPlaceholder]>,
    vault: Arc<Vault>,
    /// The masks for responses and for the plugin's output, with the number of secret values that they were built from. Secrets that have
    /// not been loaded yet cannot have leaked.
    masks: Mutex<(usize, Option<Arc<Masks>>)>,
    /// One connection pool for each value of [`Allowed`]. The pools are separate, so that a connection that one rule allows is never used
    /// for a request of another.
    senders: Mutex<[Option<Sender>; 3]>,
    connector: Connector,
    requests: Arc<Places>,
}

/// A placeholder that was issued for a secret.
struct IssuedPlaceholder {
    variable: String,
    secret: String,
    value: String,
    finder: Finder<'static>,
}

#[derive(Clone)]
struct IoExecutor(Handle);

impl<F> Executor<F> for IoExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    // The task of a connection ends when the network that it belongs to is dropped.
    fn execute(&self, connection: F) {
        self.0.spawn(connection);
    }
}

impl PluginNetwork {
    /// Creates the network of a plugin. `party` is the plugin, which connections and look-ups count for.
    pub fn new(
        (number, party): (u64, Party),
        allowance: Allowance,
        (vault, dialer): (Arc<Vault>, Arc<Dialer>),
        (roots, proxy): (&Arc<Roots>, Option<Arc<Proxy>>),
        io: Handle,
    ) -> Self {
        let placeholder = |Placeholder { name, secret }: &Placeholder| {
            let mut random = [0; 20];
            // If there is no randomness, the plugin gets no placeholder and therefore no access.
            getrandom::fill(&mut random).ok()?;
            let value = format!("wharf_{}", hex(&random));
            let finder = Finder::new(value.as_bytes()).into_owned();
            Some(IssuedPlaceholder { variable: name.clone(), secret: secret.clone(), value, finder })
        };
        let placeholders = allowance.placeholders.iter().filter_map(placeholder).collect();
        let connector = Connector {
            dialer,
            network: number,
            party,
            allowed: Allowed::Public,
            route: Route { tls: Arc::new(Tls::new(roots)), proxy },
            io,
        };
        let (masks, senders) = (Mutex::default(), Default::default());
        let requests = Places::new(&REQUESTS, MAX_REQUESTS_PER_PLUGIN);
        Self(Arc::new(Inner { allowance, placeholders, vault, masks, senders, connector, requests }))
    }

    /// Returns the network for a call of this client.
    pub fn of(&self, party: Party) -> Arc<dyn Network> {
        Arc::new(ClientNetwork { inner: Arc::clone(&self.0), party })
    }

    /// Returns the environment variables that stand for secrets, with their placeholders as values.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.0.placeholders.iter().map(|one| (one.variable.clone(), one.value.clone()))
    }

    /// The requests that the plugin may send.
    pub fn allowance(&self) -> &Allowance {
        &self.0.allowance
    }
}

impl Inner {
    /// Returns the masks for all secrets that have been loaded so far.
    fn masks(&self) -> Option<Arc<Masks>> {
        let known = || self.vault.known(self.allowance.secrets());
        let count = known().count();
        let mut masks = self.masks.lock();
        if masks.0 != count {
            *masks = (count, Masks::new(known().map(Secret::expose)).map(Arc::new));
        }
        masks.1.clone()
    }

    fn sender(&self, allowed: Allowed) -> Option<Sender> {
        let make = || {
            Client::builder(IoExecutor(self.connector.io.clone()))
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                // The limit of connections bounds the idle ones too. If the pool closed some of them, their places would go to connections
                // that were begun for requests which other connections have carried since.
                .pool_max_idle_per_host(MAX_REQUESTS_PER_PLUGIN)
                .http1_max_buf_size(BUFFER_BYTES)
                .http1_max_headers(MAX_HEADER_LINES)
                // Old servers continue a header on the next line.
                .http1_allow_obsolete_multiline_headers_in_responses(true)
                .build(Connector { allowed, ..self.connector.clone() })
        };
        let mut senders = self.senders.lock();
        senders.get_mut(allowed as usize).map(|sender| sender.get_or_insert_with(make).clone())
    }

    /// Makes every decision about a request before anything is sent.
    fn judge(&self, parts: &request::Parts) -> Result<(&Rule, Target), HttpRefusal> {
        let target = Target::of(&parts.uri).map_err(HttpRefusal::Malformed)?;
        let rule = choice::find(&self.allowance.rules, &parts.method, &target)?;
        // A proxy looks names up, so wharf does not see their addresses; what is private by its name alone is refused here.
        if rule.host == HostPattern::Any && self.connector.route.proxy.is_some() && target.host.is_private_by_name() {
            return Err(HttpRefusal::Address(target.host.to_string()));
        }
        for placeholder in &*self.placeholders {
            let belongs = rule.secrets.contains(&placeholder.secret);
            let found = |bytes: &[u8]| placeholder.finder.find(bytes).is_some();
            let in_url = found(parts.uri.to_string().as_bytes()) || found(parts.method.as_str().as_bytes());
            let in_names = parts.headers.keys().any(|name| found(name.as_str().as_bytes()));
            let in_headers = parts.headers.values().any(|value| found(value.as_bytes()));
            if in_url || in_names || (in_headers && !belongs) {
                return Err(HttpRefusal::Placeholder(placeholder.secret.clone()));
            }
        }
        Ok((rule, target))
    }

    /// Replaces placeholders and adds the headers of the rule. Returns whether the request contains secrets now.
    async fn prepare(&self, rule: &Rule, headers: &mut HeaderMap) -> anyhow::Result<bool> {
        // All secrets of the plugin are loaded, also those of other rules: a server may know them from an earlier process or config, and
        // only loaded secrets can be masked.
        for name in self.allowance.secrets() {
            self.vault.get(name).await?;
        }
        let mut secrets = Vec::new();
        for name in rule.all_secrets() {
            secrets.push((name.to_owned(), self.vault.get(name).await?));
        }
        let value_of =
            |name: &str| secrets.iter().find(|(own, _)| own == name).map_or("", |(_, secret)| secret.expose());
        for placeholder in self.placeholders.iter().filter(|one| rule.secrets.contains(&one.secret)) {
            for value in headers.values_mut().filter(|value| placeholder.finder.find(value.as_bytes()).is_some()) {
                let text =
                    value.to_str().unwrap_or_default().replace(&placeholder.value, value_of(&placeholder.secret));
                *value = sensitive(&text)?;
            }
        }
        // A guest's own header must not remain next to a header of the rule that a server may treat as the same.
        header::remove(headers, rule.headers.iter().map(|(name, _)| name.as_str()));
        for (name, Template(parts)) in &rule.headers {
            let text: String = parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.as_str(),
                    Part::Secret(name) => value_of(name),
                })
                .collect();
            headers.insert(name, sensitive(&text)?);
        }
        if secrets.is_empty() {
            return Ok(false);
        }
        // Secrets in a partial or compressed response could not be masked.
        header::remove(headers, RANGE_HEADERS.into_iter().chain([ACCEPT_ENCODING.as_str()]));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(true)
    }
}

fn sensitive(text: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

impl Network for ClientNetwork {
    fn send(&self, request: Request<Body>) -> Sending {
        let (inner, party) = (Arc::clone(&self.inner), self.party);
        Box::pin(async move { inner.send(request, party).await })
    }

    fn hides(&self) -> bool {
        self.inner.masks().is_some()
    }

    fn hide(&self, bytes: &mut [u8]) {
        if let Some(masks) = self.inner.masks() {
            masks.mask(bytes);
        }
    }

    fn number(&self) -> u64 {
        self.inner.connector.network
    }
}

impl Inner {
    async fn send(&self, request: Request<Body>, party: Party) -> Result<Response<Body>, Unsent> {
        let (mut parts, body) = request.into_parts();
        let (rule, target) = self.judge(&parts).map_err(Unsent::Denied)?;
        let turns = async { (self.requests.wait(party).await, self.connector.dialer.requests.wait(party).await) };
        let turn = timeout(TURN_TIMEOUT, turns).await;
        let turn = turn.map_err(|_| Unsent::Denied(HttpRefusal::Limit("http_at_once")))?;
        let sender = self.sender(allowed(rule)).ok_or(Unsent::Failed(HttpFailure::Config))?;
        parts.uri = target.url(&parts.uri).map_err(|_| Unsent::Failed(HttpFailure::Url))?;
        // These headers belong to the connection, and `host` to the URL that was checked, whatever the guest sets.
        let never = CONNECTION_HEADERS.iter().map(HeaderName::as_str).chain(OVERRIDE_HEADERS);
        header::remove(&mut parts.headers, never.clone());
        header::remove_others(&mut parts.headers, &CONTENT_LENGTH);
        let added = rule.headers.iter().map(|(name, _)| name.as_str());
        header::remove_trailers(&mut parts.headers, never.chain(added));
        if parts.headers.get_all(TE).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
            parts.headers.remove(TE);
        }
        let agent = HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION")));
        parts.headers.entry(USER_AGENT).or_insert(agent);
        let injected = self.prepare(rule, &mut parts.headers).await.map_err(|error| {
            self.connector
                .dialer
                .refusals
                .say_of("a request of a plugin, because its secret cannot be loaded", || format!("{error:#}"));
            Unsent::Failed(HttpFailure::Config)
        })?;
        let proxy = self.connector.route.proxy.as_ref().filter(|_| target.scheme == Scheme::Http);
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.clone()) {
            parts.headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        let leaked: Arc<OnceLock<String>> = Arc::default();
        let body = match self.placeholders.is_empty() {
            true => body,
            false => {
                let (placeholders, leaked) = (Arc::clone(&self.placeholders), Arc::clone(&leaked));
                let dialer = Arc::clone(&self.connector.dialer);
                WatchedBody { inner: body, end: Vec::new(), placeholders, leaked, dialer }.boxed_unsync()
            }
        };
        let request = Request::from_parts(parts, body);
        let answered = match &self.connector.dialer.answers {
            Some(answers) => answers.answer(request).await,
            None => match sender.request(request).await {
                Ok(mut response) => {
                    let connections = &self.connector.dialer.connections;
                    let line = response.extensions_mut().remove::<Used>().map(|used| used.into_guard(connections));
                    Ok(response.map(|body| {
                        let body = body.map_err(|error| connection_error(Some(&error))).boxed_unsync();
                        // The connection is released first, so that the next request finds it idle when it gets the place.
                        HoldingBody::new(body, (line, turn)).boxed_unsync()
                    }))
                }
                Err(error) => Err(self.unsent(&error)),
            },
        };
        if let Some(secret) = leaked.get() {
            return Err(Unsent::Denied(HttpRefusal::Placeholder(secret.clone())));
        }
        let (mut parts, body) = answered?.into_parts();
        let Some(masks) = self.masks().filter(|_| injected) else { return Ok(Response::from_parts(parts, body)) };
        if parts.status == StatusCode::PARTIAL_CONTENT {
            let problem =
                "the response is partial although no range was requested, so a truncated secret could not be masked";
            return Err(Unsent::Denied(HttpRefusal::Unreadable(problem)));
        }
        if is_encoded(&parts) {
            let problem =
                "the response is compressed although plain text was requested, so secrets in it could not be masked";
            return Err(Unsent::Denied(HttpRefusal::Unreadable(problem)));
        }
        mask_headers(&masks, &mut parts.headers);
        Ok(Response::from_parts(parts, Masking::new(body, masks).boxed_unsync()))
    }

    /// Converts the error of the HTTP client into the reason why there is no response.
    fn unsent(&self, error: &ClientError) -> Unsent {
        if let Some(unconnected) = causes(error).find_map(<dyn StdError>::downcast_ref::<Unconnected>) {
            return match unconnected {
                Unconnected::Refused(refused) => Unsent::Denied(refused.clone()),
                other => {
                    tracing::debug!("a request of a plugin failed: {other}");
                    if let Unconnected::Config(problem) = other {
                        self.connector
                            .dialer
                            .refusals
                            .say_of("a request of a plugin, because of a problem with the config", || problem.clone());
                    }
                    Unsent::Failed(match other {
                        Unconnected::LookUp(problem) => HttpFailure::Lookup(problem.clone()),
                        Unconnected::LookUpTimeout => HttpFailure::LookupTimeout,
                        Unconnected::Timeout => HttpFailure::ConnectTimeout,
                        Unconnected::Tls(error) if is_certificate(error) => HttpFailure::Certificate,
                        Unconnected::Tls(_) => HttpFailure::Tls,
                        Unconnected::Config(_) | Unconnected::Refused(_) => HttpFailure::Config,
                        Unconnected::Connect(_) => HttpFailure::Refused,
                    })
                }
            };
        }
        match causes(error).find_map(<dyn StdError>::downcast_ref::<HttpFailure>) {
            // The request's own body is too large.
            Some(HttpFailure::RequestSize(size)) => Unsent::Failed(HttpFailure::RequestSize(*size)),
            Some(_) => Unsent::Failed(HttpFailure::Ended),
            None => Unsent::Failed(connection_error(causes(error).find_map(<dyn StdError>::downcast_ref))),
        }
    }
}

fn is_encoded(parts: &response::Parts) -> bool {
    let other = |name: HeaderName, plain: &str| {
        let meant = parts.headers.iter().filter(|(own, _)| header::same_header(own.as_str(), name.as_str()));
        meant.into_iter().any(|(_, value)| !value.as_bytes().eq_ignore_ascii_case(plain.as_bytes()))
    };
    other(CONTENT_ENCODING, "identity") || other(TRANSFER_ENCODING, "chunked")
}

/// Returns the addresses that requests of a rule may reach.
fn allowed(rule: &Rule) -> Allowed {
    match (&rule.host, rule.private) {
        (_, false) => Allowed::Public,
        (HostPattern::Is(Host::Address(_)), true) => Allowed::Spelled,
        (_, true) => Allowed::Private,
    }
}

/// Returns the error itself and then its sources.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn is_certificate(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented))
}

/// Converts the error of a connection for the guest.
fn connection_error(error: Option<&hyper::Error>) -> HttpFailure {
    match error {
        Some(error) if error.is_parse_too_large() => HttpFailure::ResponseHeaders,
        Some(error) if error.is_parse() => HttpFailure::Protocol,
        Some(error) if error.is_incomplete_message() => HttpFailure::Incomplete,
        _ => HttpFailure::Ended,
    }
}

/// A request body that is scanned for placeholders. It fails before a placeholder is sent completely.
struct WatchedBody {
    inner: Body,
    /// The last bytes that were sent, which may be the beginning of a placeholder.
    end: Vec<u8>,
    placeholders: Arc<[IssuedPlaceholder]>,
    /// The secret whose placeholder was found, for the caller of `send`.
    leaked: Arc<OnceLock<String>>,
    dialer: Arc<Dialer>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = HttpFailure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpFailure>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        let this = &mut *self;
        let Some(Ok(part)) = &frame else { return Poll::Ready(frame) };
        if let Some(data) = part.data_ref() {
            this.end.extend_from_slice(data);
        }
        for (name, value) in part.trailers_ref().into_iter().flatten() {
            this.end.extend([b" ", name.as_str().as_bytes(), b" ", value.as_bytes()].concat());
        }
        if let Some(found) = this.placeholders.iter().find(|one| one.finder.find(&this.end).is_some()) {
            this.leaked.get_or_init(|| found.secret.clone());
            // If the response has arrived already, `send` does not read `leaked` any more, so it is logged here.
            this.dialer.refusals.say("an upload of a plugin, because it contained the placeholder of a secret");
            return Poll::Ready(Some(Err(HttpFailure::Denied)));
        }
        let longest = this.placeholders.iter().map(|one| one.value.len()).max().unwrap_or(1);
        let keep = this.end.len().min(longest - 1);
        this.end.drain(..this.end.len() - keep);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
