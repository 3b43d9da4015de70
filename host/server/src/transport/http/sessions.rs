//! The legacy sessions of the HTTP server. Their ids cannot be guessed, only the principal that opened a session may use it,
//! and unused sessions are ended.
//!
//! Opening sessions costs a client nothing, so it must not harm others: if there are too many, a session that was opened but
//! never used is ended, and never one that was used.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wharf_protocol::RpcError;

use crate::base::principal::Principal;
use crate::client::session::Session;

/// The longest time between two searches for unused sessions.
const SWEEP: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct Sessions {
    by_id: Arc<Mutex<HashMap<Arc<str>, Arc<Session>>>>,
    most: usize,
    /// A session that nobody has used for so long is ended.
    idle: Duration,
}

impl Sessions {
    pub fn new(most: usize, idle: Duration) -> Self {
        Self { by_id: Arc::default(), most, idle }
    }

    /// Adds a session. If there is no room, one that was never used is ended: the one that has been idle longest.
    pub fn add(&self, session: Arc<Session>) -> Result<(), RpcError> {
        let mut sessions = self.by_id.lock();
        if sessions.len() >= self.most {
            let unused =
                sessions.values().filter(|session| !session.is_used()).max_by_key(|session| session.idle_for());
            let Some(unused) = unused.map(|session| session.id.clone()) else {
                return Err(RpcError::internal(format!(
                    "there are {} sessions, all of them in use (`sessions` in [http]); try again later",
                    self.most
                )));
            };
            if let Some(unused) = sessions.remove(&unused) {
                unused.ended.cancel();
            }
        }
        sessions.insert(session.id.clone(), session);
        Ok(())
    }

    /// The session with this id, if it belongs to this principal, who opened it for this profile.
    pub fn get(&self, id: &str, principal: &Principal, profile: Option<&str>) -> Option<Arc<Session>> {
        let same = |session: &&Arc<Session>| session.principal == *principal && session.profile.as_deref() == profile;
        let session = self.by_id.lock().get(id).filter(same).cloned()?;
        if session.idle_for() > self.idle {
            self.end(&session);
            return None;
        }
        session.touch();
        Some(session)
    }

    pub fn end(&self, session: &Session) {
        self.by_id.lock().remove(&session.id);
        session.ended.cancel();
    }

    /// Ends sessions that nobody uses, for as long as wharf runs.
    pub async fn sweep(self, stop: CancellationToken) {
        let mut interval = tokio::time::interval(self.idle.min(SWEEP));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = interval.tick() => {}
            }
            self.by_id.lock().retain(|_, session| {
                let keep = session.idle_for() <= self.idle;
                if !keep {
                    session.ended.cancel();
                }
                keep
            });
        }
    }
}
