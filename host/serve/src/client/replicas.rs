//! What a session and a server share with other replicas. A session lives in the memory of each replica that got a request of it: what its
//! client sets at one replica reaches the others as news, and is stored for those that make the session later. What is stored is charged to
//! the client that opened the session.

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use wharf_base::{party::Party, session_id::ListDigests, text::hex};
use wharf_cluster::{Before, Cluster, NotStored};
use wharf_config::config::SESSION_LIFETIME;
use wharf_protocol::{Level, RpcError};

use super::{
    news::{News, Setting, Stored},
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
    /// Tells the other replicas, if there are any, what a client has caused. If they cannot be told now, they are not: see
    /// [`wharf_cluster::Member::connected`].
    pub fn tell(&self, party: Party, news: impl FnOnce() -> News) {
        if self.cluster.is_some() {
            self.news.add(news(), party);
        }
    }

    /// Tells the listeners of all replicas that a resource has changed, in a call of this client.
    pub fn updated(&self, party: Party, uri: String) {
        if self.cluster.is_some() {
            self.news.add(News::Updated { uri }, party);
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
            for (news, _place) in self.news.take() {
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
    /// Fails if the client may not store more.
    pub async fn share(&self, session: &Session, setting: Setting) -> Result<(), RpcError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let (name, lives) = (name_of(&session.id), SESSION_LIFETIME);
        let stored = Stored::Setting(setting.clone());
        let field = stored.field();
        let shared = match &setting {
            Setting::Unsubscribe(_) => cluster.remove_field(&name, &field, lives).await,
            _ => cluster.put_fields(&name, &[(&field, &stored)], (lives, session.party), Before::Stays).await,
        };
        match shared {
            Ok(()) => {
                let news = News::Setting { session: session.id.to_string(), setting };
                cluster.tell(&news).await.ok();
                Ok(())
            }
            Err(NotStored::Silent(_)) => Ok(()),
            // Trying again soon would not help.
            Err(no_room @ NotStored::NoRoom) => Err(RpcError::internal(no_room.to_string())),
        }
    }

    /// Stores what a client has set in its session again, if Redis has lost it.
    pub async fn restore(&self, cluster: &Cluster, session: &Session) {
        let settings: Vec<Stored> = session.settings().into_iter().map(Stored::Setting).collect();
        if settings.is_empty() {
            return;
        }
        let names: Vec<String> = settings.iter().map(Stored::field).collect();
        let fields: Vec<(&str, &Stored)> = names.iter().map(String::as_str).zip(&settings).collect();
        let lives = SESSION_LIFETIME;
        // If Redis does not answer again, this is tried again once it does.
        cluster.put_fields(&name_of(&session.id), &fields, (lives, session.party), Before::Wins).await.ok();
    }

    /// Stores that a session has ended, and tells the other replicas. Fails if that cannot be stored, since then they would go on with it.
    /// `party`: the client that ends it.
    pub async fn share_end(&self, session: &str, party: Party) -> Result<(), RpcError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let (ended, lives) = (Stored::Ended, SESSION_LIFETIME);
        let fields = [(&*ended.field(), &ended)];
        let stored = cluster.put_fields(&name_of(session), &fields, (lives, party), Before::Goes).await;
        stored.map_err(|not| RpcError::unavailable(format!("{not}; nothing was ended; try again")))?;
        cluster.tell(&News::Ended { session: session.to_owned() }).await.ok();
        Ok(())
    }

    /// Stores which lists the client of a session knows of.
    pub fn share_told(self: &Arc<Self>, session: &Session, lists: ListDigests) {
        if let Some(cluster) = self.cluster.clone() {
            let (name, party, lives) = (name_of_told(&session.id), session.party, SESSION_LIFETIME);
            // If it cannot be stored, the client is told once more.
            self.tracker.spawn(async move { cluster.put(&name, &lists, lives, (party, 0)).await });
        }
    }

    /// Returns which lists the client of a session was last told of, at whichever replica.
    pub async fn last_told(&self, session: &Session) -> Option<ListDigests> {
        self.cluster.as_ref()?.get(&name_of_told(&session.id)).await.ok().flatten()
    }
}

impl Session {
    /// Returns what the client has set.
    fn settings(&self) -> Vec<Setting> {
        let level = self.log_level();
        let level = (level != Level::Info).then(|| Setting::Level(level.as_str().into()));
        level.into_iter().chain(self.resources().into_iter().map(Setting::Subscribe)).collect()
    }

    /// Sets what is stored.
    pub fn take_over(&self, stored: HashMap<String, Stored>) {
        for one in stored.into_values() {
            if let Stored::Setting(setting) = one {
                self.set(setting);
            }
        }
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
