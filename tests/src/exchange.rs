//! The answer to one request of the HTTP client: its head, and its JSON body or its single events.

use std::{collections::VecDeque, io};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use crate::{MODERN, PATIENCE, Recorder, schema};

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    /// The length of the body, if the head states it; `None` for a chunked body.
    length: Option<usize>,
    chunked: bool,
}

/// One event of a stream, with its raw fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    pub event: Option<String>,
    pub id: Option<String>,
    pub retry: Option<u64>,
    /// `None` if the event has no such line; empty if the line has no value.
    pub data: Option<String>,
}

/// A connection over any transport.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A request and its response, which may be a long stream. Dropping it closes the connection.
pub struct Exchange {
    stream: Box<dyn Stream>,
    /// Bytes that were received and not parsed: of the head, until it is complete; then of the body, still chunked.
    buffer: Vec<u8>,
    head: Option<Head>,
    events: VecDeque<Frame>,
    /// The beginning of an incomplete event.
    partial: String,
    /// The method of the request (empty if it has no method), and the revision of the answer.
    pub asked: Option<(String, String)>,
    ended: bool,
    /// Why the connection could not be read or written any more, if there was an error.
    failed: Option<io::Error>,
    recorder: Recorder,
    /// The last value of each that the stream has sent.
    pub last_event_id: Option<String>,
    pub retry: Option<u64>,
}

impl Exchange {
    pub fn of(stream: Box<dyn Stream>, recorder: Recorder) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            head: None,
            events: VecDeque::new(),
            partial: String::new(),
            asked: None,
            ended: false,
            failed: None,
            recorder,
            last_event_id: None,
            retry: None,
        }
    }

    /// Writes the request. A server that has already refused it may have stopped reading.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let sent = timeout(PATIENCE, self.stream.write_all(bytes)).await.expect("wharf does not read");
        self.failed = sent.err();
    }

    /// Reads more bytes. Returns false at the end of the connection.
    async fn fill(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("no bytes in time");
        // A connection that was reset has ended as well.
        let read = read.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            0
        });
        self.recorder.received(&bytes[..read]);
        self.buffer.extend_from_slice(&bytes[..read]);
        read > 0
    }

    /// Closes the sending side, and reads until the connection ends.
    pub async fn drain(mut self) -> Vec<u8> {
        // The other side may already have closed the connection.
        let _ = self.stream.shutdown().await;
        while self.fill().await {}
        self.buffer
    }

    /// Reads status and headers. Returns false if the connection ends before.
    pub async fn read_head(&mut self) -> bool {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await {
                return false;
            }
        };
        let text = String::from_utf8(self.buffer.drain(..end + 4).collect()).expect("headers are text");
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let find = |name: &str| headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
        let length = find("content-length").map(|length| length.parse().unwrap());
        let chunked = find("transfer-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked"));
        self.head = Some(Head { status: status.expect("a status"), headers, length, chunked });
        true
    }

    fn head(&self) -> &Head {
        self.head
            .as_ref()
            .unwrap_or_else(|| panic!("wharf closed the connection without an answer (error: {:?})", self.failed))
    }

    pub fn status(&self) -> u16 {
        self.head().status
    }

    /// Whether there was an answer.
    pub fn answered(&self) -> bool {
        self.head.is_some()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head().headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Returns the next chunk of the body; `None` at its end.
    async fn piece(&mut self) -> Option<Vec<u8>> {
        let (length, chunked) = (self.head().length, self.head().chunked);
        if chunked {
            let line_end = loop {
                if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                    break at;
                }
                if !self.fill().await {
                    return None;
                }
            };
            let size = std::str::from_utf8(&self.buffer[..line_end]).unwrap();
            let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
            while self.buffer.len() < line_end + 2 + size + 2 {
                if !self.fill().await {
                    return None;
                }
            }
            let piece = self.buffer[line_end + 2..line_end + 2 + size].to_vec();
            self.buffer.drain(..line_end + 2 + size + 2);
            return (size > 0).then_some(piece);
        }
        if self.ended {
            return None;
        }
        self.ended = true;
        while length.is_none_or(|length| self.buffer.len() < length) {
            if !self.fill().await {
                break;
            }
        }
        Some(std::mem::take(&mut self.buffer))
    }

    /// Returns the whole body.
    pub async fn text(&mut self) -> String {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await {
            body.extend(piece);
        }
        String::from_utf8(body).expect("the body is UTF-8")
    }

    fn check(&self, message: &Value) {
        let (method, revision) = self.asked.as_ref().map_or((None, "2025-11-25"), |(method, revision)| {
            ((!method.is_empty()).then_some(method.as_str()), revision.as_str())
        });
        match (message.get("method").is_some(), message.get("id").is_some()) {
            (true, true) => schema::check_request(revision, message),
            (true, false) => schema::check_notification(revision, message),
            // The result of a handshake contains the negotiated revision.
            (false, _) if method == Some("initialize") => {
                let negotiated = message["result"]["protocolVersion"].as_str().unwrap_or(revision);
                schema::check_response(negotiated, method, message);
            }
            (false, _) => schema::check_response(revision, method, message),
        }
    }

    /// Returns the JSON body, validated against the schema.
    pub async fn json(&mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let text = self.text().await;
        let message = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        self.check(&message);
        message
    }

    /// Returns the next event of the stream, without comments; `None` at the stream's end.
    pub async fn frame(&mut self) -> Option<Frame> {
        // Comments only keep a stream alive.
        timeout(PATIENCE, self.next_frame()).await.expect("no event in time")
    }

    async fn next_frame(&mut self) -> Option<Frame> {
        assert!(self.is_stream(), "not a stream: {:?}", self.header("content-type"));
        while self.events.is_empty() {
            let piece = String::from_utf8(self.piece().await?).expect("events are UTF-8");
            self.partial.push_str(&piece);
            while let Some((block, rest)) = self.partial.split_once("\n\n") {
                let mut frame = Frame::default();
                for line in block.lines() {
                    let (field, value) = line.split_once(':').unwrap_or((line, ""));
                    let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
                    let before = match field {
                        "" => None,
                        "event" => frame.event.replace(value),
                        "id" => frame.id.replace(value),
                        "retry" => frame.retry.replace(value.parse().unwrap()).map(|retry| retry.to_string()),
                        // Some clients read streams line by line.
                        "data" => frame.data.replace(value),
                        _ => panic!("an unexpected line in a stream: {line:?}"),
                    };
                    assert_eq!(before, None, "{field} stands twice: {block}");
                }
                self.partial = rest.to_owned();
                if frame != Frame::default() {
                    self.events.push_back(frame);
                }
            }
        }
        let frame = self.events.pop_front()?;
        let has_ids =
            self.asked.as_ref().is_none_or(|(_, revision)| ("2025-03-26"..MODERN).contains(&revision.as_str()));
        assert!(has_ids || (frame.id.is_none() && frame.retry.is_none()), "this revision has no event ids: {frame:?}");
        self.last_event_id = frame.id.clone().or(self.last_event_id.take());
        self.retry = frame.retry.or(self.retry);
        Some(frame)
    }

    /// Returns the next message on the stream, validated; `None` at its end.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            let frame = self.frame().await?;
            let Some(data) = frame.data.as_ref().filter(|data| !data.is_empty()) else { continue };
            assert!(frame.event.as_ref().is_none_or(|name| name == "message"), "{frame:?}");
            let message: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
            self.check(&message);
            return Some(message);
        }
    }

    /// Returns the next message, whether the answer is JSON or a stream.
    pub async fn message(&mut self) -> Option<Value> {
        if self.is_stream() {
            self.event().await
        } else if self.ended {
            None
        } else {
            Some(self.json().await)
        }
    }

    /// Returns the response to a request; earlier messages are dropped.
    pub async fn response(&mut self, id: &Value) -> Value {
        loop {
            let message = self.message().await.unwrap_or_else(|| panic!("no response to {id}"));
            if message.get("method").is_none() {
                assert_eq!(message.get("id"), Some(id), "{message}");
                return message;
            }
        }
    }
}
