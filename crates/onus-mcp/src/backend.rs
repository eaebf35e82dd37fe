//! Where a tool call is carried out: at a store of this machine, or behind a server.

use onus_app::Onus;
use onus_app::finish::FinishView;
use onus_app::landing::{LandedAnswer, LandingOrder};
use onus_app::submit::{Receipt, Target};
use onus_app::token::Shown;
use onus_core::code::Code;
use onus_core::command::Envelope;
use onus_core::evidence::RootCause;
use onus_core::id::{Handle, RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::text::Text;

/// Who calls.
#[derive(Debug, Clone, Default)]
pub struct Who {
    pub worker: Option<Handle>,
    /// The token that was shown, and whose it is; none on a machine's own store, where the caller is believed.
    pub shown: Option<Shown>,
}

impl From<Shown> for Who {
    fn from(shown: Shown) -> Who {
        Who { worker: shown.principal.worker.clone(), shown: Some(shown) }
    }
}

/// Asks the store and writes to it. Both may wait: they are called where waiting is allowed.
pub trait Backend: Send + Sync + 'static {
    fn ask<T: Send + 'static>(
        &self,
        who: &Who,
        question: impl FnOnce(&mut Onus) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal>;

    /// Carries a command out, if the token that was shown for it is still good then.
    fn submit(&self, who: &Who, envelope: Envelope, target: Target) -> Result<Receipt, Refusal>;

    /// Lands what lies where the store is. Asked only by whoever has no working trees of its own.
    fn land(&self, _: &Who, order: LandingOrder) -> Result<LandedAnswer, Refusal> {
        let detail = format!("nothing can be landed here: {}", order.task);
        Err(Refusal::new(Code::NotMerged, detail))
    }

    /// The caller's own working trees; none behind a network, where no path is touched and no check is run.
    fn site(&self) -> Option<&dyn WorkingTrees> {
        None
    }
}

/// A completion with everything that was said for it.
#[derive(Debug, Clone)]
pub struct Completing {
    pub task: TaskId,
    pub lease: Option<Token>,
    pub resolution: Option<Text>,
    pub root_cause: Option<RootCause>,
}

/// The working trees of this machine.
pub trait WorkingTrees: Send + Sync {
    /// Who calls, unless a token says so.
    fn who(&self) -> Who;

    /// The lease token that a claim left here.
    fn lease(&self, task: &TaskId) -> Result<Option<Token>, Refusal>;

    /// Makes the workstation of a grant ready and leaves the lease token where the holder's next call finds it; a warning where
    /// that fails. No work begins in a workstation that cannot be made ready.
    fn keep(&self, receipt: &Receipt) -> Result<Option<String>, Refusal>;

    /// After a takeover: nothing of the old holder's lands any more, and nothing of it is lost.
    fn secure(&self, receipt: &Receipt) -> Result<(), Refusal>;

    /// Checks, merges and completes where the work is.
    fn finish(&self, order: &Completing, request: &RequestId) -> Result<FinishView, Refusal>;

    /// Forgets the lease token of a task that is no longer held.
    fn forget(&self, task: &TaskId);

    /// Runs the approved checks of a task where the work is, and keeps what they show; the refusal says which did not
    /// pass.
    fn check(&self, task: &TaskId, lease: Option<Token>) -> Result<Option<Refusal>, Refusal>;
}
