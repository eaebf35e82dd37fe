//! `onus ledger`

use super::export::Target;
use super::task_id;
use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::queue::LIMIT_MAX;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::text::counted;
use std::path::PathBuf;
use std::process::ExitCode;

/// The record: read it, sign it, prove it
#[derive(Debug, Args)]
pub(crate) struct Ledger {
    #[command(subcommand)]
    verb: LedgerVerb,
}

#[derive(Debug, Subcommand)]
enum LedgerVerb {
    Log(Log),
    /// Check every hash, link, row, text, signature and the anchor; says exactly where something is wrong
    Verify,
    /// Sign the heads of all chains and anchor them outside the store
    Checkpoint,
    Export(LedgerExport),
    RaiseGeneration(RaiseGeneration),
}

/// The entries, in the order in which they were written
#[derive(Debug, Args)]
struct Log {
    /// Only this task
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    task: Option<TaskId>,

    /// Only entries behind this one
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    after: Option<i64>,

    /// At most so many; without --after or --task the latest ones
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(i64).range(1..=LIMIT_MAX))]
    limit: i64,

    /// With hashes and the data as it is stored
    #[arg(short, long)]
    verbose: bool,
}

/// Everything a third party needs to verify the record, as JSON lines
#[derive(Debug, Args)]
struct LedgerExport {
    /// Where to; default: standard output
    #[arg(value_name = "FILE|-", default_value = "-")]
    file: PathBuf,
}

/// After a restored backup or a lossy failover: every token given so far is dead. People only
#[derive(Debug, Args)]
struct RaiseGeneration {
    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Ledger {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        match &self.verb {
            LedgerVerb::Log(log) => {
                let view = store.log(log.task.as_ref(), log.after, log.limit)?;
                let text = if log.verbose { render::ledger_in_full } else { render::ledger };
                out.show_list(&view, |view| &view.entries, text)
            }
            LedgerVerb::Verify => {
                let view = store.verify(&mut Bar::new(out))?;
                if let Some(refusal) = view.refusal() {
                    return Err(refusal);
                }
                out.show(&view, |view| {
                    format!(
                        "{} in {} verified; {}, {} of them anchored\n",
                        counted(view.entries, "entry"),
                        counted(view.chains, "chain"),
                        counted(view.checkpoints, "checkpoint"),
                        view.anchored
                    )
                })
            }
            LedgerVerb::Checkpoint => {
                let view = store.checkpoint(world.actor.as_ref())?;
                out.show(&view, |view| match view.outcome.as_str() {
                    "existing" => format!("nothing new since the checkpoint at entry {}\n", view.seq),
                    _ => format!(
                        "{} signed, anchored in {} as {}\n",
                        counted(view.entries, "entry"),
                        view.anchor.kind,
                        view.anchor.id
                    ),
                })
            }
            LedgerVerb::Export(export) => {
                let target = Target::new(&export.file);
                let exported = target.write(|writer| store.export_ledger(writer, &mut Bar::new(out)))?;
                out.hint(&format!(
                    "{}, {}",
                    counted(exported.entries, "entry"),
                    counted(exported.checkpoints, "checkpoint")
                ));
                Ok(ExitCode::SUCCESS)
            }
            LedgerVerb::RaiseGeneration(raise) => {
                let view = store.raise_generation(world.asker(&world.request()?), raise.reason.as_deref())?;
                out.show(&view, |view| {
                    format!("generation {}: every earlier token is dead\n", view.generation)
                })
            }
        }
    }
}
