//! The socket of a process, on which windows read its board. It lies in a folder of its user, which no plugin can reach.

#![expect(clippy::disallowed_methods, reason = "the folder of the sockets is made and read here")]

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    board::Board,
    folder::{EXTENSION, SocketFolder, is_gone},
    state::{MAX_LINE_BYTES, SeenAnswer, SeenState},
};

/// The windows that read at once.
const MAX_WINDOWS: usize = 8;
/// The least time between two lines.
const PACE: Duration = Duration::from_millis(250);
/// The time after which a line is sent although nothing was posted: the memory and the files of calls that run change without it.
const TICK: Duration = Duration::from_secs(2);
/// How long a window may take to read a line.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The bytes of a line from a window.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Adds to a state what is not on the board.
pub type Complete = dyn Fn(&mut SeenState) + Send + Sync;

/// A listening socket. Its file is removed when this is dropped.
pub struct WindowSocket {
    listener: UnixListener,
    folder: SocketFolder,
    path: PathBuf,
}

impl WindowSocket {
    /// Makes the folder, and listens on a socket in it.
    ///
    /// # Errors
    /// If the folder belongs to another user, others may enter it, or the path is too long for a socket.
    pub fn bind(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let open = SocketFolder::open(folder).map_err(io::Error::other)?.ok_or(io::ErrorKind::NotFound)?;
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{}-{}", std::process::id(), wharf_base::text::hex(&number));
        // It gets its name when it listens, since one on which nobody listens is removed.
        let new = folder.join(format!("{name}.new"));
        let socket =
            Self { listener: UnixListener::bind(&new)?, folder: open, path: folder.join(format!("{name}{EXTENSION}")) };
        let named =
            fs::set_permissions(&new, Permissions::from_mode(0o600)).and_then(|()| fs::rename(&new, &socket.path));
        named.inspect_err(|_| _ = fs::remove_file(&new))?;
        Ok(socket)
    }

    /// Serves windows for as long as this is polled. Before, sockets of processes that are gone are removed.
    pub async fn serve(self, board: Arc<Board>, complete: Arc<Complete>) {
        sweep(&self.folder).await;
        let (places, mut windows) = (Arc::new(Semaphore::new(MAX_WINDOWS)), JoinSet::new());
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = windows.join_next() => continue,
            };
            let Ok((stream, _)) = accepted else {
                // Such as too many open files.
                sleep(TICK).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            if !is_own(&stream) {
                continue;
            }
            let (board, complete) = (Arc::clone(&board), Arc::clone(&complete));
            windows.spawn(async move {
                // It ends when the window is gone.
                show(stream, &board, &*complete).await.ok();
                drop(place);
            });
        }
    }
}

impl Drop for WindowSocket {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// Whether the other end belongs to this user, or to root.
pub fn is_own(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw())
}

/// Removes the sockets on which nobody listens any more.
async fn sweep(folder: &SocketFolder) {
    for name in folder.sockets() {
        // It does not wait: one that is busy is not gone.
        if UnixStream::connect(folder.path(&name)).await.is_err_and(|error| is_gone(&error)) {
            folder.remove(&name);
        }
    }
}

/// Shows the board to a window, until it is gone.
async fn show(stream: UnixStream, board: &Board, complete: &Complete) -> io::Result<()> {
    let _watching = board.watched();
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let (mut changes, mut at) = (board.changes(), 0);
    let mut said = Vec::new();
    loop {
        changes.mark_unchanged();
        let (mut state, last) = board.since(at);
        complete(&mut state);
        let line = line(state)?;
        timeout(WRITE_TIMEOUT, to.write_all(&line)).await??;
        at = last;
        let paced = async {
            sleep(PACE).await;
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(TICK) => {}
            }
        };
        tokio::pin!(paced);
        loop {
            tokio::select! {
                () = &mut paced => break,
                read = answer(&mut from, &mut said) => match read? {
                    Some(answer) => _ = board.answer(answer),
                    None => return Ok(()),
                },
            }
        }
    }
}

/// Writes a state in one line, without what makes it too long.
fn line(mut state: SeenState) -> io::Result<Vec<u8>> {
    let parts: [fn(&mut SeenState); 4] = [
        |state| state.calls.iter_mut().filter(|call| call.ended.is_none()).for_each(|call| call.files.clear()),
        |state| state.calls.clear(),
        |state| state.plugins.clear(),
        |state| state.sessions.clear(),
    ];
    let mut parts = parts.into_iter();
    loop {
        let mut line = serde_json::to_vec(&state)?;
        line.push(b'\n');
        match parts.next().filter(|_| line.len() > MAX_LINE_BYTES) {
            Some(leave_out) => leave_out(&mut state),
            None => return Ok(line),
        }
    }
}

/// Reads an answer. `said`: what was read of its line. `None`: the window is gone.
async fn answer(from: &mut BufReader<OwnedReadHalf>, said: &mut Vec<u8>) -> io::Result<Option<SeenAnswer>> {
    let left = MAX_ANSWER_BYTES.saturating_sub(said.len() as u64);
    from.take(left).read_until(b'\n', said).await?;
    if said.last() != Some(&b'\n') {
        return Ok(None);
    }
    let answer = serde_json::from_slice(said)?;
    said.clear();
    Ok(Some(answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{SeenCall, SeenChoice, SeenEnded, SeenFile, SeenPlugin, SeenProcess, SeenQuestion, SeenSession};

    async fn read(from: &mut BufReader<UnixStream>) -> SeenState {
        let mut line = String::new();
        from.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[tokio::test]
    async fn a_window_reads_the_board_and_answers() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("window");
        let socket = WindowSocket::bind(&folder).unwrap();
        let path = socket.path.clone();
        let board = Board::new(SeenProcess { pid: 7, ..SeenProcess::default() });
        let complete: Arc<Complete> = Arc::new(|state| state.process.resident = Some(9));
        let serving = tokio::spawn(socket.serve(Arc::clone(&board), complete));
        let mut window = BufReader::new(UnixStream::connect(&path).await.unwrap());
        let first = read(&mut window).await;
        assert_eq!((first.process.pid, first.process.resident, first.calls.len()), (7, Some(9), 0));
        let choice = SeenChoice { word: "once".into(), text: String::new() };
        let question = SeenQuestion { answers: vec![choice], ..SeenQuestion::default() };
        let mut open = board.ask(1, question).unwrap();
        let asked = read(&mut window).await;
        let said = format!("{{\"question\":{},\"word\":\"once\"}}\n", asked.questions[0].id);
        // In parts, which belong together.
        for part in [&said[..9], &said[9..]] {
            window.get_mut().write_all(part.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
        assert_eq!(open.answered().await, "once");
        board.begin(1, SeenCall { name: "a".into(), ..SeenCall::default() }).end(SeenEnded::default(), |_| {});
        while read(&mut window).await.calls.is_empty() {}
        serving.abort();
        serving.await.unwrap_err();
        assert!(!path.exists(), "its file goes with it");
    }

    #[tokio::test]
    async fn what_is_no_answer_ends_the_connection() {
        let place = tempfile::tempdir().unwrap();
        let socket = WindowSocket::bind(&place.path().join("window")).unwrap();
        let path = socket.path.clone();
        let board = Board::new(SeenProcess::default());
        tokio::spawn(socket.serve(board, Arc::new(|_| {})));
        for said in [b"what\n".to_vec(), vec![b'x'; 8192]] {
            let mut window = BufReader::new(UnixStream::connect(&path).await.unwrap());
            read(&mut window).await;
            window.get_mut().write_all(&said).await.ok();
            let mut rest = Vec::new();
            window.read_to_end(&mut rest).await.ok();
        }
    }

    #[test]
    fn a_line_is_never_too_long_for_a_window() {
        let long = || "x".repeat(300_000);
        let file = || SeenFile { path: long(), did: "read".into() };
        let running = SeenCall { name: "runs".into(), files: vec![file()], ..SeenCall::default() };
        let mut state = SeenState { calls: vec![running; 20], ..SeenState::default() };
        let text = line(state.clone()).unwrap();
        let read: SeenState = serde_json::from_slice(&text).unwrap();
        assert_eq!((read.calls.len(), read.calls[0].files.len()), (20, 0));
        state.plugins = (0..20).map(|_| SeenPlugin { id: long(), ..SeenPlugin::default() }).collect();
        state.sessions = (0..20).map(|_| SeenSession { client: long(), ..SeenSession::default() }).collect();
        state.questions.push(SeenQuestion { text: "asks".into(), ..SeenQuestion::default() });
        let read: SeenState = serde_json::from_slice(&line(state).unwrap()).unwrap();
        assert_eq!(read.questions[0].text, "asks");
    }

    #[tokio::test]
    async fn sockets_of_processes_that_are_gone_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("window");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let left = folder.join("1-a.sock");
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        let one = WindowSocket::bind(&folder).unwrap();
        let other = WindowSocket::bind(&folder).unwrap();
        sweep(&one.folder).await;
        assert!(!left.exists() && one.path.exists() && other.path.exists());
    }

    #[tokio::test]
    async fn a_folder_that_others_may_enter_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("window");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        WindowSocket::bind(&folder).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(WindowSocket::bind(&link).is_err());
        fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
        assert!(WindowSocket::bind(&folder).is_err());
    }
}
