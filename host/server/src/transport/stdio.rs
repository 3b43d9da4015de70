//! One pipe: a message per line in, a message per line out, both eras at once.
//!
//! Each request runs in a task of its own, so nothing waits behind it; one task writes, so no two lines mix.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
};
use wharf_protocol::{
    Frame, Malformed, Message, Notification, Request, Revision, RpcError,
    message::{error_text, result_text},
    params,
};

use crate::{
    context::Context,
    era::{legacy::Session, modern},
    hub,
    in_flight::InFlight,
    outlet::Outlet,
    server::Server,
    transport,
};

/// Messages that wait to be written; who sends more waits too.
const QUEUE: usize = 64;
/// How long requests under way may take to finish when the input has ended.
const DRAIN: Duration = Duration::from_secs(1);
/// Whom state is bound to that is sealed on this transport: whoever started the process.
const PRINCIPAL: &str = "stdio";

struct Pipe {
    server: Arc<Server>,
    outlet: Outlet,
    session: Mutex<Option<Arc<Session>>>,
    in_flight: InFlight,
    feeding: Mutex<bool>,
}

/// Serves until the input ends, the output breaks, or wharf stops.
pub async fn serve<R, W>(server: Arc<Server>, input: R, output: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(QUEUE);
    let outlet = Outlet::new(sender);
    let writer = tokio::spawn(write(receiver, output));
    let limit = server.config.message_bytes;
    let stop = server.stop.clone();
    let pipe = Arc::new(Pipe {
        server,
        outlet: outlet.clone(),
        session: Mutex::default(),
        in_flight: InFlight::default(),
        feeding: Mutex::new(false),
    });
    let mut input = BufReader::with_capacity(64 * 1024, input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = tokio::select! {
            read = read_line(&mut input, &mut line, limit) => read,
            () = outlet.closed() => break,
            () = stop.cancelled() => break,
        };
        match read {
            Ok(Line::Whole) => pipe.take(&line).await,
            Ok(Line::TooLong) => {
                let error = RpcError::invalid_request(format!("the line is longer than {limit} bytes"));
                pipe.refuse(Malformed { id: None, error }).await;
            }
            Ok(Line::End) => break,
            Err(error) => {
                tracing::warn!("stdin: {error}");
                break;
            }
        }
    }
    // What is under way may finish and be written; the writer ends when all who write are gone.
    let tasks = pipe.server.tasks.clone();
    stop.cancel();
    drop((pipe, outlet));
    tasks.close();
    let drained = async {
        tasks.wait().await;
        // A writer that panicked has nothing left to write.
        writer.await.ok();
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("stopped with requests under way");
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads up to a line's end; of a line that is too long, nothing is kept.
async fn read_line<R: AsyncBufRead + Unpin>(input: &mut R, line: &mut Vec<u8>, limit: usize) -> std::io::Result<Line> {
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            // A last line without an end is a message too.
            return Ok(if too_long {
                Line::TooLong
            } else if line.is_empty() {
                Line::End
            } else {
                Line::Whole
            });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > limit {
            too_long = true;
            line.clear();
        }
        if !too_long {
            line.extend_from_slice(available.get(..taken).unwrap_or_default());
        }
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

/// Writes what is queued, as much at once as there is.
async fn write<W: AsyncWrite + Unpin>(mut queue: mpsc::Receiver<String>, mut output: W) {
    let mut messages = Vec::new();
    let mut bytes = Vec::new();
    while queue.recv_many(&mut messages, QUEUE).await > 0 {
        bytes.clear();
        for message in messages.drain(..) {
            bytes.extend_from_slice(message.as_bytes());
            bytes.push(b'\n');
        }
        if output.write_all(&bytes).await.is_err() || output.flush().await.is_err() {
            // Nobody reads any more: the queue closes, and everybody notices.
            return;
        }
    }
}

/// How a request goes on.
enum Start {
    Run(Box<Context>),
    /// The result is known already.
    Answer(String),
}

impl Pipe {
    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The revision in which to answer what belongs to no era.
    fn revision(&self) -> Revision {
        self.session().map_or(Revision::NEWEST_LEGACY, |session| session.revision)
    }

    async fn send(&self, text: String) {
        // A broken pipe ends the reader too.
        self.outlet.send(text).await.ok();
    }

    async fn refuse(&self, malformed: Malformed) {
        self.send(error_text(malformed.id.as_ref(), &malformed.error, self.revision())).await;
    }

    async fn take(self: &Arc<Self>, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match Frame::parse(line) {
            Ok(Frame::One(message)) => self.message(message).await,
            Ok(Frame::Batch(messages)) => self.batch(messages).await,
            Err(malformed) => self.refuse(malformed).await,
        }
    }

    /// Only 2025-03-26 knows batches; their answers go out one by one.
    async fn batch(self: &Arc<Self>, messages: Vec<Result<Message, Malformed>>) {
        if self.session().is_none_or(|session| session.revision != Revision::V2025_03_26) {
            let error = RpcError::invalid_request("batches exist only in sessions of revision 2025-03-26");
            return self.refuse(Malformed { id: None, error }).await;
        }
        for message in messages {
            match message {
                Ok(message) => self.message(message).await,
                Err(malformed) => self.refuse(malformed).await,
            }
        }
    }

    async fn message(self: &Arc<Self>, message: Message) {
        match message {
            Message::Request(request) => self.request(request).await,
            Message::Notification(notification) => self.notification(&notification),
            Message::Response(response) => {
                if let Some(session) = self.session() {
                    session.answered(response);
                }
            }
        }
    }

    fn notification(self: &Arc<Self>, notification: &Notification) {
        if notification.method == "notifications/cancelled" {
            return self.in_flight.cancel(notification.params.as_deref());
        }
        let Some(session) = self.session() else { return };
        let roots_changed = session.notified(notification);
        if notification.method == "notifications/initialized" || roots_changed {
            self.begin(&session);
            // On a pipe roots can be asked for at any time, so they are known before a call needs them.
            let (pipe, session) = (Arc::clone(self), Arc::clone(&session));
            self.server.tasks.spawn(async move {
                let catalog = pipe.server.shelf.catalog().await;
                let needed = catalog.served().iter().any(|served| served.config.grants.roots.is_some());
                if needed && pipe.server.scopes.accepts_roots() {
                    tokio::select! {
                        _ = session.roots(&pipe.server, &pipe.outlet) => {}
                        () = pipe.server.stop.cancelled() => {}
                    }
                }
            });
        }
    }

    /// From now on the session hears of changes.
    fn begin(self: &Arc<Self>, session: &Arc<Session>) {
        let mut feeding = self.feeding.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *feeding, true) {
            return;
        }
        let (server, session, outlet) = (Arc::clone(&self.server), Arc::clone(session), self.outlet.clone());
        self.server.tasks.spawn(async move {
            let stop = server.stop.clone();
            tokio::select! {
                () = hub::feed(&server, &*session, &outlet, async || {}) => {}
                () = stop.cancelled() => {}
            }
        });
    }

    async fn request(self: &Arc<Self>, request: Request) {
        let ctx = match self.start(&request) {
            Ok(Start::Run(ctx)) => ctx,
            Ok(Start::Answer(result)) => return self.send(result_text(&request.id, &result)).await,
            Err(error) => return self.refuse(Malformed { id: Some(request.id), error }).await,
        };
        // Known to be under way before the next line is read, which may cancel it.
        let entered = match self.in_flight.enter(&request.id) {
            Ok(entered) => entered,
            Err(error) => return self.refuse(Malformed { id: Some(request.id), error }).await,
        };
        let pipe = Arc::clone(self);
        self.server.tasks.spawn(async move {
            let answer = tokio::select! {
                answer = transport::answer(&ctx, &request.method, request.params.as_deref()) => answer,
                // A cancelled request gets no answer, and nothing else either.
                () = entered.cancelled.cancelled() => return,
            };
            let listened = answer.is_ok() && request.method == "subscriptions/listen";
            let text = transport::response(&ctx, answer);
            // Its id may be used again by whoever reads the answer.
            drop(entered);
            pipe.send(text).await;
            if listened {
                pipe.send(modern::listen_cancelled(&request.id)).await;
            }
        });
    }

    /// What a request needs, by its era.
    fn start(self: &Arc<Self>, request: &Request) -> Result<Start, RpcError> {
        let (claimed, meta) = modern::claim(request.params.as_deref())?;
        let outlet = self.outlet.clone();
        if claimed {
            return Context::of_claim(&self.server, &request.id, meta, PRINCIPAL, outlet)
                .map(|ctx| Start::Run(Box::new(ctx)));
        }
        let session = self.session();
        match (request.method.as_str(), session) {
            ("initialize", None) => {
                let params = params::read(request.params.as_deref())?;
                let (session, result) = Session::open(&self.server, params, PRINCIPAL)?;
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
                Ok(Start::Answer(result))
            }
            ("ping", None) => Ok(Start::Answer("{}".into())),
            ("server/discover" | "subscriptions/listen", None) => Err(match meta.modern_claim() {
                Err(missing) => missing,
                Ok(_) => RpcError::method_not_found(&request.method),
            }),
            ("initialize", Some(_)) => Err(RpcError::invalid_request("this connection is initialized already")),
            (_, None) => Err(RpcError::invalid_request(
                "not initialized: send `initialize`, or a request with the modern `_meta`",
            )),
            (_, Some(session)) => {
                self.begin(&session);
                Ok(Start::Run(Box::new(Context::in_session(&session, &self.server, &request.id, meta, outlet))))
            }
        }
    }
}
