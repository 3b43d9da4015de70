//! A Redis server for one test: Debian's, on a port of its own, which can be stopped and started again.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use crate::{Folder, PATIENCE, debian::program};

pub struct Redis {
    child: Option<Child>,
    folder: PathBuf,
    pub address: SocketAddr,
}

impl Redis {
    /// Starts a server that keeps nothing when it ends.
    pub async fn start(folder: &Folder) -> Self {
        // A port that was free a moment ago. Another process may take it meanwhile, so this is tried more than once.
        let mut tries = 0;
        loop {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            let mut redis = Self { child: None, folder: folder.join("."), address };
            if redis.begin().await {
                return redis;
            }
            tries += 1;
            assert!(tries < 5, "redis-server does not start: run `cargo xtask replicas`, which gets it");
        }
    }

    /// Starts the server again, empty.
    pub async fn again(&mut self) {
        assert!(self.begin().await, "redis-server does not start again");
    }

    async fn begin(&mut self) -> bool {
        let port = self.address.port().to_string();
        let mut command = program("redis-server", "usr/bin/redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.current_dir(Path::new(&self.folder)).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("redis-server: {error}; run `cargo xtask replicas`, which gets it"),
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let began = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("Ready to accept connections") {
                    return true;
                }
            }
            false
        };
        let began = timeout(PATIENCE, began).await.unwrap_or(false);
        // The server must not wait for a reader of its output.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.child = Some(child);
        began
    }

    /// Kills the server, and waits until it has ended.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().await.unwrap();
        }
    }

    /// Stops the server without ending it: connections stay open, and nothing is answered.
    pub fn freeze(&self) {
        crate::pipe::signal(self.pid(), rustix::process::Signal::STOP);
    }

    pub fn thaw(&self) {
        crate::pipe::signal(self.pid(), rustix::process::Signal::CONT);
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).expect("it runs")
    }

    /// Sends a command, and returns the reply as it is on the wire, after each line break a space.
    pub async fn command(&self, words: &[&[u8]]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut text = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            text.extend(format!("${}\r\n", word.len()).bytes());
            text.extend(*word);
            text.extend(b"\r\n");
        }
        text.extend(b"*1\r\n$4\r\nQUIT\r\n");
        stream.write_all(&text).await.unwrap();
        let mut reply = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut reply)).await.expect("Redis answers").unwrap();
        reply.truncate(reply.len() - b"+OK\r\n".len());
        reply
    }

    /// Returns the names of all keys.
    pub async fn keys(&self) -> Vec<String> {
        let reply = String::from_utf8(self.command(&[b"KEYS", b"*"]).await).unwrap();
        reply.lines().skip(1).filter(|line| !line.starts_with('$')).map(ToOwned::to_owned).collect()
    }

    /// Returns a value.
    pub async fn get(&self, key: &str) -> Vec<u8> {
        let reply = self.command(&[b"GET", key.as_bytes()]).await;
        let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        reply[start..reply.len() - 2].to_vec()
    }
}
