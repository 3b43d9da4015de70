//! This process as one of several replicas: what it takes in from the others.

use std::{collections::HashMap, convert::Infallible, pin::Pin, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use wharf_base::{
    ledger::{Charge, Charged},
    party::named,
};
use wharf_cluster::{Answer, Cluster, Frames, Member, NoRoom};
use wharf_protocol::{Frame, Id, Message, Revision, RpcError, message::error_text};

use super::{
    body::Hold,
    resume::{self, Follows, Purpose, Streams},
    sessions::Sessions,
    sse,
};
use crate::client::{
    news::{News, Question, Stored, has_ended},
    replicas::name_of,
    server::Server,
};

/// What this process shares with the other replicas.
pub struct Replica {
    pub server: Arc<Server>,
    pub sessions: Sessions,
    pub streams: Arc<Streams>,
}

impl Member for Replica {
    fn told(&self, news: Value, own: bool) {
        // Another version of wharf may know more.
        let Ok(news) = serde_json::from_value::<News>(news) else { return };
        if own && !news.is_taken_in_order() {
            return;
        }
        let session = |id: &str| self.sessions.find(id);
        match news {
            News::Ended { session: id } => self.ended(&id),
            News::Setting { session: id, setting } => {
                if let Some(session) = session(&id) {
                    session.set(setting);
                }
            }
            News::Cancelled { session: id, request } => {
                if let Some((session, request)) = session(&id).zip(request.read()) {
                    session.in_flight.cancel_id(&request);
                }
            }
            News::RootsChanged { session: id } => {
                if let Some(session) = session(&id) {
                    session.roots_changed();
                }
            }
            News::Listens { session: id } => {
                if let Some(session) = session(&id) {
                    session.stop_listening();
                }
            }
            News::Updated { uri } => self.server.updated_here(Some(uri.into())),
            News::Lost => self.server.updated_here(None),
            News::ListChanged { plugin, kind } => self.server.inbox.announcements.add(&plugin, kind.into()),
            News::TaskChanged { id } => {
                let tasks = Arc::clone(&self.server.tasks);
                self.server.tracker.spawn(async move { tasks.changed_elsewhere(&id).await });
            }
        }
    }

    fn asked(self: Arc<Self>, question: Charged<Value>) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        Box::pin(async move {
            let (question, charge) = question.into_parts();
            match serde_json::from_value::<Question>(question) {
                Ok(question) => self.answer(question, charge).await,
                // Another version of wharf may ask more.
                Err(_) => Answer::Value(Value::Null),
            }
        })
    }

    fn connected(&self) {
        self.server.updated_here(None);
        // Sessions may have ended meanwhile, and their clients may have set something.
        let (sessions, server) = (self.sessions.clone(), Arc::clone(&self.server));
        self.server.tracker.spawn(async move {
            let Some(cluster) = &server.cluster else { return };
            for session in sessions.all() {
                let name = name_of(&session.id);
                let stored = tokio::select! {
                    stored = read_again(cluster, &name) => stored,
                    () = server.stop.cancelled() => return,
                };
                match stored {
                    Some(stored) if has_ended(&stored) => {
                        sessions.end(&server, &session.id, session.party, session.issued);
                    }
                    Some(stored) => session.take_over(stored),
                    None => server.restore(cluster, &session).await,
                }
            }
        });
    }
}

/// Reads what is stored of a session, as soon as Redis answers. Messages may come through before commands do.
async fn read_again(cluster: &Cluster, name: &str) -> Option<HashMap<String, Stored>> {
    loop {
        match cluster.fields(name).await {
            Ok(stored) => return stored,
            // It answers, but not with what a replica has stored.
            Err(_) if cluster.is_up() => return None,
            Err(_) => cluster.answers().await,
        }
    }
}

impl Replica {
    fn ended(&self, id: &str) {
        if let Some(session) = self.sessions.find(id) {
            self.sessions.end(&self.server, id, session.party, session.issued);
        }
    }

    /// `charge`: what is charged for the question, and held for as long as what it brings.
    async fn answer(&self, question: Question, charge: Arc<Charge>) -> Answer {
        match question {
            Question::IsOpen { session, id } => {
                let asks = self.sessions.find(&session).is_some_and(|session| session.asks(&Id::string(&id)));
                Answer::Value(asks.into())
            }
            Question::Response { session, message } => {
                if let Some(session) = self.sessions.find(&session)
                    && let Ok(Frame::One(Message::Response(response))) = Frame::parse(message)
                {
                    session.take_response(response, charge);
                }
                Answer::Value(Value::Null)
            }
            Question::Redeem { number, principal } => {
                let redeemed = self.server.approvals.tickets.redeem_number(number, named(principal));
                Answer::Value(serde_json::to_value(redeemed).unwrap_or_default())
            }
            Question::CancelTask { id } => {
                if self.server.tasks.under_way(&id).is_some() {
                    self.server.tasks.cancel(&id).await;
                }
                Answer::Value(Value::Null)
            }
            Question::AnswerTask { id, replies } => {
                if let Some(running) = self.server.tasks.under_way(&id) {
                    let charged = |reply| Charged::new(reply, Arc::clone(&charge));
                    running.reply(replies.into_iter().map(|(key, reply)| (key, reply.map(charged)))).await;
                }
                Answer::Value(Value::Null)
            }
            Question::Resume { session, after } => match self.streams.find_of(&session, &after) {
                Follows::Stream(log, next) => {
                    let body = log.read(next, self.server.startup.http.poll_after, Hold::default());
                    let frames = body.into_data_stream().filter_map(|bytes| async move {
                        bytes.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                    });
                    Answer::Frames(Box::pin(frames))
                }
                Follows::Nothing(..) => Answer::Value(Value::Null),
            },
        }
    }
}

/// Tells the other replicas of changes of tasks that run here, for as long as wharf runs.
pub async fn tell_of_tasks(server: Arc<Server>) {
    let Some(cluster) = server.cluster.clone() else { return };
    let mut changes = server.tasks.changes();
    loop {
        let changed = tokio::select! {
            changed = changes.recv() => changed,
            () = server.stop.cancelled() => return,
        };
        match changed {
            Ok(record) if record.replica.as_deref() == Some(cluster.address()) => {
                server.tell(record.party, || News::TaskChanged { id: record.task.id.clone() });
            }
            // Clients poll their tasks as well.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// What the last event of another replica's stream says if the rest of the stream is not passed on.
pub struct Told {
    /// What the stream is for, if that is known.
    pub purpose: Option<Purpose>,
    pub revision: Revision,
}

impl Told {
    /// Returns the last event of the stream. A client whose stream will fit later comes back for the rest.
    fn last(&self, no_room: &NoRoom) -> Bytes {
        let text =
            format!("another replica of this server has the rest of the stream, and cannot pass it on: {no_room}");
        match &self.purpose {
            Some(Purpose::Answer(id)) if no_room.never => {
                resume::lost(&error_text(Some(id), &RpcError::internal(text), self.revision))
            }
            Some(Purpose::Batch) | None if no_room.never => {
                resume::lost(&error_text(None, &RpcError::internal(text), self.revision))
            }
            _ => sse::comment(&text),
        }
    }
}

/// Returns the body of a stream that another replica sends. `hold`: held while the client reads.
pub fn relayed(frames: Frames, told: Told, hold: Hold) -> Body {
    Body::from_stream(stream::unfold((frames, told, hold), |(mut frames, told, hold)| async move {
        let bytes = match frames.next().await? {
            // What is charged for it is released when it is written.
            Ok(frame) => Bytes::from_owner(frame),
            Err(no_room) => told.last(&no_room),
        };
        Some((Ok::<_, Infallible>(bytes), (frames, told, hold)))
    }))
}
