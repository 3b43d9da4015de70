//! What a caller may still have of what it obtained earlier. Each time the result of a task is requested, it is checked against what the
//! caller and the plugin may do at that time. Streams end when the caller's credentials expire or are revoked.

use std::{sync::Arc, time::SystemTime};

use sha2::{Digest, Sha256};
use wharf_protocol::{RpcError, task::TaskStatus};

use super::server::Server;
use wharf_plugins::{
    plugins::{served::Served, view::View},
    tasks::{Purpose, Reach, Record},
};
use wharf_policy::{
    auth::{Caller, Identity},
    roles::{Entry, EntryKind},
};

impl Server {
    /// Returns the task as its owner may see it now. None: the task does not exist for its owner, because the owner's roles or profile no
    /// longer give the tool, or the folders that the task had.
    pub fn entitled(&self, caller: &Caller, profile: Option<&str>, record: Record) -> Option<Record> {
        let view = self.view(caller, profile);
        let purpose = &record.purpose;
        let entry = Entry::new(EntryKind::Tool, &purpose.plugin, &purpose.tool);
        let given = view.filter.check(&entry).is_ok() && self.reaches(caller, &entry, &purpose.reach);
        let whole = self.has_access(&view, purpose);
        given.then(|| if whole { record } else { withheld(record) })
    }

    /// Returns the number that identifies a plugin's access. It is another one after access was taken away. Of several replicas, it is made
    /// from what is granted, since it has to be the same on all of them.
    pub fn access_of(&self, served: &Served) -> u64 {
        if self.cluster.is_none() {
            return served.access.number();
        }
        let config = &served.config;
        let granted = Sha256::digest(format!("{:?} {}", config.grants, config.settings.json()));
        granted.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// Whether the plugin still offers the tool, and may still do all that it could when the task began.
    fn has_access(&self, view: &View, purpose: &Purpose) -> bool {
        let served = view.catalog.tool(&purpose.tool).map(|(served, _)| served);
        served.is_some_and(|served| served.config.id == purpose.plugin && self.access_of(served) == purpose.access)
    }

    /// Resolves when the caller's credentials end, so that streams that only wait for changes end too: when the token or the certificate
    /// expires, or the API key is revoked. None: the credentials do not end.
    pub fn credentials_end(self: &Arc<Self>, caller: &Caller) -> Option<impl Future<Output = ()> + Send + use<>> {
        let identity = Arc::clone(caller.identity()?);
        (identity.expires.is_some() || identity.key.is_some()).then(|| {
            let server = Arc::clone(self);
            async move {
                let ended = async {
                    match identity.expires {
                        Some(end) => {
                            tokio::time::sleep(end.duration_since(SystemTime::now()).unwrap_or_default()).await
                        }
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = ended => {}
                    () = server.key_revoked(&identity) => {}
                }
            }
        })
    }

    /// Whether the API key that the caller used is revoked.
    pub fn is_key_revoked(&self, identity: &Identity) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.is_revoked(identity))
    }

    /// Resolves when the API key that the caller used is revoked.
    pub async fn key_revoked(&self, identity: &Identity) {
        match &self.auth {
            Some(auth) => auth.revoked(identity).await,
            None => std::future::pending().await,
        }
    }

    /// Whether the caller's roles still give access to the folders that a call had.
    fn reaches(&self, caller: &Caller, entry: &Entry<'_>, before: &Reach) -> bool {
        let now = self.rights(caller).and_then(|rights| rights.ceilings(entry));
        match (before, now) {
            (Reach::NoRoots, _) | (_, None) => true,
            (Reach::Everywhere, Some(_)) => false,
            (Reach::Within(before), Some(now)) => {
                let now: Vec<String> = now.iter().map(ToString::to_string).collect();
                before.iter().all(|one| now.contains(one))
            }
        }
    }
}

/// Returns the task without anything that came from the plugin.
fn withheld(mut record: Record) -> Record {
    record.questions.clear();
    if record.outcome.is_some() {
        let Purpose { plugin, tool, .. } = &record.purpose;
        let why = format!(
            "The operator took away the tool `{tool}`, or access of its plugin `{plugin}`, after this task began, so its \
             result is withheld."
        );
        record.task.status = TaskStatus::Failed;
        record.task.message = Some(why.clone());
        record.outcome = Some(Err(RpcError::invalid_params(why)));
    }
    record
}
