//! OpenTelemetry traces, where they are asked for: one span for each request, below the caller's own, and one for each
//! part of it that waits for the store. Nothing is counted, kept or sent otherwise.

use axum::http::HeaderMap;
use bytes::Bytes;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::time::Duration;

/// A collector that does not answer must not hold up the end of the server.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Traces {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
}

impl Traces {
    /// `collector` is the base address of an OTLP/HTTP collector.
    pub(crate) fn start(collector: &str) -> Result<Traces, Refusal> {
        let endpoint = format!("{}/v1/traces", collector.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(ExporterClient::new())
            .with_protocol(Protocol::HttpJson)
            .with_endpoint(&endpoint)
            .with_timeout(PATIENCE)
            .build();
        let exporter = exporter.map_err(|error| {
            Refusal::new(Code::InvalidInput, format!("no traces can go to {endpoint}: {error}"))
                .hint("--traces http://localhost:4318")
        })?;
        let resource = Resource::builder()
            .with_service_name("onus")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Traces { tracer: provider.tracer("onus"), provider })
    }

    fn request(&self, operation: &str, headers: &HeaderMap) -> Context {
        let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        let span = self.tracer.span_builder(operation.to_owned()).with_kind(SpanKind::Server);
        let span = self.tracer.build_with_context(span, &caller);
        caller.with_span(span)
    }

    /// Sends what has not been sent yet.
    pub(crate) fn finish(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(error = %error, "the last traces did not reach the collector");
        }
    }
}

/// The span of one request; none where nobody asked for traces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Option<(SdkTracer, Context)>);

impl Trace {
    pub(crate) fn of(traces: Option<&Traces>, operation: &str, headers: &HeaderMap) -> Trace {
        Trace(traces.map(|traces| (traces.tracer.clone(), traces.request(operation, headers))))
    }

    /// A part of the request, from now until it is dropped.
    pub(crate) fn part(&self, name: &'static str) -> Part {
        Part(self.0.as_ref().map(|(tracer, request)| {
            request.with_span(tracer.build_with_context(tracer.span_builder(name), request))
        }))
    }

    pub(crate) fn tell(&self, name: &'static str, value: Option<&str>) {
        if let (Some((_, request)), Some(value)) = (&self.0, value) {
            request.span().set_attribute(KeyValue::new(name, value.to_owned()));
        }
    }

    pub(crate) fn end(self, status: u16) {
        if let Some((_, request)) = self.0 {
            let span = request.span();
            span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status)));
            // A refusal is an answer; only what the server could not do is an error of it.
            if status >= 500 {
                span.set_status(Status::error(""));
            }
            span.end();
        }
    }
}

/// Ends with its scope.
#[derive(Debug)]
pub(crate) struct Part(Option<Context>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(part) = &self.0 {
            part.span().end();
        }
    }
}

/// Our own HTTP client for the exporter. It blocks, on the exporter's own thread.
#[derive(Debug)]
struct ExporterClient(ureq::Agent);

impl ExporterClient {
    fn new() -> ExporterClient {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .max_redirects(0);
        ExporterClient(config.build().into())
    }
}

#[async_trait::async_trait]
impl HttpClient for ExporterClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(ureq::http::Request::from_parts(parts, body.as_ref()))?;
        let (parts, mut body) = answer.into_parts();
        Ok(Response::from_parts(parts, Bytes::from(body.read_to_vec()?)))
    }
}
