//! The thread that lands: `complete` and `merge` of work that lies in a working tree of the server's own clone. One lands after the
//! other, and of each token one: checks may take long, and whoever lands second would only begin again.

use crate::events::Hub;
use crate::readers::busy;
use crate::store::{Open, Store, follow, is_lost, reopen};
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

type TokensAtWork = Arc<Mutex<HashSet<TokenId>>>;

#[derive(Debug)]
pub(crate) struct Landings {
    orders: SyncSender<AwaitedLanding>,
    bearers: TokensAtWork,
    thread: JoinHandle<()>,
}

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
        let (store, open, hub) = (open()?, Arc::clone(open), Arc::clone(hub));
        let land = move || land_all(store, &open, &queue, &hub);
        let thread = std::thread::Builder::new().name("landings".into()).spawn(land);
        let thread = thread.map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        Ok(Landings { orders, bearers: TokensAtWork::default(), thread })
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
        drop(self.thread.join());
    }
}

fn land_all(mut store: Store, open: &Open, queue: &Receiver<AwaitedLanding>, hub: &Hub) {
    let mut settings = FollowedSettings::of(&store);
    while let Ok(AwaitedLanding { order, shown, reply, turn }) = queue.recv() {
        // Nobody waits for it any more, and nothing of it has begun.
        if reply.is_closed() {
            continue;
        }
        follow(&mut settings, &mut store);
        let answer = store.land_for(shown, &order);
        if is_lost(&answer) {
            reopen(&mut store, open);
        }
        hub.wake();
        drop(turn);
        drop(reply.send(answer));
    }
}
