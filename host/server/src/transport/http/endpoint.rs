//! Streamable HTTP at `/mcp`, both eras on one endpoint, decided per message.
//!
//! A request is answered with JSON, or with an event stream from the moment there is something to say before the
//! answer. The same disconnect means opposite things: a modern client that leaves has cancelled, a legacy one has not.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::Request as HttpRequest,
    response::{IntoResponse, Response as HttpResponse},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;
use wharf_protocol::{
    Feature, Frame, Malformed, Message, Method, Notification, Request, Revision, RpcError,
    error::{METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY},
    message::{error_text, result_text},
    meta::RequestMeta,
    notification::Told,
    params,
    revision::Era,
};

use super::{
    body::{Hold, read_message},
    connections::Peer,
    headers::{accepts, check_mirrored, check_name, single, text},
    refused::{Refused, json},
    reply::{First, Reply, Running, Work, accepted, answered, event_stream},
    resume::Streams,
    sessions::Sessions,
};
use crate::{
    base::{
        ledger::{Charge, no_room},
        principal::Principal,
    },
    client::{context::Context, notifier::Feed, outbox::Outbox, server::Server, session::Session},
    config::Token,
    methods::response::Text,
    transport::admission,
};

pub const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION_HEADER: &str = "mcp-protocol-version";
/// How many bytes of messages of one request may wait to be read by the client.
const QUEUED_BYTES: u32 = 512 * 1024;
/// When a legacy request that has no answer yet is answered with a stream, so that its client has something to come back to.
const STREAM_AFTER: Duration = Duration::from_millis(100);
/// How long changes are collected for a client whose stream was cut off.
const TAKE_UP: Duration = Duration::from_secs(60);

/// Where a message comes from, and what is paid for it.
struct From<'a> {
    peer: &'a Arc<Peer>,
    charge: Arc<Charge>,
}

/// What all requests at the endpoint share.
pub struct Endpoint {
    pub server: Arc<Server>,
    sessions: Sessions,
    streams: Arc<Streams>,
    in_flight: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    /// Each token is a principal of its own; without a token everybody is the same.
    principal: Principal,
}

impl Endpoint {
    pub fn new(server: &Arc<Server>) -> Self {
        let config = &server.startup.http;
        let sessions = Sessions::new(config.sessions, config.session_idle);
        server.tracker.spawn(sessions.clone().sweep(server.stop.clone()));
        Self {
            sessions,
            streams: Arc::default(),
            in_flight: Arc::new(Semaphore::new(config.in_flight)),
            listens: Arc::new(Semaphore::new(config.listens)),
            server: Arc::clone(server),
            principal: config.token.as_ref().map_or(Principal::Anonymous, Token::principal),
        }
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub async fn post(self: &Arc<Self>, request: HttpRequest, peer: &Arc<Peer>) -> Result<HttpResponse, Refused> {
        let (http::request::Parts { headers, .. }, body) = request.into_parts();
        if !accepts(&headers, "application/json") || !accepts(&headers, "text/event-stream") {
            let message = "Accept must name application/json and text/event-stream";
            return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, message));
        }
        let incoming = self.server.ledger.incoming(peer.account());
        let (body, charge) = read_message(&headers, body, self.server.startup.message_bytes, incoming).await?;
        let from = From { peer, charge: Arc::new(charge) };
        match Frame::parse(&body) {
            Ok(Frame::One(message)) => self.message(&headers, message, from).await,
            Ok(Frame::Batch(messages)) => self.batch(&headers, messages, from).await,
            Err(malformed) => {
                let body = error_text(malformed.id.as_ref(), &malformed.error, Revision::V2026_07_28);
                Err(Refused { status: StatusCode::BAD_REQUEST, body })
            }
        }
    }

    async fn message(
        self: &Arc<Self>,
        headers: &HeaderMap,
        message: Message,
        from: From<'_>,
    ) -> Result<HttpResponse, Refused> {
        let version = text(headers, VERSION_HEADER);
        let modern_header = version.is_some_and(Revision::header_is_modern);
        match message {
            Message::Request(request) => {
                let bad = |error: &RpcError| Refused::new(StatusCode::BAD_REQUEST, Some(&request), error);
                let (claimed, meta) = admission::claim(request.params.as_ref()).map_err(|error| bad(&error))?;
                if claimed {
                    return self.modern(headers, request, meta, from).await;
                }
                if modern_header {
                    return Err(bad(&match request.known() {
                        Some(Method::Initialize) => {
                            RpcError::header_mismatch("`initialize` belongs to revisions before 2026-07-28")
                        }
                        _ => admission::unclaimed(&meta),
                    }));
                }
                if !self.server.startup.protocol.legacy {
                    return Err(bad(&admission::without_legacy(&request, &meta)));
                }
                check_version(headers, Some(&request))?;
                self.legacy(headers, request, meta, from).await
            }
            Message::Notification(notification) => {
                let claimed = RequestMeta::read(notification.params.as_ref()).is_ok_and(|meta| meta.claims_modern());
                if claimed || modern_header || !self.server.startup.protocol.legacy {
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

    /// For a stream that stays open.
    pub fn listen_permit(&self) -> Result<OwnedSemaphorePermit, Refused> {
        self.permit(&self.listens, None)
    }

    /// For a request that is worked for.
    pub fn work_permit(&self) -> Result<OwnedSemaphorePermit, Refused> {
        self.permit(&self.in_flight, None)
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
        from: From<'_>,
    ) -> Result<HttpResponse, Refused> {
        if request.known() == Some(Method::Initialize) {
            if self.session(headers, None).is_ok() {
                let error = RpcError::invalid_request("this session is initialized already");
                return Err(Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error));
            }
            let bad = |error: RpcError| Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error);
            let params = params::read(request.params.as_ref()).map_err(bad)?;
            let (session, result) = Session::open(&self.server, params, self.principal()).map_err(bad)?;
            let mut response = json(StatusCode::OK, result_text(&request.id, &result));
            if let Ok(id) = HeaderValue::from_str(&session.id) {
                response.headers_mut().insert(SESSION_HEADER, id);
            }
            self.sessions.add(session).map_err(|error| {
                self.server.refusals.say("a session, because all of them are in use");
                Refused::new(StatusCode::SERVICE_UNAVAILABLE, Some(&request), &error)
            })?;
            return Ok(response);
        }
        let session = self.session(headers, Some(&request))?;
        let (outbox, messages) = Outbox::new(QUEUED_BYTES, session.account.clone());
        let permit = self.permit(&self.in_flight, Some(&request))?;
        let work = self.begin(&session, request, meta, outbox, permit, &from)?;
        Ok(self.respond(&session, Running::start(work, messages, |work| self.detached(work)).await).await)
    }

    /// Answers a legacy request: with JSON if that is soon, else with a stream that outlives its response.
    async fn respond(self: &Arc<Self>, session: &Arc<Session>, running: Running) -> HttpResponse {
        match running.first(Some(STREAM_AFTER)).await {
            First::Answer(answer) => answered(answer, Era::Legacy),
            First::Stream(running, first) => {
                let log = self.streams.open(session);
                let (streams, filled) = (Arc::clone(&self.streams), Arc::clone(&log));
                self.server.tracker.spawn(async move { streams.fill(filled, running, first).await });
                event_stream(log.read(1, self.server.startup.http.poll_after, Hold::default()))
            }
        }
    }

    /// A task of its own, because it goes on when the client leaves.
    fn detached(&self, work: Work) -> Work {
        let task = self.server.tracker.spawn(work);
        Box::pin(async move { task.await.ok().flatten() })
    }

    /// A task of its own that ends with its response, which hyper drops when the client leaves.
    fn attached(&self, work: Work) -> Work {
        let task = AbortOnDropHandle::new(self.server.tracker.spawn(work));
        Box::pin(async move { task.await.ok().flatten() })
    }

    /// A request in its session.
    fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: Request,
        meta: RequestMeta,
        outbox: Outbox,
        permit: OwnedSemaphorePermit,
        from: &From<'_>,
    ) -> Result<Work, Refused> {
        let entered = session
            .in_flight
            .enter(&request.id, &outbox.voice)
            .map_err(|error| Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error))?;
        let ctx = Context::in_session(session, &self.server, &request.id, meta, outbox, Arc::clone(&from.charge));
        let (account, busy) = (from.peer.account().clone(), from.peer.work());
        let ended = session.ended.clone();
        Ok(Box::pin(async move {
            let answer = tokio::select! {
                biased;
                answer = admission::answer(&ctx, &request.method, request.params.as_ref()) => Some(answer),
                () = entered.cancelled.cancelled() => None,
                () = ended.cancelled() => None,
            };
            drop((entered, permit));
            answer.map(|answer| Reply::of(&ctx, StatusCode::OK, answer, &account, busy))
        }))
    }

    /// Only 2025-03-26 knows batches: all requests run at once, and their answers are one array.
    async fn batch(
        self: &Arc<Self>,
        headers: &HeaderMap,
        batch: Vec<Result<Message, Malformed>>,
        from: From<'_>,
    ) -> Result<HttpResponse, Refused> {
        let session = self.session(headers, None)?;
        if !session.revision.has(Feature::Batches) {
            return Err(Refused::plain(
                StatusCode::BAD_REQUEST,
                "batches exist only in sessions of revision 2025-03-26",
            ));
        }
        // All of it, or nothing.
        let requests = batch.iter().filter(|message| matches!(message, Ok(Message::Request(_)))).count();
        let mut permits = Vec::with_capacity(requests);
        for _ in 0..requests {
            permits.push(self.permit(&self.in_flight, None)?);
        }
        let (mut ids, mut metas) = (HashSet::new(), VecDeque::with_capacity(requests));
        for message in &batch {
            let Ok(Message::Request(request)) = message else { continue };
            match admission::claim(request.params.as_ref()) {
                Ok((false, meta)) if request.known() != Some(Method::Initialize) && ids.insert(&request.id) => {
                    metas.push_back(meta)
                }
                _ => {
                    let error = RpcError::invalid_request("this request cannot be part of a batch");
                    return Err(Refused::new(StatusCode::BAD_REQUEST, Some(request), &error));
                }
            }
        }
        let (outbox, messages) = Outbox::new(QUEUED_BYTES, session.account.clone());
        let mut begun: Vec<Work> = Vec::new();
        let mut known: Vec<String> = Vec::new();
        for message in batch {
            match message {
                Ok(Message::Request(request)) => {
                    let Some((meta, permit)) = metas.pop_front().zip(permits.pop()) else { continue };
                    let id = request.id.clone();
                    match self.begin(&session, request, meta, outbox.of_request(), permit, &from) {
                        Ok(work) => begun.push(self.detached(work)),
                        Err(_) => {
                            let error = RpcError::invalid_request("a request with this id is already under way");
                            known.push(error_text(Some(&id), &error, session.revision));
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
        drop(outbox);
        let (ledger, account) = (Arc::clone(&self.server.ledger), from.peer.account().clone());
        let busy = from.peer.work();
        let work = Box::pin(async move {
            // Each is paid for until all are there, and then all of them together once more.
            let replies = futures_util::future::join_all(begun).await;
            let bytes = replies.iter().flatten().map(|reply| reply.text.own_bytes()).sum::<usize>();
            let charge = ledger.message(&account, bytes);
            let (mut status, mut hold) = (StatusCode::OK, Hold { busy: Some(busy), ..Hold::default() });
            match charge {
                Ok(charge) => {
                    known.extend(replies.into_iter().flatten().map(|reply| reply.text.into_string()));
                    hold.charge = Some(charge);
                }
                Err(full) => {
                    status = StatusCode::SERVICE_UNAVAILABLE;
                    known = vec![error_text(None, &no_room(&full), Revision::V2025_03_26)];
                }
            }
            Some(Reply { status, text: Text::Whole(format!("[{}]", known.join(","))), hold })
        });
        Ok(self.respond(&session, Running { work, messages, ended: None }).await)
    }

    async fn modern(
        self: &Arc<Self>,
        headers: &HeaderMap,
        request: Request,
        meta: RequestMeta,
        from: From<'_>,
    ) -> Result<HttpResponse, Refused> {
        let bad = |error: &RpcError| Refused::new(StatusCode::BAD_REQUEST, Some(&request), error);
        let (outbox, messages) = Outbox::new(QUEUED_BYTES, from.peer.account().clone());
        let ctx = self.modern_context(headers, &request, meta, outbox, &from).map_err(|error| {
            let status = if error.code == METHOD_NOT_FOUND { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
            Refused::new(status, Some(&request), &error)
        })?;
        check_name(headers, &request).map_err(|error| bad(&error))?;
        check_mirrored(headers, &request, &self.server).await.map_err(|error| bad(&error))?;
        let listens = request.known() == Some(Method::Listen);
        let permit = self.permit(if listens { &self.listens } else { &self.in_flight }, Some(&request))?;
        let (account, busy) = (from.peer.account().clone(), from.peer.work());
        let work = Box::pin(async move {
            let answer = admission::answer(&ctx, &request.method, request.params.as_ref()).await;
            let lacks = answer.as_ref().is_err_and(|error| error.code == MISSING_CLIENT_CAPABILITY);
            let status = if lacks { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            drop(permit);
            Some(Reply::of(&ctx, status, answer, &account, busy))
        });
        let running = Running::start(work, messages, |work| self.attached(work)).await;
        Ok(match running.first(None).await {
            First::Answer(answer) => answered(answer, Era::Modern),
            First::Stream(running, first) => running.stream(first),
        })
    }

    /// The checks of a modern request, in the order that the errors' meanings demand.
    fn modern_context(
        &self,
        headers: &HeaderMap,
        request: &Request,
        meta: RequestMeta,
        outbox: Outbox,
        from: &From<'_>,
    ) -> Result<Context, RpcError> {
        let version = single(headers, VERSION_HEADER)?
            .ok_or_else(|| RpcError::header_mismatch("the header MCP-Protocol-Version is missing"))?;
        let claim = meta.modern_claim()?;
        if version != claim.version {
            return Err(RpcError::header_mismatch("MCP-Protocol-Version differs from the version in `_meta`"));
        }
        let charge = Arc::clone(&from.charge);
        let ctx = Context::of_claim(&self.server, &request.id, meta, self.principal(), outbox, charge)?;
        if single(headers, "mcp-method")? != Some(request.method.as_str()) {
            return Err(RpcError::header_mismatch("the header Mcp-Method is missing or differs from `method`"));
        }
        ctx.method(&request.method)?;
        Ok(ctx)
    }

    pub async fn open_stream(self: &Arc<Self>, headers: &HeaderMap, peer: &Arc<Peer>) -> Result<HttpResponse, Refused> {
        check_version(headers, None)?;
        if !accepts(headers, "text/event-stream") {
            return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream"));
        }
        let session = self.session(headers, None)?;
        let hold = Hold { permit: Some(self.listen_permit()?), busy: Some(peer.work()), charge: None };
        if let Some(last) = text(headers, "last-event-id").filter(|last| !last.is_empty()) {
            let (log, next) = self.streams.find(&session, last).ok_or_else(|| {
                Refused::plain(
                    StatusCode::NOT_FOUND,
                    "what followed this Last-Event-ID is not kept; send the request again",
                )
            })?;
            return Ok(event_stream(log.read(next, self.server.startup.http.poll_after, hold)));
        }
        let listening = session.listen();
        let (outbox, messages) = Outbox::new(QUEUED_BYTES, session.account.clone());
        let feed = Feed::open(&self.server);
        let server = Arc::clone(&self.server);
        let log = self.streams.open(&session);
        let read = Arc::clone(&log);
        let work: Work = Box::pin(async move {
            tokio::select! {
                () = feed.run(&*session, &outbox) => {}
                () = listening.ended.cancelled() => {}
                () = read.abandoned(TAKE_UP) => {}
                () = server.stop.cancelled() => {}
            }
            None
        });
        let (streams, filled) = (Arc::clone(&self.streams), Arc::clone(&log));
        self.server.tracker.spawn(async move {
            streams.fill(filled, Running { work, messages, ended: None }, None).await;
        });
        Ok(event_stream(log.read(1, None, hold)))
    }

    pub fn end_session(&self, headers: &HeaderMap) -> Result<HttpResponse, Refused> {
        check_version(headers, None)?;
        let session = self.session(headers, None)?;
        self.sessions.end(&session);
        Ok(StatusCode::NO_CONTENT.into_response())
    }
}

/// A version that nobody knows is refused, wherever it stands.
fn check_version(headers: &HeaderMap, request: Option<&Request>) -> Result<(), Refused> {
    match text(headers, VERSION_HEADER).filter(|version| Revision::parse(version).is_none()) {
        Some(version) => Err(Refused::new(StatusCode::BAD_REQUEST, request, &RpcError::unsupported_version(version))),
        None => Ok(()),
    }
}

fn notify(session: &Session, notification: &Notification) {
    if notification.known() == Some(Told::Cancelled) {
        session.in_flight.cancel(notification.params.as_ref());
    } else {
        session.notified(notification);
    }
}
