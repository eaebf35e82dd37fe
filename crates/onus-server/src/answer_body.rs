//! The body of an answer that keeps something until the last of it was sent, or its caller has gone. It is sent in pieces: one
//! thread speaks to many callers, and none of them waits until another one's megabytes are copied.

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// `body`, with `kept` dropped when nothing of it is to come any more.
pub(crate) fn keep_until_sent<T: Send + Unpin + 'static>(body: Body, kept: T) -> Body {
    Body::new(KeepingBody { body, rest: Bytes::new(), _kept: kept })
}

/// So many bytes are handed over at once.
const PIECE: usize = 16 * 1024;

struct KeepingBody<T> {
    body: Body,
    /// What the body gave that is not sent yet.
    rest: Bytes,
    _kept: T,
}

impl<T: Unpin> hyper::body::Body for KeepingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context))
                .map(|frame| frame.map(Frame::into_data))
            {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(frame))) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(length) => hint.set_exact(length.saturating_add(rest)),
            None => hint.set_lower(hint.lower().saturating_add(rest)),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use std::sync::Arc;

    #[tokio::test]
    async fn an_answer_goes_out_in_pieces_and_keeps_its_length() {
        let text: Vec<u8> = (0..u8::MAX).cycle().take(5 * PIECE + 7).collect();
        let kept = Arc::new(());
        let mut body = keep_until_sent(Body::from(text.clone()), Arc::clone(&kept));
        assert_eq!(hyper::body::Body::size_hint(&body).exact(), Some(text.len() as u64));
        let mut sent = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE, "{}", piece.len());
            sent.extend_from_slice(&piece);
        }
        assert_eq!(sent, text);
        assert_eq!(Arc::strong_count(&kept), 2, "as long as the body is there");
        drop(body);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
