//! `import`: tasks from a file of JSON lines, all of them or none (mission A2, D14). Files of other tools are made into
//! such lines first ([`format`]).
//!
//! The file is read before the store is touched; [`plan`] says what each line becomes; every new one is decided like
//! any other ask and written in one transaction, with one entry in the workspace's own chain. The same file twice
//! creates and changes nothing the second time; what another system owns is brought up to date ([`refresh`]).

mod archive;
mod file;
pub mod format;
mod line;
mod plan;
mod refresh;
mod write;

pub use archive::RestoreView;

use crate::progress::{Progress, Silent};
use crate::remote::calls;
use crate::submit::unexpected;
use crate::{Onus, registry, replay};
use file::File;
use line::ImportLine;
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::decide::{Decision, decide};
use onus_core::event::{Event, Imported};
use onus_core::facts::{Caller, Facts, Fresh, Place};
use onus_core::hash::{Digest, Fields};
use onus_core::id::{Handle, ProjectKey, RequestId, Seq, TaskId};
use onus_core::identity_map::{Policy, Signals};
use onus_core::intake::derived_origin;
use onus_core::process::Vital;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::text::Text;
use onus_core::time::{Millis, Now, Timestamp};
use onus_store::apply;
use onus_store::load;
use onus_store::port::{Outcome, Store, Tx};
use onus_store::read::ledger;
use plan::{Numbers, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;
use write::{Step, Steps};

/// Whether the lines become tasks, or only would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Run {
    Real,
    Dry,
}

/// One file to import.
#[derive(Debug, Clone)]
pub struct Import<'a> {
    pub request: &'a RequestId,
    pub actor: Option<&'a Handle>,
    /// Where tasks go that bring no id of a project of this store.
    pub project: Option<&'a ProjectKey>,
    /// The whole file; whoever read it has limited its size.
    pub input: &'a str,
    pub run: Run,
}

/// The answer to `import`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportView {
    /// How many tasks the file has.
    #[serde(default)]
    pub read: i64,
    pub created: i64,
    /// Lines whose ask already was a task.
    pub existing: i64,
    /// How many of the existing ones the file changes.
    #[serde(default)]
    pub changed: i64,
    /// What is wrong, line by line. Where anything is, nothing is imported.
    #[serde(default)]
    pub refused: Vec<RefusedView>,
    /// Fields of the file that have no place but `extra`.
    #[serde(default)]
    pub unmapped: Vec<String>,
    /// What the file refers to and neither it nor the store has; the reference stays in `extra`.
    #[serde(default)]
    pub unresolved: Vec<UnresolvedView>,
    /// Files and entries that are no tasks.
    #[serde(default)]
    pub skipped: Vec<SkippedView>,
    /// What stays otherwise here than in the file: Onus owns how far a task is once somebody has begun with it.
    #[serde(default)]
    pub drift: Vec<DriftView>,
    /// Nothing was written: this is what would be.
    pub dry_run: bool,
    /// Tasks that have another id here than in the file.
    pub renamed: Vec<RenamedView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RenamedView {
    pub line: usize,
    pub from: TaskId,
    pub to: TaskId,
}

/// A line that keeps the file out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedView {
    pub line: usize,
    pub code: Code,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnresolvedView {
    pub line: usize,
    /// Of a directory the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub reference: String,
}

/// A field of a task that is another one in its own system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftView {
    pub line: usize,
    pub task: TaskId,
    pub field: String,
    pub here: String,
    pub there: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedView {
    pub name: String,
    pub reason: String,
}

/// How many references that lead nowhere are told.
const UNRESOLVED_MAX: usize = 1_000;

impl ImportView {
    /// A dry run of a file that is wrong.
    fn refused(read: usize, refused: Vec<RefusedView>) -> ImportView {
        ImportView { read: read as i64, refused, dry_run: true, ..ImportView::default() }
    }
}

impl Onus {
    /// Imports a file, whole or not at all. The same request id gives the same answer.
    pub fn import_jsonl(
        &mut self,
        import: &Import<'_>,
        progress: &mut dyn Progress,
    ) -> Result<ImportView, Refusal> {
        let Import { request, project, input, run, .. } = import;
        let call = || calls::ImportJsonl {
            request: (*request).clone(),
            project: project.cloned(),
            input: (*input).to_owned(),
            run: *run,
        };
        if let Some(answer) = self.remote_under(Some(request), call)? {
            return Ok(answer);
        }
        self.import_by(Authority::Caller, import, progress)
    }

    /// Imports what a mirror of the settings says.
    pub(crate) fn import_polled(&mut self, import: &Import<'_>) -> Result<ImportView, Refusal> {
        self.import_by(Authority::Settings, import, &mut Silent)
    }

    fn import_by(
        &mut self,
        authority: Authority,
        import: &Import<'_>,
        progress: &mut dyn Progress,
    ) -> Result<ImportView, Refusal> {
        let file = File::read(import.input);
        let digest = Digest::of(import.input.as_bytes());
        let session = ImportSession { import, authority, settings: &self.settings, digest };
        let answered = match import.run {
            Run::Real => self.store.write(|tx| session.carry_out(tx, file, progress)),
            Run::Dry => self.store.read(|tx| Ok(session.rehearse(tx, file)))?,
        };
        answered.map_err(|refusal| Refusal { request_id: Some(import.request.to_string()), ..refusal })
    }
}

/// On whose word tasks are brought up to date that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authority {
    /// Whoever imports: the words of others are a person's to bring in, for an agent could lower what its own work is judged by.
    Caller,
    /// A mirror that people have set up: what it owns it may change.
    Settings,
}

struct ImportSession<'a> {
    import: &'a Import<'a>,
    authority: Authority,
    settings: &'a Settings,
    digest: Digest,
}

impl ImportSession<'_> {
    fn rehearse(&self, tx: &mut dyn Tx, file: File) -> Result<ImportView, Refusal> {
        let caller = load::caller(tx, self.import.actor)?;
        onus_core::registry::known(&caller)?;
        let (_, view) = self.decide(tx, caller, file)?;
        Ok(view)
    }

    fn carry_out(
        &self,
        tx: &mut dyn Tx,
        file: File,
        progress: &mut dyn Progress,
    ) -> Result<Outcome<ImportView>, Refusal> {
        let caller = load::caller(tx, self.import.actor)?;
        let actor = onus_core::registry::known(&caller)?.handle.clone();
        if let Some(earlier) = replay::earlier(tx, self.import.request, &self.fingerprint())? {
            return self.answer_again(tx, file, earlier.seq).map(Outcome::Rollback);
        }
        let (steps, view) = self.decide(tx, caller, file)?;
        if steps.is_empty() {
            return Ok(Outcome::Rollback(view));
        }
        let seq = steps.write(tx, &actor, progress)? + 1;
        let ImportView { created, existing, changed, .. } = view;
        let imported = Imported { created, existing, digest: Text::known_by(self.digest), changed };
        registry::record(tx, &actor, imported)?;
        apply::request(tx, self.import.request, &self.fingerprint(), seq)?;
        Ok(Outcome::Commit(view))
    }

    /// What distinguishes this import from another command under the same request id.
    fn fingerprint(&self) -> Digest {
        let mut fields = Fields::new("onus-import-1");
        fields
            .text(self.import.actor.map_or("", Handle::as_str))
            .text(self.import.project.map_or("", ProjectKey::as_str))
            .bytes(&self.digest.0);
        fields.digest()
    }

    /// The counts are on record; which tasks have other ids is found as it was the first time.
    fn answer_again(&self, tx: &mut dyn Tx, mut file: File, seq: Seq) -> Result<ImportView, Refusal> {
        let broken = || {
            Refusal::new(Code::LedgerBroken, format!("the entry {seq} records no import"))
                .hint("onus ledger verify")
        };
        let entry = ledger::entry(tx, seq)?.ok_or_else(broken)?;
        let Ok(Event::Imported(Imported { created, existing, changed, .. })) =
            entry.open().map(|stamped| stamped.event)
        else {
            return Err(broken());
        };
        let numbers = self.numbers(tx)?;
        let plan = plan::plan(tx, &mut file, numbers)?;
        let read = file.lines.len() as i64;
        let renamed = renamed(&file.lines, &plan);
        Ok(ImportView { read, created, existing, changed, renamed, ..ImportView::default() })
    }

    fn numbers(&self, tx: &mut dyn Tx) -> Result<Numbers, Refusal> {
        Numbers::load(tx, self.import.project.or(self.settings.project.as_ref()))
    }

    fn decide(
        &self,
        tx: &mut dyn Tx,
        caller: Caller,
        mut file: File,
    ) -> Result<(Steps, ImportView), Refusal> {
        let now = tx.now()?;
        let numbers = self.numbers(tx)?;
        let mut plan = plan::plan(tx, &mut file, numbers)?;
        let order = plan.order();
        let created = order.len();
        let view = ImportView {
            read: file.lines.len() as i64,
            unresolved: plan.unresolved.iter().take(UNRESOLVED_MAX).cloned().collect(),
            created: created as i64,
            existing: (file.lines.len() - created) as i64,
            dry_run: self.import.run == Run::Dry,
            renamed: renamed(&file.lines, &plan),
            ..ImportView::default()
        };
        let mut facts = self.facts(caller);
        let mut uids = Uids::draw(&now, created)?;
        let places: Vec<(usize, String)> =
            file.lines.iter().map(|line| (line.number, line.place.clone())).collect();
        let mut lines: Vec<Option<ImportLine>> = file.lines.into_iter().map(Some).collect();
        let refresh::Changed { tasks: refreshed, drift, refused } =
            self.refreshed(tx, &mut facts, &mut lines, &mut plan, &now)?;
        for (place, refusal) in refused {
            let (number, name) = &places[place];
            file.complaints.add_refusal(*number, name, refusal);
        }
        let view = ImportView { changed: refreshed.len() as i64, drift, ..view };
        let mut decided = Vec::with_capacity(created);
        for place in order {
            let Some(line) = lines[place].take() else { continue };
            let (number, place_name) = &places[place];
            match decide_line(&mut facts, line, &mut plan, place, &now, uids.next()) {
                Ok(step) => decided.push(step),
                Err(refusal) => file.complaints.add_refusal(*number, place_name, refusal),
            }
        }
        if self.import.run == Run::Dry && !file.complaints.is_empty() {
            let refused = ImportView::refused(lines.len(), file.complaints.into_refused());
            return Ok((Steps::none(now), refused));
        }
        match file.complaints.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok((Steps { decided, refreshed, numbers: plan.numbers, now }, view)),
        }
    }

    /// References were followed already: nothing else about the store matters to an ask.
    fn facts(&self, caller: Caller) -> Facts<'_> {
        Facts {
            settings: self.settings,
            generation: 0,
            behind_anchor: false,
            caller,
            token: None,
            task: None,
            holder: None,
            place: Place::default(),
            dependencies: Vec::new(),
            live_scopes: Vec::new(),
            mentioned: None,
            reachable: BTreeMap::new(),
            ancestors: Vec::new(),
            existing: None,
            suspended: false,
            vital: Vital::Unknown,
            policy: &Policy::Absent,
            signals: Signals::default(),
            occupied: Vec::new(),
            builders: Vec::new(),
            slices: Vec::new(),
            parts: Vec::new(),
            evidence: Vec::new(),
            reviews: Vec::new(),
            base: None,
            session: None,
            budgets: Vec::new(),
            stopped_by: Vec::new(),
        }
    }
}

/// One line as an ask like any other: the rules are the ones of `add`.
fn decide_line(
    facts: &mut Facts<'_>,
    line: ImportLine,
    plan: &mut Plan,
    place: usize,
    now: &Now,
    uid: Uuid,
) -> Result<Step, Refusal> {
    let id = plan.id(place).clone();
    let links = std::mem::take(&mut plan.links[place]);
    if let Some(at) = still_to_come(&line, now) {
        return Err(Refusal::invalid(format!("{at} is still to come: nothing was made or ended then"))
            .hint("correct the date where it came from"));
    }
    let (mut spec, notes) = (line.spec, line.notes);
    spec.parent = links.parent;
    // With its id and its uid kept a task is found again by them; else the file's name for it becomes its origin.
    let keeps_name = line.uid.is_some() && line.id.as_ref() == Some(&id);
    if spec.origin.is_none() && !keeps_name {
        spec.origin = derived_origin(line.id.as_ref(), line.uid);
    }
    let command = Command::Add {
        spec: Box::new(spec),
        depends_on: links.depends_on,
        archived: line.archive,
        arrival: line.arrival,
    };
    let fresh = Fresh { uid: line.uid.unwrap_or(uid), lease: [0; 16] };
    match decide(facts, &command, now, &fresh)? {
        Decision::Change { events, .. } => match <[Event; 1]>::try_from(events) {
            Ok([event]) => Ok(Step { id, event, notes }),
            Err(_) => Err(unexpected("an ask is one event")),
        },
        Decision::Existing(_) => Err(unexpected("a new line was decided as an existing task")),
    }
}

/// When another system says that it was made or ended, if that is more than a day ahead: clocks differ by less.
fn still_to_come(line: &ImportLine, now: &Now) -> Option<Timestamp> {
    let created = line.arrival.as_ref().and_then(|arrival| arrival.created_at);
    let ended = line.archive.as_ref().and_then(|archive| archive.at);
    let is_ahead = |at: &Timestamp| line.outside && *at > now.wall.plus(Millis::secs(24 * 3_600));
    created.into_iter().chain(ended).find(is_ahead)
}

fn renamed(lines: &[ImportLine], plan: &Plan) -> Vec<RenamedView> {
    let has_other_id = |(place, line): (usize, &ImportLine)| {
        let from = line.id.clone()?;
        let to = plan.id(place).clone();
        (from != to).then_some(RenamedView { line: line.number, from, to })
    };
    lines.iter().enumerate().filter_map(has_other_id).collect()
}

/// Uids for tasks that bring none, drawn at once.
struct Uids {
    millis: u64,
    random: Vec<u8>,
    next: usize,
}

impl Uids {
    fn draw(now: &Now, count: usize) -> Result<Uids, Refusal> {
        let mut random = vec![0; count * 10];
        getrandom::fill(&mut random).map_err(unexpected)?;
        Ok(Uids { millis: u64::try_from(now.wall.0).unwrap_or(0), random, next: 0 })
    }

    fn next(&mut self) -> Uuid {
        let mut tail = [0; 10];
        if let Some(drawn) = self.random.get(self.next..self.next + 10) {
            tail.copy_from_slice(drawn);
        }
        self.next += 10;
        uuid::Builder::from_unix_timestamp_millis(self.millis, &tail).into_uuid()
    }
}
