//! What a session prints, as it prints it: server-sent events, resumable. The id of an event is the byte behind its text.

use crate::allowance::{Portion, Share};
use crate::problem::Problem;
use crate::routes::OutputFormat;
use crate::serve::Server;
use crate::store::Store;
use crate::{auth, routes};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{self, HeaderMap};
use axum::http::{Response, Uri};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use onus_app::output::OutputView;
use onus_app::weight::Weight;
use onus_core::id::{Seq, shown};
use onus_core::refusal::Refusal;
use onus_core::token::TokenText;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked at: a printed line is to be seen at once, and most sessions are watched by nobody.
const LOOK: Duration = Duration::from_millis(100);
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Whether a request wants what comes next, too. Who also takes a document gets one: it ends.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|kinds| kinds.starts_with("text/event-stream"))
}

pub(crate) async fn followed(server: Arc<Server>, session: String, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let begun = async {
        let presented = auth::presented_or_kept(&parts.method, &parts.headers)?;
        let (guard, share) = (Arc::clone(&server), Share::of(&parts.extensions));
        let (headers, uri) = (parts.headers.clone(), parts.uri.clone());
        // Who asks comes first: a stranger is told nothing about the path.
        let admitted = move |store: &mut Store| {
            let token = guard.admit(store, &presented, Weight::Light)?.text;
            let number = session.parse::<Seq>();
            let number = number.map_err(|_| {
                Refusal::invalid(format!("{} is not the number of a session", shown(&session)))
            })?;
            let (next, format) = begins(&headers, &uri)?;
            store.output(number, next)?;
            Ok((token, number, next, format))
        };
        let (token, session, next, format) = server.readers.ask(&share, Weight::Light, admitted).await?;
        let portion = server.streams.take(&Share::Bearer(token.hash()), 1)?;
        Ok::<_, Refusal>(Follower {
            server: Arc::clone(&server),
            share,
            token,
            session,
            next,
            format,
            ended: false,
            _portion: portion,
        })
    };
    match begun.await {
        Ok(follower) => {
            let events = stream::unfold(follower, |mut follower| async move {
                let event = follower.next().await?;
                Some((Ok::<_, Infallible>(event), follower))
            });
            Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response()
        }
        Err(refusal) => server.refused(routes::OUTPUT, None, Problem::from(refusal).or_usage()),
    }
}

/// A browser that comes back repeats its first address: what it has seen since is in the header.
fn begins(headers: &HeaderMap, uri: &Uri) -> Result<(i64, OutputFormat), Refusal> {
    let (mut from, mut format) = (None, None);
    for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("from", value)) if from.is_none() => from = Some(value),
            Some(("format", "text")) if format.is_none() => format = Some(OutputFormat::Text),
            Some(("format", "steps")) if format.is_none() => format = Some(OutputFormat::Steps),
            _ => {
                let detail = "the query: only `from` and `format` (text, steps) are known, each once";
                return Err(Refusal::invalid(detail));
            }
        }
    }
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default());
    let text = header.or(from).unwrap_or("0");
    let byte = text.parse::<i64>().ok().filter(|byte| *byte >= 0);
    let byte =
        byte.ok_or_else(|| Refusal::invalid(format!("from: {} is no byte of an output", shown(text))))?;
    Ok((byte, format.unwrap_or_default()))
}

/// Where one reader stands.
struct Follower {
    server: Arc<Server>,
    share: Share,
    token: TokenText,
    session: Seq,
    next: i64,
    format: OutputFormat,
    ended: bool,
    _portion: Portion,
}

impl Follower {
    /// None when nothing more comes, the server ends, or the token is no longer good.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.ended {
                return None;
            }
            let (token, session, from, format) = (self.token.clone(), self.session, self.next, self.format);
            let look = move |store: &mut Store| {
                store.recognise_until(&token)?;
                format.of(store, session, from)
            };
            let view = self.server.readers.ask(&self.share, Weight::Light, look).await.ok()?;
            if !view.pieces.is_empty() || !view.steps.is_empty() {
                return self.told(&view);
            }
            if view.closed {
                self.ended = true;
                return Some(Event::default().event("end").data("{}"));
            }
            let mut ending = self.server.ending.clone();
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = ending.wait_for(|ending| *ending) => return None,
            }
        }
    }

    fn told(&mut self, view: &OutputView) -> Option<Event> {
        self.next = view.next;
        let document = serde_json::to_string(view).ok()?;
        Some(Event::default().id(view.next.to_string()).event("output").data(document))
    }
}
