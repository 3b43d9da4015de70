//! Makes HTTP requests, valid and invalid ones, with one tool for each kind. It calls WASI directly, so that no library hides what a guest
//! can do.

#![allow(clippy::disallowed_methods, reason = "a guest for tests ends as it likes; no test does")]

use std::collections::BTreeMap;

use wasip2::{
    http::{
        outgoing_handler,
        types::{
            ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody,
            OutgoingRequest, RequestOptions, Scheme,
        },
    },
    io::{
        poll,
        streams::{InputStream, OutputStream, StreamError},
    },
};
use wharf_sdk::{prelude::*, serde_json::json};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Send {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<String>,
    /// Give up if the response does not begin in so many milliseconds.
    #[serde(default)]
    first_byte_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Many {
    url: String,
    times: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Pieces {
    url: String,
    /// Stop after so many pieces.
    #[serde(default)]
    most: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Upload {
    url: String,
    /// How many bytes to send before it ends.
    bytes: usize,
    /// `finish`, `trap`, `spin`, `wait` or `drop`.
    then: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Needle {
    /// What to look for, written backwards, so that it is not itself what is found.
    backwards: String,
    /// First, a request to this URL is answered.
    url: String,
}

struct Plugin;

/// A request without a body yet.
fn request(url: &str, method: &str, headers: &BTreeMap<String, String>) -> Result<OutgoingRequest, String> {
    let entries: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect();
    let fields = Fields::from_list(&entries).map_err(|error| format!("headers: {error:?}"))?;
    let request = OutgoingRequest::new(fields);
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        other => Method::Other(other.to_owned()),
    };
    request.set_method(&method).map_err(|()| "method")?;
    request.set_scheme(Some(&scheme)).map_err(|()| "scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(path)).map_err(|()| "path")?;
    Ok(request)
}

/// How many pages of memory there are.
#[cfg(target_family = "wasm")]
fn pages() -> usize {
    core::arch::wasm32::memory_size(0)
}

#[cfg(not(target_family = "wasm"))]
fn pages() -> usize {
    0
}

fn write(stream: &OutputStream, mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        stream.subscribe().block();
        let room = stream.check_write().map_err(told)? as usize;
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        stream.write(now).map_err(told)?;
        bytes = later;
    }
    Ok(())
}

fn told(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".into(),
        StreamError::LastOperationFailed(error) => match wasip2::http::types::http_error_code(&error) {
            Some(code) => format!("{code:?}"),
            None => error.to_debug_string(),
        },
    }
}

fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, String> {
    future.subscribe().block();
    match future.get() {
        Some(Ok(response)) => response.map_err(|error: ErrorCode| format!("{error:?}")),
        _ => Err("no response".into()),
    }
}

fn read(stream: &InputStream, all: &mut Vec<u8>) -> Result<(), String> {
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => return Ok(()),
            Err(error) => return Err(told(error)),
        }
    }
}

fn answered(response: &IncomingResponse) -> Result<String, String> {
    let headers: BTreeMap<String, String> = response
        .headers()
        .entries()
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let status = response.status();
    let body = response.consume().map_err(|()| "consumed")?;
    let mut bytes = Vec::new();
    let stream = body.stream().map_err(|()| "no stream")?;
    let ended = read(&stream, &mut bytes);
    drop(stream);
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    let trailers: BTreeMap<String, String> = match trailers.get() {
        Some(Ok(Ok(Some(fields)))) => fields
            .entries()
            .into_iter()
            .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
            .collect(),
        _ => BTreeMap::new(),
    };
    let body = String::from_utf8_lossy(&bytes).into_owned();
    let ended = ended.err();
    let length = body.len();
    let body: String = body.chars().take(20_000).collect();
    Ok(json!({ "status": status, "headers": headers, "body": body, "length": length, "trailers": trailers, "error": ended })
        .to_string())
}

fn sent(args: &Send) -> Result<String, String> {
    let method = args.method.as_deref().unwrap_or("GET");
    let request = request(&args.url, method, &args.headers)?;
    let body = args.body.as_ref().map(|_| request.body().map_err(|()| "no body")).transpose()?;
    let options = RequestOptions::new();
    options.set_first_byte_timeout(args.first_byte_ms.map(|ms| ms * 1_000_000)).ok();
    let future = outgoing_handler::handle(request, Some(options)).map_err(|error| format!("{error:?}"))?;
    if let (Some(body), Some(text)) = (body, &args.body) {
        let stream = body.write().map_err(|()| "no stream")?;
        let written = write(&stream, text.as_bytes());
        drop(stream);
        match written {
            // The response has more information about the reason than the stream.
            Err(_) => drop(body),
            Ok(()) => OutgoingBody::finish(body, None).map_err(|error| format!("{error:?}"))?,
        }
    }
    answered(&wait(&future)?)
}

#[tools]
impl Plugin {
    /// Sends a request and answers with the response as JSON, or `error: …`.
    fn send(args: Send) -> String {
        sent(&args).unwrap_or_else(|error| format!("error: {error}"))
    }

    /// Sends a request and reads the response; answers the length of its body.
    fn ping(args: Send) -> Result<String> {
        let length = request(&args.url, "GET", &args.headers).and_then(|request| {
            let sent = outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?;
            let body = wait(&sent)?.consume().map_err(|()| "consumed")?;
            let mut bytes = Vec::new();
            read(&body.stream().map_err(|()| "no stream")?, &mut bytes)?;
            Ok(bytes.len())
        });
        length.map(|length| length.to_string()).map_err(Error::Failed)
    }

    /// Sends a request, and answers with the pieces in which the body of the response came.
    fn pieces(args: Pieces) -> Result<String> {
        let pieces = request(&args.url, "GET", &BTreeMap::new()).and_then(|request| {
            let sent = outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?;
            let body = wait(&sent)?.consume().map_err(|()| "consumed")?;
            let stream = body.stream().map_err(|()| "no stream")?;
            let mut pieces = Vec::new();
            let mut error = None;
            while args.most.is_none_or(|most| pieces.len() < most) {
                match stream.blocking_read(1 << 20) {
                    Ok(bytes) => pieces.push(String::from_utf8_lossy(&bytes).into_owned()),
                    Err(StreamError::Closed) => break,
                    Err(failed) => {
                        error = Some(told(failed));
                        break;
                    }
                }
            }
            Ok(json!({ "pieces": pieces, "error": error }).to_string())
        });
        pieces.map_err(Error::Failed)
    }

    /// Sends many requests at once, and answers how many of each status or error came back.
    fn many(args: Many) -> String {
        let mut told: BTreeMap<String, u32> = BTreeMap::new();
        let mut count = |text: String| *told.entry(text).or_default() += 1;
        let mut futures = Vec::new();
        for _ in 0..args.times {
            let sent = request(&args.url, "GET", &BTreeMap::new())
                .and_then(|request| outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}")));
            match sent {
                Ok(future) => futures.push(future),
                Err(error) => count(error),
            }
        }
        while !futures.is_empty() {
            let pollables: Vec<_> = futures.iter().map(FutureIncomingResponse::subscribe).collect();
            let ready = poll::poll(&pollables.iter().collect::<Vec<_>>());
            drop(pollables);
            for at in ready.into_iter().rev() {
                let future = futures.remove(at as usize);
                match wait(&future) {
                    Ok(response) => count(response.status().to_string()),
                    Err(error) => count(error),
                }
            }
        }
        json!(told).to_string()
    }

    /// Begins an upload, and ends it in one of several ways.
    fn upload(args: Upload) -> String {
        let begun = (|| {
            let request = request(&args.url, "POST", &BTreeMap::new())?;
            let body = request.body().map_err(|()| "no body")?;
            let future = outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?;
            let stream = body.write().map_err(|()| "no stream")?;
            write(&stream, &vec![b'x'; args.bytes])?;
            stream.blocking_flush().map_err(told)?;
            Ok::<_, String>((future, body, stream))
        })();
        let (future, body, stream) = match begun {
            Ok(begun) => begun,
            Err(error) => return format!("error: {error}"),
        };
        match args.then.as_str() {
            "finish" => {
                drop(stream);
                let finished = OutgoingBody::finish(body, None).map_err(|error| format!("{error:?}"));
                let answer = finished.and_then(|()| wait(&future)).and_then(|response| answered(&response));
                answer.unwrap_or_else(|error| format!("error: {error}"))
            }
            "spin" => loop {
                std::hint::spin_loop();
            },
            "wait" => {
                future.subscribe().block();
                "answered".into()
            }
            "drop" => {
                drop((stream, body));
                wait(&future).map_or_else(|error| format!("error: {error}"), |response| response.status().to_string())
            }
            // The written part of the body stays open, and the guest exits.
            _ => std::process::abort(),
        }
    }

    /// Waits for a response and never reads its body; answers the status.
    fn never_read(args: Send) -> String {
        let response = request(&args.url, "GET", &args.headers)
            .and_then(|request| wait(&outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?));
        let response = match response {
            Ok(response) => response,
            Err(error) => return format!("error: {error}"),
        };
        let body = response.consume();
        std::thread::sleep(std::time::Duration::from_millis(300));
        format!("{} {}", response.status(), body.is_ok())
    }

    /// Sends a request, then looks through all of its own memory.
    fn look_for(args: Needle) -> String {
        let answer =
            Self::send(Send { url: args.url, method: None, headers: BTreeMap::new(), body: None, first_byte_ms: None });
        let pages = pages();
        let backwards = args.backwards.as_bytes();
        let mut found = 0;
        for start in 1024..(pages << 16).saturating_sub(backwards.len()) {
            // SAFETY: these are bytes of the guest's own memory.
            let byte = |at: usize| unsafe { core::ptr::read_volatile((start + at) as *const u8) };
            if (0..backwards.len()).all(|at| backwards.get(backwards.len() - 1 - at) == Some(&byte(at))) {
                found += 1;
            }
        }
        format!("{found} {}", answer.contains("\"status\":200"))
    }

    /// The value of a variable, if it is set.
    fn variable(args: Send) -> String {
        std::env::var(args.url).unwrap_or_else(|_| "unset".into())
    }

    /// Fails with a text.
    fn fail(args: Send) -> Result<String> {
        Err(Error::Failed(args.body.unwrap_or_default()))
    }
}
