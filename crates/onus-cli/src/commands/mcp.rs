//! `onus mcp`

use super::check::{ChecksToRun, run_checks};
use super::claim::begin;
use super::takeover::secure;
use super::{LeaseArg, word};
use crate::context::{Store, World};
use crate::output::{Format, Output};
use clap::Args;
use onus_app::Onus;
use onus_app::check::Sandbox;
use onus_app::clean_start::Earlier;
use onus_app::finish::{Finish, FinishView, Landing};
use onus_app::merge::Merge;
use onus_app::progress::Silent;
use onus_app::submit::{Receipt, Target};
use onus_core::command::Envelope;
use onus_core::id::{RequestId, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_mcp::{Backend, Completing, Tools, Who, WorkingTrees};
use std::process::ExitCode;

/// Speak the Model Context Protocol on standard input and output
///
/// Started by an agent's client, in its working tree; `onus setup` writes the settings. It works for ONUS_AS, else for whom
/// `onus setup --worker` named.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// few: what a worker does all day; all: also renew, unblock, takeover, list, stale
    #[arg(long, default_value = "few", value_parser = |t: &str| word("a set of tools", t, Tools::parse, "few, all"))]
    tools: Tools,
}

impl Mcp {
    pub(super) fn run(&self, world: &World) -> Result<ExitCode, Refusal> {
        world.refuse_request_id()?;
        onus_mcp::stdio(Local { world: world.clone().of_client()? }, self.tools)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The store and the working trees of this machine. Each call opens the store anew: a client may be open for days.
#[derive(Debug)]
struct Local {
    world: World,
}

impl Local {
    fn directory(&self, store: &mut Store, task: &TaskId) -> Option<std::path::PathBuf> {
        let last = store.show(task).ok()?.assignments.pop()?;
        store.directory_of(&last.workstation).ok()?
    }
}

impl Backend for Local {
    fn ask<T: Send + 'static>(
        &self,
        _who: &Who,
        question: impl FnOnce(&mut Onus) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        question(&mut self.world.open()?)
    }

    fn submit(&self, _: &Who, envelope: Envelope, target: Target) -> Result<Receipt, Refusal> {
        self.world.open()?.submit(&envelope, &target)
    }

    fn site(&self) -> Option<&dyn WorkingTrees> {
        Some(self)
    }
}

impl WorkingTrees for Local {
    fn who(&self) -> Who {
        Who { worker: self.world.actor.clone(), shown: None }
    }

    fn lease(&self, task: &TaskId) -> Result<Option<Token>, Refusal> {
        self.world.token(&mut self.world.open()?, task, None)
    }

    fn keep(&self, receipt: &Receipt) -> Result<Option<String>, Refusal> {
        let (Some(token), Some(held)) = (receipt.token.as_ref(), receipt.task.assignment()) else {
            return Ok(None);
        };
        begin(&self.world, &mut self.world.open()?, &quiet(), receipt, Earlier::Leave)?;
        let kept = self.world.open().and_then(|mut store| {
            let found = store.directory_of(&held.workstation)?;
            self.world.keep_lease(&mut store, &receipt.task, token, found.as_deref())
        });
        Ok(kept.err().map(|refusal| format!("{refusal}; pass `lease` in every call")))
    }

    fn secure(&self, receipt: &Receipt) -> Result<(), Refusal> {
        secure(&self.world, &mut self.world.open()?, &quiet(), receipt)
    }

    fn finish(&self, order: &Completing, request: &RequestId) -> Result<FinishView, Refusal> {
        let mut store = self.world.open()?;
        let merge = Merge {
            request,
            actor: self.world.actor.as_ref(),
            token: order.lease.as_ref(),
            task: &order.task,
            adopt: &[],
            root_cause: order.root_cause.as_ref(),
        };
        let call = Finish { merge, resolution: order.resolution.as_ref(), landing: Landing::Merge };
        let view = store.finish(&call, &mut Silent)?;
        self.forget(&order.task);
        Ok(view)
    }

    fn forget(&self, task: &TaskId) {
        if let Ok(mut store) = self.world.open() {
            let directory = self.directory(&mut store, task);
            self.world.forget_lease(task, directory.as_deref());
        }
    }

    fn check(&self, task: &TaskId, lease: Option<Token>) -> Result<Option<Refusal>, Refusal> {
        let mut store = self.world.open()?;
        let found = store.task(task)?;
        let lease = LeaseArg { lease: lease.map(|token| token.to_string()) };
        let request = ChecksToRun { only: None, jobs: 1, sandbox: Sandbox::None, lease: &lease };
        run_checks(&self.world, &mut store, &mut quiet(), &found, &request)
    }
}

/// Standard output is the protocol's, and nobody reads standard error.
fn quiet() -> Output {
    Output { format: Format::Json, quiet: true }
}
