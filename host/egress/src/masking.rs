//! Masks secrets in responses: headers, bodies and trailers.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body as HttpBody, Frame};
use wharf_scope::network::{Body, HttpFailure};

use super::mask::{Masker, Masks};

/// Masks secrets in the names and values of headers.
pub fn mask_headers(masks: &Masks, headers: &mut HeaderMap) {
    let mut last = None;
    for (name, value) in std::mem::take(headers) {
        // `HeaderMap` yields the name only with the first of its values.
        if let Some(name) = name {
            let mut bytes = name.as_str().as_bytes().to_vec();
            masks.mask(&mut bytes);
            last = HeaderName::from_bytes(&bytes).ok();
        }
        let mut bytes = value.as_bytes().to_vec();
        masks.mask(&mut bytes);
        if let (Some(name), Ok(value)) = (&last, HeaderValue::from_bytes(&bytes)) {
            headers.append(name, value);
        }
    }
}

/// A response body with secrets masked.
pub struct Masking {
    inner: Body,
    masker: Masker,
    /// The trailers, which follow the last data.
    last: Option<Frame<Bytes>>,
    ended: bool,
}

impl Masking {
    pub fn new(inner: Body, masks: Arc<Masks>) -> Self {
        Self { inner, masker: Masker::new(masks), last: None, ended: false }
    }
}

impl HttpBody for Masking {
    type Data = Bytes;
    type Error = HttpFailure;

    // `size_hint` and `is_end_stream` keep their defaults; the headers, which hold for the masked body too, announce the length.
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpFailure>>> {
        loop {
            if self.ended {
                return Poll::Ready(self.last.take().map(Ok));
            }
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let this = &mut *self;
            let passed = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.masker.push(&data),
                    Err(frame) => {
                        this.ended = true;
                        this.last = frame.into_trailers().ok().map(|mut trailers| {
                            mask_headers(this.masker.masks(), &mut trailers);
                            Frame::trailers(trailers)
                        });
                        this.masker.finish()
                    }
                },
                // If a body breaks off, the bytes held back may be the beginning of a secret, so they are dropped.
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    this.ended = true;
                    this.masker.finish()
                }
            };
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }
}
