//! How a request under way becomes an HTTP response: JSON if the answer comes first, else an event stream.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response as HttpResponse},
};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::{sync::mpsc, time::Interval};
use wharf_protocol::{RpcError, revision::Era};

use super::{
    body::{Hold, Pieces},
    connections::Busy,
    refused::JSON,
};
use crate::{
    base::ledger::{Account, no_room},
    client::{context, outbox::Queued},
    methods::response::{Answer, Text},
};

/// How often a silent stream says that it is alive.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A response, and the status it has if it is not too late to say so.
pub struct Reply {
    pub status: StatusCode,
    pub text: Text,
    /// Held until the client has read it.
    pub hold: Hold,
}

impl Reply {
    /// An answer with what it takes to keep it until it is read, or one that says that there is no room for that.
    pub fn of(
        ctx: &context::Context,
        status: StatusCode,
        answer: Result<Answer, RpcError>,
        client: &Account,
        busy: Busy,
    ) -> Self {
        let text = Text::of(ctx, answer);
        let (status, text, charge) = match ctx.server.ledger.message(client, text.own_bytes()) {
            Ok(charge) => (status, text, Some(charge)),
            Err(full) => (StatusCode::SERVICE_UNAVAILABLE, Text::of(ctx, Err(no_room(&full))), None),
        };
        Self { status, text, hold: Hold { permit: None, charge, busy: Some(busy) } }
    }
}

/// Ends with the response; none if the request was cancelled.
pub type Work = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// A request under way: what it says meanwhile, and its answer; none if it was cancelled.
pub struct Running {
    pub work: Work,
    pub messages: mpsc::UnboundedReceiver<Queued>,
    /// The answer, while messages from before it are still to be sent.
    pub ended: Option<Option<Reply>>,
}

/// What comes first of a request under way.
pub enum First {
    /// The answer: it can be plain JSON.
    Answer(Option<Reply>),
    /// Something else, or nothing for so long that a stream is in order.
    Stream(Running, Option<String>),
}

impl Running {
    /// Takes the work as far as it goes without waiting, which most work is done by; `task` makes of the rest one that goes
    /// on by itself, so that what it says is sent meanwhile.
    pub async fn start(
        mut work: Work,
        messages: mpsc::UnboundedReceiver<Queued>,
        task: impl FnOnce(Work) -> Work,
    ) -> Self {
        match futures_util::poll!(&mut work) {
            Poll::Ready(answer) => {
                // Others that are ready go first, so that answers leave close together: a client that is woken for each of
                // them costs more than the answers do. Measured: a third more calls a second than without.
                tokio::task::yield_now().await;
                Self { work, messages, ended: Some(answer) }
            }
            Poll::Pending => Self { work: task(work), messages, ended: None },
        }
    }

    /// `patience`: after how long without a word a stream is in order; none: never.
    pub async fn first(mut self, patience: Option<Duration>) -> First {
        if self.ended.is_none() {
            let waited = async {
                match patience {
                    Some(patience) => tokio::time::sleep(patience).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => return First::Stream(self, Some(message.text)),
                answer = &mut self.work => self.ended = Some(answer),
                () = waited => return First::Stream(self, None),
            }
        }
        // What was said just before the answer still goes before it.
        match self.messages.try_recv() {
            Ok(message) => First::Stream(self, Some(message.text)),
            Err(_) => First::Answer(self.ended.take().flatten()),
        }
    }

    /// A stream that lives as long as its response.
    pub fn stream(self, first: Option<String>) -> HttpResponse {
        let mut keep_alive = tokio::time::interval(KEEP_ALIVE);
        keep_alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        keep_alive.reset();
        event_stream(Body::from_stream(Events { running: self, first, keep_alive, over: false, hold: None }))
    }
}

pub fn event_stream(body: Body) -> HttpResponse {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

pub fn answered(reply: Option<Reply>, era: Era) -> HttpResponse {
    match reply {
        Some(reply) => {
            let body = Body::new(Pieces {
                own: reply.text.is_own(),
                left: reply.text.into_pieces().into(),
                hold: Some(reply.hold),
            });
            (reply.status, [(header::CONTENT_TYPE, JSON)], body).into_response()
        }
        // Cancelled: there is no answer, but HTTP wants one.
        None if era == Era::Legacy => accepted(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// The response body of a stream. Dropped with the connection.
struct Events {
    running: Running,
    first: Option<String>,
    keep_alive: Interval,
    over: bool,
    /// Held from the answer on.
    hold: Option<Hold>,
}

pub fn event(text: &str) -> Bytes {
    format!("event: message\ndata: {text}\n\n").into()
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(event(&first))));
        }
        if self.over {
            return Poll::Ready(None);
        }
        if self.running.ended.is_none()
            && let Poll::Ready(answer) = self.running.work.as_mut().poll(cx)
        {
            self.running.ended = Some(answer);
        }
        // Once the answer is there, all that was said before it is in the queue; pending would only mean that this task has
        // had its share for now.
        let message = match &self.running.ended {
            Some(_) => self.running.messages.try_recv().ok(),
            None => match self.running.messages.poll_recv(cx) {
                Poll::Ready(message) => message,
                Poll::Pending => None,
            },
        };
        if let Some(message) = message {
            return Poll::Ready(Some(Ok(event(&message.text))));
        }
        if let Some(answer) = self.running.ended.take() {
            self.over = true;
            return Poll::Ready(answer.map(|reply| {
                self.hold = Some(reply.hold);
                Ok(event(&reply.text.into_string()))
            }));
        }
        match self.keep_alive.poll_tick(cx) {
            Poll::Ready(_) => Poll::Ready(Some(Ok(Bytes::from_static(b": alive\n\n")))),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Taken, and nothing to say.
pub fn accepted() -> HttpResponse {
    StatusCode::ACCEPTED.into_response()
}
