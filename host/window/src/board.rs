//! The board of a process: what it tells the windows of its user. It has a bound, and each client has a share of it, so that nobody can fill
//! it with calls of their own and push those of others out.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Instant, SystemTime},
};

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::{
    files::CallFiles,
    state::{
        MAX_CALLS, MAX_PER_CALL, MAX_SESSIONS, SeenAnswer, SeenCall, SeenEnded, SeenProcess, SeenQuestion, SeenSession,
        SeenState,
    },
};

/// The calls of one client that are shown in a second; further ones are counted.
const MAX_CALLS_PER_SECOND: u32 = 20;
/// The clients whose calls are counted apart. Two of them may share a count.
const PACES: usize = 64;
/// The bytes of text of all calls.
const MAX_CALL_BYTES: usize = 1 << 20;
/// The questions that are shown at once, and those of one client. Further ones are asked in the client alone.
const MAX_QUESTIONS: usize = 16;
const MAX_QUESTIONS_OF_ONE: usize = 4;
/// The bytes of the text of a question.
const MAX_QUESTION_BYTES: usize = 64 << 10;

/// What a process shows. Cheap to read and write: nothing waits for a window.
pub struct Board {
    process: SeenProcess,
    began: Instant,
    paces: [AtomicU64; PACES],
    begun: AtomicU64,
    only_counted: AtomicU64,
    posted: Mutex<Posted>,
    changes: watch::Sender<u64>,
    windows: AtomicUsize,
}

#[derive(Default)]
struct Posted {
    next: u64,
    calls: VecDeque<PostedCall>,
    call_bytes: usize,
    refused: u64,
    failed: u64,
    sessions: BTreeMap<u64, SeenSession>,
    questions: BTreeMap<u64, PostedQuestion>,
}

struct PostedQuestion {
    /// Who asks.
    client: u64,
    question: SeenQuestion,
    /// What waits for the answer.
    waits: Option<oneshot::Sender<String>>,
}

struct PostedCall {
    /// The number of the change with which it began or ended.
    at: u64,
    /// Whose share it takes.
    client: u64,
    bytes: usize,
    call: SeenCall,
    /// What it has used until now, while it runs.
    files: Option<Arc<CallFiles>>,
}

impl Board {
    /// Makes the board of a process that begins now.
    pub fn new(process: SeenProcess) -> Arc<Self> {
        Arc::new(Self {
            process: SeenProcess { began: now(), ..process },
            began: Instant::now(),
            paces: std::array::from_fn(|_| AtomicU64::new(0)),
            begun: AtomicU64::new(0),
            only_counted: AtomicU64::new(0),
            posted: Mutex::default(),
            changes: watch::Sender::new(0),
            windows: AtomicUsize::new(0),
        })
    }

    /// Counts a call, and returns whether it is to be shown. `client`: a number of the client that makes it. `matters`: it can change or reach
    /// something, so that no number of harmless calls hides it.
    pub fn shows_call(&self, client: u64, matters: bool) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed);
        if matters {
            return true;
        }
        // The second and the count in it are in one number. A lost update shows a call more, or one less.
        let second = self.began.elapsed().as_secs() << 32;
        let pace = usize::try_from(client % PACES as u64).unwrap_or_default();
        let Some(pace) = self.paces.get(pace) else { return false };
        let before = pace.load(Ordering::Relaxed);
        let count = if before >> 32 == second >> 32 { before & u64::from(u32::MAX) } else { 0 };
        if count >= u64::from(MAX_CALLS_PER_SECOND) {
            self.only_counted.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        pace.store(second | (count + 1), Ordering::Relaxed);
        true
    }

    /// Shows a call of this client that begins.
    pub fn begin(self: &Arc<Self>, client: u64, call: SeenCall) -> OpenCall {
        let files = Arc::<CallFiles>::default();
        let id = self.post(|posted, at| {
            let call = SeenCall { id: at, began: now(), ..call };
            posted.call_bytes += bytes(&call);
            let entry = PostedCall { at, client, bytes: bytes(&call), call, files: Some(Arc::clone(&files)) };
            posted.calls.push_back(entry);
            posted.make_room();
            at
        });
        OpenCall { board: Arc::clone(self), id, files, ended: false }
    }

    /// Shows a session until the returned guard is dropped.
    pub fn open(self: &Arc<Self>, session: SeenSession) -> OpenSession {
        let number = self.post(|posted, at| {
            posted.sessions.insert(at, SeenSession { began: now(), ..session });
            at
        });
        OpenSession { board: Arc::clone(self), number }
    }

    /// Shows a question until the returned guard is dropped. `None`: too many are open.
    pub fn ask(self: &Arc<Self>, client: u64, question: SeenQuestion) -> Option<OpenQuestion> {
        let (sender, answer) = oneshot::channel();
        let mut question = question;
        cut(&mut question.text);
        let number = self.post(|posted, at| {
            let own = posted.questions.values().filter(|question| question.client == client).count();
            (posted.questions.len() < MAX_QUESTIONS && own < MAX_QUESTIONS_OF_ONE).then(|| {
                let question = SeenQuestion { id: at, asked: now(), ..question };
                posted.questions.insert(at, PostedQuestion { client, question, waits: Some(sender) });
                at
            })
        })?;
        Some(OpenQuestion { board: Arc::clone(self), number, answer })
    }

    /// Passes the answer of a person on to the call that waits. False: nothing waits for it, or it was not offered.
    pub fn answer(&self, SeenAnswer { question, word }: SeenAnswer) -> bool {
        let mut posted = self.posted.lock();
        let Some(asked) = posted.questions.get_mut(&question) else { return false };
        let is_choice = asked.question.answers.iter().any(|choice| choice.word == word);
        let Some(waits) = asked.waits.take_if(|_| is_choice) else { return false };
        waits.send(word).is_ok()
    }

    /// Whether a window reads the board now.
    pub fn is_watched(&self) -> bool {
        self.windows.load(Ordering::Relaxed) > 0
    }

    /// Counts a window that reads the board, until the returned guard is dropped.
    pub(crate) fn watched(&self) -> Watching<'_> {
        self.windows.fetch_add(1, Ordering::Relaxed);
        Watching(self)
    }

    /// Returns what tells of changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the state with the calls that changed after the change with this number, and the number of the last one. Plugins and
    /// memory are not in it.
    pub fn since(&self, before: u64) -> (SeenState, u64) {
        let posted = self.posted.lock();
        let last = posted.next;
        let shown = |posted: &PostedCall| {
            let mut call = posted.call.clone();
            if let Some(files) = &posted.files {
                files.put_into(&mut call);
            }
            call
        };
        // What runs may have used more meanwhile.
        let changed = posted.calls.iter().filter(|call| call.at > before || call.files.is_some());
        let state = SeenState {
            process: SeenProcess {
                calls: self.begun.load(Ordering::Relaxed),
                refused: posted.refused,
                failed: posted.failed,
                ..self.process.clone()
            },
            sessions: posted.sessions.values().take(MAX_SESSIONS).cloned().collect(),
            open_sessions: posted.sessions.len(),
            calls: changed.map(shown).collect(),
            only_counted: self.only_counted.load(Ordering::Relaxed),
            questions: posted.questions.values().map(|posted| posted.question.clone()).collect(),
            plugins: Vec::new(),
        };
        (state, last)
    }

    /// Makes a change, with its number, and tells of it.
    fn post<T>(&self, change: impl FnOnce(&mut Posted, u64) -> T) -> T {
        let mut posted = self.posted.lock();
        posted.next += 1;
        let at = posted.next;
        let made = change(&mut posted, at);
        drop(posted);
        self.changes.send_replace(at);
        made
    }
}

impl Posted {
    /// Removes the oldest calls of the clients that have the most, until the others fit.
    fn make_room(&mut self) {
        while self.calls.len() > MAX_CALLS || self.call_bytes > MAX_CALL_BYTES && self.calls.len() > 1 {
            let mut counts = HashMap::<u64, usize>::new();
            for call in &self.calls {
                *counts.entry(call.client).or_default() += if self.calls.len() > MAX_CALLS { 1 } else { call.bytes };
            }
            let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(client, _)| client);
            // One that runs stays while another of the client can go.
            let of_it = |call: &PostedCall| Some(call.client) == most;
            let ended = self.calls.iter().position(|call| of_it(call) && call.files.is_none());
            let oldest = ended.or_else(|| self.calls.iter().position(of_it)).unwrap_or_default();
            let gone = self.calls.remove(oldest);
            self.call_bytes -= gone.map_or(0, |call| call.bytes);
        }
    }
}

/// A window that reads the board.
pub(crate) struct Watching<'a>(&'a Board);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.windows.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that is shown and runs. Without an end of its own it was cancelled.
pub struct OpenCall {
    board: Arc<Board>,
    id: u64,
    files: Arc<CallFiles>,
    ended: bool,
}

impl OpenCall {
    /// Returns where the files that the call uses are noted.
    pub fn files(&self) -> &Arc<CallFiles> {
        &self.files
    }

    /// Shows how the call ended. `tell` adds what is known of it now.
    pub fn end(mut self, ended: SeenEnded, tell: impl FnOnce(&mut SeenCall)) {
        self.finish(ended, tell);
    }

    fn finish(&mut self, ended: SeenEnded, tell: impl FnOnce(&mut SeenCall)) {
        self.ended = true;
        let (id, files) = (self.id, &self.files);
        self.board.post(|posted, at| {
            match ended.how.as_str() {
                "refused" => posted.refused += 1,
                "done" | "asked" => {}
                _ => posted.failed += 1,
            }
            // It may have been pushed out.
            let Some(entry) = posted.calls.iter_mut().find(|entry| entry.call.id == id) else { return };
            files.put_into(&mut entry.call);
            entry.call.ended = Some(ended);
            tell(&mut entry.call);
            entry.call.requests.truncate(MAX_PER_CALL);
            entry.call.refusals.truncate(MAX_PER_CALL);
            entry.files = None;
            entry.at = at;
            let now = bytes(&entry.call);
            let before = std::mem::replace(&mut entry.bytes, now);
            posted.call_bytes = posted.call_bytes + now - before;
            posted.make_room();
        });
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.ended {
            self.finish(SeenEnded { how: "cancelled".into(), ..SeenEnded::default() }, |_| {});
        }
    }
}

/// A session that is shown until this is dropped.
pub struct OpenSession {
    board: Arc<Board>,
    number: u64,
}

impl OpenSession {
    /// Shows the folders that the client has open from now on.
    pub fn set_folders(&self, folders: Vec<String>) {
        let is_same = |posted: &Posted| posted.sessions.get(&self.number).is_none_or(|own| own.folders == folders);
        if is_same(&self.board.posted.lock()) {
            return;
        }
        self.board.post(|posted, _| {
            if let Some(session) = posted.sessions.get_mut(&self.number) {
                session.folders = folders;
            }
        });
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.board.post(|posted, _| posted.sessions.remove(&self.number));
    }
}

/// A question that is shown until this is dropped.
pub struct OpenQuestion {
    board: Arc<Board>,
    number: u64,
    answer: oneshot::Receiver<String>,
}

impl OpenQuestion {
    /// Resolves with the word of the choice that a person made in a window.
    pub async fn answered(&mut self) -> String {
        match (&mut self.answer).await {
            Ok(word) => word,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.board.post(|posted, _| posted.questions.remove(&self.number));
    }
}

/// Cuts the text of a question. Escapes may make it much longer than what was escaped.
fn cut(text: &mut String) {
    if text.len() > MAX_QUESTION_BYTES {
        text.truncate(text.floor_char_boundary(MAX_QUESTION_BYTES));
        text.push_str("\nand more, which is not shown");
    }
}

/// Returns the approximate number of bytes that a call takes.
fn bytes(call: &SeenCall) -> usize {
    let SeenCall { session, plugin, name, files, requests, refusals, .. } = call;
    let files = files.iter().map(|file| file.path.len() + 64).sum::<usize>();
    let requests = requests.iter().map(|request| request.host.len() + request.method.len() + 96).sum::<usize>();
    let refusals = refusals.iter().map(|refusal| {
        let more = refusal.allow.as_ref().map_or(0, String::len) + refusal.grant.as_ref().map_or(0, String::len);
        refusal.text.len() + more + 96
    });
    256 + session.as_ref().map_or(0, String::len)
        + plugin.len()
        + name.len()
        + files
        + requests
        + refusals.sum::<usize>()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{MAX_TEXT_CHARS, SeenChoice};

    fn board() -> Arc<Board> {
        Board::new(SeenProcess::default())
    }

    fn call(name: &str) -> SeenCall {
        SeenCall { name: name.into(), ..SeenCall::default() }
    }

    fn done() -> SeenEnded {
        SeenEnded { how: "done".into(), ..SeenEnded::default() }
    }

    #[test]
    fn a_call_is_told_when_it_begins_and_when_it_ends() {
        let board = board();
        let open = board.begin(1, call("a"));
        let (first, at) = board.since(0);
        assert_eq!((first.calls.len(), &first.calls[0].ended), (1, &None));
        open.files().note("/a/b", "read");
        open.files().note("/a/b", "read");
        let (running, at) = board.since(at);
        assert_eq!(running.calls[0].files.len(), 1);
        open.end(done(), |call| call.bytes_in = 7);
        let (ended, at) = board.since(at);
        assert_eq!((ended.calls[0].bytes_in, ended.calls[0].files.len()), (7, 1));
        assert_eq!(ended.calls[0].ended.as_ref().unwrap().how, "done");
        assert_eq!(board.since(at).0.calls, []);
        drop(board.begin(1, call("b")));
        let (dropped, _) = board.since(at);
        assert_eq!(dropped.calls[0].ended.as_ref().unwrap().how, "cancelled");
        assert_eq!((dropped.process.failed, dropped.process.refused), (1, 0));
    }

    #[test]
    fn who_makes_many_calls_pushes_out_only_its_own() {
        let board = board();
        board.begin(2, call("hers")).end(done(), |_| {});
        for _ in 0..2 * MAX_CALLS {
            board.begin(1, call("his")).end(done(), |_| {});
        }
        let (state, _) = board.since(0);
        assert_eq!(state.calls.len(), MAX_CALLS);
        assert_eq!(state.calls[0].name, "hers");
    }

    #[test]
    fn who_makes_long_calls_pushes_out_only_its_own() {
        let board = board();
        board.begin(2, call("hers")).end(done(), |_| {});
        for _ in 0..MAX_CALLS {
            let open = board.begin(1, call("his"));
            for number in 0..2 * MAX_PER_CALL {
                open.files().note(&format!("/{number}/{}", "x".repeat(2 * MAX_TEXT_CHARS)), "read");
            }
            open.end(done(), |_| {});
        }
        let (state, _) = board.since(0);
        assert_eq!(state.calls[0].name, "hers");
        assert!(state.calls.len() < MAX_CALLS);
        assert!(state.calls.iter().all(|call| call.files.len() <= MAX_PER_CALL));
        assert!(serde_json::to_string(&state).unwrap().len() < crate::state::MAX_LINE_BYTES / 2);
    }

    #[test]
    fn many_calls_in_a_second_are_counted() {
        let board = board();
        let shown = (0..1000).filter(|_| board.shows_call(5, false)).count();
        // A second may end meanwhile.
        assert!((20..=200).contains(&shown), "{shown}");
        assert!(board.shows_call(6, false), "another client has its own share");
        assert!(board.shows_call(5, true), "it can change something");
        let (state, _) = board.since(0);
        assert_eq!((state.process.calls, state.only_counted), (1002, 1000 - shown as u64));
    }

    #[tokio::test]
    async fn an_answer_counts_once_and_only_if_it_was_offered() {
        let board = board();
        let answers = ["no", "once"].map(|word| SeenChoice { word: word.into(), text: String::new() });
        let mut open = board.ask(1, SeenQuestion { answers: answers.into(), ..SeenQuestion::default() }).unwrap();
        let (state, _) = board.since(0);
        let question = state.questions[0].id;
        let say = |word: &str| board.answer(SeenAnswer { question, word: word.into() });
        assert!(!say("always"));
        assert!(!board.answer(SeenAnswer { question: question + 1, word: "once".into() }));
        assert!(say("once"));
        assert!(!say("no"));
        assert_eq!(open.answered().await, "once");
        drop(open);
        assert_eq!(board.since(0).0.questions, []);
        assert!(!say("once"));
    }

    #[test]
    fn sessions_and_questions_have_a_bound() {
        let board = board();
        let sessions: Vec<_> = (0..2 * MAX_SESSIONS).map(|_| board.open(SeenSession::default())).collect();
        sessions[0].set_folders(vec!["/a".into()]);
        let (state, _) = board.since(0);
        assert_eq!((state.sessions.len(), state.open_sessions), (MAX_SESSIONS, 2 * MAX_SESSIONS));
        assert_eq!(state.sessions[0].folders, ["/a"]);
        drop(sessions);
        assert_eq!(board.since(0).0.open_sessions, 0);
        let ask = |client: u64| board.ask(client, SeenQuestion::default());
        let his: Vec<_> = (0..2 * MAX_QUESTIONS).map_while(|_| ask(1)).collect();
        assert_eq!(his.len(), MAX_QUESTIONS_OF_ONE);
        let theirs: Vec<_> = (2..100).map_while(ask).collect();
        assert_eq!(his.len() + theirs.len(), MAX_QUESTIONS);
    }
}
