//! What a plugin keeps in memory for each client, if all calls of a client run in one instance: whose turn it is, whether there is such an
//! instance, and what became of the one before.
//!
//! The plugin and its successors, which have other code or another config, share the stays. So a client learns that what was kept for it is
//! gone, whichever of them answers its next call.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::contract::operation::CallError;

/// A client for which the instance of a call is retained.
#[derive(Debug, Clone)]
pub struct Client {
    /// A text that no other client has.
    pub key: Arc<str>,
    /// Whether all calls of the client run in one instance, one after the other. Otherwise calls at the same time have an instance each.
    pub in_one: bool,
    /// What the instance is retained for, such as a session: it is dropped once this is gone. `None`: it is dropped when it has been idle for
    /// too long.
    pub lasts: Option<Weak<dyn Any + Send + Sync>>,
}

/// Why what was kept is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Crashed,
    OverLimit,
    TimedOut,
    /// A call was cancelled, or what it used was taken away.
    Stopped,
    Changed,
    Idle,
    Room,
    /// Something that a call began was still running when it ended.
    Unfinished,
}

impl Lost {
    /// What ended the instance in which a call failed.
    pub(crate) fn by(error: &CallError) -> Self {
        match error {
            CallError::Memory(_) | CallError::TotalMemory | CallError::Output(_) | CallError::Files(_) => {
                Self::OverLimit
            }
            CallError::Timeout(_) | CallError::Busy(_) => Self::TimedOut,
            CallError::Stopped => Self::Stopped,
            CallError::Failed(_)
            | CallError::NoInterface(_)
            | CallError::NotMcp(_)
            | CallError::Exit(_)
            | CallError::Trap { .. } => Self::Crashed,
        }
    }

    /// Completes the sentence "It was started again …".
    fn words(self) -> &'static str {
        match self {
            Self::Crashed => "after it crashed",
            Self::OverLimit => "after a call exceeded a limit",
            Self::TimedOut => "after a call took too long",
            Self::Stopped => "after a call was stopped",
            Self::Changed => "because its code, its config or its access has changed",
            Self::Idle => "because it was not used for ten minutes",
            Self::Room => "because there was no room for it in memory",
            Self::Unfinished => "because a call left a request unfinished",
        }
    }
}

/// Without a session, how long a stay is remembered after the last call of its client.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// The number of stays of a plugin. Sessions and their shares are bounded elsewhere, so no client alone can fill this.
const MAX_STAYS: usize = 4096;

/// The stays of a plugin and its successors.
#[derive(Default)]
pub(crate) struct Stays(Mutex<HashMap<Arc<str>, Arc<Stay>>>);

/// The stay of one client.
#[derive(Debug)]
pub(crate) struct Stay {
    /// The plugin's ID.
    plugin: Arc<str>,
    lasts: Option<Weak<dyn Any + Send + Sync>>,
    /// Held by the call that runs.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Whether calls of the client have left something in an instance that is still there, as far as is known here.
    is_kept: bool,
    /// Why what was kept is gone, until the client has been told.
    untold: Option<Lost>,
    used: Instant,
}

impl Stays {
    /// Returns the stay of a client.
    pub(crate) fn of(&self, plugin: &str, client: &Client) -> Arc<Stay> {
        let mut all = self.0.lock();
        if let Some(stay) = all.get(&client.key) {
            return Arc::clone(stay);
        }
        all.retain(|_, stay| Arc::strong_count(stay) > 1 || stay.is_remembered());
        if all.len() >= MAX_STAYS {
            let idle = all.iter().filter(|(_, stay)| Arc::strong_count(stay) == 1);
            let oldest = idle.min_by_key(|(_, stay)| stay.state.lock().used).map(|(key, _)| Arc::clone(key));
            oldest.and_then(|key| all.remove(&key));
        }
        let state = State { is_kept: false, untold: None, used: Instant::now() };
        let (plugin, lasts) = (plugin.into(), client.lasts.clone());
        let stay = Arc::new(Stay { plugin, lasts, turn: Arc::default(), state: Mutex::new(state) });
        all.insert(Arc::clone(&client.key), Arc::clone(&stay));
        stay
    }

    /// Returns, once, the sentence for a client that says that what was kept for it is gone, if it is.
    pub(crate) fn tell(&self, client: &str) -> Option<String> {
        self.0.lock().get(client)?.tell()
    }

    /// Notes for all clients that what was kept is gone.
    pub(crate) fn lose(&self, why: Lost) {
        for stay in self.0.lock().values() {
            stay.lose(why);
        }
    }
}

impl Stay {
    fn is_remembered(&self) -> bool {
        match &self.lasts {
            Some(lasts) => lasts.strong_count() > 0,
            None => self.state.lock().used.elapsed() < REMEMBERED,
        }
    }

    /// Waits until the client's earlier calls have ended, for so long at most. `None`: they have not.
    pub(crate) async fn turn(&self, most: Duration) -> Option<OwnedMutexGuard<()>> {
        let turn = Arc::clone(&self.turn).lock_owned();
        tokio::time::timeout(most, turn).await.ok()
    }

    /// Returns, once, the sentence for the client that says that what was kept is gone, if it is.
    pub(crate) fn tell(&self) -> Option<String> {
        let why = self.state.lock().untold.take()?;
        let (plugin, why) = (&self.plugin, why.words());
        Some(format!("The server `{plugin}` was started again {why}: what it kept in memory is gone."))
    }

    /// Notes that what was kept is gone, if anything was.
    pub(crate) fn lose(&self, why: Lost) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.is_kept) {
            state.untold = Some(why);
            drop(state);
            tracing::info!(
                plugin = &*self.plugin,
                "starts again for the next call of a client, {}: what it kept in memory for this client is gone",
                why.words()
            );
        }
    }
}

/// A call that runs in the instance of its client. Unless it is told how the call ended, the call was stopped.
pub(crate) struct Staying {
    stay: Arc<Stay>,
    /// Until when the call may run.
    deadline: Instant,
    has_ended: bool,
}

impl Staying {
    /// Begins a call. `finds`: whether it runs in the instance of the call before.
    pub(crate) fn new(stay: &Arc<Stay>, finds: bool, deadline: Instant) -> Self {
        if !finds {
            stay.lose(Lost::Changed);
        }
        let mut state = stay.state.lock();
        if finds && !state.is_kept {
            // The plugin has a successor, which does not answer calls yet.
            state.untold = None;
        }
        drop(state);
        Self { stay: Arc::clone(stay), deadline, has_ended: false }
    }

    /// Notes that the call runs now, and may leave something in its instance.
    pub(crate) fn run(&self) {
        let mut state = self.stay.state.lock();
        (state.is_kept, state.used) = (true, Instant::now());
    }

    /// Notes how the call ended. `lost`: why its instance is gone, if it is.
    pub(crate) fn end(&mut self, lost: Option<Lost>) {
        self.has_ended = true;
        if let Some(why) = lost {
            self.stay.lose(why);
        }
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        if !self.has_ended {
            let is_late = Instant::now() >= self.deadline;
            self.stay.lose(if is_late { Lost::TimedOut } else { Lost::Stopped });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(key: &str, lasts: Option<Weak<dyn Any + Send + Sync>>) -> Client {
        Client { key: key.into(), in_one: true, lasts }
    }

    /// Runs a call in an instance.
    fn call(stay: &Arc<Stay>, finds: bool) {
        let mut staying = Staying::new(stay, finds, Instant::now());
        staying.run();
        staying.end(None);
    }

    #[test]
    fn a_client_is_told_once_what_is_lost_and_others_are_not() {
        let stays = Stays::default();
        let (one, other) = (stays.of("notes", &client("a", None)), stays.of("notes", &client("b", None)));
        call(&one, false);
        call(&one, true);
        assert_eq!(one.tell(), None, "there was nothing to lose");
        one.lose(Lost::Crashed);
        one.lose(Lost::Room);
        call(&other, false);
        assert_eq!(stays.tell("b"), None);
        call(&one, false);
        let said = "The server `notes` was started again after it crashed: what it kept in memory is gone.";
        assert_eq!((stays.tell("a").as_deref(), stays.tell("a"), stays.tell("c")), (Some(said), None, None));
        call(&one, false);
        assert!(one.tell().unwrap().contains("has changed"), "another instance, for which nobody gave a reason");
        stays.lose(Lost::Changed);
        call(&other, true);
        assert_eq!(other.tell(), None, "it was answered by the instance of before after all");
        call(&other, false);
        assert!(other.tell().is_some());
    }

    #[test]
    fn a_call_that_ends_unheard_was_stopped_or_took_too_long() {
        let stay = Stays::default().of("notes", &client("a", None));
        let later = Instant::now() + Duration::from_secs(3600);
        for (runs, deadline, end, expected) in [
            (true, later, None, Some(Lost::Stopped)),
            (true, Instant::now(), None, Some(Lost::TimedOut)),
            (true, later, Some(None), None),
            (true, later, Some(Some(Lost::Room)), Some(Lost::Room)),
            (false, later, None, None),
        ] {
            let mut staying = Staying::new(&stay, false, deadline);
            stay.state.lock().untold = None;
            if runs {
                staying.run();
            }
            if let Some(lost) = end {
                staying.end(lost);
            }
            drop(staying);
            assert_eq!(stay.state.lock().untold.take(), expected);
        }
    }

    #[tokio::test]
    async fn a_call_waits_for_earlier_ones_but_not_for_ever() {
        let stay = Stays::default().of("notes", &client("a", None));
        let first = stay.turn(Duration::ZERO).await.unwrap();
        assert!(stay.turn(Duration::ZERO).await.is_none());
        let (second, ()) = tokio::join!(stay.turn(Duration::from_secs(600)), async { drop(first) });
        second.unwrap();
    }

    #[test]
    fn stays_go_with_what_they_last_for() {
        let stays = Stays::default();
        let session: Arc<dyn Any + Send + Sync> = Arc::new(());
        stays.of("notes", &client("a", Some(Arc::downgrade(&session))));
        stays.of("notes", &client("b", None));
        assert_eq!(stays.0.lock().len(), 2);
        drop(session);
        stays.of("notes", &client("c", None));
        assert!(!stays.0.lock().contains_key("a"));
        for number in 0..MAX_STAYS + 5 {
            stays.of("notes", &client(&number.to_string(), None));
        }
        assert_eq!(stays.0.lock().len(), MAX_STAYS);
    }
}
