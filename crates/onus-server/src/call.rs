//! The command line's own way in: `POST /v1/call/{name}` carries a call of `onus_app::remote` and its answer.
//!
//! It is no part of the HTTP contract: both ends are Onus, of about the same age. The same rules apply as on every other
//! path, because the same functions are called in the name of the same token.

use crate::allowance::Share;
use crate::auth;
use crate::body::{keep_turn, read};
use crate::problem::Problem;
use crate::readers::ReaderTurn;
use crate::serve::{Server, named};
use crate::traces::Trace;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::http::{HeaderName, Response};
use onus_app::idempotent_admin::Asker;
use onus_app::remote::{self, CallName};
use onus_app::token::{Shown, parse};
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::process::Process;
use onus_core::refusal::Refusal;
use onus_core::token::Principal;
use std::sync::Arc;
use std::time::Instant;

/// Who the caller believes to be. A token of somebody else is a mistake that should not pass unnoticed.
const AS: HeaderName = HeaderName::from_static("onus-as");

/// Which process asks, in the words of `onus_host::process_liveness`: only its own host can make anything of them.
const PROCESS: HeaderName = HeaderName::from_static("onus-process");

pub(crate) async fn called(server: Arc<Server>, name: String, request: Request) -> Response<Body> {
    let began = Instant::now();
    let trace = Trace::of(server.traces.as_ref(), "call", request.headers());
    trace.tell("onus.call", Some(&name));
    let response = match answered(&server, name.clone(), request).await {
        Ok((body, turn)) => {
            let mut response = Response::new(Body::from(body));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            keep_turn(&mut response, turn);
            response
        }
        Err(problem) => server.refused("call", None, problem),
    };
    let status = response.status().as_u16();
    server.metrics.answered("call", status, began.elapsed());
    trace.end(status);
    tracing::info!(
        operation = "call",
        call = name,
        status,
        ms = began.elapsed().as_secs_f64() * 1_000.0,
        "answered"
    );
    response
}

async fn answered(
    server: &Arc<Server>,
    name: String,
    request: Request,
) -> Result<(String, Option<ReaderTurn>), Problem> {
    let (parts, body) = request.into_parts();
    let presented = auth::presented(&parts.headers)?;
    let call = CallName::known(&name)?;
    let believed = believed(&parts.headers)?;
    let sender = sender(&parts.headers)?;
    let request = named(&parts.headers)?;
    // The permission is checked before the body is read.
    remote::permits(&server.bearer(parse(&presented)?).await?, call)?;
    let guard = Arc::clone(server);
    let (share, weight) = (Share::of(&parts.extensions), call.weight());
    let admit = move |store: &mut crate::store::Store| -> Result<Shown, Refusal> {
        let shown = guard.admit(store, &presented, weight)?;
        is_who_it_believes(&shown.principal, believed.as_ref())?;
        remote::permits(&shown.principal, call)?;
        Ok(shown)
    };
    let limit = call.class().body_limit(server.config.body_limit);
    let (bytes, _portion) = read(server, &share, &parts.headers, body, limit).await?;
    let arguments =
        String::from_utf8(bytes.to_vec()).map_err(|_| Refusal::invalid("the call is not UTF-8"))?;
    if call == CallName::Submit {
        let carried = server.readers.ask(&share, weight, move |store| {
            let shown = Shown { sender, ..admit(store)? };
            let (envelope, target) = remote::arrived(&arguments, shown.principal.worker.as_ref())?;
            Ok(((store.witnessed(shown.principal.carry(envelope)?)?, target), shown))
        });
        let (call, shown) = carried.await?;
        let receipt = server.submitted(vec![call], Some(shown)).await?.into_iter().next();
        return Ok((remote::receipt(receipt.ok_or_else(crate::route::unanswered)??)?, None));
    }
    let answer = server.readers.ask_with_turn(&share, weight, move |store| {
        let shown = admit(store)?;
        let actor = shown.principal.worker.as_ref();
        let asker = Asker { actor, request: request.as_ref(), shown: Some(&shown) };
        remote::answer(store, asker, call, &arguments)
    });
    let answer = answer.await?;
    if call.class().is_write() {
        server.hub.wake();
    }
    Ok(answer)
}

fn believed(headers: &HeaderMap) -> Result<Option<Handle>, Refusal> {
    let text = headers.get(AS).map(|value| value.to_str().unwrap_or_default());
    text.map(str::parse).transpose().map_err(Refusal::invalid)
}

fn sender(headers: &HeaderMap) -> Result<Option<Process>, Refusal> {
    let text = headers.get(PROCESS).map(|value| value.to_str().unwrap_or_default());
    text.map(str::parse).transpose().map_err(Refusal::invalid)
}

fn is_who_it_believes(principal: &Principal, believed: Option<&Handle>) -> Result<(), Refusal> {
    match (believed, &principal.worker) {
        (Some(believed), Some(own)) if believed != own => {
            Err(Refusal::new(Code::NotPermitted, format!("the token is {own}'s, not {believed}'s"))
                .hint(format!("leave --as out, or set ONUS_TOKEN to a token of {believed}")))
        }
        _ => Ok(()),
    }
}
