//! "No" over HTTP: RFC 9457 with the error object that every front end shows.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use onus_core::code::Code;
use onus_core::id::TaskId;
use onus_core::refusal::{Finding, Refusal};
use schemars::JsonSchema;
use serde::Serialize;

/// What a refused call is answered with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemView {
    /// `/errors/<code>`: the page that explains it.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) title: String,
    pub(crate) status: u16,
    pub(crate) detail: String,
    pub(crate) code: Code,
    pub(crate) hint: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) request_id: Option<String>,
}

/// A refusal on its way to the caller.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) refusal: Refusal,
    /// Where HTTP itself has a better word than the code's own status.
    status: Option<StatusCode>,
    /// Seconds.
    retry_after: Option<u64>,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let passes = matches!(refusal.code, Code::StoreBusy | Code::StoreUnavailable | Code::TooManyRequests);
        let retry_after = passes.then_some(1);
        Problem { refusal, status: None, retry_after }
    }
}

impl Problem {
    /// Input that HTTP has a status of its own for.
    pub(crate) fn input(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem { refusal: Refusal::invalid(detail), status: Some(status), retry_after: None }
    }

    /// With a next step, where what was sent is not valid and nothing better is known. Not for the calls of the command
    /// line, which has its own.
    pub(crate) fn or_usage(self) -> Problem {
        let usage = || "GET /openapi.json tells what each path takes".to_owned();
        Problem { refusal: self.refusal.or_usage(usage), ..self }
    }

    /// About this task, where it names none.
    pub(crate) fn about(mut self, task: Option<&TaskId>) -> Problem {
        self.refusal.task = self.refusal.task.or_else(|| task.map(ToString::to_string));
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        let own = StatusCode::from_u16(self.refusal.code.http_status());
        self.status.unwrap_or_else(|| own.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }

    pub(crate) fn response(self) -> Response<Body> {
        let status = self.status();
        let Refusal { code, detail, hint, task, findings, request_id } = self.refusal;
        let view = ProblemView {
            kind: format!("/errors/{code}"),
            title: code.title().to_owned(),
            status: status.as_u16(),
            detail,
            code,
            hint,
            task,
            findings,
            request_id,
        };
        // A struct of texts and numbers always becomes JSON.
        let body = serde_json::to_string(&view).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"onus\""));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
