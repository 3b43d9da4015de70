//! HTTP+SSE, the transport of 2024-11-05: the server sends everything on one event stream, and the client posts its messages to
//! a second address. `sse` in `[protocol]` switches it on. All of it is in this file.

use std::{collections::HashMap, convert::Infallible, pin::Pin, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::{get, post},
};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;

use super::{
    body::read_message,
    connections::Busy,
    endpoint::Endpoint,
    entry::{Connected, Entered, enter},
    headers::accepts,
    listens::Listen,
    refused::Refused,
    reply::{KEEP_ALIVE_INTERVAL, accepted, ending, event_stream},
    sse::{self, Event},
};
use crate::{
    client::outbox::{Messages, Outbox},
    transport::pipe::{Pipe, PipeClient},
};
use wharf_base::{ledger::Account, principal::Principal, random_id};

/// The maximum number of bytes that wait for a client to read them.
const MAX_QUEUED_BYTES: u32 = 256 * 1024;

struct Streams {
    endpoint: Arc<Endpoint>,
    /// Each stream with its owner, by id.
    by_id: Mutex<HashMap<String, (Principal, Arc<Pipe>)>>,
}

/// `GET /sse` and `POST /messages`.
pub fn routes(endpoint: Arc<Endpoint>) -> Router {
    let streams = Arc::new(Streams { endpoint, by_id: Mutex::default() });
    Router::new().route("/sse", get(open)).route("/messages", post(take)).with_state(streams)
}

async fn open(State(streams): State<Arc<Streams>>, mut request: HttpRequest) -> HttpResponse {
    let server = &streams.endpoint.server;
    let connected = Connected::of(&mut request, server);
    let Entered { request, peer, from, caller, accounts, .. } = match enter(server, request, connected, None).await {
        Ok(entered) => entered,
        Err(turned_away) => return turned_away,
    };
    if !accepts(request.headers(), "text/event-stream") {
        return Refused::plain(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream").into_response();
    }
    let closing = server.closing.child_token();
    let mut listen = match streams.endpoint.listen(accounts.party(), closing.clone(), None) {
        Ok(listen) => listen,
        Err(refused) => return refused.into_response(),
    };
    let Ok(id) = random_id::id() else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    let (outbox, messages) = Outbox::new(MAX_QUEUED_BYTES, Account::clone(&accounts));
    let client = PipeClient {
        caller: caller.clone(),
        profile: None,
        roots: None,
        transport: from.transport(),
        address: from.address(),
    };
    let pipe = Pipe::new(Arc::clone(server), outbox, client, accounts, false);
    // The client has only this stream, so it does not give way while a request of the client is under way.
    let waits = Arc::downgrade(&pipe);
    listen.only_while(move || waits.upgrade().is_none_or(|pipe| pipe.is_idle()));
    let busy = peer.work();
    let shown = server.credentials_end(&caller);
    streams.by_id.lock().insert(id.clone(), (caller.principal().clone(), Arc::clone(&pipe)));
    let open = Open {
        greeting: Some(
            Event { name: Some("endpoint"), data: Some(&format!("messages?session={id}")), ..Event::default() }.bytes(),
        ),
        messages,
        keep_alive: interval_at(Instant::now() + KEEP_ALIVE_INTERVAL, KEEP_ALIVE_INTERVAL),
        closing,
        finished: None,
        over: false,
        listed: Listed { streams, id, pipe },
        _listen: listen,
        _busy: busy,
    };
    let stream = event_stream(Body::from_stream(stream::unfold(open, |mut open| async move {
        let bytes = open.next().await?;
        Some((Ok::<_, Infallible>(bytes), open))
    })));
    match shown {
        Some(end) => ending(stream, end),
        None => stream,
    }
}

/// A client's stream. When this is dropped, the client's requests and its session end.
struct Open {
    greeting: Option<Bytes>,
    messages: Messages,
    keep_alive: Interval,
    closing: CancellationToken,
    /// Set when wharf closes: ready when all requests under way are answered.
    finished: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether all requests under way are answered.
    over: bool,
    listed: Listed,
    _listen: Listen,
    _busy: Busy,
}

impl Open {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        if self.over {
            return self.messages.try_recv().map(|message| sse::message(&message.text));
        }
        loop {
            let ending = self.finished.is_some();
            let finished = async {
                match &mut self.finished {
                    Some(finished) => finished.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                message = self.messages.recv() => return message.map(|message| sse::message(&message.text)),
                () = finished => {
                    self.over = true;
                    return self.messages.try_recv().map(|message| sse::message(&message.text));
                }
                () = self.closing.cancelled(), if !ending => {
                    let tracker = self.listed.pipe.end();
                    self.finished = Some(Box::pin(async move { tracker.wait().await }));
                }
                _ = self.keep_alive.tick() => return Some(sse::ALIVE),
            }
        }
    }
}

struct Listed {
    streams: Arc<Streams>,
    id: String,
    pipe: Arc<Pipe>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.streams.by_id.lock().remove(&self.id);
        self.pipe.abandon();
    }
}

/// Takes a message from a client. The answer goes to the client's stream.
async fn take(State(streams): State<Arc<Streams>>, mut request: HttpRequest) -> HttpResponse {
    let endpoint = &streams.endpoint;
    let connected = Connected::of(&mut request, &endpoint.server);
    let Entered { request, peer, caller, accounts, .. } = match enter(&endpoint.server, request, connected, None).await
    {
        Ok(entered) => entered,
        Err(turned_away) => return turned_away,
    };
    let id = request.uri().query().and_then(|query| query.strip_prefix("session=")).unwrap_or_default();
    // The id is a secret of its client, but it is part of URLs, which proxies log, so the owner is checked too.
    let pipe =
        streams.by_id.lock().get(id).filter(|(owner, _)| owner == caller.principal()).map(|(_, pipe)| Arc::clone(pipe));
    let Some(pipe) = pipe else {
        return Refused::plain(StatusCode::NOT_FOUND, "there is no such stream; open one at /sse").into_response();
    };
    pipe.seen_as(&caller);
    let _busy = peer.work();
    let (parts, body) = request.into_parts();
    let incoming = endpoint.server.ledger.incoming(&accounts);
    match read_message(&parts.headers, body, endpoint.server.startup.message_bytes, incoming).await {
        // Requests count towards the same limit as those of Streamable HTTP.
        Ok((body, charge)) => {
            match pipe.take(body, charge, accounts.party(), || endpoint.seat(accounts.party(), None).map(Some)).await {
                Ok(()) => accepted(),
                Err(refused) => refused.into_response(),
            }
        }
        Err(refused) => refused.into_response(),
    }
}
