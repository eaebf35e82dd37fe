//! `onus timesheet`

use super::export::Target;
use super::{file_error, word};
use crate::cli::handle;
use crate::context::{Store, World};
use crate::output::{Format, Output};
use crate::render;
use clap::{Args, Subcommand};
use onus_app::timesheet::{Ask, csv, ics, xlsx};
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::time::Date;
use onus_core::timesheet::{Dimension, month, month_of, week};
use std::path::PathBuf;
use std::process::ExitCode;

const DIMENSIONS: &str = "worker, task, project, sprint, type, day, week";

/// Who worked how long on what, by each worker's own days
///
/// Every sum is asked for anew from the sessions; a running session counts up to its last sign of life.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Timesheet {
    #[command(subcommand)]
    verb: Option<TimesheetVerb>,

    #[command(flatten)]
    show: ShowSheet,
}

#[derive(Debug, Subcommand)]
enum TimesheetVerb {
    Show(ShowSheet),
    Export(Export),
    Approve(Approve),
}

/// Show it with bars; what was approved of it, and what has changed since, for one worker
#[derive(Debug, Args)]
struct ShowSheet {
    #[command(flatten)]
    what: What,
}

/// Write it to a file, or to standard output
#[derive(Debug, Args)]
struct Export {
    /// csv, json, xlsx or ics (one calendar event per session)
    #[arg(long, value_parser = |t: &str| word("a format", t, Kind::parse, "csv, json, xlsx, ics"))]
    format: Kind,

    #[command(flatten)]
    what: What,

    /// Where to; default: standard output
    #[arg(value_name = "FILE|-", default_value = "-")]
    file: PathBuf,
}

/// Freeze a worker's period by its fingerprint: people only
///
/// No total is copied: a later correction shows as a difference. Approving again accepts it.
#[derive(Debug, Args)]
struct Approve {
    /// Whose hours
    #[arg(long, value_name = "@HANDLE", value_parser = handle)]
    worker: Handle,

    #[command(flatten)]
    period: PeriodArgs,
}

#[derive(Debug, Args)]
struct What {
    #[command(flatten)]
    period: PeriodArgs,

    /// Only this worker
    #[arg(long, value_name = "@HANDLE", value_parser = handle)]
    worker: Option<Handle>,

    /// What to add up by: worker, task, project, sprint, type, day, week
    #[arg(long, value_name = "DIMENSIONS", value_delimiter = ',', default_value = "worker,task,day",
          value_parser = |t: &str| word("a dimension", t, Dimension::parse, DIMENSIONS))]
    by: Vec<Dimension>,
}

/// Which days. Default: this month.
#[derive(Debug, Args)]
struct PeriodArgs {
    /// The first day, e.g. 2026-11-16
    #[arg(long, value_name = "DATE", value_parser = |t: &str| t.parse::<Date>())]
    from: Option<Date>,

    /// The last day; default: today
    #[arg(long, value_name = "DATE", requires = "from", value_parser = |t: &str| t.parse::<Date>())]
    to: Option<Date>,

    /// A month, e.g. 2026-11
    #[arg(long, value_name = "MONTH", conflicts_with_all = ["from", "to"], value_parser = month)]
    month: Option<(Date, Date)>,

    /// An ISO week, e.g. 2026-W46
    #[arg(long, value_name = "WEEK", conflicts_with_all = ["from", "to", "month"], value_parser = week)]
    week: Option<(Date, Date)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Json,
    Xlsx,
    Ics,
}

impl Kind {
    fn parse(text: &str) -> Option<Kind> {
        match text {
            "csv" => Some(Kind::Csv),
            "json" => Some(Kind::Json),
            "xlsx" => Some(Kind::Xlsx),
            "ics" | "icalendar" => Some(Kind::Ics),
            _ => None,
        }
    }
}

impl PeriodArgs {
    /// `whose` today and month it is.
    fn resolve(&self, store: &mut Store, whose: Option<&Handle>) -> Result<(Date, Date), Refusal> {
        if let Some(named) = self.month.or(self.week) {
            return Ok(named);
        }
        match (self.from, self.to) {
            (Some(from), Some(to)) => Ok((from, to)),
            (Some(from), None) => Ok((from, store.today(whose)?.max(from))),
            (None, _) => Ok(month_of(store.today(whose)?)),
        }
    }
}

impl What {
    fn ask(&self, world: &World, store: &mut Store) -> Result<Ask, Refusal> {
        let whose = self.worker.as_ref().or(world.actor.as_ref());
        let (from, to) = self.period.resolve(store, whose)?;
        let mut by = Vec::new();
        self.by.iter().for_each(|dimension| {
            if !by.contains(dimension) {
                by.push(*dimension);
            }
        });
        Ok(Ask { from, to, worker: self.worker.clone(), by })
    }
}

impl Timesheet {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.verb {
            None => self.show.run(world, out),
            Some(TimesheetVerb::Show(show)) => show.run(world, out),
            Some(TimesheetVerb::Export(export)) => export.run(world, out),
            Some(TimesheetVerb::Approve(approve)) => approve.run(world, out),
        }
    }
}

impl ShowSheet {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let ask = self.what.ask(world, &mut store)?;
        out.show_list(&store.timesheet(&ask)?, |view| &view.rows, render::timesheet)
    }
}

impl Export {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let ask = self.what.ask(world, &mut store)?;
        let internal = |error: String| Refusal::new(Code::Internal, error);
        let bytes = match self.format {
            Kind::Json if self.file.as_os_str() == "-" => {
                let json = Output { format: Format::Json, quiet: out.quiet };
                return json.show(&store.timesheet(&ask)?, render::timesheet);
            }
            Kind::Json => {
                let text = serde_json::to_vec(&store.timesheet(&ask)?);
                text.map_err(|error| internal(error.to_string()))?
            }
            Kind::Csv => csv::write(&store.timesheet(&ask)?).map_err(internal)?,
            Kind::Xlsx => xlsx::write(&store.timesheet(&ask)?)?,
            Kind::Ics => ics::write(&store.calendar(&ask)?).into_bytes(),
        };
        Target::new(&self.file)
            .write(|writer| writer.write_all(&bytes).map_err(|error| file_error(&self.file, &error)))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Approve {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let days = self.period.resolve(&mut store, Some(&self.worker))?;
        let view = store.approve_timesheet(world.asker(&world.request()?), &self.worker, days)?;
        out.show(&view, render::approved)
    }
}
