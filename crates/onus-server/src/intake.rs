//! `POST /v1/intake/{channel}`: asks of other systems. Their signature stands in for a token.

use crate::allowance::Share;
use crate::body::read;
use crate::precondition::KnownVersions;
use crate::problem::Problem;
use crate::route::{Answer, unanswered};
use crate::serve::{Server, only, response};
use crate::traces::Trace;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Response};
use onus_app::intake::{Arrival, IntakeView};
use onus_app::submit::Target;
use onus_app::weight::Weight;
use onus_core::intake::channel::Delivery;
use onus_core::refusal::Refusal;
use std::sync::Arc;
use std::time::Instant;

pub(crate) const NAME: &str = "intake";
pub(crate) const PATH: &str = "/v1/intake/{channel}";

pub(crate) async fn received(server: Arc<Server>, channel: String, request: Request) -> Response<Body> {
    let began = Instant::now();
    let trace = Trace::of(server.traces.as_ref(), NAME, request.headers());
    let answer = match answered(&server, channel.clone(), request).await {
        Ok(answer) => response(answer, &KnownVersions::default(), None),
        Err(problem) => server.refused(NAME, None, problem),
    };
    let status = answer.status().as_u16();
    server.metrics.answered(NAME, status, began.elapsed());
    trace.end(status);
    tracing::info!(
        operation = NAME,
        channel,
        status,
        ms = began.elapsed().as_secs_f64() * 1_000.0,
        "answered"
    );
    answer
}

async fn answered(server: &Arc<Server>, channel: String, request: Request) -> Result<Answer, Problem> {
    let (parts, body) = request.into_parts();
    let name = channel.clone();
    let headers =
        server.readers.ask(&Share::Strangers, Weight::Light, move |store| store.headers_of(&name)).await?;
    let (body, _portion) =
        read(server, &Share::Strangers, &parts.headers, body, server.config.body_limit).await?;
    let guard = Arc::clone(server);
    let arrival = server.readers.ask(&Share::Strangers, Weight::Light, move |store| {
        let text = |name: &str| text(&parts.headers, name);
        let delivery = Delivery {
            signature: text(headers.signature)?,
            id: text(headers.delivery)?,
            event: headers.event.map(text).transpose()?.flatten(),
            body: &body,
        };
        let arrival = store.receive(&channel, &delivery)?;
        // Counted once it is believed: strangers cannot use a channel's share up.
        let who = format!("the channel {channel}");
        guard.paced(&who, Weight::Light, "wait, then send the delivery again", || who.clone())?;
        Ok(arrival)
    });
    let view = match arrival.await? {
        Arrival::Told(view) => *view,
        Arrival::Ask(envelope) => {
            let receipts = server.writer.submit(vec![(*envelope, Target::Named)], None).await?;
            IntakeView::from(&receipts.into_iter().next().ok_or_else(unanswered)??)
        }
    };
    let created = view.task.as_ref().filter(|_| view.outcome == "created");
    let location = created.map(|task| format!("/v1/tasks/{}", task.id));
    Ok(Answer { location, ..Answer::of(&view)? })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let name: HeaderName = name.parse().map_err(|_| Refusal::invalid("no name of a header"))?;
    Ok(only(headers, &name)?.and_then(|value| value.to_str().ok()))
}
