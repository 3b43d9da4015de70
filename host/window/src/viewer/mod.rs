//! Listens to all wharfs of this user: connects to each socket in their folder, and merges what they tell into one view.

pub mod merged;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::RwLock;
use rustix::process::geteuid;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    sync::{mpsc, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use self::merged::{NotAnswered, View};
use crate::{
    folder::{SocketFolder, is_gone},
    state::{MAX_LINE_BYTES, SeenAnswer, SeenState},
};

/// How often the folder is looked at for new sockets.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// How long a process may take to accept a connection, or an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most answers that wait to be sent to a process.
const MAX_ANSWERS: usize = 16;
const TOO_MANY: &str = "More than 64 wharfs run, and this page shows 64 of them.";

/// Listens to all wharfs of this user.
pub struct Viewer {
    folder: PathBuf,
    view: RwLock<View>,
    /// Counts the changes of the view.
    changed: watch::Sender<u64>,
}

impl Viewer {
    /// Makes a viewer of the wharfs whose sockets are in this folder. It listens while [`Self::run`] runs.
    pub fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self { folder, view: RwLock::default(), changed: watch::Sender::new(0) })
    }

    /// Returns what a function finds in the view. Nothing is merged meanwhile.
    pub fn read<T>(&self, find: impl FnOnce(&View) -> T) -> T {
        find(&self.view.read())
    }

    /// Notifies of changes of the view.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Answers a question of a process.
    pub fn answer(&self, process: &str, question: u64, word: &str) -> Result<(), NotAnswered> {
        self.update(|view| view.answer(process, question, word))
    }

    fn update<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let done = change(&mut self.view.write());
        self.changed.send_modify(|count| *count += 1);
        done
    }

    /// Listens until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let mut open = JoinSet::new();
        let mut scans = interval(SCAN_INTERVAL);
        scans.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = scans.tick() => self.scan(&mut open).await,
                Some(_) = open.join_next() => {}
            }
        }
    }

    /// Connects to the sockets that are new, and removes those on which nobody listens.
    async fn scan(self: &Arc<Self>, open: &mut JoinSet<()>) {
        let (found, mut trouble) = match SocketFolder::open(&self.folder) {
            Ok(found) => (found, None),
            Err(trouble) => (None, Some(trouble)),
        };
        if let Some(folder) = found {
            for name in folder.sockets() {
                if self.read(|view| view.knows(&name)) {
                    continue;
                }
                match connect(folder.path(&name)).await {
                    Ok(stream) => {
                        let (sender, answers) = mpsc::channel(MAX_ANSWERS);
                        if self.update(|view| view.enter(&name, sender)) {
                            open.spawn(Arc::clone(self).follow(name, stream, answers));
                        } else {
                            trouble = Some(TOO_MANY.to_owned());
                        }
                    }
                    Err(error) if is_gone(&error) => {
                        folder.remove(&name);
                        self.update(|_| ());
                    }
                    Err(error) => trouble = Some(format!("{name}: this wharf cannot be reached: {error}")),
                }
            }
        }
        if self.read(|view| view.trouble != trouble) {
            self.update(|view| view.trouble = trouble);
        }
    }

    /// Listens to a process until it ends or tells something wrong.
    async fn follow(self: Arc<Self>, key: String, stream: UnixStream, mut answers: mpsc::Receiver<SeenAnswer>) {
        let (read, mut write) = stream.into_split();
        let (mut read, mut rest) = (BufReader::new(read), Vec::new());
        let problem = loop {
            tokio::select! {
                line = next_line(&mut read, &mut rest) => match line {
                    Ok(None) | Err(NotALine::Io) => break None,
                    Err(NotALine::TooLong) => break Some(format!(
                        "This process sent a line of more than {} MiB, so it is not listened to any more.", MAX_LINE_BYTES >> 20
                    )),
                    Ok(Some(line)) => match serde_json::from_slice::<SeenState>(&line) {
                        Ok(state) => self.update(|view| view.take(&key, state)),
                        Err(_) => break Some(
                            "This process sent a line that this wharf does not understand; it may be of another version.".into()
                        ),
                    },
                },
                Some(answer) = answers.recv() => {
                    let Ok(mut line) = serde_json::to_vec(&answer) else { continue };
                    line.push(b'\n');
                    if !matches!(timeout(PATIENCE, write.write_all(&line)).await, Ok(Ok(()))) {
                        break None;
                    }
                }
            }
        };
        self.update(|view| view.gone(&key, problem));
    }
}

/// Connects to a process of this user.
async fn connect(path: PathBuf) -> io::Result<UnixStream> {
    let stream = timeout(PATIENCE, UnixStream::connect(path)).await??;
    if stream.peer_cred()?.uid() != geteuid().as_raw() {
        return Err(io::Error::other("another user listens there"));
    }
    Ok(stream)
}

enum NotALine {
    TooLong,
    Io,
}

/// Reads the next line into `rest`, where an unfinished one stays if this is cancelled. `None`: the other end has closed the connection.
async fn next_line(read: &mut (impl AsyncBufReadExt + Unpin), rest: &mut Vec<u8>) -> Result<Option<Vec<u8>>, NotALine> {
    let left = (MAX_LINE_BYTES + 1).saturating_sub(rest.len()) as u64;
    read.take(left).read_until(b'\n', rest).await.map_err(|_| NotALine::Io)?;
    if rest.pop_if(|last| *last == b'\n').is_some() {
        return Ok(Some(std::mem::take(rest)));
    }
    if rest.len() > MAX_LINE_BYTES { Err(NotALine::TooLong) } else { Ok(None) }
}
