//! The threads that land: `complete` and `merge` of work that lies in a working tree of the server's own clone. Of each token one
//! lands at a time, and several beside each other: a check runs its holder's own code, which may take as long as it likes.

use crate::events::Hub;
use crate::readers::busy;
use crate::store::{Open, Store, follow, is_lost};
use onus_app::followed_settings::FollowedSettings;
use onus_app::landing::{LandedAnswer, LandingOrder};
use onus_app::token::Shown;
use onus_core::code::Code;
use onus_core::id::TokenId;
use onus_core::refusal::Refusal;
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// So many may wait; the next one is told to come back.
const WAITING: usize = 256;

/// So many land at once. Each has a connection of its own from its first landing on.
const THREADS: usize = 8;

type TokensAtWork = Arc<Mutex<HashSet<TokenId>>>;

#[derive(Debug)]
pub(crate) struct Landings {
    orders: SyncSender<AwaitedLanding>,
    bearers: TokensAtWork,
    threads: Vec<JoinHandle<()>>,
}

type LandingQueue = Arc<Mutex<Receiver<AwaitedLanding>>>;

#[derive(Debug)]
struct AwaitedLanding {
    order: Box<LandingOrder>,
    shown: Shown,
    reply: oneshot::Sender<Result<LandedAnswer, Refusal>>,
    turn: LandingTurnOfToken,
}

/// The only landing of a token, until it is answered.
#[derive(Debug)]
struct LandingTurnOfToken {
    bearers: TokensAtWork,
    token: TokenId,
}

impl LandingTurnOfToken {
    fn take(bearers: &TokensAtWork, token: &TokenId) -> Result<LandingTurnOfToken, Refusal> {
        match bearers.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone()) {
            true => Ok(LandingTurnOfToken { bearers: Arc::clone(bearers), token: token.clone() }),
            false => Err(Refusal::new(Code::TooManyRequests, "a landing of this token is under way")
                .hint("wait for its answer; then repeat this call with the same Idempotency-Key")),
        }
    }
}

impl Drop for LandingTurnOfToken {
    fn drop(&mut self) {
        self.bearers.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl Landings {
    pub(crate) fn start(open: &Open, hub: &Arc<Hub>) -> Result<Landings, Refusal> {
        let (orders, queue) = sync_channel(WAITING);
        let queue = LandingQueue::new(Mutex::new(queue));
        let start = |n: usize| {
            let (queue, open, hub) = (Arc::clone(&queue), Arc::clone(open), Arc::clone(hub));
            let thread = std::thread::Builder::new().name(format!("landings-{n}"));
            thread.spawn(move || land_all(&open, &queue, &hub))
        };
        let threads = (0..THREADS).map(start).collect::<Result<_, _>>();
        let threads = threads.map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        Ok(Landings { orders, bearers: TokensAtWork::default(), threads })
    }

    /// Lands when its turn has come, if the token is still good then.
    pub(crate) async fn land(&self, order: Box<LandingOrder>, shown: Shown) -> Result<LandedAnswer, Refusal> {
        let turn = LandingTurnOfToken::take(&self.bearers, &shown.principal.token_id)?;
        let (reply, answer) = oneshot::channel();
        let waiting = AwaitedLanding { order, shown, reply, turn };
        self.orders.try_send(waiting).map_err(|error| match error {
            TrySendError::Full(_) => busy("too many landings wait already"),
            TrySendError::Disconnected(_) => busy("the server is shutting down"),
        })?;
        answer.await.map_err(|_| busy("the server is shutting down"))?
    }

    /// Carries what has begun to its end. What still waits has not begun, and its caller is told so.
    pub(crate) fn finish(self) {
        drop(self.orders);
        for thread in self.threads {
            drop(thread.join());
        }
    }
}

fn land_all(open: &Open, queue: &Mutex<Receiver<AwaitedLanding>>, hub: &Hub) {
    let mut kept: Option<(Store, FollowedSettings)> = None;
    // The lock is let go as soon as there is an order.
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(AwaitedLanding { order, shown, reply, turn }) = next() {
        // Nobody waits for it any more, and nothing of it has begun.
        if reply.is_closed() {
            continue;
        }
        let answer = at_work(&mut kept, open).and_then(|(store, settings)| {
            follow(settings, store);
            store.land_for(shown, &order)
        });
        if is_lost(&answer) {
            kept = None;
        }
        hub.wake();
        drop(turn);
        drop(reply.send(answer));
    }
}

/// The connection of a thread that lands: there is none before its first landing.
fn at_work<'a>(
    kept: &'a mut Option<(Store, FollowedSettings)>,
    open: &Open,
) -> Result<&'a mut (Store, FollowedSettings), Refusal> {
    match kept {
        Some(kept) => Ok(kept),
        None => {
            let store = open()?;
            let settings = FollowedSettings::of(&store);
            Ok(kept.insert((store, settings)))
        }
    }
}
