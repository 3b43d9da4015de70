//! What the replicas of one server tell and ask each other, and what they store about a session for each other.

use std::collections::HashSet;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use wharf_protocol::Id;
use wharf_sandbox::model::Kind;

/// The most news that wait to be sent. If there are more, the others learn that they have missed some.
const MAX_WAITING: usize = 1024;

/// What a replica tells all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum News {
    /// A client has ended its session.
    Ended {
        session: String,
    },
    Setting {
        session: String,
        setting: Setting,
    },
    /// A client has cancelled a request.
    Cancelled {
        session: String,
        request: ShortId,
    },
    /// A client's roots have changed.
    RootsChanged {
        session: String,
    },
    /// The client has opened its stream for changes, so an earlier one elsewhere ends.
    Listens {
        session: String,
    },
    /// A resource has changed.
    Updated {
        uri: String,
    },
    /// A plugin has announced that a list has changed.
    ListChanged {
        plugin: String,
        kind: SharedKind,
    },
    TaskChanged {
        id: String,
    },
    /// Some news were lost, since there were too many.
    Lost,
}

/// The id of a request, as JSON of at most [`ShortId::MAX_BYTES`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShortId(String);

impl ShortId {
    /// Clients use numbers and UUIDs.
    pub const MAX_BYTES: usize = 96;

    /// Returns the id, if it is short enough.
    pub fn of(id: &Id) -> Option<Self> {
        let json = id.to_string();
        (json.len() <= Self::MAX_BYTES).then_some(Self(json))
    }

    /// Returns the id. `None`: another version of wharf has written something else.
    pub fn read(&self) -> Option<Id> {
        Id::from_raw(&self.0)
    }
}

impl News {
    /// Whether the replica that sends this takes it in only when it comes back, in the order of all news. A client that has just subscribed at
    /// another replica then hears of a change here: the news of its subscription came before.
    pub fn is_taken_in_order(&self) -> bool {
        matches!(self, Self::Updated { .. } | Self::Lost)
    }
}

/// The news that wait to be sent. However often a plugin announces the same, it waits once.
#[derive(Default)]
pub struct Waiting {
    news: Mutex<HashSet<News>>,
    added: Notify,
}

impl Waiting {
    pub fn add(&self, news: News) {
        {
            let mut waiting = self.news.lock();
            if waiting.len() < MAX_WAITING {
                waiting.insert(news);
            } else if !waiting.contains(&news) {
                waiting.insert(News::Lost);
            }
        }
        self.added.notify_one();
    }

    /// Waits until news were added.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// Removes and returns the news that wait.
    pub fn take(&self) -> HashSet<News> {
        std::mem::take(&mut *self.news.lock())
    }
}

/// What a replica asks the one that began something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// Takes the client's answer to a request of that replica; the message as JSON.
    Response {
        session: String,
        message: String,
    },
    /// Uses up a ticket.
    Redeem {
        number: [u8; 16],
        principal: String,
    },
    CancelTask {
        id: String,
    },
    /// The client's answers to questions of a task.
    AnswerTask {
        id: String,
        replies: Vec<(String, Result<Value, String>)>,
    },
    /// Sends what follows on an event stream.
    Resume {
        session: String,
        after: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SharedKind {
    Tools,
    Resources,
    Prompts,
}

impl From<Kind> for SharedKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Tools => Self::Tools,
            Kind::Resources => Self::Resources,
            Kind::Prompts => Self::Prompts,
        }
    }
}

impl From<SharedKind> for Kind {
    fn from(kind: SharedKind) -> Self {
        match kind {
            SharedKind::Tools => Self::Tools,
            SharedKind::Resources => Self::Resources,
            SharedKind::Prompts => Self::Prompts,
        }
    }
}

/// What a client sets in its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Setting {
    Level(String),
    Subscribe(String),
    Unsubscribe(String),
}

/// What is stored of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSession {
    /// Whether its client has ended it.
    pub ended: bool,
    level: Option<String>,
    subscriptions: Vec<String>,
}

impl StoredSession {
    /// A session that its client has ended.
    pub fn ended() -> Self {
        Self { ended: true, ..Self::default() }
    }

    pub fn set(&mut self, setting: &Setting) {
        match setting {
            Setting::Level(level) => self.level = Some(level.clone()),
            Setting::Subscribe(uri) if self.subscriptions.contains(uri) => {}
            Setting::Subscribe(uri) => self.subscriptions.push(uri.clone()),
            Setting::Unsubscribe(uri) => self.subscriptions.retain(|one| one != uri),
        }
    }

    /// Returns what the session's client has set.
    pub fn settings(self) -> impl Iterator<Item = Setting> {
        self.level.map(Setting::Level).into_iter().chain(self.subscriptions.into_iter().map(Setting::Subscribe))
    }
}

/// Returns the address of the replica whose request to a client has this id, if it says so.
pub fn asked_by(id: &str) -> Option<&str> {
    Some(id.strip_prefix("wharf-")?.split_once('.')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_sets_is_stored_once() {
        let mut stored = StoredSession::default();
        let subscribe = |uri: &str| Setting::Subscribe(uri.into());
        for setting in [
            subscribe("a:1"),
            Setting::Level("debug".into()),
            subscribe("a:1"),
            subscribe("a:2"),
            Setting::Unsubscribe("a:1".into()),
            Setting::Level("error".into()),
        ] {
            stored.set(&setting);
        }
        let json = serde_json::to_string(&stored).unwrap();
        let read: StoredSession = serde_json::from_str(&json).unwrap();
        assert_eq!(read.settings().collect::<Vec<_>>(), [Setting::Level("error".into()), subscribe("a:2")]);
    }

    #[test]
    fn however_often_a_plugin_announces_the_same_it_waits_once() {
        let waiting = Waiting::default();
        let updated = |number: usize| News::Updated { uri: format!("a:{number}") };
        (0..10).for_each(|_| waiting.add(updated(0)));
        assert_eq!(waiting.news.lock().len(), 1);
        (0..2 * MAX_WAITING).for_each(|number| waiting.add(updated(number)));
        let waiting = waiting.news.lock();
        assert!(waiting.len() == MAX_WAITING + 1 && waiting.contains(&News::Lost));
    }

    #[test]
    fn only_a_short_id_is_told_to_others() {
        let most = "x".repeat(ShortId::MAX_BYTES - 2);
        for id in [Id::number(7), Id::string("a \" b"), Id::string(&most)] {
            assert_eq!(ShortId::of(&id).and_then(|short| short.read()), Some(id));
        }
        assert_eq!(ShortId::of(&Id::string(&format!("{most}x"))), None);
    }

    #[test]
    fn the_id_of_a_request_to_a_client_says_which_replica_asks() {
        for (id, expected) in
            [("wharf-00ff.abc-1", Some("00ff")), ("wharf-abcdefgh-1", None), ("other-00ff.abc-1", None), ("", None)]
        {
            assert_eq!(asked_by(id), expected, "{id}");
        }
    }
}
