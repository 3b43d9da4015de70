//! What requests need of other replicas: sessions that are known there, answers and streams that belong there.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::time::Instant;
use wharf_base::{
    ledger::Charge,
    session_id::{IssuedTo, now},
};
use wharf_cluster::{Frames, Unanswered};
use wharf_protocol::{
    Id, Notification, Response, RpcError,
    message::{error_text, result_text},
    notification::KnownNotification,
    params,
};

use super::{
    endpoint::{Endpoint, SESSION_HEADER, Visitor},
    headers::text,
    refused::Refused,
    resume::Purpose,
};
use crate::{
    client::{
        news::{News, Question, ShortId, Stored, has_ended},
        replicas::name_of,
        session::{Listening, Session},
    },
    transport::admission::Named,
};

/// How long an answer is held that cannot be passed on to the replica that asked.
const ANSWER_HELD: Duration = Duration::from_secs(10);

impl Endpoint {
    /// Makes the session that a message names again, with what its client has set at other replicas. If it has ended there, it has ended.
    pub(super) async fn recall(&self, headers: &HeaderMap, visitor: &Visitor) {
        let Some(cluster) = &self.server.cluster else { return };
        let Some(id) = text(headers, SESSION_HEADER) else { return };
        let (principal, profile) = (visitor.caller.principal(), visitor.profile.as_deref());
        if self.sessions.get(id, principal, profile).is_some() {
            return;
        }
        let Some(record) = self.server.session_ids.open(id, IssuedTo { principal, profile }) else { return };
        // If Redis does not answer, the session goes on without what its client has set.
        let stored: HashMap<String, Stored> = cluster.fields(&name_of(id)).await.ok().flatten().unwrap_or_default();
        if has_ended(&stored) {
            self.sessions.end(&self.server, id, visitor.accounts.party(), record.issued);
        } else if let Named::Is(session) = self.named(headers, visitor, true) {
            session.take_over(stored);
        }
    }

    /// Opens the session's stream for changes. A stream at another replica ends, and the client is told of lists that differ from those
    /// that it was told of there.
    pub(super) async fn listening(&self, session: &Arc<Session>) -> Listening {
        if self.server.cluster.is_some() {
            if let Some(lists) = self.server.last_told(session).await {
                session.set_told(lists, now());
            }
            self.server.tell(session.party, || News::Listens { session: session.id.to_string() });
        }
        session.listen()
    }

    pub(super) fn notified(&self, session: &Session, notification: &Notification) {
        session.notified(notification);
        let id = || session.id.to_string();
        match notification.known() {
            Some(KnownNotification::Cancelled) => {
                // Only with a short id can a request be cancelled at another replica.
                let params = params::read::<params::Cancelled>(notification.params.as_ref()).ok();
                let request = params.and_then(|params| ShortId::of(&Id::from_raw(params.request_id.get())?));
                if let Some(request) = request {
                    self.server.tell(session.party, || News::Cancelled { session: id(), request });
                }
            }
            Some(KnownNotification::RootsChanged) => {
                self.server.tell(session.party, || News::RootsChanged { session: id() })
            }
            Some(KnownNotification::Initialized) | None => {}
        }
    }

    /// Takes the client's answer to a request of the server, which another replica may have sent.
    pub(super) async fn take_response(
        &self,
        session: &Session,
        response: Response,
        charge: Arc<Charge>,
    ) -> Result<(), Refused> {
        let asker = match (&self.server.cluster, &response.id) {
            (Some(cluster), Some(Id::String(id))) => cluster
                .asker(&session.id, id)
                .filter(|address| *address != cluster.address())
                .map(|address| (cluster, address.to_owned(), id.to_string())),
            _ => None,
        };
        let Some((cluster, address, id)) = asker else {
            session.take_response(response, charge);
            return Ok(());
        };
        let message = match (&response.id, &response.outcome) {
            (Some(id), Ok(result)) => result_text(id, result.get()),
            (id, Err(error)) => error_text(id.as_ref(), error, session.revision),
            (None, Ok(_)) => return Ok(()),
        };
        let name = || session.id.to_string();
        let (is_open, answer) =
            (Question::IsOpen { session: name(), id }, Question::Response { session: name(), message });
        // One at a time, so that answers to one question are not all passed on: the first one closes it.
        let _turn = session.passing_on.lock().await;
        // Clients do not send an answer again, and some of them end their connection when it is refused.
        let end = Instant::now() + ANSWER_HELD;
        let passed = async {
            match cluster.ask_until(end, &address, &is_open, session.party).await? {
                true => cluster.ask_until::<_, Value>(end, &address, &answer, session.party).await.map(drop),
                false => Ok(()),
            }
        };
        match passed.await {
            // The request is gone together with its replica, so the answer is late, as one after a time limit.
            Ok(_) | Err(Unanswered::Gone) => Ok(()),
            Err(Unanswered::NoRoom(no_room)) => {
                let error = RpcError::unavailable(format!(
                    "another replica of this server asked this, and the answer does not fit there: {no_room}; send a smaller one"
                ));
                Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, None, &error))
            }
            Err(Unanswered::Silent(silent)) => {
                let error =
                    RpcError::unavailable(format!("{silent}, and another of them asked this; send the answer again"));
                Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, None, &error))
            }
        }
    }

    /// Returns what follows on a stream that another replica stores. None: it stores nothing of it, or does not run any more.
    pub(super) async fn resume_elsewhere(
        &self,
        address: &str,
        session: &Session,
        after: &str,
        purpose: Option<&Purpose>,
    ) -> Result<Option<Frames>, Refused> {
        let Some(cluster) = &self.server.cluster else { return Ok(None) };
        let question = Question::Resume { session: session.id.to_string(), after: after.to_owned() };
        match cluster.follow(address, &question, session.party).await {
            Ok(Ok(frames)) => Ok(Some(frames)),
            Ok(Err(_)) | Err(Unanswered::Gone) => Ok(None),
            // Changes are told again from what is known here.
            Err(Unanswered::Silent(_) | Unanswered::NoRoom(_)) if purpose == Some(&Purpose::Changes) => Ok(None),
            Err(Unanswered::NoRoom(no_room)) => {
                let error = RpcError::unavailable(format!(
                    "another replica of this server has the rest of the stream, and cannot be asked for it: {no_room}; try again"
                ));
                Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, None, &error))
            }
            Err(Unanswered::Silent(silent)) => {
                let error = RpcError::unavailable(format!(
                    "{silent}, and another of them has the rest of the stream; try again"
                ));
                Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, None, &error))
            }
        }
    }
}
