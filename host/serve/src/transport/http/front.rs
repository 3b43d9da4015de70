//! The layer around all routes: each request gets its id, and a line in the access log if there is one.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use anyhow::Result;
use axum::{Router, body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{body::Incoming, service::Service};
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;

use super::{
    access_log::{AccessLog, Noted},
    connections::Peer,
    entry::Connected,
    forwarded::origin,
    headers::{REQUEST_ID, request_id},
    routes::{Direct, Routes, visit},
};
use wharf_base::random_id;
use wharf_config::config;

pub struct Front {
    app: TowerToHyperService<Router>,
    direct: Option<Direct>,
    /// The prefix of this process's ids, and how many ids it has given.
    prefix: String,
    given: AtomicU64,
    log: Option<Arc<AccessLog>>,
    trusted_proxies: Vec<IpNet>,
}

impl Front {
    /// `replica`: the name of this replica, if there are several.
    pub fn new(Routes { all, direct }: Routes, http: &config::Http, replica: Option<&str>) -> Result<Self> {
        let mut prefix = random_id::id().map_err(|error| anyhow::anyhow!("{}", error.message))?;
        prefix.truncate(12);
        if let Some(replica) = replica {
            prefix.insert_str(0, &format!("{replica}-"));
        }
        let log = http.access_log.as_ref().map(AccessLog::open).transpose()?.map(Arc::new);
        let trusted_proxies = http.trusted_proxies.clone();
        Ok(Self { app: TowerToHyperService::new(all), direct, prefix, given: AtomicU64::new(0), log, trusted_proxies })
    }

    /// Answers a request.
    pub async fn answer(&self, mut request: Request<Incoming>, peer: &Arc<Peer>) -> Result<Response, Infallible> {
        let id = request_id(request.headers()).cloned().unwrap_or_else(|| self.next_id());
        request.headers_mut().insert(REQUEST_ID, id.clone());
        let noted = self.log.as_ref().map(|log| {
            let from = origin(&self.trusted_proxies, peer.remote(), request.headers());
            Noted::new(log, from, &request, id.to_str().unwrap_or_default())
        });
        let mut response = match self.direct.as_ref().and_then(|direct| direct.at(request.uri().path())) {
            Some(endpoint) => {
                let connected = Connected { peer: Arc::clone(peer), noted: noted.clone() };
                visit(endpoint, None, request.map(Body::new), connected).await
            }
            None => {
                request.extensions_mut().insert(Arc::clone(peer));
                if let Some(noted) = &noted {
                    request.extensions_mut().insert(Arc::clone(noted));
                }
                self.app.call(request).await?
            }
        };
        response.headers_mut().insert(REQUEST_ID, id);
        Ok(match noted {
            None => response,
            Some(noted) => {
                noted.answered(response.status());
                response.map(|body| Body::new(Counted { body, noted: Some(noted) }))
            }
        })
    }

    fn next_id(&self) -> HeaderValue {
        let id = format!("{}-{}", self.prefix, self.given.fetch_add(1, Ordering::Relaxed));
        // The id has only visible ASCII characters.
        HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
    }
}

/// The body of a response whose bytes are counted.
struct Counted {
    body: Body,
    /// None: all bytes are counted, and the line is written.
    noted: Option<Arc<Noted>>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(cx);
        let Some(noted) = &self.noted else { return next };
        let completed = match &next {
            Poll::Ready(Some(Ok(frame))) => {
                noted.sent(frame.data_ref().map_or(0, Bytes::len));
                self.body.is_end_stream()
            }
            Poll::Ready(None) => true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if completed {
            noted.completed();
            // The line is written now, before the client can read the end and begin another request.
            self.noted = None;
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // The HTTP library does not ask for the end of a body of known length.
        if let Some(noted) = self.noted.take().filter(|_| self.body.is_end_stream()) {
            noted.completed();
        }
    }
}
