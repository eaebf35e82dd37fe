//! Bodies of requests that nobody read to their end: a refusal is known before they have come. A connection that is reset
//! with something unread takes the answer with it, so the rest is read and forgotten.

use axum::body::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a caller may go on with what nobody reads.
const LINGER: Duration = Duration::from_secs(5);

/// How many bytes of it.
const ENOUGH: usize = 8 * 1024 * 1024;

/// A rest after each piece of it: whoever sends what nobody wants waits, and not the others.
const REST: Duration = Duration::from_millis(5);

/// The body of a request, until its end has come.
#[derive(Debug)]
pub(crate) struct Unread(Option<Incoming>);

impl Unread {
    pub(crate) fn new(body: Incoming) -> Unread {
        Unread(Some(body))
    }
}

impl Body for Unread {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = self.0.as_mut() else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        // Where the runtime has ended, so has the connection.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LINGER, forget(body)));
        }
    }
}

async fn forget(mut body: Incoming) {
    let mut length = 0;
    while length < ENOUGH {
        let Some(Ok(frame)) = body.frame().await else { return };
        length += frame.data_ref().map_or(0, Bytes::len);
        tokio::time::sleep(REST).await;
    }
}
