//! What all wharfs have told, merged: bounded in processes, calls and bytes. The oldest calls of the process with the most go first. What a process has told stays when it
//! has ended.

use std::{
    collections::{BTreeMap, HashMap},
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::sync::mpsc;

use crate::state::{
    MAX_PER_CALL, MAX_PLUGINS, MAX_SESSIONS, SeenAnswer, SeenCall, SeenProcess, SeenQuestion, SeenState,
};

/// The most processes that are shown.
pub const MAX_PROCESSES: usize = 64;
/// The most calls that are shown, of all processes.
pub const MAX_SHOWN_CALLS: usize = 2000;
/// The most bytes of text in all calls.
const MAX_BYTES: usize = 64 << 20;
/// The most questions of a process.
const MAX_QUESTIONS: usize = 256;

/// A process as it is known here.
#[derive(Debug)]
pub struct WatchedProcess {
    /// The name of its socket, which stands for it.
    pub key: String,
    /// The last that it told, but for its calls.
    pub state: SeenState,
    /// Whether its connection has ended.
    pub is_gone: bool,
    /// Why it is not listened to any more, if it told something wrong.
    pub problem: Option<String>,
    /// The answers that were given here, by the number of the question.
    pub answered: BTreeMap<u64, String>,
    answers: mpsc::Sender<SeenAnswer>,
}

/// Why an answer was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// It was answered on this page.
    #[error("This question was answered already, so your second answer was not sent.")]
    Twice,
    /// It does not wait.
    #[error(
        "This question does not wait any more: it was answered elsewhere, or its call has ended. Your answer was not sent."
    )]
    Over,
    /// The question has no such choice.
    #[error("This question has no such answer, so nothing was sent.")]
    Unknown,
    /// The process cannot be reached.
    #[error("The process that asked does not listen any more, so your answer was not sent.")]
    Gone,
}

/// By when it began, its process and its number.
type CallKey = (u64, String, u64);

/// All processes and calls.
#[derive(Default)]
pub struct View {
    processes: BTreeMap<String, WatchedProcess>,
    calls: BTreeMap<CallKey, SeenCall>,
    /// When each call began, by its process and number.
    began: HashMap<(String, u64), u64>,
    bytes: usize,
    /// What prevents this page from showing everything.
    pub trouble: Option<String>,
}

impl View {
    /// Adds a process, to which answers are sent through `answers`. Returns false if there are too many.
    pub fn enter(&mut self, key: &str, answers: mpsc::Sender<SeenAnswer>) -> bool {
        if !self.processes.contains_key(key) && self.processes.len() >= MAX_PROCESSES {
            let oldest = self.processes.values().filter(|one| one.is_gone);
            let oldest = oldest.min_by_key(|one| one.state.process.began).map(|one| one.key.clone());
            let Some(oldest) = oldest else { return false };
            self.remove(&oldest);
        }
        let answered = BTreeMap::new();
        let state = self.processes.remove(key).map(|before| before.state).unwrap_or_default();
        let entered = WatchedProcess { key: key.to_owned(), state, is_gone: false, problem: None, answered, answers };
        self.processes.insert(key.to_owned(), entered);
        true
    }

    /// Takes a line of a process.
    pub fn take(&mut self, key: &str, mut state: SeenState) {
        let Some(process) = self.processes.get_mut(key) else { return };
        let is_same = |one: &SeenProcess, other: &SeenProcess| {
            (one.pid, one.began, &one.config) == (other.pid, other.began, &other.config)
        };
        if process.state.process.pid != 0 && !is_same(&process.state.process, &state.process) {
            // What was told of another process does not count for this one, nor does its config.
            self.forget_calls(key);
        }
        let Some(process) = self.processes.get_mut(key) else { return };
        let calls = std::mem::take(&mut state.calls);
        state.sessions.truncate(MAX_SESSIONS);
        state.plugins.truncate(MAX_PLUGINS);
        state.questions.truncate(MAX_QUESTIONS);
        process.answered.retain(|id, _| state.questions.iter().any(|question| question.id == *id));
        process.state = state;
        let now =
            u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(0);
        for mut call in calls {
            call.began = call.began.min(now);
            call.files.truncate(MAX_PER_CALL);
            call.requests.truncate(MAX_PER_CALL);
            call.refusals.truncate(MAX_PER_CALL);
            // A call keeps its place.
            let began = *self.began.entry((key.to_owned(), call.id)).or_insert(call.began);
            self.bytes += weight(&call);
            if let Some(before) = self.calls.insert((began, key.to_owned(), call.id), call) {
                self.bytes -= weight(&before);
            }
        }
        while self.calls.len() > MAX_SHOWN_CALLS || self.bytes > MAX_BYTES {
            // The oldest one of the process with the most.
            let mut counts = BTreeMap::<&str, usize>::new();
            for ((_, key, _), call) in &self.calls {
                *counts.entry(key).or_default() += if self.bytes > MAX_BYTES { weight(call) } else { 1 };
            }
            let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(key, _)| key);
            let oldest = self.calls.keys().find(|(_, key, _)| Some(key.as_str()) == most).cloned();
            let Some(oldest) = oldest else { break };
            self.forget_call(oldest);
        }
    }

    fn forget_call(&mut self, key: CallKey) {
        self.bytes -= self.calls.remove(&key).map_or(0, |call| weight(&call));
        self.began.remove(&(key.1, key.2));
    }

    fn forget_calls(&mut self, key: &str) {
        let of_it: Vec<CallKey> = self.calls.keys().filter(|(_, process, _)| process == key).cloned().collect();
        of_it.into_iter().for_each(|call| self.forget_call(call));
    }

    /// Notes that a connection has ended. `problem`: what the process told wrong.
    pub fn gone(&mut self, key: &str, problem: Option<String>) {
        let Some(process) = self.processes.get_mut(key) else { return };
        process.is_gone = true;
        process.problem = problem;
        process.state.questions.clear();
        process.state.sessions.clear();
        process.state.open_sessions = 0;
        if process.state.process.pid == 0 && process.problem.is_none() {
            // It has told nothing.
            self.remove(key);
        }
    }

    fn remove(&mut self, key: &str) {
        self.processes.remove(key);
        self.forget_calls(key);
    }

    /// Whether a process is listened to, or told something wrong, so that its socket is left alone.
    pub fn knows(&self, key: &str) -> bool {
        self.processes.get(key).is_some_and(|process| !process.is_gone || process.problem.is_some())
    }

    /// All processes, those that run first.
    pub fn processes(&self) -> Vec<&WatchedProcess> {
        let mut all: Vec<_> = self.processes.values().collect();
        all.sort_by_key(|one| (one.is_gone, one.state.process.began));
        all
    }

    /// A process.
    pub fn process(&self, key: &str) -> Option<&WatchedProcess> {
        self.processes.get(key)
    }

    /// All calls with their processes, the newest one first.
    pub fn calls(&self) -> impl Iterator<Item = (&WatchedProcess, &SeenCall)> {
        self.calls.iter().rev().filter_map(|((_, key, _), call)| Some((self.processes.get(key)?, call)))
    }

    /// All questions that wait, with their processes; those that were answered here are left out.
    pub fn waiting(&self) -> impl Iterator<Item = (&WatchedProcess, &SeenQuestion)> {
        self.processes.values().flat_map(|process| {
            let open = |question: &&SeenQuestion| !process.answered.contains_key(&question.id);
            process.state.questions.iter().filter(open).map(move |question| (process, question))
        })
    }

    /// Answers a question.
    pub fn answer(&mut self, key: &str, question: u64, word: &str) -> Result<(), NotAnswered> {
        let process = self.processes.get_mut(key).filter(|process| !process.is_gone).ok_or(NotAnswered::Gone)?;
        if process.answered.contains_key(&question) {
            return Err(NotAnswered::Twice);
        }
        let asked = process.state.questions.iter().find(|one| one.id == question).ok_or(NotAnswered::Over)?;
        if !asked.answers.iter().any(|choice| choice.word == word) {
            return Err(NotAnswered::Unknown);
        }
        process.answers.try_send(SeenAnswer { question, word: word.to_owned() }).map_err(|_| NotAnswered::Gone)?;
        process.answered.insert(question, word.to_owned());
        Ok(())
    }
}

/// The bytes of text in a call, about.
fn weight(call: &SeenCall) -> usize {
    let SeenCall {
        id: _,
        session,
        plugin,
        name,
        method,
        began: _,
        ended,
        bytes_in: _,
        files,
        files_left_out: _,
        requests,
        refusals,
        approval,
    } = call;
    let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let ended = ended.as_ref().map_or(0, |ended| ended.how.len() + of(&ended.why));
    let files: usize = files.iter().map(|file| file.path.len() + file.did.len()).sum();
    let requests: usize = requests.iter().map(|request| request.host.len() + request.method.len()).sum();
    let refusals: usize = refusals.iter().map(|one| one.text.len() + of(&one.allow) + of(&one.grant)).sum();
    of(session) + plugin.len() + name.len() + method.len() + ended + files + requests + refusals + of(approval)
}
