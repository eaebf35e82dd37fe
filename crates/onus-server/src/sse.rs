//! `events`: server-sent events, resumable. The id of an event is its entry's number in the record, which has no gaps: a
//! listener that comes back with the last id it saw misses nothing and sees nothing twice, on whichever server.

use crate::allowance::{Portion, Share};
use crate::events::{Behind, Event, Subscriber, newest};
use crate::serve::Server;
use crate::store::Store;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Response, Uri};
use futures_util::stream;
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

/// So many streams of one token are told of a change at once, and each of the others so much later: what one caller wants to be
/// told hundreds of times must not stand before what others ask.
const TOLD_AT_ONCE: usize = 16;
const TOLD_LATER: Duration = Duration::from_micros(400);

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
) -> Result<Response<Body>, Refusal> {
    let share = Share::Bearer(token.hash());
    let portion = server.streams.take(&share, 1)?;
    let later = later(server.streams.taken_by(&share));
    let ear = server.hub.listen();
    let seen = match after {
        Some(seq) => seq,
        None => server.readers.ask(&share, Weight::Light, newest).await?,
    };
    server.metrics.listeners.inc();
    let mut stand = Stand {
        server,
        ear,
        token,
        share,
        judge_at: Instant::now(),
        seen,
        ready: VecDeque::new(),
        later,
        has_told: false,
        _portion: portion,
    };
    stand.judged().await?;
    let told = stream::unfold(stand, |mut stand| async move {
        let text = stand.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), stand))
    });
    let mut response = Response::new(Body::from_stream(told));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// How much later than the first ones the n-th stream of a token is told.
fn later(nth: usize) -> Duration {
    TOLD_LATER.saturating_mul(u32::try_from(nth.saturating_sub(TOLD_AT_ONCE)).unwrap_or(u32::MAX))
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
    /// How long it waits after a change, and after it was told of one.
    later: Duration,
    has_told: bool,
    _portion: Portion,
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.server.metrics.listeners.dec();
    }
}

impl Stand {
    /// What there is to say next; none when the server ends, the token is no longer good, or the record cannot be read: the
    /// listener comes back with what it saw.
    async fn next(&mut self) -> Option<String> {
        if std::mem::take(&mut self.has_told) {
            self.let_others().await;
        }
        while self.ready.is_empty() {
            // Marked before it is looked at: what comes in between wakes us.
            self.ear.last.borrow_and_update();
            match self.ear.hub.behind(self.seen) {
                Behind::Known(events) if events.is_empty() => {
                    if let Some(sign) = self.waited().await? {
                        return Some(sign);
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
        self.has_told = true;
        self.told().await
    }

    /// Everything that is ready, up to a change of the workspace itself: it may be this very token that was revoked.
    async fn told(&mut self) -> Option<String> {
        let is_workspace = self.ready.front().is_some_and(|event| event.is_workspace);
        if is_workspace || Instant::now() >= self.judge_at {
            self.judged().await.ok()?;
        }
        let mut text = String::new();
        while let Some(event) = self.ready.pop_front_if(|event| text.is_empty() || !event.is_workspace) {
            text.push_str(&event.text);
            self.seen = event.seq;
        }
        Some(text)
    }

    /// Waits until there may be something new, or it is time for a sign of life.
    async fn waited(&mut self) -> Option<Option<String>> {
        let mut ending = self.server.ending.clone();
        let is_due = tokio::select! {
            changed = self.ear.last.changed() => {
                changed.ok()?;
                false
            }
            () = tokio::time::sleep(SIGN_OF_LIFE) => return Some(Some(":\n\n".to_owned())),
            () = tokio::time::sleep_until(self.judge_at) => true,
            _ = ending.wait_for(|ending| *ending) => return None,
        };
        if is_due {
            self.judged().await.ok()?;
        } else {
            self.let_others().await;
        }
        Some(None)
    }

    /// Lets others go first, where its token has many streams.
    async fn let_others(&self) {
        if !self.later.is_zero() {
            tokio::time::sleep(self.later).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_streams_of_one_token_are_told_one_after_the_other_and_all_soon() {
        assert!((0..=16).all(|nth| later(nth).is_zero()), "a person with some pages open waits for nothing");
        assert!((16..512).all(|nth| later(nth) < later(nth + 1)));
        assert!(later(512) < Duration::from_millis(250));
    }
}
