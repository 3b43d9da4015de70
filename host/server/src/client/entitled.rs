//! What a caller may still have of what it got before: what came of its task, which is judged each time by what the caller and the
//! plugin may do then, and streams, which end with what the caller showed.

use std::{sync::Arc, time::SystemTime};

use wharf_protocol::{RpcError, task::TaskStatus};

use super::server::Server;
use crate::{
    auth::{Caller, Identity},
    plugins::view::View,
    roles::{Entry, Kind},
    tasks::{Purpose, Reach, Record},
};

impl Server {
    /// The task as its owner may see it now. None: for the owner it does not exist, because the owner's roles, or the profile that
    /// it came for, do not give the tool any more.
    pub fn entitled(&self, caller: &Caller, profile: Option<&str>, record: Record) -> Option<Record> {
        let view = self.view(caller, profile);
        let purpose = &record.purpose;
        let entry = Entry::new(Kind::Tool, &purpose.plugin, &purpose.tool);
        let given = view.filter.check(&entry).is_ok() && self.reaches(caller, &entry, &purpose.reach);
        let whole = has_access(&view, purpose);
        given.then(|| if whole { record } else { withheld(record) })
    }

    /// Resolves when what a caller showed is not good any more, so that nothing that only waits for changes goes on: the token or the
    /// certificate has ended, or the API key was taken away. None: what the caller showed does not end.
    pub fn shown_until(self: &Arc<Self>, caller: &Caller) -> Option<impl Future<Output = ()> + Send + use<>> {
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

    /// Resolves when the API key that a caller showed is taken away.
    pub async fn key_revoked(&self, identity: &Identity) {
        match &self.auth {
            Some(auth) => auth.revoked(identity).await,
            None => std::future::pending().await,
        }
    }

    /// Whether the caller's roles still open the folders that a call had.
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

/// Whether the plugin still offers the tool, and may still do all that it could when the task began.
fn has_access(view: &View, purpose: &Purpose) -> bool {
    let served = view.catalog.tool(&purpose.tool).map(|(served, _)| served);
    served.is_some_and(|served| served.config.id == purpose.plugin && served.access.number() == purpose.access)
}

/// The task without anything that came from the plugin.
fn withheld(mut record: Record) -> Record {
    record.questions.clear();
    if record.outcome.is_some() {
        let Purpose { plugin, tool, .. } = &record.purpose;
        let why = format!(
            "The operator took away the tool `{tool}`, or access of its plugin `{plugin}`, after this task began; its result is \
             not given any more."
        );
        record.task.status = TaskStatus::Failed;
        record.task.message = Some(why.clone());
        record.outcome = Some(Err(RpcError::invalid_params(why)));
    }
    record
}
