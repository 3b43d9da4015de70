//! MCP over HTTP: the listening sockets that wharf serves itself, and the service that the embedding program mounts in an HTTP server of
//! its own. The types in signatures are those of `http`, `http-body`, `bytes` and `tower-service`, which all servers of the ecosystem
//! share and which do not change.

use std::{
    convert::Infallible,
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use axum::Router;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::net::{TcpListener, UnixListener};
use tower_service::Service;
use wharf_serve::transport::http::socket;

type BoxError = Box<dyn Error + Send + Sync>;

/// A listening socket: a [`TcpListener`] or a [`UnixListener`].
pub struct Socket(pub(crate) socket::Socket);

impl From<TcpListener> for Socket {
    fn from(listener: TcpListener) -> Self {
        Self(listener.into())
    }
}

impl From<UnixListener> for Socket {
    fn from(listener: UnixListener) -> Self {
        Self(listener.into())
    }
}

/// Answers HTTP requests for MCP. It is always ready, and never fails.
#[derive(Clone)]
pub struct HttpService(pub(crate) Router);

/// The body of an answer.
pub struct HttpBody(axum::body::Body);

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move { Ok(answer.await?.map(HttpBody)) })
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").finish_non_exhaustive()
    }
}
