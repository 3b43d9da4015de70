//! Sends OTLP messages to the collector.

use std::time::Duration;

use anyhow::Result;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};

use wharf_egress::outgoing::{Outgoing, OutgoingLimits};

/// The body of the response is not used.
const LIMITS: OutgoingLimits = OutgoingLimits { timeout: Duration::from_secs(5), body_bytes: 64 << 10 };

/// Why the collector did not accept a message.
pub enum SendError {
    /// A temporary failure: the message may be accepted later.
    Temporary(anyhow::Error),
    /// The collector rejects the message.
    Permanent(StatusCode),
}

/// Sends messages to one collector.
pub struct Post {
    /// The base URL of the collector.
    pub url: String,
    pub headers: HeaderMap,
    pub outgoing: Outgoing,
}

impl Post {
    /// Sends a message to `path` below the collector's base URL.
    pub async fn send(&self, path: &str, message: Vec<u8>) -> Result<(), SendError> {
        let status = self.exchange(path, message).await.map_err(SendError::Temporary)?;
        match status.as_u16() {
            200..300 => Ok(()),
            429 | 502 | 503 | 504 => Err(SendError::Temporary(anyhow::anyhow!("the response is {status}"))),
            _ => Err(SendError::Permanent(status)),
        }
    }

    async fn exchange(&self, path: &str, message: Vec<u8>) -> Result<StatusCode> {
        let mut request = Request::post(format!("{}{path}", self.url)).body(message.into())?;
        let headers = request.headers_mut();
        *headers = self.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        Ok(self.outgoing.send(request, LIMITS).await?.status())
    }
}
