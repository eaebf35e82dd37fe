//! `events`: server-sent events, resumable. The id of an event is its entry's number in the record, which has no gaps: a
//! listener that comes back with the last id it saw misses nothing and sees nothing twice, on whichever server.

use crate::events::{Behind, Event, PAGE, Subscriber, newest};
use crate::serve::Server;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Proxies close what is silent for long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Behind which entry the listener wants to begin: none means with what happens next.
pub(crate) fn resume_at(headers: &HeaderMap, uri: &Uri) -> Result<Option<Seq>, Refusal> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default());
    let query = uri.query().unwrap_or_default();
    let mut after = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("after", value)) if after.is_none() => after = Some(value),
            _ => return Err(Refusal::invalid("the query: only `after` is known, and only once")),
        }
    }
    // A browser that reconnects repeats its first address: what it has seen since is in the header.
    let seq = header.or(after).map(|text| text.parse::<Seq>().ok().filter(|seq| *seq >= 0).ok_or(text));
    seq.transpose()
        .map_err(|text| Refusal::invalid(format!("{} is not the id of an event", onus_core::id::shown(text))))
}

pub(crate) async fn answer(server: Arc<Server>, after: Option<Seq>) -> Result<Response, Refusal> {
    let ear = server.hub.listen();
    let seen = match after {
        Some(seq) => seq,
        None => server.readers.ask(newest).await?,
    };
    server.metrics.listeners.inc();
    let stand = Stand { server, ear, seen, ready: VecDeque::new() };
    Ok(Sse::new(events(stand)).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response())
}

/// Where one listener stands.
struct Stand {
    server: Arc<Server>,
    ear: Subscriber,
    seen: Seq,
    ready: VecDeque<Event>,
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.server.metrics.listeners.dec();
    }
}

fn events(stand: Stand) -> impl Stream<Item = Result<Sent, Infallible>> {
    stream::unfold(stand, |mut stand| async move {
        let event = stand.next().await?;
        let sent = Sent::default().id(event.seq.to_string()).event(event.verb).data(&*event.document);
        Some((Ok(sent), stand))
    })
}

impl Stand {
    /// The next event; none when the server ends or the record cannot be read: the listener comes back with what it saw.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.seen = event.seq;
                return Some(event);
            }
            // Marked before it is looked at: what comes in between wakes us.
            self.ear.last.borrow_and_update();
            match self.ear.hub.behind(self.seen) {
                Behind::Known(events) if events.is_empty() => {
                    let mut ending = self.server.ending.clone();
                    tokio::select! {
                        changed = self.ear.last.changed() => changed.ok()?,
                        _ = ending.wait_for(|ending| *ending) => return None,
                    }
                }
                Behind::Known(events) => self.ready = events.into(),
                Behind::Older => {
                    let seen = self.seen;
                    let page =
                        self.server.readers.ask(move |store| store.log(None, Some(seen), PAGE)).await.ok()?;
                    if page.entries.is_empty() {
                        return None;
                    }
                    self.ready = page.entries.into_iter().map(Event::new).collect();
                }
            }
        }
    }
}
