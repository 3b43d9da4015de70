//! `subscriptions/listen`: the one method whose answer goes on for as long as the client listens.

use std::sync::Arc;

use parking_lot::Mutex;
use wharf_protocol::{
    Id, Level, Revision, RpcError, notification,
    params::{self, ListenFilter},
};

use crate::client::{
    context::Context,
    notifier::{self, Feed, Listener, Told},
};
use wharf_plugins::tasks::Record;
use wharf_policy::auth::Caller;

/// The maximum number of resources that one subscription may name.
const MAX_SUBSCRIBED: usize = 1024;

/// One `subscriptions/listen`.
struct Subscription {
    id: Id,
    revision: Revision,
    /// The key of the owner of its tasks.
    owner: Arc<str>,
    caller: Caller,
    profile: Option<Arc<str>>,
    filter: ListenFilter,
    last_told: Mutex<Told>,
}

impl Listener for Subscription {
    fn wants_tools(&self) -> bool {
        self.filter.tools_list_changed == Some(true)
    }
    fn wants_prompts(&self) -> bool {
        self.filter.prompts_list_changed == Some(true)
    }
    fn wants_resources(&self) -> bool {
        self.filter.resources_list_changed == Some(true)
    }
    fn wants_resource(&self, uri: &str) -> bool {
        self.filter.resource_subscriptions.iter().flatten().any(|subscribed| notifier::covers(subscribed, uri))
    }
    fn wants_task(&self, task: &Record) -> bool {
        task.owner == self.owner && self.filter.task_ids.iter().flatten().any(|id| *id == task.task.id)
    }
    fn revision(&self) -> Revision {
        self.revision
    }
    fn resources(&self) -> Vec<String> {
        self.filter.resource_subscriptions.clone().unwrap_or_default()
    }
    fn tag(&self) -> Option<&Id> {
        Some(&self.id)
    }
    fn wants_messages(&self, _: Level) -> bool {
        false
    }
    fn caller(&self) -> Caller {
        self.caller.clone()
    }
    fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }
    fn last_told(&self) -> &Mutex<Told> {
        &self.last_told
    }
}

/// Serves a subscription until the client leaves or wharf stops; then its result ends the stream.
pub async fn listen(ctx: &Context, params: params::Listen) -> Result<String, RpcError> {
    let mut filter = params.notifications;
    let owner = ctx.owner();
    if let Some(ids) = filter.task_ids.take() {
        if !ctx.capabilities.tasks {
            return Err(RpcError::missing_tasks("`taskIds` needs the tasks extension"));
        }
        // Ids of unknown tasks, of other owners' tasks, and of those that the caller may not see any more are left out.
        let mut known = Vec::with_capacity(ids.len());
        for id in ids {
            let record = ctx.server.tasks.get(&id, &owner).await?;
            if record.and_then(|record| ctx.server.entitled(ctx.caller(), ctx.profile(), record)).is_some() {
                known.push(id);
            }
        }
        filter.task_ids = Some(known);
    }
    if filter.resource_subscriptions.as_ref().is_some_and(|uris| uris.len() > MAX_SUBSCRIBED) {
        return Err(RpcError::invalid_params(format!("a subscription names at most {MAX_SUBSCRIBED} resources")));
    }
    filter.resource_subscriptions.iter().flatten().try_for_each(|uri| wharf_plugins::bridge::check_uri(uri))?;
    // The client gets all changes from here on.
    let last_told = Mutex::new(Told::Versions(ctx.view().await.list_versions()));
    let feed = Feed::open(&ctx.server);
    // If the outbox is closed, the feed ends right away.
    ctx.outbox.send(notification::acknowledged(&ctx.id, &filter)).await.ok();
    let subscription = Subscription {
        id: ctx.id.clone(),
        revision: ctx.encoder.revision,
        owner: owner.key(),
        caller: ctx.caller().clone(),
        profile: ctx.arrival.profile.clone(),
        filter,
        last_told,
    };
    tokio::select! {
        () = feed.run(&subscription, &ctx.outbox) => {}
        () = ctx.stop().cancelled() => {}
    }
    Ok(ctx.encoder.listen_ended(&ctx.id))
}
