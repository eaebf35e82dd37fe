//! The bytes of requests and answers, counted as long as they are in memory.

use crate::allowance::{Portion, Share};
use crate::answer_body::keep_until_sent;
use crate::problem::Problem;
use crate::readers::ReaderTurn;
use crate::serve::Server;
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderMap};
use axum::http::{Response, StatusCode};
use http_body_util::LengthLimitError;
use hyper::body::Body as _;
use onus_core::refusal::Refusal;
use std::sync::Arc;

/// So many bytes of one caller's requests are in memory at once.
pub(crate) const READING_EACH: usize = 16 * 1024 * 1024;

/// So many bytes of one caller's answers, until it takes them. Short ones are not counted.
pub(crate) const SENDING_EACH: usize = 32 * 1024 * 1024;
const SENDING_COUNTS: u64 = 64 * 1024;

/// The body of a request; it counts as long as what comes with it lives.
pub(crate) async fn read(
    server: &Server,
    share: &Share,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<(Bytes, Portion), Problem> {
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if length.is_some_and(|length| length > limit) {
        return Err(too_long(limit));
    }
    let portion = server.reading.take(share, length.unwrap_or(limit).min(limit))?;
    let reading = tokio::time::timeout(server.config.patience, axum::body::to_bytes(body, limit));
    let bytes = match reading.await {
        Err(_) => return Err(Problem::input(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")),
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_too_long(&error) => {
            return Err(too_long(limit));
        }
        Ok(Err(error)) => {
            return Err(Refusal::invalid(format!("the body did not come whole: {error}")).into());
        }
    };
    let kind = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    match kind {
        Some(kind) if kind.eq_ignore_ascii_case("application/json") => Ok((bytes, portion)),
        None if bytes.is_empty() => Ok((bytes, portion)),
        _ => Err(Problem::input(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")),
    }
}

fn too_long(limit: usize) -> Problem {
    Problem::input(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {limit} bytes"))
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<LengthLimitError>())
}

/// The turn that an answer took ends when the answer is sent.
pub(crate) fn keep_turn(response: &mut Response<Body>, turn: Option<ReaderTurn>) {
    if let Some(turn) = turn {
        response.extensions_mut().insert(Arc::new(turn));
    }
}

impl Server {
    /// An answer counts until its caller has taken it.
    pub(crate) fn counted(&self, share: &Share, mut response: Response<Body>) -> Response<Body> {
        let turn = response.extensions_mut().remove::<Arc<ReaderTurn>>();
        let length = response.body().size_hint().exact().filter(|length| *length >= SENDING_COUNTS);
        let Some(length) = length else { return response };
        match self.sending.take(share, usize::try_from(length).unwrap_or(usize::MAX)) {
            Ok(portion) => response.map(|body| keep_until_sent(body, (portion, turn))),
            Err(refusal) => self.refused("", None, refusal.into()),
        }
    }
}
