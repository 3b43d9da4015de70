//! What a session and a server share with other replicas. A session lives in the memory of each replica that got a request of it: what its
//! client sets at one replica reaches the others as news, and is stored for those that make the session later.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use wharf_base::{session_id::ListDigests, text::hex};
use wharf_cluster::Cluster;
use wharf_protocol::{Level, RpcError};

use super::{
    news::{News, Setting, StoredSession},
    notifier::Listener,
    server::Server,
    session::Session,
};

/// Returns the name under which a session is stored.
pub fn name_of(session: &str) -> String {
    format!("session:{}", hex(&Sha256::digest(session)))
}

/// Returns the name under which it is stored what the client of a session has been told of lists.
fn name_of_told(session: &str) -> String {
    format!("told:{}", hex(&Sha256::digest(session)))
}

impl Server {
    /// Tells the other replicas, if there are any. If they cannot be told now, they are not: see [`wharf_cluster::Member::connected`].
    pub fn tell(&self, news: impl FnOnce() -> News) {
        if self.cluster.is_some() {
            self.news.add(news());
        }
    }

    /// Tells the listeners of all replicas that a resource has changed.
    pub fn updated(&self, uri: String) {
        if self.cluster.is_some() {
            self.news.add(News::Updated { uri });
        } else {
            self.updated_here(Some(uri.into()));
        }
    }

    /// Tells the listeners of this process that a resource has changed; `None`: that any may have.
    pub fn updated_here(&self, uri: Option<Arc<str>>) {
        // This fails only without receivers, which is fine.
        self.updates.send(uri).ok();
    }

    /// Sends the news that wait, for as long as wharf runs.
    pub async fn send_news(self: Arc<Self>, cluster: Arc<Cluster>) {
        loop {
            tokio::select! {
                () = self.news.added() => {}
                () = self.stop.cancelled() => return,
            }
            let mut silent = false;
            for news in self.news.take() {
                silent = silent || cluster.tell(&news).await.is_err();
                match news {
                    // It does not come back from Redis.
                    News::Updated { uri } if silent => self.updated_here(Some(uri.into())),
                    News::Lost if silent => self.updated_here(None),
                    _ => {}
                }
            }
        }
    }

    /// Stores what a client has set in its session, and tells the other replicas. If Redis does not answer, it is set at this replica only.
    pub async fn share(&self, session: &Session, setting: Setting) {
        let Some(cluster) = &self.cluster else { return };
        let lives = self.startup.http.session_lifetime;
        let change = |stored: Option<StoredSession>| {
            let mut stored = stored.unwrap_or_default();
            stored.set(&setting);
            Some((stored, lives))
        };
        if cluster.change(&name_of(&session.id), change).await.is_ok() {
            let news = News::Setting { session: session.id.to_string(), setting };
            cluster.tell(&news).await.ok();
        }
    }

    /// Stores what a client has set in its session again, if Redis has lost it.
    pub async fn restore(&self, cluster: &Cluster, session: &Session) {
        let (settings, lives) = (session.settings(), self.startup.http.session_lifetime);
        if settings == StoredSession::default() {
            return;
        }
        let change = |stored: Option<StoredSession>| stored.is_none().then(|| (settings.clone(), lives));
        // If Redis does not answer again, this is tried again once it does.
        cluster.change(&name_of(&session.id), change).await.ok();
    }

    /// Stores that a session has ended, and tells the other replicas. Fails if Redis does not answer, since then they would go on with it.
    pub async fn share_end(&self, session: &str) -> Result<(), RpcError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let ended = StoredSession::ended();
        let stored = cluster.put(&name_of(session), &ended, self.startup.http.session_lifetime).await;
        stored.map_err(|silent| RpcError::unavailable(format!("{silent}; nothing was ended; try again")))?;
        cluster.tell(&News::Ended { session: session.to_owned() }).await.ok();
        Ok(())
    }

    /// Stores which lists the client of a session knows of.
    pub fn share_told(self: &Arc<Self>, session: &Session, lists: ListDigests) {
        if let Some(cluster) = self.cluster.clone() {
            let (name, lives) = (name_of_told(&session.id), self.startup.http.session_lifetime);
            self.tracker.spawn(async move { cluster.put(&name, &lists, lives).await });
        }
    }

    /// Returns which lists the client of a session was last told of, at whichever replica.
    pub async fn last_told(&self, session: &Session) -> Option<ListDigests> {
        self.cluster.as_ref()?.get(&name_of_told(&session.id)).await.ok().flatten()
    }
}

impl Session {
    /// Returns what the client has set.
    fn settings(&self) -> StoredSession {
        let mut settings = StoredSession::default();
        let level = self.log_level();
        if level != Level::Info {
            settings.set(&Setting::Level(level.as_str().into()));
        }
        self.resources().into_iter().for_each(|uri| settings.set(&Setting::Subscribe(uri)));
        settings
    }

    /// Sets what the client has set at another replica.
    pub fn set(&self, setting: Setting) {
        match setting {
            Setting::Level(level) => {
                if let Some(level) = Level::parse(&level) {
                    self.set_log_level(level);
                }
            }
            // Without memory for it here, the client is not told at this replica, as if it had subscribed here.
            Setting::Subscribe(uri) => drop(self.subscribe(uri)),
            Setting::Unsubscribe(uri) => self.unsubscribe(&uri),
        }
    }
}
