//! `ledger verify`: entries, rows, checkpoints and anchor against each other, in one consistent view of the store.

use super::anchor_sync::Anchorage;
use super::diff;
use super::finding::{self, FindingKind, FindingView, Findings};
use super::heads::{Heads, WORKSPACE_CHAIN};
use super::locate::{self, LedgerOverview};
use super::parallel_verify::{Crew, Item, Lost};
use super::row_checksum::{About, Scale};
use super::signed::{self, AsOf, Authority};
use super::workspace::{Register, tolerate};
use crate::progress::Progress;
use crate::remote::calls;
use crate::{Onus, anchor};
use onus_core::id::Seq;
use onus_core::ledger::EntryRef;
use onus_core::refusal::Refusal;
use onus_store::error::{Result as StoreResult, StoreError};
use onus_store::load::{self, Workspace};
use onus_store::output;
use onus_store::port::{Backend, Tx, Value};
use onus_store::read::audit::{self, RawTask};
use onus_store::read::ledger::{self, StoredCheckpoint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// How many chains that do not hold are looked at closely. When there are more, the whole store is in doubt.
const LOCATED_MAX: usize = 1_000;

/// How often reading goes on behind an entry that cannot be read.
const UNREADABLE_MAX: usize = 100;

/// Progress is told once in so many entries.
const TELL_EVERY: i64 = 4_096;

/// Rows and entries are read in turns of so many entries: the rows are our own work, the entries that of the crew, and neither
/// should wait for the other.
const TURN: i64 = 8_192;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VerifyView {
    pub ok: bool,
    pub entries: i64,
    pub chains: i64,
    pub checkpoints: i64,
    /// How many checkpoints the anchor and the store agree on.
    pub anchored: i64,
    /// Anchored checkpoints of a life of the store that a person gave up by raising the generation.
    pub superseded: i64,
    pub findings: Vec<FindingView>,
    /// How many findings there are beyond those.
    pub more: i64,
}

impl VerifyView {
    /// The refusal that a front end gives; none when the record holds.
    pub fn refusal(&self) -> Option<Refusal> {
        finding::refusal(&self.findings, self.more)
    }
}

impl Onus {
    pub fn verify(&mut self, progress: &mut dyn Progress) -> Result<VerifyView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Verify {})? {
            return Ok(answer);
        }
        let uid = self.ask(|tx| load::workspace(tx))?.uid;
        // Before the store's own view is taken: what was anchored by then was stored before.
        progress.begin("reading the anchor", None);
        let anchorage = Anchorage::read(anchor(&self.path, &uid), &mut |done| progress.at(done));
        progress.end();
        let lost = match self.store.backend() {
            Backend::Sqlite(store) => store.lost()?.map(|newest| newest.seq),
            Backend::Postgres(_) | Backend::Remote(_) => None,
        };
        let scale = Scale::default();
        self.ask(|tx| examine(tx, &anchorage, lost, &scale, progress))
    }
}

/// What is said where the record beside the store knows more than the store.
pub(crate) const LOST: &str = "somebody was told that it was written, and the store does not have it";

fn examine(
    tx: &mut dyn Tx,
    anchorage: &Anchorage,
    lost: Option<Seq>,
    scale: &Scale,
    progress: &mut dyn Progress,
) -> StoreResult<VerifyView> {
    let workspace = load::workspace(tx)?;
    let mut found = Findings::default();
    if let Some(seq) = lost {
        found.add(FindingKind::Truncated, seq, None, LOST);
    }
    let mut checkpoints = Vec::new();
    tolerate(ledger::checkpoints(tx).map(|stored| checkpoints = stored), &mut found)?;
    let read = std::thread::scope(|scope| {
        let mut reader = Reader {
            workspace: &workspace,
            checkpoints: &checkpoints,
            crew: Crew::start(scope, &workspace.uid, scale),
            scale: scale.clone(),
            heads: Heads::default(),
            register: Register::new(),
            as_of: Vec::new(),
            gaps: Vec::new(),
            next: 1,
            found: &mut found,
            progress: &mut *progress,
        };
        reader.rows(tx)?;
        reader.tasks(tx)?;
        reader.finish()
    })?;

    progress.begin("looking closely", Some(read.suspects.len() as u64));
    let site = LedgerOverview { workspace: &workspace.uid, gaps: &read.gaps };
    for (done, name) in read.suspects.iter().take(LOCATED_MAX).enumerate() {
        tolerate(locate::task(tx, &site, name, &mut found), &mut found)?;
        progress.at(done as u64 + 1);
    }
    progress.end();
    for (first, last) in &read.gaps {
        let detail = if first == last {
            "it is gone".to_owned()
        } else {
            format!("the entries up to {last} are gone")
        };
        found.add(FindingKind::Deleted, *first, None, detail);
    }
    read.register.examine(tx, &site, &workspace, &mut found)?;
    outputs(tx, &mut found)?;

    let public_key =
        read.register.founded.as_ref().map_or(&workspace.public_key, |founded| &founded.public_key);
    let authority = Authority { workspace: &workspace, public_key };
    let mut disputed = signed::stored(&authority, &checkpoints, &read.as_of, &mut found);
    let anchoring = signed::anchored(&authority, &checkpoints, anchorage, &mut found);
    disputed.extend(&anchoring.unknown);
    if !disputed.is_empty() {
        tolerate(diff::locate(tx, anchorage, &anchoring.lineage, &disputed, &mut found), &mut found)?;
    }
    Ok(VerifyView {
        ok: found.count() == 0,
        entries: read.entries,
        chains: read.chains,
        checkpoints: checkpoints.len() as i64,
        anchored: anchoring.agreed,
        superseded: anchoring.superseded,
        findings: found.shown,
        more: found.more,
    })
}

/// What runs printed, against the digests of it.
fn outputs(tx: &mut dyn Tx, found: &mut Findings) -> StoreResult<()> {
    let mut changed = Vec::new();
    tolerate(output::changed(tx).map(|all| changed = all), found)?;
    for one in changed {
        let detail = format!("the output of session {} is not the one that was recorded", one.session);
        found.add(FindingKind::TextDiffers, one.seq, Some(one.task.as_str()), detail);
    }
    Ok(())
}

/// Reads the store once, from beginning to end, and hands the chains out.
struct Reader<'a, 'scope> {
    workspace: &'a Workspace,
    checkpoints: &'a [StoredCheckpoint],
    crew: Crew<'scope>,
    scale: Scale,
    heads: Heads,
    register: Register,
    as_of: Vec<AsOf>,
    gaps: Vec<(Seq, Seq)>,
    /// The number of the next entry.
    next: Seq,
    found: &'a mut Findings,
    progress: &'a mut dyn Progress,
}

/// What one reading gave.
struct Read {
    register: Register,
    as_of: Vec<AsOf>,
    gaps: Vec<(Seq, Seq)>,
    /// The tasks whose chains or rows do not hold.
    suspects: Vec<String>,
    entries: i64,
    chains: i64,
}

impl Reader<'_, '_> {
    /// The rows beside the tasks' own, in whatever order.
    fn rows(&mut self, tx: &mut dyn Tx) -> StoreResult<()> {
        self.progress.begin("reading the rows", None);
        let read = audit::dependencies(tx, &mut |task, row| self.said(About::Dependency, task, row));
        tolerate(read, self.found)?;
        let read = audit::assignments(tx, &mut |task, row| self.said(About::Assignment, task, row));
        tolerate(read, self.found)?;
        let read = audit::sessions(tx, &mut |task, row| self.said(About::Session, task, row));
        tolerate(read, self.found)?;
        let read = audit::session_facts(tx, &mut |task, row| self.said(About::SessionFact, task, row));
        tolerate(read, self.found)?;
        let read = audit::notes(tx, &mut |task, row| self.said(About::Note, task, row));
        tolerate(read, self.found)?;
        let read = audit::runs(tx, &mut |task, row| self.said(About::Run, task, row));
        tolerate(read, self.found)?;
        let read = audit::reviews(tx, &mut |task, row| self.said(About::Review, task, row));
        tolerate(read, self.found)?;
        let read = audit::landed(tx, &mut |task, row| self.said(About::Landed, task, row));
        tolerate(read, self.found)?;
        self.progress.end();
        Ok(())
    }

    fn said(&mut self, about: About, task: &str, columns: [&[Value<'_>]; 2]) -> StoreResult<()> {
        let chain = self.heads.names.number(task);
        let fact = self.scale.weigh(about, columns);
        self.crew.hand_over(chain, Item::Said(fact)).map_err(lost)
    }

    /// The tasks that were born in some part of the record, then that part itself, and so on. A task's row tells where its
    /// chain ends, and comes before its first entry.
    fn tasks(&mut self, tx: &mut dyn Tx) -> StoreResult<()> {
        self.progress.begin("following the chains", u64::try_from(self.workspace.last_seq).ok());
        let (mut first, mut unreadable) = (Seq::MIN, 0);
        for turn in 1.. {
            let last = Some(turn * TURN).filter(|end| *end < self.workspace.last_seq).unwrap_or(Seq::MAX);
            let read = audit::tasks(tx, first..=last, &mut |row| self.task(row));
            tolerate(read, self.found)?;
            self.entries(tx, first..=last, &mut unreadable)?;
            if last == Seq::MAX {
                break;
            }
            first = last + 1;
        }
        self.checkpoints_before(Seq::MAX);
        self.progress.end();
        Ok(())
    }

    fn task(&mut self, row: RawTask<'_>) -> StoreResult<()> {
        let chain = self.heads.names.number(row.id);
        let asked = self.scale.weigh(About::Asked, row.asked);
        let said = self.scale.task(asked, row.lifecycle);
        let item = row.head.map_or(Item::Nonsense, |head| Item::Row { version: row.version, head, said });
        self.crew.hand_over(chain, item).map_err(lost)
    }

    fn entries(
        &mut self,
        tx: &mut dyn Tx,
        part: RangeInclusive<Seq>,
        unreadable: &mut usize,
    ) -> StoreResult<()> {
        let (mut first, last) = part.into_inner();
        while *unreadable < UNREADABLE_MAX {
            match audit::entries(tx, first..=last, &mut |seq, entry| self.entry(seq, entry)) {
                Err(StoreError::Corrupt(detail)) => {
                    self.found.add(FindingKind::Unreadable, self.next, None, detail);
                    self.next += 1;
                    first = self.next;
                    *unreadable += 1;
                }
                read => return read,
            }
        }
        Ok(())
    }

    fn entry(&mut self, seq: Seq, entry: StoreResult<EntryRef<'_>>) -> StoreResult<()> {
        if seq > self.next {
            self.gaps.push((self.next, seq - 1));
        }
        self.next = seq + 1;
        self.checkpoints_before(seq);
        if seq % TELL_EVERY == 0 {
            self.progress.at(u64::try_from(seq).unwrap_or(0));
        }
        match entry {
            Err(error) => self.found.add(FindingKind::Unreadable, seq, None, error.to_string()),
            Ok(entry) => {
                let chain = self.heads.advance(entry.task.unwrap_or(WORKSPACE_CHAIN), seq, entry.hash);
                if entry.task.is_some() {
                    return self.crew.hand_over_entry(chain, &entry).map_err(lost);
                }
                self.register.take(&self.workspace.uid, &entry, self.found);
            }
        }
        Ok(())
    }

    /// Computes the roots of the checkpoints that cover everything read so far.
    fn checkpoints_before(&mut self, seq: Seq) {
        while let Some(stored) = self.checkpoints.get(self.as_of.len()).filter(|stored| stored.seq < seq) {
            self.as_of.push(AsOf {
                seq: stored.seq,
                entries: self.heads.entries,
                chains: self.heads.chains(),
                root: self.heads.root(),
                generation: self.register.generation,
            });
        }
    }

    fn finish(self) -> StoreResult<Read> {
        let numbers = self.crew.finish().map_err(lost)?;
        let names = numbers.into_iter().map(|number| self.heads.names.name(number).to_owned());
        Ok(Read {
            // The workspace's own chain was followed here.
            suspects: names.filter(|name| name != WORKSPACE_CHAIN).collect(),
            entries: self.heads.entries,
            chains: self.heads.chains(),
            register: self.register,
            as_of: self.as_of,
            gaps: self.gaps,
        })
    }
}

fn lost(_: Lost) -> StoreError {
    StoreError::unavailable("a thread that follows chains ended before its time")
}
