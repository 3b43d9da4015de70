//! Streamable HTTP at `/mcp`, both eras on one endpoint, decided per message.
//!
//! A request is answered with JSON, or with an event stream from the moment there is something to say before the
//! answer. The same disconnect means opposite things: a modern client that leaves has cancelled, a legacy one has not.

use std::{pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::Request as HttpRequest,
    response::{IntoResponse, Response as HttpResponse},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use wharf_protocol::{
    Frame, Malformed, Message, Notification, Request, Revision, RpcError,
    error::{METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY},
    header::decode_value,
    message::{error_text, result_text},
    meta::RequestMeta,
    params,
    revision::Era,
};

use super::{
    reply::{Reply, Running, Work, accepted, json},
    sessions::Sessions,
};
use crate::{
    context::Context,
    era::{legacy::Session, modern},
    hub,
    outlet::Outlet,
    router,
    server::Server,
    transport,
};

pub const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Messages of one request that wait to be read by the client.
const QUEUE: usize = 64;
/// How long a client may take to send a body.
const BODY: Duration = Duration::from_secs(30);

/// What all requests at the endpoint share.
pub struct Endpoint {
    pub server: Arc<Server>,
    sessions: Sessions,
    in_flight: Arc<Semaphore>,
    listens: Arc<Semaphore>,
}

/// A request that is not run: the status, and the JSON-RPC error in the body.
pub struct Refused {
    status: StatusCode,
    body: String,
}

impl Refused {
    fn new(status: StatusCode, request: Option<&Request>, error: &RpcError) -> Self {
        // No modern revision has other codes for these errors than the newest legacy one.
        Self { status, body: error_text(request.map(|request| &request.id), error, Revision::V2026_07_28) }
    }

    pub fn plain(status: StatusCode, message: &str) -> Self {
        Self::new(status, None, &RpcError::invalid_request(message))
    }

    pub fn into_response(self) -> HttpResponse {
        json(self.status, self.body)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let kinds = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let family = wanted.split('/').next().unwrap_or_default();
    kinds
        .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .any(|kind| kind == wanted || kind == "*/*" || kind == format!("{family}/*"))
}

impl Endpoint {
    pub fn new(server: &Arc<Server>) -> Self {
        let config = &server.config.http;
        Self {
            sessions: Sessions::new(config.sessions),
            in_flight: Arc::new(Semaphore::new(config.in_flight)),
            listens: Arc::new(Semaphore::new(config.listens)),
            server: Arc::clone(server),
        }
    }

    fn principal(&self) -> &'static str {
        // One token, one principal; without a token everybody is the same.
        if self.server.config.http.token.is_some() { "token" } else { "anonymous" }
    }

    pub async fn post(self: &Arc<Self>, request: HttpRequest) -> Result<HttpResponse, Refused> {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        let content_type = text(&headers, "content-type").unwrap_or_default();
        if !content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
            return Err(Refused::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
        }
        if !accepts(&headers, "application/json") || !accepts(&headers, "text/event-stream") {
            let message = "Accept must name application/json and text/event-stream";
            return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, message));
        }
        let limit = self.server.config.message_bytes;
        let body = tokio::time::timeout(BODY, read_body(body, limit)).await.unwrap_or(Err(BodyError::Broken));
        let body = body.map_err(|error| match error {
            BodyError::TooLarge => {
                Refused::plain(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {limit} bytes"))
            }
            BodyError::Broken => Refused::plain(StatusCode::BAD_REQUEST, "the body did not arrive whole"),
        })?;
        match Frame::parse(&body) {
            Ok(Frame::One(message)) => self.message(&headers, message).await,
            Ok(Frame::Batch(messages)) => self.batch(&headers, messages).await,
            Err(malformed) => {
                let body = error_text(malformed.id.as_ref(), &malformed.error, Revision::V2026_07_28);
                Err(Refused { status: StatusCode::BAD_REQUEST, body })
            }
        }
    }

    async fn message(self: &Arc<Self>, headers: &HeaderMap, message: Message) -> Result<HttpResponse, Refused> {
        let version = text(headers, VERSION_HEADER);
        let modern_header = version.is_some_and(Revision::header_is_modern);
        match message {
            Message::Request(request) => {
                let bad = |error: &RpcError| Refused::new(StatusCode::BAD_REQUEST, Some(&request), error);
                let (claimed, meta) = modern::claim(request.params.as_deref()).map_err(|error| bad(&error))?;
                if claimed {
                    return self.modern(headers, request, meta).await;
                }
                if modern_header {
                    return Err(bad(&match request.method.as_str() {
                        "initialize" => {
                            RpcError::header_mismatch("`initialize` belongs to revisions before 2026-07-28")
                        }
                        _ => meta.modern_claim().err().unwrap_or_else(|| RpcError::invalid_params("missing `_meta`")),
                    }));
                }
                if let Some(version) = version.filter(|version| Revision::parse(version).is_none()) {
                    return Err(bad(&RpcError::unsupported_version(version)));
                }
                self.legacy(headers, request, meta).await
            }
            Message::Notification(notification) => {
                let claimed = RequestMeta::read(notification.params.as_deref()).is_ok_and(|meta| meta.claims_modern());
                if claimed || modern_header {
                    // None is defined over HTTP: closing the stream is how a request is cancelled.
                    return Ok(accepted());
                }
                let session = self.session(headers, None)?;
                notify(&session, &notification);
                Ok(accepted())
            }
            Message::Response(response) => {
                self.session(headers, None)?.answered(response);
                Ok(accepted())
            }
        }
    }

    /// The session that the request names.
    fn session(&self, headers: &HeaderMap, request: Option<&Request>) -> Result<Arc<Session>, Refused> {
        let Some(id) = text(headers, SESSION_HEADER.as_str()) else {
            let error = RpcError::invalid_request("no session: send `initialize` first, then its Mcp-Session-Id");
            return Err(Refused::new(StatusCode::BAD_REQUEST, request, &error));
        };
        self.sessions.get(id, self.principal()).ok_or_else(|| {
            let error = RpcError::invalid_request("there is no such session; send `initialize` again");
            Refused::new(StatusCode::NOT_FOUND, request, &error)
        })
    }

    fn permit(&self, of: &Arc<Semaphore>, request: Option<&Request>) -> Result<OwnedSemaphorePermit, Refused> {
        Arc::clone(of).try_acquire_owned().map_err(|_| {
            let error = RpcError::internal("too many requests are under way; try again");
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, request, &error)
        })
    }

    async fn legacy(
        self: &Arc<Self>,
        headers: &HeaderMap,
        request: Request,
        meta: RequestMeta,
    ) -> Result<HttpResponse, Refused> {
        if request.method == "initialize" {
            if self.session(headers, None).is_ok() {
                let error = RpcError::invalid_request("this session is initialized already");
                return Err(Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error));
            }
            let bad = |error: RpcError| Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error);
            let params = params::read(request.params.as_deref()).map_err(bad)?;
            let (session, result) = Session::open(&self.server, params, self.principal()).map_err(bad)?;
            let mut response = json(StatusCode::OK, result_text(&request.id, &result));
            if let Ok(id) = HeaderValue::from_str(&session.id) {
                response.headers_mut().insert(SESSION_HEADER, id);
            }
            self.sessions.add(session);
            return Ok(response);
        }
        let session = self.session(headers, Some(&request))?;
        let (sender, messages) = mpsc::channel(QUEUE);
        let work = self.begin(&session, request, meta, Outlet::new(sender))?;
        Ok(Running { work, messages, ended: None }.respond(Era::Legacy).await)
    }

    /// Starts a request in its session: a task of its own, because it goes on when the client leaves.
    fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: Request,
        meta: RequestMeta,
        outlet: Outlet,
    ) -> Result<Work, Refused> {
        let permit = self.permit(&self.in_flight, Some(&request))?;
        let entered = session
            .in_flight
            .enter(&request.id)
            .map_err(|error| Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error))?;
        let ctx = Context::in_session(session, &self.server, &request.id, meta, outlet);
        let ended = session.ended.clone();
        let running = self.server.tasks.spawn(async move {
            let answer = tokio::select! {
                answer = transport::answer(&ctx, &request.method, request.params.as_deref()) => Some(answer),
                () = entered.cancelled.cancelled() => None,
                () = ended.cancelled() => None,
            };
            drop((entered, permit));
            answer.map(|answer| Reply { status: StatusCode::OK, text: transport::response(&ctx, answer) })
        });
        Ok(Box::pin(async move { running.await.ok().flatten() }))
    }

    /// Only 2025-03-26 knows batches: all requests run at once, and their answers are one array.
    async fn batch(
        self: &Arc<Self>,
        headers: &HeaderMap,
        batch: Vec<Result<Message, Malformed>>,
    ) -> Result<HttpResponse, Refused> {
        let session = self.session(headers, None)?;
        if session.revision != Revision::V2025_03_26 {
            return Err(Refused::plain(
                StatusCode::BAD_REQUEST,
                "batches exist only in sessions of revision 2025-03-26",
            ));
        }
        let (sender, messages) = mpsc::channel(QUEUE);
        let outlet = Outlet::new(sender);
        let mut begun: Vec<Work> = Vec::new();
        let mut known: Vec<String> = Vec::new();
        for message in batch {
            match message {
                Ok(Message::Request(request)) => {
                    let claim = modern::claim(request.params.as_deref());
                    match claim {
                        Ok((false, meta)) if request.method != "initialize" => {
                            begun.push(self.begin(&session, request, meta, outlet.clone())?);
                        }
                        _ => {
                            let error = RpcError::invalid_request("this request cannot be part of a batch");
                            return Err(Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error));
                        }
                    }
                }
                Ok(Message::Notification(notification)) => notify(&session, &notification),
                Ok(Message::Response(response)) => session.answered(response),
                Err(malformed) => known.push(error_text(malformed.id.as_ref(), &malformed.error, session.revision)),
            }
        }
        if begun.is_empty() && known.is_empty() {
            return Ok(accepted());
        }
        drop(outlet);
        let work = Box::pin(async move {
            for reply in futures_util::future::join_all(begun).await.into_iter().flatten() {
                known.push(reply.text);
            }
            Some(Reply { status: StatusCode::OK, text: format!("[{}]", known.join(",")) })
        });
        Ok(Running { work, messages, ended: None }.respond(Era::Legacy).await)
    }

    async fn modern(
        self: &Arc<Self>,
        headers: &HeaderMap,
        request: Request,
        meta: RequestMeta,
    ) -> Result<HttpResponse, Refused> {
        let bad = |error: &RpcError| Refused::new(StatusCode::BAD_REQUEST, Some(&request), error);
        let (sender, messages) = mpsc::channel(QUEUE);
        let ctx = self.modern_context(headers, &request, meta, Outlet::new(sender)).map_err(|error| {
            let status = if error.code == METHOD_NOT_FOUND { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
            Refused::new(status, Some(&request), &error)
        })?;
        check_name(headers, &request).map_err(|error| bad(&error))?;
        let listens = request.method == "subscriptions/listen";
        let permit = self.permit(if listens { &self.listens } else { &self.in_flight }, Some(&request))?;
        // Not a task: it ends with the response, which hyper drops when the client leaves.
        let work = Box::pin(async move {
            let answer = transport::answer(&ctx, &request.method, request.params.as_deref()).await;
            drop(permit);
            let lacks = answer.as_ref().is_err_and(|error| error.code == MISSING_CLIENT_CAPABILITY);
            let status = if lacks { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            Some(Reply { status, text: transport::response(&ctx, answer) })
        });
        Ok(Running { work, messages, ended: None }.respond(Era::Modern).await)
    }

    /// The checks of a modern request, in the order that the errors' meanings demand.
    fn modern_context(
        &self,
        headers: &HeaderMap,
        request: &Request,
        meta: RequestMeta,
        outlet: Outlet,
    ) -> Result<Context, RpcError> {
        let version = single(headers, VERSION_HEADER)?
            .ok_or_else(|| RpcError::header_mismatch("the header MCP-Protocol-Version is missing"))?;
        let claim = meta.modern_claim()?;
        if version != claim.version {
            return Err(RpcError::header_mismatch("MCP-Protocol-Version differs from the version in `_meta`"));
        }
        let ctx = Context::of_claim(&self.server, &request.id, meta, self.principal(), outlet)?;
        if single(headers, "mcp-method")? != Some(request.method.as_str()) {
            return Err(RpcError::header_mismatch("the header Mcp-Method is missing or differs from `method`"));
        }
        if router::is_modern_method(&request.method) {
            Ok(ctx)
        } else {
            Err(RpcError::method_not_found(&request.method))
        }
    }

    pub async fn open_stream(self: &Arc<Self>, headers: &HeaderMap) -> Result<HttpResponse, Refused> {
        if !accepts(headers, "text/event-stream") {
            return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream"));
        }
        let session = self.session(headers, None)?;
        let permit = self.permit(&self.listens, None)?;
        let taken = session.take_stream();
        let (sender, messages) = mpsc::channel(QUEUE);
        let (server, outlet) = (Arc::clone(&self.server), Outlet::new(sender));
        let work = Box::pin(async move {
            tokio::select! {
                () = hub::feed(&server, &*session, &outlet, async || {}) => {}
                () = taken.cancelled() => {}
                () = server.stop.cancelled() => {}
            }
            drop(permit);
            None
        });
        Ok(Running { work, messages, ended: None }.stream(None))
    }

    pub fn end_session(&self, headers: &HeaderMap) -> Result<HttpResponse, Refused> {
        let session = self.session(headers, None)?;
        self.sessions.end(&session);
        Ok(StatusCode::NO_CONTENT.into_response())
    }
}

fn notify(session: &Session, notification: &Notification) {
    if notification.method == "notifications/cancelled" {
        session.in_flight.cancel(notification.params.as_deref());
    } else {
        session.notified(notification);
    }
}

/// A header that may stand once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let wrong = || RpcError::header_mismatch(format!("the header {name} is malformed, or stands twice"));
    let value = values.next().map(|value| value.to_str().map(str::trim).map_err(|_| wrong())).transpose()?;
    if values.next().is_some() { Err(wrong()) } else { Ok(value) }
}

/// `Mcp-Name` mirrors the name or URI of the three methods that have one.
fn check_name(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    let key = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let params: wharf_protocol::Object = params::read(request.params.as_deref())?;
    // A request without the member fails for that, later.
    let Some(expected) = params.get(key).and_then(serde_json::Value::as_str) else { return Ok(()) };
    let mut values = headers.get_all("mcp-name").iter();
    let given = values.next().and_then(|value| decode_value(value.as_bytes()));
    if given.as_deref() == Some(expected) && values.next().is_none() {
        Ok(())
    } else {
        Err(RpcError::header_mismatch(format!("the header Mcp-Name is missing or differs from `params.{key}`")))
    }
}

enum BodyError {
    TooLarge,
    Broken,
}

async fn read_body(mut body: Body, limit: usize) -> Result<Vec<u8>, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(BodyError::TooLarge);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}
