//! From a request to its answer: who asks, what is asked, then the threads that know the store.

use crate::admission::Bearers;
use crate::allowance::{Allowance, Seat, Share};
use crate::body::{keep_turn, read};
use crate::config::Config;
use crate::events::{Hub, newest};
use crate::indexer::Indexer;
use crate::landings::Landings;
use crate::metrics::Metrics;
use crate::offers::Offers;
use crate::origin::Origins;
use crate::outbox::Outbox;
use crate::precondition::KnownVersions;
use crate::problem::Problem;
use crate::rate::Rate;
use crate::readers::Readers;
use crate::refusal_delay::RefusalDelay;
use crate::route::{After, Answer, Asked, Next, Route, RouteKind};
use crate::store::{Open, Store};
use crate::traces::{Trace, Traces};
use crate::writer::Writer;
use crate::{
    auth, board, body, call, error_pages, intake, mcp, openapi, origin, output_stream, precondition, routes,
    sse,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawPathParams, Request};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use onus_app::token::parse;
use onus_app::weight::Weight;
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
    refusals: RefusalDelay,
    pub(crate) bearers: Bearers,
    connections: Arc<Allowance>,
    pub(crate) streams: Arc<Allowance>,
    /// Bytes that are being read, and bytes of answers that have not been taken yet.
    pub(crate) reading: Arc<Allowance>,
    pub(crate) sending: Arc<Allowance>,
    /// True once the server ends: what lasts for ever ends then, too.
    pub(crate) ending: watch::Receiver<bool>,
    events: JoinHandle<()>,
    /// Tells the mirrors, where there are any.
    outbox: Option<Outbox>,
    /// Looks after pull requests, where the team lands by them.
    offers: Option<Offers>,
    /// Lands what lies in the server's own clone.
    pub(crate) landings: Landings,
    indexer: Indexer,
}

impl Server {
    pub(crate) fn start(
        config: Config,
        open: &Open,
        ending: watch::Receiver<bool>,
    ) -> Result<Server, Refusal> {
        let metrics = Arc::new(Metrics::new());
        // Most of the connections are left to the others, and half of them to whoever does not only listen.
        let part = |of: usize| (config.connections / of).max(1);
        let (hub, events) = Hub::start(open, config.database.as_ref())?;
        let (told, counted) = (Arc::clone(&hub), Arc::clone(&metrics));
        let committed = Box::new(move |commands| {
            counted.committed(commands);
            told.wake();
        });
        Ok(Server {
            readers: Readers::start(open, config.readers)?,
            writer: Writer::start(open, committed)?,
            indexer: Indexer::start(open, &hub)?,
            landings: Landings::start(open, &hub)?,
            hub,
            metrics,
            traces: config.traces.as_deref().map(Traces::start).transpose()?,
            origins: Origins::new(&config),
            rate: Rate::new(config.rate),
            refusals: RefusalDelay::default(),
            bearers: Bearers::default(),
            connections: Allowance::new("connections", part(4), usize::MAX),
            streams: Allowance::new("event streams", part(8), part(2)),
            reading: Allowance::new("bytes on their way in", body::READING_EACH, 8 * body::READING_EACH),
            sending: Allowance::new("bytes on their way out", body::SENDING_EACH, 8 * body::SENDING_EACH),
            ending,
            events,
            outbox: Outbox::start(open)?,
            offers: Offers::start(open)?,
            config,
        })
    }

    pub(crate) fn has_mirrors(&self) -> bool {
        self.outbox.is_some()
    }

    /// Carries out and answers what was accepted; then the store is closed.
    pub(crate) fn finish(self) {
        if let Some(outbox) = self.outbox {
            outbox.finish();
        }
        if let Some(offers) = self.offers {
            offers.finish();
        }
        self.landings.finish();
        self.indexer.finish();
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
        let filter = match route.method {
            Method::GET => MethodFilter::GET,
            Method::PATCH => MethodFilter::PATCH,
            _ => MethodFilter::POST,
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
        .route("/metrics", get(move || measured(Arc::clone(&metrics))))
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
                if let Err(refusal) = guard.origins.check(request.headers()) {
                    return guard.refused("", None, refusal.into());
                }
                let share = guard.share_of(request.headers());
                if let Some(Err(refusal)) =
                    request.extensions().get::<Arc<Seat>>().map(|seat| seat.sit(&guard.connections, &share))
                {
                    let mut response = guard.refused("", None, refusal.into());
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    return response;
                }
                request.extensions_mut().insert(share.clone());
                let response = guard.counted(&share, next.run(request).await);
                guard.refusals.wait(&share, response.status()).await;
                response
            }
        }))
}

pub(crate) async fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// What the server counts, and how the mirrors stand now.
async fn measured(server: Arc<Server>) -> Response<Body> {
    let asked = server.readers.ask(&Share::Strangers, Weight::Light, |store| store.mirrors()).await;
    // Where the store does not answer, the counts are still worth telling.
    if let Ok(view) = asked {
        server.metrics.mirrors(&view);
    }
    text("application/openmetrics-text; version=1.0.0; charset=utf-8", server.metrics.text()).await
}

/// Whether the store answers.
async fn readiness(server: Arc<Server>) -> Response<Body> {
    match server.readers.ask(&Share::Strangers, Weight::Light, newest).await {
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
        let share = Share::of(&parts.extensions);
        let admitted = move |store: &mut Store| guard.admit(store, &presented, Weight::Light);
        let text = server.readers.ask(&share, Weight::Light, admitted).await?.text;
        sse::answer(Arc::clone(&server), text, after).await
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
    if route.name == routes::OUTPUT && output_stream::is_wanted(request.headers()) {
        let session = params.iter().find(|(name, _)| *name == "name").map(|(_, text)| text.to_owned());
        return output_stream::followed(server, session.unwrap_or_default(), request).await;
    }
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
    let share = Share::of(&parts.extensions);
    let is_question = route.sort == RouteKind::Question;
    seen.key = (!is_question).then(|| key.to_string());
    let param = |wanted: &str| params.iter().find(|(name, _)| *name == wanted).map(|(_, text)| text);
    let task = param("id").map(str::parse::<TaskId>).transpose().map_err(Refusal::invalid)?;
    seen.task = task.clone();
    let (version, known, (body, _portion)) = if is_question {
        (None, precondition::seen(&parts.headers), (Bytes::new(), None))
    } else {
        // Not a byte of what somebody sends is read who may not send it.
        route.permits(&server.bearer(parse(&presented)?).await?)?;
        let limit = server.config.body_limit;
        let (body, portion) = read(server, &share, &parts.headers, body, limit).await?;
        (precondition::required(&parts.headers)?, KnownVersions::default(), (body, Some(portion)))
    };
    let name = param("name").map(str::to_owned);
    let (guard, act) = (Arc::clone(server), Arc::clone(route));
    let (uri, weight) = (parts.uri, route.weight);
    let part = seen.trace.part("ask");
    let ((shown, next), turn) = server
        .readers
        .ask_with_turn(&share, weight, move |store| {
            let make = |shown| Asked { shown, task, name, uri, body, key, version };
            match act.sort {
                RouteKind::Command => guard.commanded(store, &act, parse(&presented)?, make),
                RouteKind::Question | RouteKind::Administration => {
                    let asked = make(guard.admit(store, &presented, weight)?);
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
                    server.readers.ask(&share, Weight::Light, ask).await?
                }
            }
        }
        Next::Land(order) => {
            let _part = seen.trace.part("land");
            server.landed(order, shown).await?.try_into()?
        }
    };
    let mut response = response(answer, &known, seen.key.as_deref());
    keep_turn(&mut response, turn);
    Ok(response)
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

pub(crate) fn response(answer: Answer, known: &KnownVersions, key: Option<&str>) -> Response<Body> {
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
