//! Collects the lines that a child process writes to stderr, and waits for one of them.

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::watch,
    time::timeout,
};

use crate::{PATIENCE, Recorder};

/// Collects lines as they arrive.
#[derive(Debug, Clone)]
pub struct Log(watch::Receiver<Lines>);

#[derive(Debug, Clone, Default)]
struct Lines {
    text: String,
    ended: bool,
}

impl Log {
    pub fn of<R: AsyncRead + Unpin + Send + 'static>(stderr: R, recorder: Recorder) -> Self {
        let (sender, receiver) = watch::channel(Lines::default());
        tokio::spawn(async move {
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            loop {
                line.clear();
                let read = reader.read_until(b'\n', &mut line).await;
                recorder.logged(&line);
                sender.send_modify(|lines| match read {
                    Ok(1..) => lines.text.push_str(&String::from_utf8_lossy(&line)),
                    _ => lines.ended = true,
                });
                if sender.borrow().ended {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// Returns everything logged so far.
    pub fn text(&self) -> String {
        self.0.borrow().text.clone()
    }

    /// Waits until a line contains `text`, and returns the first such line.
    pub async fn wait_for(&self, text: &str) -> String {
        self.wait_for_nth(text, 1).await
    }

    /// Waits until `nth` lines contain `text`, and returns the last of them. Lines arrive later than the events that they report: a test
    /// that counts the existing lines and then waits for one more may get a line that was only delayed.
    pub async fn wait_for_nth(&self, text: &str, nth: usize) -> String {
        let found = |lines: &str| lines.lines().filter(|line| line.contains(text)).nth(nth - 1).map(str::to_owned);
        let mut lines = self.0.clone();
        // Its borrow must end before the text is borrowed again, otherwise this method and the writer deadlock.
        let waited =
            timeout(PATIENCE, lines.wait_for(|lines| lines.ended || found(&lines.text).is_some())).await.is_ok();
        let all = self.text();
        match found(&all) {
            Some(line) if waited => line,
            _ => panic!("stderr does not say {text:?} in {nth} lines:\n{all}"),
        }
    }

    /// Waits until stderr is closed, and returns all of it.
    pub async fn whole(&self) -> String {
        let mut lines = self.0.clone();
        // The writer may have exited already, which is also an end.
        let _ = timeout(PATIENCE, lines.wait_for(|lines| lines.ended)).await.expect("stderr stays open");
        self.text()
    }
}
