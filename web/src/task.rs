//! One task with its whole story: who asked, who worked on it and where, what was shown, what can be done now and what
//! stands against the rest.

mod dependency;
mod handed;
mod view;

use crate::html::{Html, blocker, ring, when};
use crate::layout::rendered;
use crate::limits;
use crate::markdown::{is_harmless, markdown};
use crate::{Drawn, Page, PageRequest};
use handed::Handed;
use onus_app::Onus;
use onus_app::allowed_actions::Choice;
use onus_app::show::StoryPart;
use onus_app::view::{EntryView, NoteView, StoryView};
use onus_core::handoff::Handoff;
use onus_core::hash::Digest;
use onus_core::id::{Seq, TaskId, shown};
use onus_core::refusal::Refusal;
use onus_core::settings::IntakeSettings;
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use onus_store::error::Result as StoreResult;
use onus_store::port::{Store, Tx};
use onus_store::read::{ledger, report};
use onus_store::{evidence, load, milestone, output};
use std::str::FromStr;
pub(crate) use view::short;
use view::{Action, CheckLine, Fact, NoteLine, Printed, Seal, TaskPage};

/// So many of the latest reviews are listed; the record has all.
const REVIEWS: usize = 50;

/// So many neighbours are listed by title.
const KIN: usize = 12;

/// So many bytes of what a session printed are shown.
const PRINTED: i64 = 32_768;

/// The number of an entry.
#[derive(Debug, Clone, Copy)]
struct EntryNumber(Seq);

impl FromStr for EntryNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<EntryNumber, String> {
        text.parse().map(EntryNumber).map_err(|_| format!("{} is no entry", shown(text)))
    }
}

pub(crate) fn page() -> Page {
    Page { path: "/tasks/{id}", name: "Task", key: None, ask }
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let id: TaskId = seen.param("id")?;
    let before: Option<EntryNumber> = seen.read("before")?;
    let story = onus.show_part(&id, StoryPart { before: before.map(|EntryNumber(seq)| seq), limit: None })?;
    let checks = onus.checks(&id)?.checks;
    let choices = onus.choices(&seen.viewer.principal, &id)?;
    let (reviews, seal, graph, held, holder, milestones, kin) = onus.store.read(|tx| {
        let task = load::task(tx, &id)?.map(|stored| stored.task);
        let held = task.as_ref().and_then(|task| task.assignment().cloned());
        let holder = held.as_ref().map(|held| load::worker(tx, &held.assignee)).transpose()?.flatten();
        let milestones = task.map(|task| milestone::about(tx, &task)).transpose()?.unwrap_or_default();
        let graph = dependency::load(tx, &id, &story)?;
        let mut reviews = evidence::reviews(tx, &id)?;
        reviews.drain(..reviews.len().saturating_sub(REVIEWS));
        let kin = kin(tx, &story)?;
        Ok((reviews, seal(tx, &id)?, graph, held, holder, milestones, kin))
    })?;
    let printed = printed(onus, &id)?;
    let title = format!("{} {}", story.task.id, story.task.title);
    let page = TaskPage {
        ticks: seen.viewer.worker.is_some() && !story.task.state.is_terminal(),
        body: story.task.body.as_deref().map(markdown),
        holder_kind: holder.map_or("", |worker| worker.kind.name()),
        ring: held.map(|held| ring(&held, seen.now)),
        origin: story.task.origin_ask_ref.as_ref().map(|origin| origin.to_string()),
        origin_link: story
            .task
            .origin_ask_ref
            .as_ref()
            .and_then(|origin| link(&onus.settings.intake, origin.as_str())),
        tried: checks
            .iter()
            .filter_map(|check| check.run.as_ref())
            .max_by_key(|run| run.at)
            .and_then(|run| run.commit.as_ref().map(ToString::to_string)),
        actions: actions(&choices, seen),
        graph: graph.draw()?,
        checks: checks.into_iter().map(|check| CheckLine::new(check, seen.now)).collect(),
        limits: limits::rows(&story.limits),
        notes: notes(&story, seen),
        extra: story.task.extra_words(),
        handoff: story.handoff.as_ref().map(|handoff| Handed::new(handoff, seen.now)),
        commits: commits(&story),
        milestones: milestones.into_iter().map(|row| row.milestone.name.to_string()).collect(),
        reviews,
        printed,
        seal,
        entries: story.ledger.iter().rev().cloned().collect(),
        earlier: story.earlier.map(|seq| seen.with("before", Some(&seq.to_string()))),
        latest: before.map(|_| seen.with("before", None)),
        now: seen.now,
        person: seen.viewer.is_person(),
        raw_body: story.task.body.clone().unwrap_or_default(),
        waits_for: story.task.blocked_on.as_deref().map(|on| blocker(on).to_owned()),
        facts: Fact::all(&story.task),
        kin,
        story,
    };
    Ok(Drawn { title, main: rendered(&page)? })
}

/// The end of what the last session printed; none where nothing is kept of it.
fn printed(onus: &mut Onus, task: &TaskId) -> Result<Option<Printed>, Refusal> {
    let Some(session) = onus.sessions(Some(task), None, 1)?.sessions.into_iter().next() else {
        return Ok(None);
    };
    let ends = onus.store.read(|tx| output::last(tx, session.id))?.map_or(0, |last| last.end());
    if ends == 0 && !session.running {
        return Ok(None);
    }
    let mut from = (ends - PRINTED).max(0);
    if from > 0 {
        // A client's line makes no sense without its beginning.
        let part = onus.output(session.id, from)?;
        let line =
            part.pieces.iter().find_map(|piece| piece.text.find('\n').map(|end| (piece.position, end)));
        from = line.map_or(from, |(position, end)| position + i64::try_from(end).unwrap_or(0) + 1);
    }
    let view = onus.steps(session.id, from)?;
    Ok(Some(Printed {
        session: session.id,
        worker: session.worker.to_string(),
        steps: view.steps,
        next: view.next,
        closed: view.closed,
    }))
}

/// Where an ask lives: as its channel has it, or if its key says so itself.
fn link(intake: &IntakeSettings, origin: &str) -> Option<String> {
    let (channel, key) = origin.split_once(':')?;
    let channel = channel.parse().ok().and_then(|name| intake.channels.get(&name));
    channel.and_then(|channel| channel.link(key)).or_else(|| is_harmless(key).then(|| key.to_owned()))
}

fn actions(choices: &[Choice], seen: &PageRequest) -> Vec<Action> {
    let mut actions: Vec<Action> =
        choices.iter().map(|choice| Action::new(choice, seen.viewer.is_person())).collect();
    // A note has a field of its own on the page: what moves the task comes first.
    actions.sort_by_key(|action| action.verb == "note");
    actions
}

fn notes(story: &StoryView, seen: &PageRequest) -> Vec<NoteLine> {
    // The last handoff has a place of its own; of earlier ones what was said, if anything was.
    let last = story.handoff.as_ref().and_then(|view| view.handoff.as_ref()).map(|last| (&last.by, last.at));
    let is_told =
        |said: &str| story.notes.iter().any(|note| note.kind != "handoff" && note.text.trim() == said);
    let words = |note: &NoteView| match Handoff::parse(&note.text) {
        Ok(handoff) if note.kind == "handoff" => {
            let is_last = last == Some((&handoff.by, handoff.at));
            let said = handoff.said().into_iter().map(|(what, text)| match what {
                "" => text,
                what => format!("**{what}:** {text}"),
            });
            Some(said.collect::<Vec<_>>().join("\n\n"))
                .filter(|said| !said.is_empty() && !is_last && !is_told(said))
        }
        _ => Some(note.text.clone()),
    };
    let notes = story.notes.iter().rev().filter_map(|note| Some((note, words(note)?)));
    notes
        .map(|(note, text)| NoteLine {
            kind: note.kind.clone(),
            place: note.place.clone(),
            by: match &note.said {
                Some(said) => format!("{} (brought in by {})", said.by, note.by),
                None => note.by.clone(),
            },
            at: when(note.said.as_ref().and_then(|said| said.at).unwrap_or(note.at), seen.now),
            text: markdown(&text),
        })
        .collect()
}

/// The commits that the record names, the latest first: what was tried, reviewed, merged or handed on.
fn commits(story: &StoryView) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let handed = story.handoff.iter().filter_map(|handoff| handoff.handoff.as_ref());
    for commit in handed.flat_map(|handoff| &handoff.commits) {
        found.push((commit.id.to_string(), commit.subject.clone()));
    }
    for entry in story.ledger.iter().rev() {
        if let Some(commit) = commit_of(entry)
            && found.iter().all(|(known, _)| known != commit)
        {
            found.push((commit.to_owned(), entry.verb.replace('_', " ")));
        }
    }
    found
}

fn commit_of(entry: &EntryView) -> Option<&str> {
    let ground = ["ground", "proof"].iter().find_map(|name| entry.data.get(name));
    let ground = ground.and_then(|ground| ground.get("ground").or(Some(ground)));
    entry.data.get("commit").or_else(|| ground?.get("commit"))?.as_str()
}

/// What it waits for, then what waits for it, with titles; the graph has what lies further away.
fn kin(tx: &mut dyn Tx, story: &StoryView) -> StoreResult<Vec<(String, String, StateName)>> {
    let near = story.task.depends_on.iter().chain(&story.dependents).take(KIN);
    let mut found = Vec::new();
    for id in near {
        if let Some(brief) = report::brief(tx, id)? {
            found.push((id.to_string(), brief.title, brief.state));
        }
    }
    Ok(found)
}

/// Whether the task's chain holds, from its first entry to the head that its row names.
fn seal(tx: &mut dyn Tx, id: &TaskId) -> StoreResult<Seal> {
    let workspace = load::workspace(tx)?.uid;
    let (mut prev, mut last, mut entries, mut broken) = (Digest::ZERO, 0, 0, None);
    ledger::chain(tx, Some(&id.to_string()), &mut |seq, entry| {
        let entry = entry?;
        if broken.is_none() && (entry.prev != prev || entry.expected_hash(&workspace) != entry.hash) {
            broken = Some(seq);
        }
        (prev, last, entries) = (entry.hash, seq, entries + 1);
        Ok(())
    })?;
    let head = load::task(tx, id)?.map(|stored| stored.head);
    Ok(match broken {
        None if entries > 0 && head == Some(prev) => Seal::Holds { entries },
        broken => Seal::Broken { seq: broken.unwrap_or(last) },
    })
}

/// What an entry says, without the words that have a place of their own on the page.
pub(crate) fn said(entry: &EntryView) -> String {
    let Some(fields) = entry.data.as_object() else { return String::new() };
    let told =
        fields.iter().filter(|(_, value)| value.is_string() || value.is_number() || value.is_boolean());
    let told = told.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}: {}", text.chars().take(80).collect::<String>()),
        None => format!("{name}: {value}"),
    });
    told.take(4).collect::<Vec<_>>().join(" · ")
}

/// For templates, which lend what they have.
pub(crate) fn moment(at: &Timestamp, now: &Timestamp) -> Html {
    when(*at, *now)
}
