//! What is told in other ways than entry by entry: several at once to somebody who wants a digest, and deliveries that are stuck,
//! which no entry of the ledger tells.

use super::sender::{Opened, Round, TASKS};
use super::story;
use crate::Onus;
use crate::submit::unexpected;
use onus_core::code::Code;
use onus_core::event::{Event, Refused};
use onus_core::id::{Epoch, MirrorName};
use onus_core::mirror::Tidings;
use onus_core::refusal::Refusal;
use onus_core::time::{Millis, Timestamp};
use onus_store::load;
use onus_store::mirror::{self as rows, StoredCounterpart};

/// Tasks that one digest tells of; the rest follow in the next one.
const DIGEST: i64 = 200;

impl Onus {
    /// Tells everything up to a moment in one message. Its id is made of that moment and of what comes first in it: after a
    /// crash the same is told again under the same id.
    pub(super) fn tell_at_once_all(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        until: Timestamp,
        round: &mut Round,
    ) -> Result<(), Refusal> {
        let (workspace, due) = self.ask(|tx| {
            let now = tx.now()?.wall;
            Ok((load::workspace(tx)?.uid, rows::due(tx, name, now, DIGEST)?))
        })?;
        let mut told: Vec<StoredCounterpart> = Vec::new();
        let mut news: Vec<Tidings> = Vec::new();
        for mut row in due.into_iter().filter(|row| row.since <= until) {
            let waiting = self.ask(|tx| story::waiting(tx, opened.far.as_ref(), &row))?;
            let count = waiting.iter().take_while(|one| one.at <= until).count();
            let next = waiting.get(count);
            row.delivered = match (next, waiting.get(count.wrapping_sub(1))) {
                (None, _) => row.heard,
                (Some(_), Some(last)) => last.seq,
                (Some(_), None) => continue,
            };
            row.since = next.map_or(row.since, |next| next.at);
            (row.attempts, row.next_at, row.error) = (0, Timestamp(0), None);
            news.extend(waiting.into_iter().take(count));
            told.push(row);
        }
        if told.is_empty() {
            return Ok(());
        }
        news.sort_by_key(|one| one.seq);
        let first = news.first().map_or(0, |one| one.seq);
        let id = format!("{workspace}:digest:{name}:{}:{first}", until.0);
        self.must_be_mine(name, opened, epoch)?;
        match opened.far.deliver_all(&id, &news) {
            Ok(()) => {
                round.delivered += news.len() as u64;
                self.as_sender(name, epoch, |tx| {
                    rows::put_stand(tx, name, 0, Timestamp(0), None)?;
                    told.iter().try_for_each(|row| rows::put(tx, row))
                })
            }
            Err(failure) => self.away(name, epoch, &failure.words(), Millis(0)),
        }
    }

    /// Tells of deliveries to others that are stuck, each once.
    pub(super) fn tell_of_stuck(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        round: &mut Round,
    ) -> Result<(), Refusal> {
        let others: Vec<MirrorName> = self.outlet_names().into_iter().filter(|other| other != name).collect();
        for other in others {
            for stuck in self.ask(|tx| rows::stuck(tx, &other, TASKS))? {
                let news = self.stuck_news(&other, &stuck)?;
                if !opened.far.wants(&news.event) {
                    return Ok(());
                }
                let mut row = self.as_sender(name, epoch, |tx| {
                    let heard = rows::find(tx, name)?.map_or(0, |found| found.heard);
                    rows::known_from(tx, name, &stuck.task, heard, news.at)
                })?;
                let (key, value) = (format!("stuck:{other}"), stuck.delivered.to_string());
                if row.told.done.get(&key) == Some(&value) {
                    continue;
                }
                self.must_be_mine(name, opened, epoch)?;
                if let Err(failure) = opened.far.deliver(&news, &mut row.told) {
                    return self.away(name, epoch, &failure.words(), Millis(0));
                }
                round.delivered += 1;
                row.told.done.insert(key, value);
                self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
            }
        }
        Ok(())
    }

    /// Never written down: the rows of the outbox say it.
    fn stuck_news(&mut self, other: &MirrorName, stuck: &StoredCounterpart) -> Result<Tidings, Refusal> {
        let workspace = self.ask(|tx| load::workspace(tx))?.uid;
        let task = match stuck.task.parse() {
            Ok(id) => self.ask(|tx| load::task(tx, &id))?.map(|stored| stored.task),
            Err(_) => None,
        };
        let detail = stuck.error.clone().unwrap_or_default();
        let event: Event = Refused {
            command: format!("the delivery to {other}"),
            code: Code::MirrorStuck,
            detail,
            hint: Some(format!("onus mirror retry {other}")),
            findings: Vec::new(),
        }
        .into();
        let picture = task.map(|task| onus_core::mirror::LastHolder::default().picture(&task, &event));
        Ok(Tidings {
            id: format!("{workspace}:stuck:{other}:{}:{}", stuck.task, stuck.delivered),
            seq: stuck.delivered,
            at: stuck.since,
            actor: "@onus".parse().map_err(unexpected)?,
            workstation: None,
            event,
            task: picture,
            said: None,
            worked: Vec::new(),
            is_newest: false,
        })
    }
}
