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
use wharf_protocol::revision::Era;

/// How often a silent stream says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A response, and the status it has if it is not too late to say so.
pub struct Reply {
    pub status: StatusCode,
    pub text: String,
}

/// Ends with the response; none if the request was cancelled.
pub type Work = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// A request under way: what it says meanwhile, and its answer; none if it was cancelled.
pub struct Running {
    pub work: Work,
    pub messages: mpsc::Receiver<String>,
    /// The answer, while messages from before it are still to be sent.
    pub ended: Option<Option<Reply>>,
}

impl Running {
    /// JSON if the answer comes first, else a stream.
    pub async fn respond(mut self, era: Era) -> HttpResponse {
        let first = tokio::select! {
            biased;
            message = self.messages.recv() => message,
            answer = &mut self.work => {
                // What was said just before the answer still goes before it.
                match self.messages.try_recv() {
                    Ok(message) => {
                        self.ended = Some(answer);
                        Some(message)
                    }
                    Err(_) => return answered(answer, era),
                }
            }
        };
        match first {
            Some(first) => self.stream(Some(first)),
            None => answered((&mut self.work).await, era),
        }
    }

    pub fn stream(self, first: Option<String>) -> HttpResponse {
        let mut keep_alive = tokio::time::interval(KEEP_ALIVE);
        keep_alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        keep_alive.reset();
        let body = Body::from_stream(Events { running: self, first, keep_alive, over: false });
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        (headers, body).into_response()
    }
}

fn answered(reply: Option<Reply>, era: Era) -> HttpResponse {
    match reply {
        Some(reply) => json(reply.status, reply.text),
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
}

fn event(text: &str) -> Bytes {
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
        match self.running.messages.poll_recv(cx) {
            Poll::Ready(Some(message)) => return Poll::Ready(Some(Ok(event(&message)))),
            Poll::Ready(None) | Poll::Pending => {}
        }
        if let Some(answer) = self.running.ended.take() {
            self.over = true;
            return Poll::Ready(answer.map(|reply| Ok(event(&reply.text))));
        }
        match self.keep_alive.poll_tick(cx) {
            Poll::Ready(_) => Poll::Ready(Some(Ok(Bytes::from_static(b": alive\n\n")))),
            Poll::Pending => Poll::Pending,
        }
    }
}

pub fn json(status: StatusCode, body: String) -> HttpResponse {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// Taken, and nothing to say.
pub fn accepted() -> HttpResponse {
    StatusCode::ACCEPTED.into_response()
}
