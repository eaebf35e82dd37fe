//! `events`: server-sent events, resumable. The id of an event is its entry's number in the record, which has no gaps: a
//! listener that comes back with the last id it saw misses nothing and sees nothing twice, on whichever server.

use crate::allowance::{Portion, Share};
use crate::events::{Behind, Event, Subscriber, newest};
use crate::serve::Server;
use crate::store::Store;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use onus_app::weight::Weight;
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use onus_core::token::TokenText;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Proxies close what is silent for long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// So many entries are read at once for a listener that is behind: each listener has its own in memory.
const CAUGHT_UP: i64 = 64;

/// How often a listener's token is looked at, beside what the record says about it.
const JUDGED_EVERY: Duration = Duration::from_secs(60);

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

pub(crate) async fn answer(
    server: Arc<Server>,
    token: TokenText,
    after: Option<Seq>,
) -> Result<Response, Refusal> {
    let share = Share::Bearer(token.hash());
    let portion = server.streams.take(&share, 1)?;
    let ear = server.hub.listen();
    let seen = match after {
        Some(seq) => seq,
        None => server.readers.ask(&share, Weight::Light, newest).await?,
    };
    server.metrics.listeners.inc();
    let ready = VecDeque::new();
    let mut stand =
        Stand { server, ear, token, share, judge_at: Instant::now(), seen, ready, _portion: portion };
    stand.judged().await?;
    Ok(Sse::new(events(stand)).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response())
}

/// Where one listener stands.
struct Stand {
    server: Arc<Server>,
    ear: Subscriber,
    token: TokenText,
    share: Share,
    /// When the token is looked at again, whatever happens: it may have expired by then.
    judge_at: Instant,
    seen: Seq,
    ready: VecDeque<Event>,
    _portion: Portion,
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
    /// The next event; none when the server ends, the token is no longer good, or the record cannot be read: the listener
    /// comes back with what it saw.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                // A change of the workspace itself: it may be this very token that was revoked.
                if event.is_workspace || Instant::now() >= self.judge_at {
                    self.judged().await.ok()?;
                }
                self.seen = event.seq;
                return Some(event);
            }
            // Marked before it is looked at: what comes in between wakes us.
            self.ear.last.borrow_and_update();
            match self.ear.hub.behind(self.seen) {
                Behind::Known(events) if events.is_empty() => {
                    let mut ending = self.server.ending.clone();
                    let is_due = tokio::select! {
                        changed = self.ear.last.changed() => {
                            changed.ok()?;
                            false
                        }
                        () = tokio::time::sleep_until(self.judge_at) => true,
                        _ = ending.wait_for(|ending| *ending) => return None,
                    };
                    if is_due {
                        self.judged().await.ok()?;
                    }
                }
                Behind::Known(events) => self.ready = events.into(),
                Behind::Older => {
                    let seen = self.seen;
                    let log = move |store: &mut Store| store.log(None, Some(seen), CAUGHT_UP);
                    let page = self.server.readers.ask(&self.share, Weight::Light, log).await.ok()?;
                    if page.entries.is_empty() {
                        return None;
                    }
                    self.ready = page.entries.into_iter().map(Event::new).collect();
                }
            }
        }
    }

    /// Whether the token is still good, and until when that need not be asked again.
    async fn judged(&mut self) -> Result<(), Refusal> {
        let text = self.token.clone();
        let left = move |store: &mut Store| store.recognise_until(&text);
        let left = self.server.readers.ask(&self.share, Weight::Light, left).await?;
        let left = left.and_then(|left| u64::try_from(left.0).ok()).map(Duration::from_millis);
        self.judge_at = Instant::now() + left.unwrap_or(JUDGED_EVERY).min(JUDGED_EVERY);
        Ok(())
    }
}
