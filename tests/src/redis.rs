//! A Redis server for one test: Debian's, on a port of its own, which can be stopped and started again.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::Child,
    time::timeout,
};

use crate::{Folder, PATIENCE, debian::program};

pub struct Redis {
    child: Option<Child>,
    folder: PathBuf,
    pub address: SocketAddr,
    /// Where it speaks TLS, if it does.
    pub tls: Option<SocketAddr>,
    /// The files of its certificate and its key.
    certificate: Option<(PathBuf, PathBuf)>,
}

/// Returns an address that was free a moment ago.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Redis {
    /// Starts a server that keeps nothing when it ends.
    pub async fn start(folder: &Folder) -> Self {
        Self::started(folder, None).await
    }

    /// Starts a server that speaks TLS at one more port.
    pub async fn start_with_tls(folder: &Folder, certificate: &Path, key: &Path) -> Self {
        Self::started(folder, Some((certificate.to_owned(), key.to_owned()))).await
    }

    async fn started(folder: &Folder, certificate: Option<(PathBuf, PathBuf)>) -> Self {
        // Another process may take a free port meanwhile, so this is tried more than once.
        for _ in 0..5 {
            let tls = certificate.is_some().then(free);
            let (folder, certificate) = (folder.join("."), certificate.clone());
            let mut redis = Self { child: None, folder, address: free(), tls, certificate };
            if redis.begin().await {
                return redis;
            }
        }
        panic!("redis-server does not start: run `cargo xtask check replicas`, which gets it");
    }

    /// Starts the server again, empty.
    pub async fn again(&mut self) {
        assert!(self.begin().await, "redis-server does not start again");
    }

    async fn begin(&mut self) -> bool {
        let port = self.address.port().to_string();
        let mut command = program("redis-server", "usr/bin/redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        if let (Some(tls), Some((certificate, key))) = (self.tls, &self.certificate) {
            command.args(["--tls-port", &tls.port().to_string(), "--tls-auth-clients", "no", "--tls-cert-file"]);
            command.arg(certificate).arg("--tls-key-file").arg(key).arg("--tls-ca-cert-file").arg(certificate);
        }
        command.current_dir(Path::new(&self.folder)).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("redis-server: {error}; run `cargo xtask check replicas`, which gets it"),
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

    /// Puts a value of any kind under a key, without a time limit.
    pub async fn restore(&self, key: &str, dumped: &[u8]) {
        assert_eq!(self.command(&[b"RESTORE", key.as_bytes(), b"0", dumped, b"REPLACE"]).await, b"+OK\r\n");
    }

    /// Records all messages from now on.
    pub async fn record(&self) -> Recorded {
        let mut stream = BufReader::new(TcpStream::connect(self.address).await.unwrap());
        stream.write_all(b"PSUBSCRIBE *\r\n").await.unwrap();
        let mut recorded = Recorded { stream };
        assert_eq!(recorded.reply().await[0], b"psubscribe");
        recorded
    }

    /// Returns a value of any kind, as [`Redis::restore`] takes it.
    pub async fn dump(&self, key: &str) -> Vec<u8> {
        let reply = self.command(&[b"DUMP", key.as_bytes()]).await;
        let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        reply[start..reply.len() - 2].to_vec()
    }
}

/// A connection that gets all messages.
pub struct Recorded {
    stream: BufReader<TcpStream>,
}

impl Recorded {
    /// Returns the next message on a channel with this end: the channel, and the message.
    pub async fn next(&mut self, end: &str) -> (Vec<u8>, Vec<u8>) {
        loop {
            let reply: [Vec<u8>; 4] = self.reply().await.try_into().expect("kind, pattern, channel and message");
            let [_, _, channel, message] = reply;
            if channel.ends_with(end.as_bytes()) {
                return (channel, message);
            }
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.stream.read_line(&mut line)).await.expect("a message in time").unwrap();
        line.trim_end().to_owned()
    }

    /// Reads one array. Numbers in it are read as text.
    async fn reply(&mut self) -> Vec<Vec<u8>> {
        let count: usize = self.line().await[1..].parse().unwrap();
        let mut all = Vec::new();
        for _ in 0..count {
            let head = self.line().await;
            let Some(length) = head.strip_prefix('$') else {
                all.push(head.as_bytes()[1..].to_vec());
                continue;
            };
            let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
            timeout(PATIENCE, self.stream.read_exact(&mut bytes)).await.expect("the whole message").unwrap();
            bytes.truncate(bytes.len() - 2);
            all.push(bytes);
        }
        all
    }
}
