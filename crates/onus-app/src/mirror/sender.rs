//! Whoever tells the mirrors. One sender has a mirror at a time, under a lease with an epoch: what a former one still wants to
//! write down is refused, and it looks at its lease before every entry that it tells.

use super::story;
use crate::Onus;
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::id::{Epoch, MirrorName, Seq};
use onus_core::mirror::setting::Mirror;
use onus_core::mirror::{Tidings, Undelivered, backoff};
use onus_core::refusal::Refusal;
use onus_core::time::{Millis, Timestamp};
use onus_host::mirror::FarEnd;
use onus_host::process_liveness;
use onus_store::error::StoreError;
use onus_store::load;
use onus_store::mirror::{self as rows, StoredCounterpart};
use onus_store::port::{Outcome, Store, Tx};
use onus_store::read::ledger::{self, LedgerPart};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a sender that is gone keeps others away: longer than any one call to a far end takes.
const LEASE: Millis = Millis::secs(120);
/// A lease that is older than this is renewed before the next call.
const FRESH: Duration = Duration::from_secs(30);
/// Entries that are sorted in one transaction.
const SORTED: i64 = 500;
/// Tasks that are told in one round.
pub(super) const TASKS: i64 = 50;
/// How long whoever only hears is left alone after no answer; a mirror's settings say how long it is.
const SILENCE: Millis = Millis::secs(30);
/// After so many failures of one delivery, at a far end that is well otherwise, a person has to look.
const ATTEMPTS: i64 = 8;

/// Tells the mirrors of one store.
#[derive(Debug)]
pub struct Sender {
    id: String,
    pub(super) mirrors: BTreeMap<MirrorName, Opened>,
}

/// A mirror with its far end.
#[derive(Debug)]
pub(super) struct Opened {
    /// None for those who only hear.
    pub(super) mirror: Option<Mirror>,
    pub(super) far: Box<dyn FarEnd>,
    lent: Option<Lent>,
    /// Whether more issues wait there right now.
    pub(super) more: bool,
}

#[derive(Debug, Clone, Copy)]
struct Lent {
    epoch: Epoch,
    renewed: Instant,
}

/// What a round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Entries that were told.
    pub delivered: u64,
    /// Issues that were read.
    pub polled: u64,
    /// Whether the next round has something to do at once.
    pub more: bool,
}

/// What of a task is new.
struct FreshEntries {
    first: Seq,
    newest: Seq,
    since: Timestamp,
}

/// How the telling of one task ended.
enum Ended {
    /// It goes on with the next task.
    Next,
    /// The far end is away: nobody is told.
    Away,
}

impl Onus {
    /// A sender for every mirror of the settings, or for one.
    pub fn sender(&mut self, only: Option<&MirrorName>) -> Result<Sender, Refusal> {
        let names = match only {
            Some(name) => vec![name.clone()],
            None => self.outlet_names(),
        };
        let mut mirrors = BTreeMap::new();
        for name in names {
            let (far, mirror) = (self.far_end(&name)?, self.settings.mirrors.get(&name).cloned());
            mirrors.insert(name, Opened { mirror, far, lent: None, more: false });
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(unexpected)?;
        // The process comes first, so that others on this host can see whether it still is.
        let process = process_liveness::this_process().map_err(unexpected)?;
        Ok(Sender { id: format!("{process} {:016x}", u64::from_le_bytes(random)), mirrors })
    }

    /// One round: hears what is new, tells what waits, and asks for issues where it is time.
    pub fn mirror_round(&mut self, sender: &mut Sender) -> Result<Round, Refusal> {
        let mut round = Round::default();
        for (name, opened) in &mut sender.mirrors {
            let Some(epoch) = self.borrow(name, opened, &sender.id)? else { continue };
            self.hear(name, opened.far.as_ref(), epoch)?;
            self.tell(name, opened, epoch, &mut round)?;
            self.poll(name, opened, epoch, &mut round)?;
        }
        Ok(round)
    }

    /// Lets others have the mirrors at once.
    pub fn give_mirrors_back(&mut self, sender: &mut Sender) -> Result<(), Refusal> {
        for (name, opened) in &mut sender.mirrors {
            if let Some(lent) = opened.lent.take() {
                self.store
                    .write(|tx| Ok::<_, Refusal>(Outcome::Commit(rows::give_back(tx, name, lent.epoch)?)))?;
            }
        }
        Ok(())
    }

    /// The epoch of the lease on a mirror; none while another sender has it.
    fn borrow(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        sender: &str,
    ) -> Result<Option<Epoch>, Refusal> {
        if let Some(lent) = opened.lent {
            if lent.renewed.elapsed() < FRESH {
                return Ok(Some(lent.epoch));
            }
            let kept = self.store.write(|tx| {
                let until = tx.now()?.wall.plus(LEASE);
                Ok::<_, Refusal>(Outcome::Commit(rows::keep(tx, name, lent.epoch, until)?))
            })?;
            opened.lent = kept.then_some(Lent { renewed: Instant::now(), ..lent });
            if kept {
                return Ok(Some(lent.epoch));
            }
        }
        // Looked at before it is asked for: a sender that waits does not write.
        let (now, found) = self.ask(|tx| Ok((tx.now()?.wall, rows::find(tx, name)?)))?;
        let lender = found.and_then(|found| found.sender.filter(|_| found.lent_until >= now));
        // One that died on this host is not waited for.
        let is_gone = lender.as_deref().is_some_and(process_liveness::is_gone);
        if lender.is_some() && !is_gone {
            return Ok(None);
        }
        let begins_now = opened.far.begins_now();
        let epoch = self.store.write(|tx| {
            let now = tx.now()?.wall;
            let heard = if begins_now { load::workspace(tx)?.last_seq } else { 0 };
            if let Some(dead) = lender.as_deref().filter(|_| is_gone) {
                rows::bury(tx, name, dead)?;
            }
            let lent = rows::lend(tx, name, sender, heard, (now, now.plus(LEASE)))?;
            Ok::<_, Refusal>(Outcome::Commit(lent))
        })?;
        opened.lent = epoch.map(|epoch| Lent { epoch, renewed: Instant::now() });
        Ok(epoch)
    }

    /// Sorts what is new in the ledger by task.
    fn hear(&mut self, name: &MirrorName, far: &dyn FarEnd, epoch: Epoch) -> Result<(), Refusal> {
        loop {
            let entries = self.ask(|tx| {
                let heard = rows::find(tx, name)?.map_or(0, |found| found.heard);
                ledger::log(tx, &LedgerPart::After(heard), SORTED)
            })?;
            let mut wanted: BTreeMap<String, FreshEntries> = BTreeMap::new();
            for entry in &entries {
                let stamped = entry.open().map_err(unexpected)?;
                if far.wants(&stamped.event) {
                    let task = entry.task.clone().unwrap_or_default();
                    let heard = FreshEntries { first: entry.seq, newest: entry.seq, since: entry.at };
                    wanted.entry(task).or_insert(heard).newest = entry.seq;
                }
            }
            let begins_now = far.begins_now();
            let is_full = entries.len() as i64 == SORTED;
            let Some(last) = entries.last().filter(|_| is_full || !wanted.is_empty()) else { return Ok(()) };
            self.as_sender(name, epoch, |tx| {
                for (task, heard) in &wanted {
                    // What came before is not told to those who begin now.
                    let delivered = if begins_now { heard.first - 1 } else { 0 };
                    rows::hear(tx, name, task, heard.newest, delivered, heard.since)?;
                }
                rows::put_heard(tx, name, last.seq)
            })?;
            if !is_full {
                return Ok(());
            }
        }
    }

    /// Writes something down, if the mirror is still this sender's.
    pub(super) fn as_sender<T>(
        &mut self,
        name: &MirrorName,
        epoch: Epoch,
        work: impl FnOnce(&mut dyn Tx) -> onus_store::error::Result<T>,
    ) -> Result<T, Refusal> {
        self.store.write(|tx| {
            let until = tx.now()?.wall.plus(LEASE);
            if !rows::keep(tx, name, epoch, until)? {
                return Err(Refusal::new(Code::Fenced, format!("another sender has the mirror {name}"))
                    .hint("onus mirror status"));
            }
            Ok(Outcome::Commit(work(tx)?))
        })
    }

    fn tell(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        round: &mut Round,
    ) -> Result<(), Refusal> {
        let (now, rests) = self.ask(|tx| {
            let now = tx.now()?.wall;
            Ok((now, rows::find(tx, name)?.is_none_or(|found| found.next_at > now)))
        })?;
        if rests || opened.far.is_resting(now) {
            return Ok(());
        }
        self.tell_of_stuck(name, opened, epoch, round)?;
        if let Some(until) = opened.far.gathers_until(now) {
            return self.tell_at_once_all(name, opened, epoch, until, round);
        }
        let due = self.ask(|tx| rows::due(tx, name, now, TASKS))?;
        round.more |= due.len() as i64 == TASKS;
        for row in due {
            match self.tell_task(name, opened, epoch, row, round)? {
                Ended::Next => {}
                Ended::Away => return Ok(()),
            }
        }
        Ok(())
    }

    fn tell_task(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        mut row: StoredCounterpart,
        round: &mut Round,
    ) -> Result<Ended, Refusal> {
        let news = match self.ask(|tx| story::waiting(tx, opened.far.as_ref(), &row)) {
            Ok(news) => news,
            Err(refusal) if refusal.code == Code::StoreUnavailable || refusal.code == Code::StoreBusy => {
                return Err(refusal);
            }
            // A story that cannot be read is told to nobody; the others' are.
            Err(refusal) => {
                (row.stuck, row.error) = (true, Some(refusal.detail));
                self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
                return Ok(Ended::Next);
            }
        };
        if news.is_empty() {
            row.delivered = row.heard;
            self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
        }
        if self.is_left_at_work(name, opened, epoch, &mut row)? {
            return Ok(Ended::Next);
        }
        for (at, one) in news.iter().enumerate() {
            self.must_be_mine(name, opened, epoch)?;
            if at == 0 {
                self.begin(name, opened, epoch, &mut row, one)?;
            }
            match opened.far.deliver(one, &mut row.told) {
                Ok(()) => {
                    round.delivered += 1;
                    self.delivered(name, epoch, &mut row, one, news.get(at + 1))?;
                }
                Err(failure) => return self.failed(name, opened, epoch, row, failure),
            }
        }
        Ok(Ended::Next)
    }

    /// Writes down that an entry is about to be told. Who only hears is told again under the same id, whatever happens.
    fn begin(
        &mut self,
        name: &MirrorName,
        opened: &Opened,
        epoch: Epoch,
        row: &mut StoredCounterpart,
        one: &Tidings,
    ) -> Result<(), Refusal> {
        if opened.mirror.is_none() {
            return Ok(());
        }
        row.told.begun = Some(one.seq);
        self.as_sender(name, epoch, |tx| rows::put(tx, row))
    }

    /// Whether a sender began here and never said how it ended: the task rests before the far end is asked what became of it.
    fn is_left_at_work(
        &mut self,
        name: &MirrorName,
        opened: &Opened,
        epoch: Epoch,
        row: &mut StoredCounterpart,
    ) -> Result<bool, Refusal> {
        let Some(mirror) = opened.mirror.as_ref().filter(|_| row.told.begun.is_some()) else {
            return Ok(false);
        };
        row.told.begun = None;
        row.next_at = self.now()?.plus(mirror.silence);
        self.as_sender(name, epoch, |tx| rows::put(tx, row))?;
        Ok(true)
    }

    pub(super) fn must_be_mine(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
    ) -> Result<(), Refusal> {
        match self.is_still_mine(name, opened, epoch)? {
            true => Ok(()),
            false => Err(Refusal::new(Code::Fenced, format!("another sender has the mirror {name}"))
                .hint("onus mirror status")),
        }
    }

    /// Looked at before every call: a process that slept for minutes finds that it sends no more.
    fn is_still_mine(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
    ) -> Result<bool, Refusal> {
        match &mut opened.lent {
            Some(lent) if lent.renewed.elapsed() < FRESH => Ok(true),
            Some(lent) => {
                lent.renewed = Instant::now();
                match self.as_sender(name, epoch, |_| Ok(())) {
                    Ok(()) => Ok(true),
                    Err(refusal) if refusal.code == Code::Fenced => {
                        opened.lent = None;
                        Ok(false)
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            None => Ok(false),
        }
    }

    fn delivered(
        &mut self,
        name: &MirrorName,
        epoch: Epoch,
        row: &mut StoredCounterpart,
        one: &Tidings,
        next: Option<&Tidings>,
    ) -> Result<(), Refusal> {
        row.delivered = next.map_or(row.heard, |_| one.seq);
        row.since = next.map_or(row.since, |next| next.at);
        (row.attempts, row.next_at, row.stuck, row.error) = (0, Timestamp(0), false, None);
        let is_asked_first = self.settings.mirrors.contains_key(name);
        row.told.begun = next.filter(|_| is_asked_first).map(|next| next.seq);
        self.as_sender(name, epoch, |tx| {
            let mirror =
                rows::find(tx, name)?.ok_or_else(|| StoreError::Missing("the mirror is gone".into()))?;
            if mirror.failures > 0 {
                rows::put_stand(tx, name, 0, Timestamp(0), None)?;
            }
            rows::put(tx, row)
        })
    }

    /// Keeps what went wrong. One delivery that fails while the far end is well waits alone; a far end that is not well
    /// waits with all of them.
    fn failed(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        mut row: StoredCounterpart,
        failure: Undelivered,
    ) -> Result<Ended, Refusal> {
        let random = random()?;
        row.told.begun = None;
        let silence = opened.mirror.as_ref().map_or(SILENCE, |mirror| mirror.silence);
        let (why, silence) = match failure {
            Undelivered::Refused(why) => {
                (row.stuck, row.error, row.attempts) = (true, Some(why), row.attempts + 1);
                self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
                return Ok(Ended::Next);
            }
            Undelivered::WentBack => {
                row.attempts += 1;
                row.stuck = row.attempts >= ATTEMPTS;
                row.error = row.stuck.then(|| "it loses what it is told, again and again".to_owned());
                row.delivered = 0;
                self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
                return Ok(Ended::Next);
            }
            Undelivered::Away(why) => (why, Millis(0)),
            Undelivered::Silent(why) => (why, silence),
        };
        let health = opened.far.is_well();
        let now = self.now()?;
        let Err(illness) = health else {
            row.attempts += 1;
            row.stuck = row.attempts >= ATTEMPTS;
            row.next_at = now.plus(backoff(row.attempts, random).max(silence));
            row.error = Some(why);
            self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
            return Ok(Ended::Next);
        };
        self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
        self.away(name, epoch, &illness.words(), silence)?;
        Ok(Ended::Away)
    }

    /// The far end is left alone for a while.
    pub(super) fn away(
        &mut self,
        name: &MirrorName,
        epoch: Epoch,
        why: &str,
        least: Millis,
    ) -> Result<(), Refusal> {
        let random = random()?;
        self.as_sender(name, epoch, |tx| {
            let now = tx.now()?.wall;
            let failures = rows::find(tx, name)?.map_or(0, |found| found.failures) + 1;
            let pause = backoff(failures, random).max(least);
            rows::put_stand(tx, name, failures, now.plus(pause), Some(why))
        })
    }
}

fn random() -> Result<u64, Refusal> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(unexpected)?;
    Ok(u64::from_le_bytes(bytes))
}
