//! What the replicas of one server tell and ask each other, and what they store about a session for each other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use wharf_base::{
    party::Party,
    places::{Place, Places, PoolRule},
    text::hex,
};
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

/// The limit of news that wait to be sent.
pub static NEWS: PoolRule = PoolRule {
    of: "news for other replicas",
    number: "1024",
    taker: "client",
    until: "they are sent",
    asking: "held",
    gone: "held until they are sent",
    gives_way: "nothing; what a client without a place does is told to its own replica only, and of resources the others are told that any \
                may have changed",
    old: Duration::MAX,
};

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

    /// Whether others have to hear of it at least that something has changed.
    fn is_of_plugin(&self) -> bool {
        matches!(self, Self::Updated { .. } | Self::ListChanged { .. })
    }
}

/// The news that wait to be sent. However often the same is announced, it waits once.
pub struct Waiting {
    news: Mutex<HashMap<News, Option<Place>>>,
    places: Arc<Places>,
    added: Notify,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { news: Mutex::default(), places: Places::new(&NEWS, MAX_WAITING), added: Notify::new() }
    }
}

impl Waiting {
    /// Adds news that a client has caused.
    pub fn add(&self, news: News, party: Party) {
        {
            let mut waiting = self.news.lock();
            if waiting.contains_key(&news) {
                return;
            }
            match self.places.take(party) {
                Ok(place) => drop(waiting.insert(news, Some(place))),
                Err(_) if news.is_of_plugin() => drop(waiting.insert(News::Lost, None)),
                Err(_) => return,
            }
        }
        self.added.notify_one();
    }

    /// Waits until news were added.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// Removes and returns the news that wait, each with its place.
    pub fn take(&self) -> HashMap<News, Option<Place>> {
        std::mem::take(&mut *self.news.lock())
    }
}

/// What a replica asks the one that began something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// Whether this question to the client waits for an answer.
    IsOpen {
        session: String,
        id: String,
    },
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

/// What is stored of a session, in fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stored {
    /// Its client has ended it.
    Ended,
    Setting(Setting),
}

/// Whether the client has ended the session of which this is stored.
pub fn has_ended(stored: &HashMap<String, Stored>) -> bool {
    stored.values().any(|one| *one == Stored::Ended)
}

impl Stored {
    /// Returns the name of the field. What a client sets again has the name of what it replaces.
    pub fn field(&self) -> String {
        match self {
            Self::Ended => "ended".into(),
            Self::Setting(Setting::Level(_)) => "level".into(),
            Self::Setting(Setting::Subscribe(uri) | Setting::Unsubscribe(uri)) => {
                let digest = Sha256::digest(uri);
                hex(digest.first_chunk::<16>().unwrap_or(&[0; 16]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_a_client_sets_replaces_what_it_has_set() {
        let field = |setting: Setting| Stored::Setting(setting).field();
        let (subscribe, level) =
            (|uri: &str| Setting::Subscribe(uri.into()), |level: &str| Setting::Level(level.into()));
        assert_eq!(field(level("debug")), field(level("error")));
        assert_eq!(field(subscribe("a:1")), field(Setting::Unsubscribe("a:1".into())));
        let names = [field(level("debug")), field(subscribe("a:1")), field(subscribe("a:2")), Stored::Ended.field()];
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn a_client_with_much_news_leaves_room_for_that_of_others() {
        let (greedy, other) = (Party::of(1), Party::of(2));
        let waiting = Waiting::default();
        let roots = |number: usize| News::RootsChanged { session: number.to_string() };
        (0..10).for_each(|_| waiting.add(roots(0), greedy));
        assert_eq!(waiting.news.lock().len(), 1, "the same waits once");
        (0..2 * MAX_WAITING).for_each(|number| waiting.add(roots(number), greedy));
        let of_greedy = waiting.news.lock().len();
        assert!((MAX_WAITING / 2..MAX_WAITING).contains(&of_greedy), "{of_greedy}");
        waiting.add(News::Updated { uri: "a:1".into() }, greedy);
        waiting.add(News::Ended { session: "of another".into() }, other);
        let taken = waiting.take();
        assert!(taken.contains_key(&News::Lost) && taken.contains_key(&News::Ended { session: "of another".into() }));
        drop(taken);
        waiting.add(roots(0), greedy);
        assert_eq!(waiting.news.lock().len(), 1, "places come back");
    }

    #[test]
    fn only_a_short_id_is_told_to_others() {
        let most = "x".repeat(ShortId::MAX_BYTES - 2);
        for id in [Id::number(7), Id::string("a \" b"), Id::string(&most)] {
            assert_eq!(ShortId::of(&id).and_then(|short| short.read()), Some(id));
        }
        assert_eq!(ShortId::of(&Id::string(&format!("{most}x"))), None);
    }
}
