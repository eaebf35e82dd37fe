//! What a mirror asks for: its new and changed issues become tasks and refresh them, through the same entrance as any import.

use super::sender::{Opened, Round};
use crate::Onus;
use crate::import::format::{self, Format, SourceFile};
use crate::import::{Import, Run};
use crate::submit::unexpected;
use onus_core::hash::Digest;
use onus_core::id::{Epoch, Handle, MirrorName, OriginRef};
use onus_core::mirror::drift::drift;
use onus_core::mirror::is_marked;
use onus_core::mirror::setting::{Mirror, OnDrift};
use onus_core::refusal::Refusal;
use onus_core::text::{BODY_MAX, TITLE_MAX, is_unprintable, shortened};
use onus_core::time::{Millis, Timestamp};
use onus_host::mirror::{ASKED, FarIssue, Polled};
use onus_store::load;
use onus_store::mirror::{self as rows, StoredCounterpart};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Pages that are read in one round: deliveries go on in between.
const PAGES: usize = 10;

/// An issue, and what is known of it here.
struct SeenIssue {
    issue: FarIssue,
    row: Option<StoredCounterpart>,
    /// It is a task here.
    is_known: bool,
    /// Made from here: it asks for nothing.
    is_ours: bool,
    /// Another issue had its number before.
    is_reused: bool,
}

impl Onus {
    /// Asks a mirror for issues, where it is time.
    pub(super) fn poll(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        round: &mut Round,
    ) -> Result<(), Refusal> {
        let Some(mirror) = opened.mirror.clone() else { return Ok(()) };
        let Some(worker) = mirror.worker.clone() else { return Ok(()) };
        let (now, stand) = self.ask(|tx| Ok((tx.now()?.wall, rows::find(tx, name)?)))?;
        let Some(stand) = stand else { return Ok(()) };
        let is_time = stand.polled_at.plus(mirror.poll) <= now || opened.more;
        if !is_time || stand.next_at > now {
            return Ok(());
        }
        let mut from = stand.polled;
        for _ in 0..PAGES {
            let page = match opened.far.poll(from.as_deref()) {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                Err(failure) => return self.away(name, epoch, &failure.words(), Millis(0)),
            };
            round.polled += page.issues.len() as u64;
            let refused = self.arrived(name, opened, epoch, &mirror, &worker, &page)?;
            opened.more = page.more;
            from = Some(page.next.clone());
            self.as_sender(name, epoch, |tx| {
                let now = tx.now()?.wall;
                rows::put_polled(tx, name, Some(&page.next), now)?;
                match refused {
                    Some(why) => rows::put_stand(tx, name, 0, Timestamp(0), Some(&why)),
                    None if stand.failures > 0 => rows::put_stand(tx, name, 0, Timestamp(0), None),
                    None => Ok(()),
                }
            })?;
            if !page.more {
                return Ok(());
            }
        }
        round.more = true;
        Ok(())
    }

    /// Takes a page in; what could not be taken is told.
    fn arrived(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        mirror: &Mirror,
        worker: &Handle,
        page: &Polled,
    ) -> Result<Option<String>, Refusal> {
        let channel = mirror.channel(name)?;
        let mut asks: Vec<Json> = Vec::new();
        for issue in &page.issues {
            let seen = self.seen_issue(name, channel, issue)?;
            self.compare(name, opened, epoch, mirror.drift, &seen)?;
            // What had ended there before it was ever seen here is history: a person may import it.
            if seen.is_ours || (issue.is_closed && !seen.is_known) {
                continue;
            }
            let document = cleaned(&seen);
            let digest = Digest::of(document.to_string().as_bytes()).to_string();
            let before = seen.row.as_ref().and_then(|row| row.told.read_back.get(ASKED));
            if before == Some(&digest) {
                continue;
            }
            if let Some(mut row) = seen.row {
                row.told.read_back.insert(ASKED.to_owned(), digest);
                self.as_sender(name, epoch, |tx| rows::put(tx, &row))?;
            }
            asks.push(document);
        }
        if asks.is_empty() || self.take_in(name, worker, mirror, &asks).is_ok() {
            return Ok(None);
        }
        // One that is refused keeps none of the others out.
        let mut refused = None;
        for ask in &asks {
            if let Err(refusal) = self.take_in(name, worker, mirror, std::slice::from_ref(ask)) {
                let id = ask["id"].as_str().unwrap_or_default().to_owned();
                refused.get_or_insert(format!("issue {id} was not taken: {}", refusal.detail));
            }
        }
        Ok(refused)
    }

    fn seen_issue(
        &mut self,
        name: &MirrorName,
        channel: &str,
        issue: &FarIssue,
    ) -> Result<SeenIssue, Refusal> {
        let origin: OriginRef = format!("{channel}:{}", issue.id).parse().map_err(unexpected)?;
        let made: Option<Timestamp> = Timestamp::from_elsewhere(&issue.created);
        self.ask(|tx| {
            let workspace = load::workspace(tx)?.uid;
            let asked = load::task_by_origin(tx, &origin)?;
            let task = match &asked {
                Some(id) => load::task(tx, id)?.map(|stored| stored.task),
                None => None,
            };
            let is_reused =
                task.as_ref().is_some_and(|task| made.is_some_and(|made| task.created_at != made));
            let mut known = rows::by_far_id(tx, name, &issue.id)?;
            known.retain(|row| row.told.far_created.as_ref().is_none_or(|created| *created == issue.created));
            let row = match (&asked, is_reused) {
                (Some(id), false) => rows::one(tx, name, &id.to_string())?,
                _ => known.into_iter().next(),
            };
            let description = issue.document["description"].as_str().unwrap_or_default();
            let is_ours = asked.is_none() && (is_marked(&workspace, description) || row.is_some());
            let is_known = asked.is_some() && !is_reused;
            Ok(SeenIssue { issue: issue.clone(), row, is_known, is_ours, is_reused })
        })
    }

    /// What Onus owns and somebody changed there: told, and put back where the settings say so.
    fn compare(
        &mut self,
        name: &MirrorName,
        opened: &mut Opened,
        epoch: Epoch,
        on_drift: OnDrift,
        seen: &SeenIssue,
    ) -> Result<(), Refusal> {
        let Some(row) =
            seen.row.as_ref().filter(|row| row.heard == row.delivered && row.told.far_id.is_some())
        else {
            return Ok(());
        };
        let Ok(task) = row.task.parse() else { return Ok(()) };
        let found = drift(&task, &seen.issue.id, &row.told.read_back, &seen.issue.fields);
        if found == row.drift {
            return Ok(());
        }
        let mut row = row.clone();
        row.drift = found;
        if !row.drift.is_empty() && on_drift == OnDrift::Restore && opened.far.restore(&row.told).is_ok() {
            row.drift.clear();
        }
        self.as_sender(name, epoch, |tx| rows::put(tx, &row))
    }

    fn take_in(
        &mut self,
        name: &MirrorName,
        worker: &Handle,
        mirror: &Mirror,
        asks: &[Json],
    ) -> Result<(), Refusal> {
        let text = json!({ "issues": asks }).to_string();
        let request = format!("mirror-{}", Digest::of(text.as_bytes())).parse().map_err(unexpected)?;
        let format = Format::Redmine;
        let mut converted =
            format::convert(format, &[SourceFile { name: "issues".into(), text }], &BTreeMap::new());
        if let Some(refusal) = converted.refusal() {
            return Err(refusal);
        }
        let lines = of_channel(&converted.lines, mirror.channel(name)?).map_err(unexpected)?;
        let import = Import {
            request: &request,
            actor: Some(worker),
            project: mirror.to_project.as_ref(),
            input: &lines,
            run: Run::Real,
        };
        self.import_polled(&import).map(drop)
    }
}

/// Every far end gives its issues in one shape; where they came from is told by their origins.
fn of_channel(lines: &str, channel: &str) -> Result<String, serde_json::Error> {
    let mut renamed = String::new();
    for line in lines.lines() {
        let mut ask: Json = serde_json::from_str(line)?;
        let key = ask["origin_ask_ref"].as_str().and_then(|origin| origin.strip_prefix("redmine:"));
        if let Some(origin) = key.map(|key| format!("{channel}:{key}")) {
            ask["origin_ask_ref"] = Json::from(origin);
        }
        renamed.push_str(&format!("{ask}\n"));
    }
    Ok(renamed)
}

/// An issue as it is taken in: bounded, without what no text may have, and under a name of its own where its number was
/// another's.
fn cleaned(seen: &SeenIssue) -> Json {
    let mut document = seen.issue.document.clone();
    let id = match seen.is_reused {
        true => format!("{}@{}", seen.issue.id, seen.issue.created),
        false => seen.issue.id.clone(),
    };
    document["id"] = Json::from(id);
    for (name, max) in [("subject", TITLE_MAX), ("description", BODY_MAX - 100)] {
        let Some(text) = document[name].as_str() else { continue };
        let plain: String = text
            .chars()
            .filter(|c| !is_unprintable(*c) || (name != "subject" && matches!(c, '\n' | '\t')))
            .collect();
        let short = shortened(plain.trim(), max);
        document[name] = match (short.is_empty(), short.len() < plain.trim().len()) {
            (true, _) if name == "description" => Json::Null,
            (true, _) => Json::from("(no subject)"),
            (false, true) if name == "description" => {
                Json::from(format!("{short}\n\n(The rest is where it was asked for.)"))
            }
            (false, _) => Json::from(short),
        };
    }
    document
}
