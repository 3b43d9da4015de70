//! Streamable HTTP at `/mcp`. One endpoint serves legacy and modern revisions; each message shows which of the two it is.
//!
//! A request is answered with JSON, or with an event stream (Server-Sent Events) as soon as there is a message to send before the answer. A
//! modern client that disconnects has cancelled its request; a legacy one has not.

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
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use wharf_protocol::{
    Feature, Frame, Malformed, Message, Method, Request, Revision, RpcError,
    message::{error_text, result_text},
    meta::{RequestMeta, Trace},
    revision::Era,
};

use super::{
    access_log::Noted,
    body::{Hold, read_message},
    connections::{Peer, Remote},
    headers::{VERSION_HEADER, accepts, request_id, text},
    listens::{Listen, Listens},
    refused::{Refused, json},
    replica::{self, Replica},
    reply::{Crowd, First, Reply, Running, Work, accepted, answered, event_stream},
    resume::{self, Follows, Purpose, Streams},
    sessions::{NotReopened, Sessions},
    waits::{Lasting, MADE_ROOM, Place, WaitedFor},
};
use crate::{
    client::{
        context::{Arrival, Context, ItsSeat},
        notifier::Feed,
        outbox::{Messages, Outbox},
        seat::{Seats, Taken, no_place},
        server::Server,
        session::Session,
    },
    methods::{response::ResponseText, router},
    transport::admission::{self, Admitted, Door, Kind, Named, Refusal},
};
use wharf_base::{
    in_place::boxed,
    ledger::{Accounts, Charge, no_room},
    party::Party,
    places::PoolFull,
    refusals::{Reason, What},
    session_id::{IssuedTo, SessionRecord},
};
use wharf_policy::auth::Caller;

pub const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
/// How many bytes of one request's messages may wait for the client to read them.
const MAX_QUEUED_BYTES: u32 = 512 * 1024;
/// How long a legacy request may go without an answer before it gets an event stream, which its client can resume.
const JSON_ANSWER_TIMEOUT: Duration = Duration::from_millis(100);
/// How long the stream for changes goes on without a reader after its client was cut off.
const RESUME_GRACE: Duration = Duration::from_secs(60);

/// The answer to a request whose stream is not stored any more.
const LOST_ANSWER: &str = "the answer to this request is lost: wharf has restarted since, or kept it for as long as it could; what the \
                           request does may be done or not; send it again if that is safe";

const NO_SESSION: What =
    What::new("a session, because the client uses its share of them, or all are in use", Reason::Other("sessions"));

/// The sender of a message, and the memory charged for the message.
struct Source<'a> {
    visitor: &'a Visitor,
    charge: Arc<Charge>,
    /// The request's entry in the access log, if there is one.
    noted: Option<Arc<Noted>>,
}

/// The client that makes a request, and the profile that it connected to.
pub struct Visitor {
    pub peer: Arc<Peer>,
    /// Where the request comes from, as far as trusted proxies say.
    pub from: Remote,
    pub caller: Caller,
    /// The accounts that are charged for the memory that the client makes wharf use; their party takes places for the request.
    pub accounts: Accounts,
    pub profile: Option<Arc<str>>,
}

/// What all requests at the endpoint share.
pub struct Endpoint {
    pub server: Arc<Server>,
    pub(super) sessions: Sessions,
    pub(super) streams: Arc<Streams>,
    seats: Arc<Seats>,
    listens: Listens,
    crowd: Crowd,
}

impl Endpoint {
    pub fn new(server: &Arc<Server>) -> Self {
        let config = &server.startup.http;
        let sessions = Sessions::new(config.sessions, config.session_idle);
        server.tracker.spawn(sessions.clone().sweep(server.stop.clone()));
        server.tracker.spawn(Arc::clone(server).follow_lists());
        let streams = Arc::new(Streams::new(server.cluster.as_ref().map(|cluster| cluster.address())));
        if let Some(cluster) = &server.cluster {
            let replica =
                Replica { server: Arc::clone(server), sessions: sessions.clone(), streams: Arc::clone(&streams) };
            cluster.start(Arc::new(replica), &server.tracker, &server.stop);
            server.tracker.spawn(Arc::clone(server).send_news(Arc::clone(cluster)));
            server.tracker.spawn(replica::tell_of_tasks(Arc::clone(server)));
        }
        Self {
            sessions,
            streams,
            seats: Seats::new(config.in_flight),
            listens: Listens::new(config.listens),
            crowd: Crowd::default(),
            server: Arc::clone(server),
        }
    }

    pub async fn post(
        self: &Arc<Self>,
        request: HttpRequest,
        noted: Option<Arc<Noted>>,
        visitor: &Visitor,
    ) -> Result<HttpResponse, Refused> {
        let (http::request::Parts { headers, .. }, body) = request.into_parts();
        if !accepts(&headers, "application/json") || !accepts(&headers, "text/event-stream") {
            let message = "Accept must name application/json and text/event-stream";
            return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, message));
        }
        let incoming = self.server.ledger.incoming(&visitor.accounts);
        let (body, charge) = read_message(&headers, body, self.server.startup.message_bytes, incoming).await?;
        let from = Source { visitor, charge: Arc::new(charge), noted };
        self.recall(&headers, visitor).await;
        let message = match Frame::parse(body) {
            Ok(Frame::One(message)) => message,
            Ok(Frame::Batch(messages)) => return Box::pin(self.batch(&headers, messages, from)).await,
            Err(malformed) => {
                let body = error_text(malformed.id.as_ref(), &malformed.error, Revision::V2026_07_28);
                return Err(Refused { status: StatusCode::BAD_REQUEST, body });
            }
        };
        match message {
            Message::Request(request) => return self.request(&headers, request, from).await,
            Message::Notification(notification) => {
                let modern = text(&headers, VERSION_HEADER).is_some_and(Revision::header_is_modern);
                let claimed = RequestMeta::read(notification.params.as_ref()).is_ok_and(|meta| meta.claims_modern());
                // No notification from modern clients is defined over HTTP: they cancel a request by closing its stream.
                if !claimed && !modern && self.server.startup.protocol.legacy {
                    let session = self.session(&headers, visitor)?;
                    self.notified(&session, &notification);
                }
            }
            Message::Response(response) => {
                let session = self.session(&headers, visitor)?;
                self.take_response(&session, response, from.charge).await?;
            }
        }
        Ok(accepted())
    }

    async fn request(
        self: &Arc<Self>,
        headers: &HeaderMap,
        request: Request,
        from: Source<'_>,
    ) -> Result<HttpResponse, Refused> {
        if let Some(noted) = &from.noted {
            noted.asks(&self.server, &request, from.visitor.profile.as_deref());
        }
        if request.known() == Some(Method::Initialize) {
            self.server.ready_to_introduce().await;
        }
        // A stream that waits for changes ends when another client needs its place.
        let over = (request.known() == Some(Method::Listen)).then(|| self.server.closing.child_token());
        let arrival = self.arrival(headers, &from, over);
        let (server, accounts) = (&self.server, &from.visitor.accounts);
        let door = Door { server, accounts, modern: true, headers: Some(headers) };
        let mut messages = None;
        let outbox = |session: Option<&Session>| {
            let account = session.map_or(&*from.visitor.accounts, |session| &session.account);
            let (outbox, receiver) = Outbox::new(MAX_QUEUED_BYTES, account.clone());
            messages = Some(receiver);
            outbox
        };
        let session = |again: bool| self.named(headers, from.visitor, again);
        let admitted = admission::admit(&door, arrival, &request, session, outbox);
        match (admitted.map_err(|refusal| refused(refusal, Some(&request)))?, messages) {
            (Admitted::Runs(ctx), Some(messages)) => match ctx.session.clone() {
                Some(session) => {
                    let taken = self.seat(from.visitor.accounts.party(), Some(&request))?;
                    let purpose = Purpose::Answer(request.id.clone());
                    let (work, seat) = self.begin(ctx, &session, request, taken, from.visitor)?;
                    let running = Running::start(work, messages, &self.crowd, |work| self.detached(work)).await;
                    Ok(self.respond(&session, from.visitor.accounts.party(), running, &[seat], &purpose).await)
                }
                None => self.modern(ctx, request, messages, from.visitor).await,
            },
            (Admitted::Opens(session, result), _) => {
                let mut response = json(StatusCode::OK, result_text(&request.id, &result));
                if let Ok(id) = HeaderValue::from_str(&session.id) {
                    response.headers_mut().insert(SESSION_HEADER, id);
                }
                self.sessions.add(session, from.visitor.accounts.party()).map_err(|full| {
                    self.server.refusals.say(NO_SESSION);
                    Refused::new(StatusCode::SERVICE_UNAVAILABLE, Some(&request), &no_place(&full))
                })?;
                Ok(response)
            }
            (Admitted::Is(result), _) => Ok(json(StatusCode::OK, result_text(&request.id, &result))),
            (Admitted::Runs(_), None) => {
                let error = self.server.incident("a request was admitted without an outbox");
                Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, Some(&request), &error))
            }
        }
    }

    /// Returns the session that a message names. `again`: whether to make it again if it is not in memory.
    pub(super) fn named(&self, headers: &HeaderMap, visitor: &Visitor, again: bool) -> Named {
        let Some(id) = text(headers, SESSION_HEADER) else { return Named::None };
        let (principal, profile) = (visitor.caller.principal(), visitor.profile.as_deref());
        if let Some(session) = self.sessions.get(id, principal, profile) {
            return Named::Is(session);
        }
        let opened = || self.server.session_ids.open(id, IssuedTo { principal, profile });
        match opened().filter(|_| again) {
            Some(record) => self.reopen(id, record, visitor),
            None => Named::Unknown,
        }
    }

    /// Makes a session again from what its id says.
    fn reopen(&self, id: &str, record: SessionRecord, visitor: &Visitor) -> Named {
        let Visitor { caller, accounts, profile, .. } = visitor;
        let made = || Session::reopen(&self.server, id, record, caller, accounts, profile.clone());
        match self.sessions.reopen(&self.server, id, accounts.party(), made) {
            Ok(session) => Named::Is(session),
            Err(NotReopened::Ended) => Named::Unknown,
            Err(NotReopened::NoMemory(error)) => Named::NoRoom(error),
            Err(NotReopened::Full(full)) => {
                self.server.refusals.say(NO_SESSION);
                Named::NoRoom(no_place(&full))
            }
        }
    }

    /// Returns the session that a message names. A message without one is refused.
    fn session(&self, headers: &HeaderMap, visitor: &Visitor) -> Result<Arc<Session>, Refused> {
        match self.named(headers, visitor, true) {
            Named::Is(session) => Ok(session),
            Named::None => Err(refused(admission::no_session(true), None)),
            Named::Unknown => Err(refused(admission::no_such_session(), None)),
            Named::NoRoom(error) => Err(refused(Refusal { kind: Kind::NoRoom, error }, None)),
        }
    }

    /// Returns what is known about the requests of this message. `over`: is cancelled when the stream that the message asks for is to end.
    fn arrival(&self, headers: &HeaderMap, from: &Source<'_>, over: Option<CancellationToken>) -> Arrival {
        let Visitor { caller, accounts, profile, .. } = from.visitor;
        let traceparent = self.server.observers.trace().then(|| text(headers, "traceparent")).flatten();
        Arrival {
            transport: Some(from.visitor.from.transport()),
            address: from.visitor.from.address(),
            caller: caller.clone(),
            party: accounts.party(),
            profile: profile.clone(),
            roots: None,
            approved: false,
            stop: over.map(Arc::new),
            charge: Arc::clone(&from.charge),
            link: traceparent.and_then(|text| Trace::parse(text, None)).map(Arc::new),
            request_id: request_id(headers).cloned(),
        }
    }

    /// Takes a place for a stream that stays open. `over`: is cancelled when another client needs the place.
    pub fn listen(&self, party: Party, over: CancellationToken, request: Option<&Request>) -> Result<Listen, Refused> {
        self.listens.take(party, over).map_err(|full| self.full(&full, request))
    }

    /// Takes a place for a request.
    pub fn seat(&self, party: Party, request: Option<&Request>) -> Result<Taken, Refused> {
        self.seats.take(party).map_err(|full| self.full(&full, request))
    }

    fn full(&self, full: &PoolFull, request: Option<&Request>) -> Refused {
        self.server.refusals.add(Reason::Other("in_flight"));
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, request, &no_place(full))
    }

    /// Answers a legacy request: with JSON if the answer comes soon, else with a stream that outlives its response. `seats`: those of the
    /// requests that are answered. `purpose`: what such a stream is for.
    async fn respond(
        self: &Arc<Self>,
        session: &Arc<Session>,
        party: Party,
        running: Running,
        seats: &[ItsSeat],
        purpose: &Purpose,
    ) -> HttpResponse {
        let mut waited_for = WaitedFor { seats, stream: None };
        match running.first(Some(JSON_ANSWER_TIMEOUT)).await {
            First::Answer(answer) => {
                waited_for.seats = &[];
                answered(answer, Era::Legacy)
            }
            First::Stream(running, first) => {
                let log = self.streams.open(session, party, purpose);
                waited_for.stream = Some(Arc::clone(&log));
                let (streams, filled) = (Arc::clone(&self.streams), Arc::clone(&log));
                self.server.tracker.spawn(async move { streams.fill(filled, running, first).await });
                event_stream(log.read(1, self.server.startup.http.poll_after, Hold::default()))
            }
        }
    }

    /// Runs the work in a task that goes on when the client disconnects.
    fn detached(&self, work: Work) -> Work {
        let task = self.server.tracker.spawn(work);
        Box::pin(async move { task.await.ok().flatten() })
    }

    /// Runs the work in a task that is aborted when its response is dropped, as hyper does when the client disconnects.
    fn attached(&self, work: Work) -> Work {
        let task = AbortOnDropHandle::new(self.server.tracker.spawn(work));
        Box::pin(async move { task.await.ok().flatten() })
    }

    /// Begins the work for a request in a session.
    fn begin(
        &self,
        ctx: Context,
        session: &Session,
        request: Request,
        taken: Taken,
        visitor: &Visitor,
    ) -> Result<(Work, ItsSeat), Refused> {
        let entered = session
            .in_flight
            .enter(&request.id, &ctx.outbox.voice)
            .map_err(|error| Refused::new(StatusCode::BAD_REQUEST, Some(&request), &error))?;
        let (accounts, busy) = (visitor.accounts.clone(), visitor.peer.work());
        let ended = session.ended.clone();
        let (seat, own, sitting) = (ctx.seat(), ctx.seat(), ctx.sit(taken));
        let request = Box::new(request);
        let work = boxed(|| async move {
            let answer = tokio::select! {
                biased;
                answer = router::answer(&ctx, &request.method, request.params.as_ref()) => Some(answer),
                () = entered.cancelled.cancelled() => None,
                () = ended.cancelled() => None,
                () = own.ended() => Some(Err(RpcError::internal(MADE_ROOM))),
            };
            drop((entered, sitting));
            answer.map(|answer| Reply::of(&ctx, answer, &accounts, busy))
        });
        Ok((work, seat))
    }

    /// Answers a batch, which only 2025-03-26 has: all its requests run at the same time, and their answers are one array.
    async fn batch(
        self: &Arc<Self>,
        headers: &HeaderMap,
        batch: Vec<Result<Message, Malformed>>,
        from: Source<'_>,
    ) -> Result<HttpResponse, Refused> {
        let session = self.session(headers, from.visitor)?;
        if !session.revision.has(Feature::Batches) {
            return Err(Refused::plain(
                StatusCode::BAD_REQUEST,
                "batches exist only in sessions of revision 2025-03-26",
            ));
        }
        // The places for all requests are taken first, so that a batch runs as a whole or not at all.
        let requests = batch.iter().filter(|message| matches!(message, Ok(Message::Request(_)))).count();
        let mut places = Vec::with_capacity(requests);
        for _ in 0..requests {
            places.push(self.seat(from.visitor.accounts.party(), None)?);
        }
        let (outbox, messages) = Outbox::new(MAX_QUEUED_BYTES, session.account.clone());
        let arrival = self.arrival(headers, &from, None);
        let (server, accounts) = (&self.server, &from.visitor.accounts);
        let door = Door { server, accounts, modern: false, headers: Some(headers) };
        let (mut ids, mut contexts) = (HashSet::new(), VecDeque::with_capacity(requests));
        for message in &batch {
            let Ok(Message::Request(request)) = message else { continue };
            let session = |_| Named::Is(Arc::clone(&session));
            let admitted = admission::admit(&door, arrival.clone(), request, session, |_| outbox.of_request());
            match admitted {
                Ok(Admitted::Runs(ctx)) if ids.insert(&request.id) => contexts.push_back(ctx),
                _ => {
                    let error = RpcError::invalid_request("this request cannot be part of a batch");
                    return Err(Refused::new(StatusCode::BAD_REQUEST, Some(request), &error));
                }
            }
        }
        let (mut begun, mut seats): (Vec<Work>, Vec<ItsSeat>) = Default::default();
        let mut known: Vec<String> = Vec::new();
        for message in batch {
            match message {
                Ok(Message::Request(request)) => {
                    let Some((ctx, taken)) = contexts.pop_front().zip(places.pop()) else { continue };
                    let id = request.id.clone();
                    match self.begin(ctx, &session, request, taken, from.visitor) {
                        Ok((work, seat)) => {
                            begun.push(self.detached(work));
                            seats.push(seat);
                        }
                        Err(_) => {
                            let error = RpcError::invalid_request("a request with this id is already under way");
                            known.push(error_text(Some(&id), &error, session.revision));
                        }
                    }
                }
                Ok(Message::Notification(notification)) => self.notified(&session, &notification),
                Ok(Message::Response(response)) => {
                    self.take_response(&session, response, Arc::clone(&from.charge)).await?;
                }
                Err(malformed) => known.push(error_text(malformed.id.as_ref(), &malformed.error, session.revision)),
            }
        }
        if begun.is_empty() && known.is_empty() {
            return Ok(accepted());
        }
        drop(outbox);
        let (ledger, accounts) = (Arc::clone(&self.server.ledger), from.visitor.accounts.clone());
        let busy = from.visitor.peer.work();
        let work = Box::pin(async move {
            // Each reply is charged until all are there. Then their sum is charged once more, for the joined text.
            let replies = futures_util::future::join_all(begun).await;
            let bytes = replies.iter().flatten().map(|reply| reply.text.own_bytes()).sum::<usize>();
            let charge = ledger.message(&accounts, bytes);
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
            Some(Reply { status, hint: None, text: ResponseText::Whole(format!("[{}]", known.join(","))), hold })
        });
        let running = Running { work, messages, ended: None };
        Ok(self.respond(&session, from.visitor.accounts.party(), running, &seats, &Purpose::Batch).await)
    }

    /// Answers a modern request. One that waits for changes is given a token to stop it when it arrives.
    async fn modern(
        self: &Arc<Self>,
        ctx: Context,
        request: Request,
        messages: Messages,
        visitor: &Visitor,
    ) -> Result<HttpResponse, Refused> {
        let listens = ctx.arrival.stop.is_some();
        let place = match ctx.arrival.stop.as_deref().cloned() {
            Some(over) => Place::Listens(self.listen(ctx.party(), over, Some(&request))?),
            None => Place::Sits(ctx.sit(self.seat(ctx.party(), Some(&request))?)),
        };
        let (accounts, busy) = (visitor.accounts.clone(), visitor.peer.work());
        let request = Box::new(request);
        let work = boxed(|| async move {
            let answer = router::answer(&ctx, &request.method, request.params.as_ref()).await;
            drop(place);
            Some(Reply::of(&ctx, answer, &accounts, busy))
        });
        let running = Running::start(work, messages, &self.crowd, |work| self.attached(work)).await;
        let mut response = match running.first(None).await {
            First::Answer(answer) => answered(answer, Era::Modern),
            First::Stream(running, first) => running.stream(first),
        };
        if listens {
            response.extensions_mut().insert(Lasting);
        }
        Ok(response)
    }

    pub async fn open_stream(
        self: &Arc<Self>,
        headers: &HeaderMap,
        visitor: &Visitor,
    ) -> Result<HttpResponse, Refused> {
        let Visitor { peer, caller, .. } = visitor;
        admission::check_version(headers).map_err(|error| refused(error.into(), None))?;
        if !accepts(headers, "text/event-stream") {
            return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream"));
        }
        self.recall(headers, visitor).await;
        let session = self.session(headers, visitor)?;
        session.seen_as(caller);
        let listen = self.listen(visitor.accounts.party(), CancellationToken::new(), None)?;
        let hold = Hold { listen: Some(listen), busy: Some(peer.work()), charge: None };
        let mut missed = false;
        if let Some(last) = text(headers, "last-event-id").filter(|last| !last.is_empty()) {
            let (purpose, replica) = match self.streams.find(&session, last) {
                Follows::Stream(log, next) => {
                    return Ok(event_stream(log.read(next, self.server.startup.http.poll_after, hold)));
                }
                Follows::Nothing(purpose, replica) => (purpose, replica),
            };
            if let Some(replica) = replica
                && let Some(frames) = self.resume_elsewhere(&replica, &session, last, purpose.as_ref()).await?
            {
                let told = replica::Told { purpose, revision: session.revision };
                return Ok(event_stream(replica::relayed(frames, told, hold)));
            }
            match purpose {
                // The stream begins again. What changed in the lists meanwhile is told as to any client that comes back. An id that means
                // nothing here must not be answered with 404, by which clients learn that the session has ended.
                Some(Purpose::Changes) | None => missed = true,
                Some(Purpose::Answer(id)) => {
                    let error = RpcError::internal(LOST_ANSWER);
                    return Ok(event_stream(resume::lost(&error_text(Some(&id), &error, session.revision)).into()));
                }
                // By this status, clients learn that they need not come back.
                Some(Purpose::Told) => return Ok(StatusCode::NO_CONTENT.into_response()),
                Some(Purpose::Batch) => {
                    let message =
                        "the events after this Last-Event-ID are not stored any more; send the requests again";
                    return Err(Refused::plain(StatusCode::BAD_REQUEST, message));
                }
            }
        }
        let listening = self.listening(&session).await;
        let (outbox, messages) = Outbox::new(MAX_QUEUED_BYTES, session.account.clone());
        let feed = Feed::open(&self.server).missed(missed);
        let server = Arc::clone(&self.server);
        let log = self.streams.open(&session, visitor.accounts.party(), &Purpose::Changes);
        let read = Arc::clone(&log);
        let work: Work = Box::pin(async move {
            tokio::select! {
                () = feed.run(&*session, &outbox) => {}
                () = listening.ended() => {}
                () = read.abandoned(RESUME_GRACE) => {}
                () = server.closing.cancelled() => read.dismiss(),
            }
            None
        });
        let (streams, filled) = (Arc::clone(&self.streams), Arc::clone(&log));
        self.server.tracker.spawn(async move {
            streams.fill(filled, Running { work, messages, ended: None }, None).await;
        });
        Ok(event_stream(log.read(1, None, hold)))
    }

    pub async fn end_session(&self, headers: &HeaderMap, visitor: &Visitor) -> Result<HttpResponse, Refused> {
        admission::check_version(headers).map_err(|error| refused(error.into(), None))?;
        let Some(id) = text(headers, SESSION_HEADER) else { return Err(refused(admission::no_session(true), None)) };
        // A session that is in memory may be older than its id lives. One that is not need not be made again to be ended.
        let (principal, profile) = (visitor.caller.principal(), visitor.profile.as_deref());
        let issued = match self.sessions.get(id, principal, profile) {
            Some(session) => Some(session.issued),
            None => self.server.session_ids.open(id, IssuedTo { principal, profile }).map(|record| record.issued),
        };
        if issued.is_some() && !self.server.remembered.has_ended(id) {
            let shared = self.server.share_end(id, visitor.accounts.party()).await;
            shared.map_err(|error| Refused::new(StatusCode::SERVICE_UNAVAILABLE, None, &error))?;
        }
        match issued {
            Some(issued) if self.sessions.end(&self.server, id, visitor.accounts.party(), issued) => {
                Ok(StatusCode::NO_CONTENT.into_response())
            }
            _ => Err(refused(admission::no_such_session(), None)),
        }
    }
}

/// Adds the HTTP status to a refusal.
fn refused(refusal: Refusal, request: Option<&Request>) -> Refused {
    let status = match refusal.kind {
        Kind::Wrong => StatusCode::BAD_REQUEST,
        Kind::NoSuchSession | Kind::NoSuchMethod => StatusCode::NOT_FOUND,
        Kind::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
    };
    Refused::new(status, request, &refusal.error)
}
