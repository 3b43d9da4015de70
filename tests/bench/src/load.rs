//! The load generator, one for all: so many requests in flight for so long, every answer looked at.
//!
//! It runs on one thread and does as little as it can, since it shares the cores with what it measures.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{ChildStdin, ChildStdout},
};

use crate::report::median;

/// What came of a load.
#[derive(Debug, Default, Clone)]
pub struct Measured {
    pub calls: u64,
    pub seconds: f64,
    /// Of each call, in microseconds.
    pub latencies: Vec<u32>,
    /// How long the server's threads were on a core for it.
    pub core_seconds: f64,
    /// The server's own time for a call in each round, in microseconds.
    rounds_us: Vec<f64>,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.seconds.max(1e-9)
    }

    /// The server's own time for a call, in microseconds, in the round in which it was least. Whatever else the machine does only adds to
    /// it, through caches and the clock rate.
    pub fn core_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The server's own time for a call in the middle round.
    pub fn middle_us(&self) -> f64 {
        median(self.rounds_us.clone())
    }

    /// A percentile of the latencies, in microseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() as f64 * percent / 100.0) as usize).min(sorted.len().saturating_sub(1));
        sorted.get(at).map_or(f64::NAN, |micros| f64::from(*micros))
    }

    /// Adds a round.
    pub fn add(&mut self, mut round: Self) {
        round.rounds_us = vec![round.core_seconds / round.calls.max(1) as f64 * 1e6];
        self.merge(round);
    }

    /// Adds the rounds of another process.
    pub fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.seconds += other.seconds;
        self.latencies.extend(other.latencies);
        self.core_seconds += other.core_seconds;
        self.rounds_us.extend(other.rounds_us);
    }
}

fn micros(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX)
}

/// A connection that sends the same request again and again.
pub struct Connection {
    stream: TcpStream,
    pub request: Vec<u8>,
    buffer: Vec<u8>,
    filled: usize,
}

impl Connection {
    pub async fn open(address: &str, request: Vec<u8>) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request, buffer: vec![0; 64 * 1024], filled: 0 })
    }

    /// Sends the request and reads one whole answer: its head, and its body as sent.
    pub async fn exchange(&mut self) -> Result<(String, Vec<u8>)> {
        self.stream.write_all(&self.request).await?;
        self.filled = 0;
        let head = loop {
            if let Some(end) = find(self.filled_part(), b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let text = String::from_utf8_lossy(self.buffer.get(..head).unwrap_or_default()).to_ascii_lowercase();
        let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
        let end = match length {
            Some(length) => head + length.trim().parse::<usize>()?,
            None => {
                ensure!(text.contains("transfer-encoding: chunked"), "an answer without an end: {text}");
                loop {
                    if self.filled_part().ends_with(b"0\r\n\r\n") {
                        break self.filled;
                    }
                    self.read_more().await?;
                }
            }
        };
        while self.filled < end {
            self.read_more().await?;
        }
        Ok((text, self.buffer.get(head..end).unwrap_or_default().to_vec()))
    }

    /// A header of the last answer, as it was sent.
    pub fn header(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(self.filled_part());
        let mut lines = text.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }

    fn filled_part(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    async fn read_more(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = self.stream.read(self.buffer.get_mut(self.filled..).unwrap_or_default()).await?;
        ensure!(read > 0, "the server closed the connection");
        self.filled += read;
        Ok(())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Keeps every connection busy for so long. Each answer must have status 200 and at least so many bytes.
pub async fn http(connections: &mut [Connection], duration: Duration, least: usize) -> Result<Measured> {
    let start = Instant::now();
    let mut all = Measured::default();
    let loops = connections.iter_mut().map(|connection| async move {
        let mut latencies = Vec::new();
        while start.elapsed() < duration {
            let sent = Instant::now();
            let (head, body) = connection.exchange().await?;
            latencies.push(micros(sent));
            if !head.starts_with("http/1.1 200") || body.len() < least {
                bail!("not an answer: {head}{}", String::from_utf8_lossy(&body));
            }
        }
        Ok(latencies)
    });
    for latencies in futures_util::future::join_all(loops).await {
        let latencies: Vec<u32> = latencies?;
        all.calls += latencies.len() as u64;
        all.latencies.extend(latencies);
    }
    all.seconds = start.elapsed().as_secs_f64();
    Ok(all)
}

/// A server on a pipe.
pub struct Pipe {
    pub input: ChildStdin,
    pub output: BufReader<ChildStdout>,
    pub next_id: u64,
}

impl Pipe {
    /// Keeps so many requests in flight for so long. `line`: the request with its id.
    pub async fn load(
        &mut self,
        line: &dyn Fn(u64) -> String,
        in_flight: usize,
        duration: Duration,
        least: usize,
    ) -> Result<Measured> {
        let start = Instant::now();
        let first = self.next_id;
        let mut sent: Vec<Instant> = Vec::new();
        let mut all = Measured::default();
        let mut answered: u64 = 0;
        let mut batch = String::new();
        let mut answer = String::new();
        loop {
            let open = self.next_id - first - answered;
            if start.elapsed() < duration {
                batch.clear();
                for _ in open..in_flight as u64 {
                    batch.push_str(&line(self.next_id));
                    batch.push('\n');
                    self.next_id += 1;
                    sent.push(Instant::now());
                }
                self.input.write_all(batch.as_bytes()).await?;
            } else if open == 0 {
                break;
            }
            // At least one answer, then all that have come with it.
            loop {
                answer.clear();
                ensure!(self.output.read_line(&mut answer).await? > 0, "the server closed the pipe");
                let id = id_of(&answer).with_context(|| format!("not an answer: {answer}"))?;
                let at = usize::try_from(id - first).unwrap_or(usize::MAX);
                ensure!(answer.contains("\"result\"") && answer.len() >= least, "not an answer: {answer}");
                all.latencies.push(sent.get(at).map_or(0, |sent| micros(*sent)));
                answered += 1;
                if !self.output.buffer().contains(&b'\n') {
                    break;
                }
            }
        }
        all.calls = answered;
        all.seconds = start.elapsed().as_secs_f64();
        Ok(all)
    }

    /// One request, one answer.
    pub async fn ask(&mut self, line: &str) -> Result<String> {
        self.input.write_all(line.as_bytes()).await?;
        self.input.write_all(b"\n").await?;
        let mut answer = String::new();
        loop {
            answer.clear();
            ensure!(self.output.read_line(&mut answer).await? > 0, "the server closed the pipe");
            if answer.contains("\"result\"") || answer.contains("\"error\"") {
                return Ok(answer);
            }
        }
    }
}

/// The numeric id of a response, without parsing all of it.
fn id_of(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("\"id\":")?;
    rest.trim_start().split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}
