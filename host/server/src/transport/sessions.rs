//! The legacy sessions of the HTTP server: by unguessable id, bound to whom they were opened by, and not for ever.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::era::legacy::Session;

/// A session that nobody used for so long ends.
const IDLE: Duration = Duration::from_secs(3600);

pub struct Sessions {
    by_id: Mutex<HashMap<String, Arc<Session>>>,
    most: usize,
}

impl Sessions {
    pub fn new(most: usize) -> Self {
        Self { by_id: Mutex::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a session in. Where there is no room, the one that was idle longest ends.
    pub fn add(&self, session: Arc<Session>) {
        let mut sessions = self.lock();
        if sessions.len() >= self.most {
            sessions.retain(|_, session| {
                let keep = session.idle_for() < IDLE;
                if !keep {
                    session.ended.cancel();
                }
                keep
            });
        }
        if sessions.len() >= self.most
            && let Some(oldest) =
                sessions.values().max_by_key(|session| session.idle_for()).map(|session| session.id.clone())
            && let Some(session) = sessions.remove(&oldest)
        {
            tracing::warn!("more than {} sessions; the one idle longest was ended", self.most);
            session.ended.cancel();
        }
        sessions.insert(session.id.clone(), session);
    }

    /// The session, if there is one and it is this principal's.
    pub fn get(&self, id: &str, principal: &str) -> Option<Arc<Session>> {
        let mut sessions = self.lock();
        let session = sessions.get(id).filter(|session| *session.principal == *principal).cloned()?;
        if session.idle_for() > IDLE {
            session.ended.cancel();
            sessions.remove(id);
            return None;
        }
        session.touch();
        Some(session)
    }

    pub fn end(&self, session: &Session) {
        self.lock().remove(&session.id);
        session.ended.cancel();
    }
}
