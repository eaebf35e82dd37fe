//! In a build without the feature `traces`: nobody can ask for any, and nothing is told.

use axum::http::HeaderMap;
use onus_core::refusal::Refusal;

/// There is none: [`Traces::start`] refuses.
#[derive(Debug)]
pub(crate) enum Traces {}

impl Traces {
    pub(crate) fn start(_: &str) -> Result<Traces, Refusal> {
        Err(Refusal::invalid("this build of onus sends no traces")
            .hint("build it with the feature traces: cargo install --path crates/onus-cli"))
    }

    pub(crate) fn finish(&self) {
        match *self {}
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Trace;

impl Trace {
    pub(crate) fn of(_: Option<&Traces>, _: &str, _: &HeaderMap) -> Trace {
        Trace
    }

    pub(crate) fn part(&self, _: &'static str) -> Part {
        Part
    }

    pub(crate) fn tell(&self, _: &'static str, _: Option<&str>) {}

    pub(crate) fn end(self, _: u16) {}
}

#[derive(Debug)]
pub(crate) struct Part;

/// As with traces: callers end it where its part ends.
impl Drop for Part {
    fn drop(&mut self) {}
}
