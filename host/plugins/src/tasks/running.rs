//! A running task: how it asks questions, gets answers and is cancelled.

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
use wharf_base::ledger::Charged;
use wharf_protocol::{model::Question, task::TaskStatus};

use super::{records::Records, store::Record};

pub struct Running {
    pub id: String,
    pub cancelled: CancellationToken,
    records: Arc<Records>,
    /// Set once the client knows of the task. From then on, questions are stored in the task.
    detached: AtomicBool,
    /// Whether a question that was sent to the session's client directly, before the task was created, is still unanswered.
    asking: AtomicBool,
    questions: Mutex<Questions>,
    /// The number of changes; waiters watch it.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Questions {
    /// All keys used so far, since no key may be used twice in the life of a task.
    used: HashSet<String>,
    /// The open questions, in the order in which they were asked.
    open: Vec<Open>,
    replies: HashMap<String, Result<Charged<Value>, String>>,
}

struct Open {
    key: String,
    question: Question,
    /// Whether a request is already asking the client this.
    claimed: bool,
}

impl Running {
    pub fn new(id: String, records: &Arc<Records>) -> Arc<Self> {
        Arc::new(Self {
            id,
            cancelled: CancellationToken::new(),
            records: Arc::clone(records),
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

    /// Records whether a direct question is unanswered, and shows that in the task's status.
    pub async fn set_asking(&self, asking: bool) {
        self.asking.store(asking, Ordering::Release);
        let status = if asking { TaskStatus::InputRequired } else { TaskStatus::Working };
        self.records.change(&self.id, |record| record.task.status = status).await;
    }

    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Stores questions in the task and waits until all are answered. The error is a sentence for the model.
    pub async fn ask(&self, questions: &[(String, Question)]) -> Result<Vec<Charged<Value>>, String> {
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
            // `self` owns the sender, so this never fails.
            if changes.changed().await.is_err() {
                return Err("The task is gone.".into());
            }
        }
    }

    /// Writes the open questions into the task's record.
    async fn publish(&self) {
        let show = |record: &mut Record| {
            let known = self.questions.lock();
            record.questions = known.open.iter().map(|open| (open.key.clone(), open.question.clone())).collect();
            let nothing = record.questions.is_empty();
            record.task.status = if nothing { TaskStatus::Working } else { TaskStatus::InputRequired };
        };
        self.records.change(&self.id, show).await;
    }

    /// Returns an open question by its key.
    pub fn question(&self, key: &str) -> Option<Question> {
        self.questions.lock().open.iter().find(|open| open.key == key).map(|open| open.question.clone())
    }

    /// Stores replies to open questions. Replies to other questions are ignored.
    pub async fn reply(&self, replies: impl IntoIterator<Item = (String, Result<Charged<Value>, String>)>) {
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

    /// Returns an open question that no request is asking yet. It is reserved until the claim is dropped.
    pub fn claim(self: &Arc<Self>) -> Option<Claim> {
        let mut known = self.questions.lock();
        let open = known.open.iter_mut().find(|open| !open.claimed)?;
        open.claimed = true;
        Some(Claim { key: open.key.clone(), question: open.question.clone(), running: Arc::clone(self) })
    }
}

/// RAII guard: a question that one request is asking the client.
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
        // Another request may ask the question now.
        self.running.changed();
    }
}
