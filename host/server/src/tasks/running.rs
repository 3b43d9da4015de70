//! A task that is under way: how it asks questions, gets answers and is stopped.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{model::Question, task::TaskStatus};

use super::{Tasks, store::Record};

pub struct Running {
    pub id: String,
    pub cancelled: CancellationToken,
    tasks: Arc<Tasks>,
    /// Set once the client is told of the task. From then on, questions are put into the task.
    detached: AtomicBool,
    /// Whether a question that the session's client was asked directly, before the task began, is still open.
    asking: AtomicBool,
    questions: Mutex<Questions>,
    /// Counts changes, for those who wait for one.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Questions {
    /// Every key so far, since no key may be used twice in the life of a task.
    used: HashSet<String>,
    /// The open questions, in the order in which they were asked.
    open: Vec<Open>,
    replies: HashMap<String, Result<Value, String>>,
}

struct Open {
    key: String,
    question: Question,
    /// Whether somebody is asking the client this already.
    claimed: bool,
}

impl Running {
    pub fn new(id: String, tasks: &Arc<Tasks>) -> Arc<Self> {
        Arc::new(Self {
            id,
            cancelled: CancellationToken::new(),
            tasks: Arc::clone(tasks),
            detached: AtomicBool::new(false),
            asking: AtomicBool::new(false),
            questions: Mutex::default(),
            changes: watch::channel(0).0,
        })
    }

    pub fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    pub fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    pub fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire)
    }

    /// Notes whether a question that is not in the task is open, and shows that in the task's status.
    pub async fn set_asking(&self, asking: bool) {
        self.asking.store(asking, Ordering::Release);
        let status = if asking { TaskStatus::InputRequired } else { TaskStatus::Working };
        self.tasks.change(&self.id, |record| record.task.status = status).await;
    }

    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Puts questions into the task and waits until all are answered. The error is a sentence for the model.
    pub async fn ask(&self, questions: &[(String, Question)]) -> Result<Vec<Value>, String> {
        let mut changes = self.watch();
        let mut keys = Vec::with_capacity(questions.len());
        {
            let mut known = self.questions.lock();
            for (key, question) in questions {
                let unique = (1..).map(|round| if round == 1 { key.clone() } else { format!("{key}-{round}") });
                let unique = unique.into_iter().find(|key| !known.used.contains(key)).unwrap_or_default();
                known.used.insert(unique.clone());
                known.open.push(Open { key: unique.clone(), question: question.clone(), claimed: false });
                keys.push(unique);
            }
        }
        self.publish().await;
        self.changed();
        loop {
            {
                let mut known = self.questions.lock();
                if keys.iter().all(|key| known.replies.contains_key(key)) {
                    return keys
                        .iter()
                        .map(|key| known.replies.remove(key).unwrap_or_else(|| Err("No answer.".into())))
                        .collect();
                }
            }
            // This task holds the sender, so this never fails.
            if changes.changed().await.is_err() {
                return Err("The task is gone.".into());
            }
        }
    }

    /// Writes the questions that are open now into the task's record.
    async fn publish(&self) {
        let show = |record: &mut Record| {
            let known = self.questions.lock();
            record.questions = known.open.iter().map(|open| (open.key.clone(), open.question.clone())).collect();
            let nothing = record.questions.is_empty();
            record.task.status = if nothing { TaskStatus::Working } else { TaskStatus::InputRequired };
        };
        self.tasks.change(&self.id, show).await;
    }

    /// An open question, by its key.
    pub fn question(&self, key: &str) -> Option<Question> {
        self.questions.lock().open.iter().find(|open| open.key == key).map(|open| open.question.clone())
    }

    /// Takes replies to open questions. Replies to others are ignored.
    pub async fn reply(&self, replies: Vec<(String, Result<Value, String>)>) {
        {
            let mut known = self.questions.lock();
            for (key, reply) in replies {
                let before = known.open.len();
                known.open.retain(|open| open.key != key);
                if known.open.len() < before {
                    known.replies.insert(key, reply);
                }
            }
        }
        self.publish().await;
        self.changed();
    }

    /// An open question that nobody asks the client yet. It is reserved for the caller until the claim is dropped.
    pub fn claim(self: &Arc<Self>) -> Option<Claim> {
        let mut known = self.questions.lock();
        let open = known.open.iter_mut().find(|open| !open.claimed)?;
        open.claimed = true;
        Some(Claim { key: open.key.clone(), question: open.question.clone(), running: Arc::clone(self) })
    }
}

/// A question that somebody asks the client.
pub struct Claim {
    pub key: String,
    pub question: Question,
    running: Arc<Running>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        match self.running.questions.lock().open.iter_mut().find(|open| open.key == self.key) {
            Some(open) => open.claimed = false,
            None => return,
        }
        // Somebody else may ask it now.
        self.running.changed();
    }
}
