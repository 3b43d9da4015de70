//! A task that is under way: how it asks, how it is answered, how it is stopped.

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
    /// From now on it goes on by itself: questions stand in the task.
    detached: AtomicBool,
    /// A question that was put before there was a task waits for its answer.
    asking: AtomicBool,
    questions: Mutex<Questions>,
    /// Counts what has changed, for those who wait.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Questions {
    /// Every key there has been: none comes twice in the life of a task.
    used: HashSet<String>,
    /// Those that stand open, in the order they were asked, and whether somebody is putting them to the client already.
    open: Vec<Open>,
    replies: HashMap<String, Result<Value, String>>,
}

struct Open {
    key: String,
    question: Question,
    /// Somebody is putting it to the client already.
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

    /// Says that a question stands outside of the task, or no longer does.
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
            // This task holds the other end.
            if changes.changed().await.is_err() {
                return Err("The task is gone.".into());
            }
        }
    }

    /// Shows in the task which questions are open now.
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

    /// Answers open questions; what is no open question does nothing.
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

    /// An open question that nobody puts to the client yet; it is the caller's until the claim is dropped.
    pub fn claim(self: &Arc<Self>) -> Option<Claim> {
        let mut known = self.questions.lock();
        let open = known.open.iter_mut().find(|open| !open.claimed)?;
        open.claimed = true;
        Some(Claim { key: open.key.clone(), question: open.question.clone(), running: Arc::clone(self) })
    }
}

/// A question that somebody puts to the client.
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
        // Somebody else may put it now.
        self.running.changed();
    }
}
