//! The store of tasks of several replicas. Each task is one sealed value in Redis, which lives as long as the task. Its record says which
//! replica runs it; if that replica has stopped, the next request for the task marks it as failed.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_base::{party::Party, text::hex};
use wharf_cluster::{Cluster, NotStored, Silent};
use wharf_protocol::{
    Object, RpcError, Shown,
    model::Question,
    task::{Task, TaskStatus},
};

use super::{
    records::fail,
    store::{Change, Purpose, Reach, Record, StoreError, Stored, TaskStore},
};

/// Why a task of a replica that has stopped has no result.
const LOST: &str =
    "the server that ran this task has stopped; what it does may be done or not; call again if that is safe";
/// What comes before the digest of a task in the name of its value.
const TASK: &str = "task:";
/// The least that is charged for a task, so that there is room for the reason why it has failed.
const LEAST_BYTES: usize = 4096;
/// How many numbers of tasks without a record are skipped at once in a list.
const MAX_LISTED: usize = 1000;

pub struct SharedStore {
    cluster: Arc<Cluster>,
}

impl SharedStore {
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }

    async fn read(&self, id: &str) -> Result<Option<Record>, StoreError> {
        self.read_named(&name_of(id)).await
    }

    async fn read_named(&self, name: &str) -> Result<Option<Record>, StoreError> {
        let Some(stored) = self.cluster.get::<StoredTask>(name).await? else { return Ok(None) };
        let Some(record) = stored.record().filter(|record| record.expires() > SystemTime::now()) else {
            return Ok(None);
        };
        let runs_nowhere = match &record.replica {
            Some(replica) if !record.task.status.is_terminal() => !self.cluster.is_live(replica).await?,
            _ => false,
        };
        if !runs_nowhere {
            return Ok(Some(record));
        }
        let failed = |record: &mut Record| fail(record, LOST);
        match self.change(name, &failed).await? {
            Some(record) => Ok(Some(record)),
            // It has ended since.
            None => Ok(self.cluster.get::<StoredTask>(name).await?.and_then(StoredTask::record)),
        }
    }

    async fn change(&self, name: &str, change: Change<'_>) -> Result<Option<Record>, StoreError> {
        let changed = |stored: StoredTask| {
            let mut record = stored.record()?;
            change(&mut record).then(|| (StoredTask::of(&record), lives(&record)))
        };
        Ok(self.cluster.change(name, LEAST_BYTES, changed).await?.and_then(StoredTask::record))
    }

    async fn store(&self, mut record: Record) -> Result<(), StoreError> {
        record.number = self.cluster.next_number("tasks").await?;
        let (name, lives) = (name_of(&record.task.id), lives(&record));
        self.cluster.put(&name, &StoredTask::of(&record), lives, (record.party, LEAST_BYTES)).await?;
        let member = (record.number, name.strip_prefix(TASK).unwrap_or(&name));
        self.cluster.list_add(&list_of(&record.owner), member, lives, TASK).await?;
        Ok(())
    }

    async fn listed(&self, owner: &str, mut after: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        let list = list_of(owner);
        loop {
            let members = self.cluster.list_after(&list, after, MAX_LISTED).await?;
            let more = members.len() == MAX_LISTED;
            for member in members {
                match self.read_named(&format!("{TASK}{member}")).await? {
                    Some(record) if *record.owner == *owner => {
                        after = record.number;
                        records.push(record);
                    }
                    Some(_) => {}
                    None => self.cluster.list_remove(&list, &member).await?,
                }
                if records.len() == limit {
                    return Ok(records);
                }
            }
            if !more {
                return Ok(records);
            }
        }
    }
}

impl TaskStore for SharedStore {
    fn insert(&self, record: Record) -> Stored<'_, ()> {
        Box::pin(self.store(record))
    }

    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<Record>> {
        Box::pin(self.read(id))
    }

    fn update<'a>(&'a self, id: &'a str, change: Change<'a>) -> Stored<'a, Option<Record>> {
        Box::pin(async move { self.change(&name_of(id), change).await })
    }

    fn list<'a>(&'a self, owner: &'a str, after: u64, limit: usize) -> Stored<'a, Vec<Record>> {
        Box::pin(self.listed(owner, after, limit))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()> {
        Box::pin(async move { Ok(self.cluster.delete(&name_of(id)).await?) })
    }
}

impl From<Silent> for StoreError {
    fn from(silent: Silent) -> Self {
        Self::Unavailable(silent.to_string())
    }
}

impl From<NotStored> for StoreError {
    fn from(not: NotStored) -> Self {
        match not {
            NotStored::Silent(silent) => silent.into(),
            NotStored::NoRoom => Self::NoRoom(not.to_string()),
        }
    }
}

fn name_of(id: &str) -> String {
    // Clients write ids of tasks.
    format!("{TASK}{}", hex(&Sha256::digest(id)))
}

fn list_of(owner: &str) -> String {
    format!("tasks:{}", hex(&Sha256::digest(owner)))
}

fn lives(record: &Record) -> Duration {
    record.expires().duration_since(SystemTime::now()).unwrap_or_default()
}

fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredTask {
    id: String,
    number: u64,
    owner: String,
    /// An earlier version has not written it.
    #[serde(default)]
    party: u64,
    replica: Option<String>,
    status: String,
    message: Option<String>,
    created: u64,
    updated: u64,
    ttl_ms: u64,
    poll_ms: u64,
    plugin: String,
    tool: String,
    access: u64,
    /// `None`: everywhere.
    reach: Option<Vec<String>>,
    questions: Vec<(String, StoredQuestion)>,
    outcome: Option<Result<String, StoredError>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum StoredQuestion {
    Form { message: String, schema: Value },
    Page { message: String, url: String },
    Sample(Object),
    Roots,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredError {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl StoredTask {
    fn of(record: &Record) -> Self {
        let Record { number, task, owner, party, replica, purpose, questions, outcome } = record;
        let Purpose { plugin, tool, access, reach } = purpose;
        let question = |(key, question): &(String, Question)| (key.clone(), StoredQuestion::of(question));
        Self {
            id: task.id.clone(),
            number: *number,
            owner: owner.to_string(),
            party: party.number(),
            replica: replica.as_deref().map(ToOwned::to_owned),
            status: task.status.as_str().into(),
            message: task.message.clone(),
            created: millis(task.created),
            updated: millis(task.updated),
            ttl_ms: task.ttl_ms,
            poll_ms: task.poll_ms,
            plugin: plugin.clone(),
            tool: tool.clone(),
            access: *access,
            reach: match reach {
                Reach::NoRoots => Some(Vec::new()),
                Reach::Everywhere => None,
                Reach::Within(folders) => Some(folders.clone()),
            },
            questions: questions.iter().map(question).collect(),
            outcome: outcome.as_ref().map(|outcome| match outcome {
                Ok(result) => Ok(result.to_string()),
                Err(RpcError { code, message, data }) => {
                    Err(StoredError { code: *code, message: message.clone(), data: data.clone() })
                }
            }),
        }
    }

    /// Returns the record. None: another version of wharf has written it.
    fn record(self) -> Option<Record> {
        let task = Task {
            id: self.id,
            status: TaskStatus::parse(&self.status)?,
            message: self.message,
            created: time(self.created),
            updated: time(self.updated),
            ttl_ms: self.ttl_ms,
            poll_ms: self.poll_ms,
        };
        let reach = match self.reach {
            None => Reach::Everywhere,
            Some(folders) if folders.is_empty() => Reach::NoRoots,
            Some(folders) => Reach::Within(folders),
        };
        let question = |(key, question): (String, StoredQuestion)| Some((key, question.read()?));
        Some(Record {
            number: self.number,
            task,
            owner: self.owner.into(),
            party: Party::of(self.party),
            replica: self.replica.map(Into::into),
            purpose: Purpose { plugin: self.plugin, tool: self.tool, access: self.access, reach },
            questions: self.questions.into_iter().map(question).collect::<Option<_>>()?,
            outcome: self.outcome.map(|outcome| match outcome {
                Ok(result) => Ok(result.into()),
                Err(StoredError { code, message, data }) => Err(RpcError { code, message, data }),
            }),
        })
    }
}

impl StoredQuestion {
    fn of(question: &Question) -> Self {
        match question {
            Question::Form { message, schema } => {
                Self::Form { message: message.to_string(), schema: Value::clone(schema) }
            }
            Question::Page { message, url } => Self::Page { message: message.to_string(), url: url.to_string() },
            Question::Sample(params) => Self::Sample(Object::clone(params)),
            Question::Roots => Self::Roots,
        }
    }

    fn read(self) -> Option<Question> {
        Some(match self {
            Self::Form { message, schema } => {
                Question::Form { message: message.into(), schema: Shown::schema(schema).ok()? }
            }
            Self::Page { message, url } => Question::Page { message: message.into(), url: Shown::exact(&url).ok()? },
            Self::Sample(params) => Question::Sample(Shown::sampling(params).ok()?),
            Self::Roots => Question::Roots,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_the_same_after_it_was_stored() {
        let now = time(1_800_000_000_123);
        let form = Question::Form {
            message: "Sure?".into(),
            schema: Shown::schema(json!({ "type": "object", "properties": { "a": { "type": "boolean" } } })).unwrap(),
        };
        let page = Question::Page { message: "Go".into(), url: Shown::exact("https://a.example").unwrap() };
        for (status, reach, outcome) in [
            (TaskStatus::InputRequired, Reach::NoRoots, None),
            (TaskStatus::Completed, Reach::Everywhere, Some(Ok("{}".into()))),
            (
                TaskStatus::Failed,
                Reach::Within(vec!["/a".into()]),
                Some(Err(RpcError { code: -1, message: "m".into(), data: Some(json!({ "a": 1 })) })),
            ),
        ] {
            let task = Task {
                id: "t".into(),
                status,
                message: Some("m".into()),
                created: now,
                updated: now,
                ttl_ms: 5,
                poll_ms: 6,
            };
            let record = Record {
                number: 7,
                task,
                owner: "s".into(),
                party: Party::of(9),
                replica: Some("r".into()),
                purpose: Purpose { plugin: "p".into(), tool: "t".into(), access: 3, reach },
                questions: vec![("a".into(), form.clone()), ("b".into(), page.clone()), ("c".into(), Question::Roots)],
                outcome,
            };
            let stored = StoredTask::of(&record);
            let json = serde_json::to_string(&stored).unwrap();
            let read = serde_json::from_str::<StoredTask>(&json).unwrap().record().unwrap();
            assert_eq!(StoredTask::of(&read), stored);
            assert!(
                read.owner == record.owner
                    && read.party == record.party
                    && read.purpose == record.purpose
                    && read.task.created == now
            );
        }
    }
}
