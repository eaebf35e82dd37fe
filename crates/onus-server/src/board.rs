//! The board over HTTP: pages for whoever has signed in, what they load, and the way in. Pages only ask; what is done on
//! them comes back as ordinary calls of the interface.

use crate::allowance::Share;
use crate::auth;
use crate::problem::Problem;
use crate::serve::Server;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawPathParams, Request};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use onus_app::weight::Weight;
use onus_board::{Download, Page, PagePart, PageRequest, asset, signin};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::sync::Arc;
use std::time::Instant;

/// Asks for the inside of a page only.
const PART: HeaderName = HeaderName::from_static("onus-part");

/// The server's clock, for a page that is shown anew.
const NOW: HeaderName = HeaderName::from_static("onus-now");

/// Nothing but what this server itself sends: no script or style within a page, no other site, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A sign-in form is short.
const FORM_MAX: usize = 8 * 1024;

/// Below this, compressing costs more than it saves.
const WORTH_IT: usize = 4 * 1024;

pub(crate) fn router(server: &Arc<Server>) -> Router {
    let pages = onus_board::pages();
    let home = pages.first().map_or("/signin", |page| page.path);
    let router = pages.into_iter().fold(Router::new(), |router, page| {
        let server = Arc::clone(server);
        let handler =
            move |params: RawPathParams, request: Request| shown(Arc::clone(&server), page, params, request);
        router.route(page.path, get(handler))
    });
    let router = onus_board::downloads().into_iter().fold(router, |router, file| {
        let server = Arc::clone(server);
        router.route(file.path, get(move |request: Request| downloaded(Arc::clone(&server), file, request)))
    });
    let (coming, leaving) = (Arc::clone(server), Arc::clone(server));
    router
        .route("/", get(move || async move { dressed(gone_to(home)) }))
        .route("/assets/{version}/{name}", get(file))
        .route(
            "/signin",
            get(|request: Request| async move { door(then(&request), None) }).post(
                move |headers: HeaderMap, request: Request| sign_in(Arc::clone(&coming), headers, request),
            ),
        )
        .route("/signout", post(move |headers: HeaderMap| sign_out(Arc::clone(&leaving), headers)))
}

/// A page, for who is signed in; the door, for everybody else.
async fn shown(server: Arc<Server>, page: Page, params: RawPathParams, request: Request) -> Response<Body> {
    let began = Instant::now();
    let (parts, _) = request.into_parts();
    let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let answered = drawn(&server, page, params, &parts).await;
    let response = answered.unwrap_or_else(|refusal| match refusal.code {
        Code::Unauthenticated if part(&parts.headers) == PagePart::Whole => {
            let here = parts.uri.path_and_query().map_or("/", |here| here.as_str());
            gone_to(&format!("/signin?then={}", encoded(here)))
        }
        // The door itself asks whether somebody is signed in already.
        Code::Unauthenticated => Problem::from(refusal).response(),
        _ => server.refused(page.name, None, refusal.into()),
    });
    let (status, took) = (response.status().as_u16(), began.elapsed());
    server.metrics.answered(page.name, status, took);
    tracing::info!(operation = page.name, status, ms = took.as_secs_f64() * 1_000.0, "answered");
    dressed(response)
}

async fn drawn(
    server: &Arc<Server>,
    page: Page,
    params: Vec<(String, String)>,
    parts: &Parts,
) -> Result<Response<Body>, Refusal> {
    let presented = presented(&parts.headers)?;
    let (guard, part, weight) = (Arc::clone(server), part(&parts.headers), page.weight());
    let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().map(str::to_owned));
    let question = move |store: &mut crate::store::Store| {
        let principal = guard.admit(store, &presented, weight)?.principal;
        let seen = PageRequest::new(store.store.as_mut(), principal, &path, params, query.as_deref())?;
        Ok((seen.now, onus_board::draw(store, &page, &seen, part)))
    };
    let (now, (status, html)) = server.readers.ask(&Share::of(&parts.extensions), weight, question).await?;
    let mut response = html_answer(&parts.headers, html);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(NOW, HeaderValue::from(now.0));
    Ok(response)
}

/// A file, for who is signed in.
async fn downloaded(server: Arc<Server>, file: Download, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let made = made(&server, file, &parts).await;
    let mut response = made.map_or_else(|refusal| server.refused(name, None, refusal.into()), Response::new);
    if response.status() == StatusCode::OK {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
        if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
    }
    dressed(response)
}

async fn made(server: &Arc<Server>, file: Download, parts: &Parts) -> Result<Body, Refusal> {
    let presented = presented(&parts.headers)?;
    let guard = Arc::clone(server);
    let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().map(str::to_owned));
    let question = move |store: &mut crate::store::Store| {
        let principal = guard.admit(store, &presented, Weight::Heavy)?.principal;
        let seen = PageRequest::new(store.store.as_mut(), principal, &path, Vec::new(), query.as_deref())?;
        (file.ask)(store, &seen)
    };
    server.readers.ask(&Share::of(&parts.extensions), Weight::Heavy, question).await.map(Body::from)
}

/// The token of whoever is signed in.
fn presented(headers: &HeaderMap) -> Result<String, Refusal> {
    auth::kept(headers)
        .ok_or_else(|| Refusal::new(Code::Unauthenticated, "nobody is signed in").hint("GET /signin"))
}

fn part(headers: &HeaderMap) -> PagePart {
    if headers.contains_key(PART) { PagePart::Main } else { PagePart::Whole }
}

fn html_answer(headers: &HeaderMap, html: String) -> Response<Body> {
    let mut response = if html.len() >= WORTH_IT && takes_gzip(headers) {
        let mut response = Response::new(Body::from(asset::gzip_fast(html.as_bytes())));
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        Response::new(Body::from(html))
    };
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| {
        accepted.split(',').any(|coding| coding.trim().split(';').next() == Some("gzip"))
    })
}

/// What every answer to a browser carries.
fn dressed(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Nothing to other sites. With `no-referrer` a browser would hide from us, too, where a sign-in form was sent from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn gone_to(path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, path);
    response
}

fn encoded(path: &str) -> String {
    // Everything that could end the word or begin another one; the rest stays readable.
    path.replace('%', "%25").replace('&', "%26").replace('#', "%23").replace('+', "%2B")
}

/// Styles and scripts: their address changes with them, so that a browser asks once.
async fn file(Path((version, name)): Path<(String, String)>, headers: HeaderMap) -> Response<Body> {
    let Some(asset) = asset::find(&version, &name) else {
        return dressed(Problem::from(Refusal::new(Code::UnknownName, "there is no such file")).response());
    };
    let tag = format!("\"{version}\"");
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let compressed = takes_gzip(&headers);
    let body = match (known, compressed) {
        (true, _) => Bytes::new(),
        (false, true) => Bytes::from_static(&asset.gzip),
        (false, false) => Bytes::from_static(asset.plain),
    };
    let mut response = Response::new(Body::from(body));
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if compressed {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    dressed(response)
}

/// Where the viewer wanted to go.
fn then(request: &Request) -> String {
    signin::read(request.uri().query().unwrap_or_default().as_bytes()).then
}

fn door(then: String, refusal: Option<&Refusal>) -> Response<Body> {
    let status = refusal.map(|refusal| refusal.code.http_status());
    let mut response = match signin::page(&then, refusal) {
        Ok(html) => html_answer(&HeaderMap::new(), html),
        Err(refusal) => Problem::from(refusal).response(),
    };
    if let Some(status) = status.and_then(|status| StatusCode::from_u16(status).ok()) {
        *response.status_mut() = status;
    }
    dressed(response)
}

async fn sign_in(server: Arc<Server>, headers: HeaderMap, request: Request) -> Response<Body> {
    let form = axum::body::to_bytes(request.into_body(), FORM_MAX);
    let Ok(Ok(body)) = tokio::time::timeout(server.config.patience, form).await else {
        return door(
            String::new(),
            Some(&Refusal::invalid("the form is broken, too long, or came too slowly")),
        );
    };
    let said = signin::read(&body);
    let then = signin::local(&said.then).to_owned();
    match admitted(&server, &headers, said).await {
        Ok(token) => {
            tracing::info!(operation = "signin", status = 303, "answered");
            let mut response = gone_to(&then);
            keep(&server, &headers, &token, response.headers_mut());
            dressed(response)
        }
        Err(refusal) => {
            server.metrics.refused(refusal.code.name());
            tracing::warn!(
                operation = "signin",
                code = refusal.code.name(),
                detail = refusal.detail,
                "denied"
            );
            door(then, Some(&refusal))
        }
    }
}

/// Forgets the cookie. A token that was made for this browser ends with it; one that was pasted is its owner's.
async fn sign_out(server: Arc<Server>, headers: HeaderMap) -> Response<Body> {
    let mut response = gone_to("/signin");
    if let (Some(presented), true) = (auth::kept(&headers), auth::is_same_origin(&headers)) {
        let ended = server
            .readers
            .ask(&Share::Strangers, Weight::Light, move |store| store.sign_out(&presented))
            .await;
        if let Err(refusal) = ended {
            tracing::warn!(
                operation = "signout",
                code = refusal.code.name(),
                detail = refusal.detail,
                "denied"
            );
        }
        server.hub.wake();
        keep(&server, &headers, "", response.headers_mut());
    }
    dressed(response)
}

/// The token that the browser is to keep: the one that was pasted, or a new one for a link.
async fn admitted(server: &Arc<Server>, headers: &HeaderMap, said: signin::Said) -> Result<String, Refusal> {
    // Another site must not sign people in, not even as somebody else.
    if !auth::is_same_origin(headers) {
        return Err(Refusal::new(Code::NotPermitted, "the form was sent by another site")
            .hint("open this page itself and sign in again"));
    }
    let guard = Arc::clone(server);
    let token = server.readers.ask(&Share::Strangers, Weight::Light, move |store| {
        let token = match said.link {
            true => store.redeem_link(&said.token)?.secret,
            false => said.token,
        };
        guard.admit(store, &token, Weight::Light)?;
        Ok(token)
    });
    let token = token.await?;
    server.hub.wake();
    Ok(token)
}

/// Out of reach of scripts, and never sent along with what another site makes the browser ask.
fn keep(server: &Server, headers: &HeaderMap, token: &str, answer: &mut HeaderMap) {
    let secure = if server.config.tls.is_some() { "; Secure" } else { "" };
    let life = if token.is_empty() { "; Max-Age=0" } else { "" };
    let name = auth::cookie_name(headers);
    let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{life}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        answer.insert(header::SET_COOKIE, cookie);
    }
}
