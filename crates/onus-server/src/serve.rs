//! From a request to its answer: who asks, what is asked, then the threads that know the store.

use crate::admission::Bearers;
use crate::config::Config;
use crate::events::{Hub, newest};
use crate::metrics::Metrics;
use crate::origin::Origins;
use crate::precondition::Known;
use crate::problem::Problem;
use crate::rate::Rate;
use crate::readers::Readers;
use crate::route::{After, Answer, Asked, Next, Route, RouteKind};
use crate::store::Open;
use crate::traces::{Trace, Traces};
use crate::writer::Writer;
use crate::{auth, board, call, error_pages, intake, mcp, openapi, origin, precondition, routes, sse};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawPathParams, Request};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use http_body_util::LengthLimitError;
use onus_app::token::parse;
use onus_core::code::Code;
use onus_core::id::{RequestId, TaskId};
use onus_core::refusal::Refusal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::watch;
use uuid::Uuid;

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) readers: Readers,
    pub(crate) writer: Writer,
    pub(crate) hub: Arc<Hub>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Option<Traces>,
    origins: Origins,
    pub(crate) rate: Rate,
    pub(crate) bearers: Bearers,
    /// True once the server ends: what lasts for ever ends then, too.
    pub(crate) ending: watch::Receiver<bool>,
    events: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(
        config: Config,
        open: &Open,
        ending: watch::Receiver<bool>,
    ) -> Result<Server, Refusal> {
        let metrics = Arc::new(Metrics::new());
        let (hub, events) = Hub::start(open, config.database.as_ref())?;
        let (told, counted) = (Arc::clone(&hub), Arc::clone(&metrics));
        let committed = Box::new(move |commands| {
            counted.committed(commands);
            told.wake();
        });
        Ok(Server {
            readers: Readers::start(open, config.readers)?,
            writer: Writer::start(open, committed)?,
            hub,
            metrics,
            traces: config.traces.as_deref().map(Traces::start).transpose()?,
            origins: Origins::new(&config),
            rate: Rate::new(config.rate),
            bearers: Bearers::default(),
            ending,
            events,
            config,
        })
    }

    /// Carries out and answers what was accepted; then the store is closed.
    pub(crate) fn finish(self) {
        self.writer.finish();
        self.readers.finish();
        drop(self.hub);
        drop(self.events.join());
        if let Some(traces) = &self.traces {
            traces.finish();
        }
    }
}

/// The table of routes as a router, with what is not in it.
pub(crate) fn router(server: &Arc<Server>) -> Router {
    let document: Arc<str> = openapi::document().into();
    let mut paths: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for route in routes::table() {
        let path = route.path;
        let (server, route) = (Arc::clone(server), Arc::new(route));
        let filter = match route.sort {
            RouteKind::Question => MethodFilter::GET,
            RouteKind::Command | RouteKind::Administration => MethodFilter::POST,
        };
        let handler = on(filter, move |params: RawPathParams, request: Request| {
            answered(Arc::clone(&server), Arc::clone(&route), params, request)
        });
        let merged = match paths.remove(path) {
            Some(earlier) => earlier.merge(handler),
            None => handler,
        };
        paths.insert(path, merged);
    }
    let table = paths.into_iter().fold(Router::new(), |router, (path, handler)| router.route(path, handler));
    let (events, ready, metrics, guard) =
        (Arc::clone(server), Arc::clone(server), Arc::clone(server), Arc::clone(server));
    let (calls, channels) = (Arc::clone(server), Arc::clone(server));
    table
        .route(
            "/v1/call/{name}",
            post(move |Path(name): Path<String>, request: Request| {
                call::called(Arc::clone(&calls), name, request)
            }),
        )
        .route(
            intake::PATH,
            post(move |Path(channel): Path<String>, request: Request| {
                intake::received(Arc::clone(&channels), channel, request)
            }),
        )
        .route("/v1/events", get(move |request: Request| listened(Arc::clone(&events), request)))
        .merge(board::router(server))
        .route("/mcp", mcp::route(server))
        .route("/openapi.json", get(move || text("application/json", document.to_string())))
        .route("/healthz", get(|| text("text/plain; charset=utf-8", "ok\n".to_owned())))
        .route("/readyz", get(move || readiness(Arc::clone(&ready))))
        .route(
            "/metrics",
            get(move || {
                text("application/openmetrics-text; version=1.0.0; charset=utf-8", metrics.metrics.text())
            }),
        )
        .route("/errors", get(|| text("text/plain; charset=utf-8", error_pages::index())))
        .route("/errors/{code}", get(|Path(code): Path<String>| error_pages::page(code)))
        .fallback(async || {
            let refusal =
                Refusal::new(Code::UnknownName, "there is no such path").hint("GET /openapi.json lists them");
            Problem::from(refusal).response()
        })
        .method_not_allowed_fallback(async || {
            let detail = "this path does not know the method";
            Problem::input(StatusCode::METHOD_NOT_ALLOWED, detail).or_usage().response()
        })
        .layer(axum::middleware::from_fn(move |mut request: Request, next: axum::middleware::Next| {
            let guard = Arc::clone(&guard);
            async move {
                origin::put_host(&mut request);
                match guard.origins.check(request.headers()) {
                    Ok(()) => next.run(request).await,
                    Err(refusal) => guard.refused("", None, refusal.into()),
                }
            }
        }))
}

pub(crate) async fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Whether the store answers.
async fn readiness(server: Arc<Server>) -> Response<Body> {
    match server.readers.ask(newest).await {
        Ok(_) => text("text/plain; charset=utf-8", "ok\n".to_owned()).await,
        Err(refusal) => Problem::from(refusal).response(),
    }
}

async fn listened(server: Arc<Server>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let begun = async {
        let presented = auth::presented_or_kept(&parts.method, &parts.headers)?;
        let after = sse::resume_at(&parts.headers, &parts.uri)?;
        let guard = Arc::clone(&server);
        server.readers.ask(move |store| guard.admit(store, &presented).map(drop)).await?;
        sse::answer(Arc::clone(&server), after).await
    };
    match begun.await {
        Ok(response) => response,
        Err(refusal) => server.refused("events", None, Problem::from(refusal).or_usage()),
    }
}

/// What is known of a request, for the log.
#[derive(Debug, Default)]
struct Seen {
    key: Option<String>,
    worker: Option<String>,
    /// The task in the path.
    task: Option<TaskId>,
    code: Option<&'static str>,
    trace: Trace,
}

async fn answered(
    server: Arc<Server>,
    route: Arc<Route>,
    params: RawPathParams,
    request: Request,
) -> Response<Body> {
    let began = Instant::now();
    let mut seen =
        Seen { trace: Trace::of(server.traces.as_ref(), route.name, request.headers()), ..Seen::default() };
    let response = match asked(&server, &route, &params, request, &mut seen).await {
        Ok(response) => response,
        Err(problem) => {
            seen.code = Some(problem.refusal.code.name());
            let problem = problem.or_usage().about(seen.task.as_ref());
            server.refused(route.name, seen.key.clone(), problem)
        }
    };
    let took = began.elapsed();
    let status = response.status().as_u16();
    server.metrics.answered(route.name, status, took);
    let texts = [
        ("onus.code", seen.code),
        ("onus.request_id", seen.key.as_deref()),
        ("onus.worker", seen.worker.as_deref()),
    ];
    for (name, value) in texts {
        seen.trace.tell(name, value);
    }
    seen.trace.end(status);
    tracing::info!(
        operation = route.name,
        status,
        code = seen.code,
        request_id = seen.key,
        worker = seen.worker,
        ms = took.as_secs_f64() * 1_000.0,
        "answered"
    );
    response
}

async fn asked(
    server: &Arc<Server>,
    route: &Arc<Route>,
    params: &RawPathParams,
    request: Request,
    seen: &mut Seen,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let presented = auth::presented_or_kept(&parts.method, &parts.headers)?;
    let key = key(&parts.headers)?;
    let is_question = route.sort == RouteKind::Question;
    seen.key = (!is_question).then(|| key.to_string());
    let param = |wanted: &str| params.iter().find(|(name, _)| *name == wanted).map(|(_, text)| text);
    let task = param("id").map(str::parse::<TaskId>).transpose().map_err(Refusal::invalid)?;
    seen.task = task.clone();
    let (version, known, body) = if is_question {
        (None, precondition::seen(&parts.headers), Bytes::new())
    } else {
        (
            precondition::required(&parts.headers)?,
            Known::default(),
            read(server, &parts.headers, body, server.config.body_limit).await?,
        )
    };
    let name = param("name").map(str::to_owned);
    let (guard, act) = (Arc::clone(server), Arc::clone(route));
    let uri = parts.uri;
    let part = seen.trace.part("ask");
    let (shown, next) = server
        .readers
        .ask(move |store| {
            let make = |shown| Asked { shown, task, name, uri, body, key, version };
            match act.sort {
                RouteKind::Command => guard.commanded(store, &act, parse(&presented)?, make),
                RouteKind::Question | RouteKind::Administration => {
                    let asked = make(guard.admit(store, &presented)?);
                    // Who asked is worth knowing also where the answer is no.
                    let next = (act.act)(store, &asked);
                    Ok((asked.shown, next))
                }
            }
        })
        .await?;
    drop(part);
    seen.worker = shown.principal.worker.as_ref().map(ToString::to_string);
    let answer = match next? {
        Next::Answer(answer) => {
            if route.sort == RouteKind::Administration {
                server.hub.wake();
            }
            answer
        }
        Next::Submit { calls, tell } => {
            let part = seen.trace.part("write");
            let receipts = server.submitted(calls, Some(shown)).await?;
            drop(part);
            match tell(receipts)? {
                After::Answer(answer) => answer,
                After::Ask(ask) => {
                    let _part = seen.trace.part("ask again");
                    server.readers.ask(ask).await?
                }
            }
        }
    };
    Ok(response(answer, &known, seen.key.as_deref()))
}

impl Server {
    /// Every "no" is counted, and what concerns permission is logged for whoever looks after the server.
    pub(crate) fn refused(
        &self,
        operation: &str,
        key: Option<String>,
        mut problem: Problem,
    ) -> Response<Body> {
        problem.refusal.request_id = problem.refusal.request_id.or_else(|| key.clone());
        let code = problem.refusal.code;
        self.metrics.refused(code.name());
        let status = problem.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            tracing::warn!(operation, code = code.name(), detail = problem.refusal.detail, "denied");
        } else if status.is_server_error() {
            tracing::error!(operation, code = code.name(), detail = problem.refusal.detail, "failed");
        }
        let mut response = problem.response();
        if let Some(value) = key.and_then(|key| HeaderValue::from_str(&key).ok()) {
            response.headers_mut().insert(KEY, value);
        }
        response
    }
}

/// A header that has one meaning: two of them are none.
pub(crate) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Refusal::invalid(format!("{name}: it comes more than once"))),
    }
}

/// The caller's name for this request.
pub(crate) fn named(headers: &HeaderMap) -> Result<Option<RequestId>, Refusal> {
    let text = only(headers, &KEY)?.map(|value| value.to_str().unwrap_or_default());
    text.map(str::parse).transpose().map_err(|why| Refusal::invalid(format!("Idempotency-Key: {why}")))
}

/// The same, or a name of our own: it is told in the answer.
fn key(headers: &HeaderMap) -> Result<RequestId, Refusal> {
    match named(headers)? {
        Some(request) => Ok(request),
        None => {
            let mut random = [0; 16];
            let failed = |error: &dyn std::fmt::Display| Refusal::new(Code::Internal, error.to_string());
            getrandom::fill(&mut random).map_err(|error| failed(&error))?;
            let id = uuid::Builder::from_random_bytes(random).into_uuid();
            Uuid::to_string(&id).parse().map_err(|error: String| failed(&error))
        }
    }
}

pub(crate) async fn read(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    let reading = tokio::time::timeout(server.config.patience, axum::body::to_bytes(body, limit));
    let bytes = match reading.await {
        Err(_) => return Err(Problem::input(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")),
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_too_long(&error) => {
            let detail = format!("the body is longer than {limit} bytes");
            return Err(Problem::input(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        Ok(Err(error)) => {
            return Err(Refusal::invalid(format!("the body did not come whole: {error}")).into());
        }
    };
    let kind = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    match kind {
        Some(kind) if kind.eq_ignore_ascii_case("application/json") => Ok(bytes),
        None if bytes.is_empty() => Ok(bytes),
        _ => Err(Problem::input(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<LengthLimitError>())
}

pub(crate) fn response(answer: Answer, known: &Known, key: Option<&str>) -> Response<Body> {
    let is_known = known.has(answer.version);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(answer.body) });
    *response.status_mut() = match (&answer.location, is_known) {
        (Some(_), _) => StatusCode::CREATED,
        (None, true) => StatusCode::NOT_MODIFIED,
        (None, false) => StatusCode::OK,
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut tell = |name: HeaderName, text: Option<String>| {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(name, value);
        }
    };
    tell(header::ETAG, answer.version.map(|version| format!("\"{version}\"")));
    tell(header::LOCATION, answer.location);
    tell(KEY, key.map(str::to_owned));
    response
}
