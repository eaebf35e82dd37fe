//! The body of an answer that keeps something until the last of it was sent, or its caller has gone.

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// `body`, with `kept` dropped when nothing of it is to come any more.
pub(crate) fn keep_until_sent<T: Send + Unpin + 'static>(body: Body, kept: T) -> Body {
    Body::new(KeepingBody { body, _kept: kept })
}

struct KeepingBody<T> {
    body: Body,
    _kept: T,
}

impl<T: Unpin> hyper::body::Body for KeepingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
