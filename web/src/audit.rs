//! Audit: the record and what in it somebody may have to answer for.

mod incident;

use crate::html::{Html, plainly, refused, when};
use crate::layout::rendered;
use crate::{Download, Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::report::{AuditKind, AuditLine, SearchAsk, When, csv};
use onus_app::view::EntryView;
use onus_core::code::Code;
use onus_core::event::Event;
use onus_core::refusal::Refusal;
use onus_core::report::Anomaly;
use onus_core::time::Timestamp;
use onus_host::zone;
use onus_store::load;
use onus_store::port::Store;
use onus_store::read::ledger;

pub(crate) use incident::page as incident;

/// Entries on one page of the record.
const PAGE: i64 = 100;
/// The most lines of one list; a file has all of them.
const LINES: usize = 300;

pub(crate) fn page() -> Page {
    Page { path: "/audit", name: "Audit", key: Some('a'), ask }
}

pub(crate) fn download() -> Download {
    Download { path: "/download/audit.csv", kind: "text/csv; charset=utf-8", ask: file }
}

/// What the page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuditSection {
    Record,
    Lines(&'static [AuditKind]),
    Anomalies,
}

/// The word in the address, what it is called, and what it shows.
const SHOWS: [(&str, &str, AuditSection); 6] = [
    ("record", "Record", AuditSection::Record),
    ("forced", "By force", AuditSection::Lines(&[AuditKind::OutsidePolicy, AuditKind::Forced])),
    ("refusals", "Refusals", AuditSection::Lines(&[AuditKind::Refusal])),
    ("grants", "Grants", AuditSection::Lines(&[AuditKind::Grant, AuditKind::OutsidePolicy])),
    (
        "exceptions",
        "Exceptions and quarantines",
        AuditSection::Lines(&[
            AuditKind::Exception,
            AuditKind::Quarantine,
            AuditKind::Token,
            AuditKind::Time,
            AuditKind::Generation,
        ]),
    ),
    ("anomalies", "Anomalies", AuditSection::Anomalies),
];

#[derive(Debug, Template)]
#[template(path = "audit.html")]
struct AuditPage {
    tabs: Vec<Tab>,
    show: &'static str,
    filter: Filter,
    /// The newest entry, and the last one that is signed.
    newest: i64,
    signed: Option<i64>,
    entries: Vec<LedgerLine>,
    older: Option<String>,
    lines: Vec<LedgerLine>,
    more: bool,
    counts: String,
    anomalies: Vec<Strange>,
    csv: Option<String>,
}

#[derive(Debug)]
struct Tab {
    name: &'static str,
    href: String,
    here: bool,
}

#[derive(Debug, Default)]
struct Filter {
    task: String,
    actor: String,
    verb: String,
    since: String,
    until: String,
    verbs: &'static [&'static str],
}

#[derive(Debug)]
struct LedgerLine {
    seq: i64,
    at: Html,
    actor: String,
    verb: String,
    class: &'static str,
    task: Option<String>,
    place: String,
    said: String,
    /// The code of a refusal, for whoever looks it up.
    code: Option<String>,
}

#[derive(Debug)]
struct Strange {
    kind: String,
    task: Option<String>,
    worker: Option<String>,
    seq: Option<i64>,
    detail: String,
}

fn asked(seen: &PageRequest) -> Result<(&'static str, AuditSection), Refusal> {
    let word = seen.word("show").unwrap_or(SHOWS[0].0);
    let found = SHOWS.iter().find(|(name, ..)| *name == word);
    let (name, _, show) = found.ok_or_else(|| {
        let known = SHOWS.map(|(name, ..)| name).join(", ");
        Refusal::invalid(format!("show: {} is none of {known}", onus_core::id::shown(word)))
    })?;
    Ok((name, *show))
}

fn period(seen: &PageRequest) -> When {
    When { since: seen.word("since").map(str::to_owned), until: seen.word("until").map(str::to_owned) }
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let (name, show) = asked(seen)?;
    let (newest, signed) = onus.store.read(|tx| {
        Ok((load::workspace(tx)?.last_seq, ledger::last_checkpoint(tx)?.map(|checkpoint| checkpoint.seq)))
    })?;
    let word = |name: &str| seen.word(name).unwrap_or_default().to_owned();
    let shown = name;
    let tab = |(word, name, _): &(&'static str, &'static str, AuditSection)| Tab {
        name,
        href: format!("/audit?show={word}"),
        here: *word == shown,
    };
    let mut page = AuditPage {
        tabs: SHOWS.iter().map(tab).collect(),
        show: name,
        filter: Filter {
            task: word("task"),
            actor: word("actor"),
            verb: word("verb"),
            since: word("since"),
            until: word("until"),
            verbs: Event::VERBS,
        },
        newest,
        signed,
        entries: Vec::new(),
        older: None,
        lines: Vec::new(),
        more: false,
        counts: String::new(),
        anomalies: Vec::new(),
        csv: None,
    };
    match show {
        AuditSection::Record => record(onus, seen, &mut page)?,
        AuditSection::Lines(only) => lines(onus, seen, only, &mut page)?,
        AuditSection::Anomalies => {
            let view = onus.report_anomalies(seen.viewer.handle(), &period(seen))?;
            page.counts = format!("{} entries since {}", view.examined, day(view.since, seen));
            page.anomalies = view.anomalies.iter().map(Strange::new).collect();
        }
    }
    Ok(Drawn { title: "Audit".to_owned(), main: rendered(&page)? })
}

fn record(onus: &mut Onus, seen: &PageRequest, page: &mut AuditPage) -> Result<(), Refusal> {
    let before = seen.word("before").map(str::parse).transpose();
    let ask = SearchAsk {
        task: seen.read("task")?,
        actor: seen.read("actor")?,
        verb: seen.word("verb").map(str::to_owned),
        when: period(seen),
        before: before.map_err(|_| Refusal::invalid("before: that is no number of an entry"))?,
        limit: PAGE,
    };
    let view = onus.search_ledger(seen.viewer.handle(), &ask)?;
    page.entries = view.entries.iter().map(|said| LedgerLine::of_entry(said, seen.now)).collect();
    page.older = view.next.map(|next| seen.with("before", Some(&next.to_string())));
    Ok(())
}

fn lines(
    onus: &mut Onus,
    seen: &PageRequest,
    only: &[AuditKind],
    page: &mut AuditPage,
) -> Result<(), Refusal> {
    let view = onus.report_audit(seen.viewer.handle(), &period(seen), only)?;
    page.more = view.more || view.lines.len() > LINES;
    page.lines =
        view.lines.iter().rev().take(LINES).map(|line| LedgerLine::of_audit(line, seen.now)).collect();
    let named = only
        .iter()
        .map(|kind| format!("{} {}", view.counts.get(kind.name()).unwrap_or(&0), words(kind.name())));
    page.counts = format!("{} since {}", named.collect::<Vec<_>>().join(", "), day(view.since, seen));
    let names: Vec<&str> = only.iter().map(|kind| kind.name()).collect();
    let address = seen.with("show", None).replacen("/audit", "/download/audit.csv", 1);
    let joint = if address.contains('?') { '&' } else { '?' };
    page.csv = Some(format!("{address}{joint}only={}", names.join(",")));
    Ok(())
}

/// The lines as a file; `only` as the command line has it.
fn file(onus: &mut Onus, seen: &PageRequest) -> Result<Vec<u8>, Refusal> {
    let mut only = Vec::new();
    for name in seen.word("only").into_iter().flat_map(|names| names.split(',')) {
        let kind = AuditKind::parse(name);
        only.push(
            kind.ok_or_else(|| Refusal::invalid(format!("only: {} is no kind", onus_core::id::shown(name))))?,
        );
    }
    let view = onus.report_audit(seen.viewer.handle(), &period(seen), &only)?;
    if view.more {
        return Err(
            Refusal::invalid("there is more than one file holds").hint("name a shorter stretch of time")
        );
    }
    csv(&view).map_err(|error| Refusal::new(Code::Internal, error))
}

/// The day of a moment, where the viewer is.
fn day(at: Timestamp, seen: &PageRequest) -> String {
    zone::date(seen.viewer.tz(), at).map_or_else(|_| at.to_string(), |day| day.to_string())
}

fn words(name: &str) -> String {
    crate::html::verb(name)
}

fn refused_with(verb: &str, said: &str) -> Option<String> {
    refused(verb, said).map(|(_, code)| code.to_owned())
}

/// How loud a line is.
fn class(verb: &str, forced: bool) -> &'static str {
    match verb {
        _ if forced => "bad",
        "refused" | "taken_over" | "workstation_quarantined" | "workstation_not_ready" => "warn",
        "completed" | "merged" => "good",
        _ => "",
    }
}

impl LedgerLine {
    fn of_entry(entry: &EntryView, now: Timestamp) -> LedgerLine {
        let forced = entry.data.get("forced").or(entry.data.pointer("/grant/forced"));
        LedgerLine {
            seq: entry.seq,
            at: when(entry.at, now),
            actor: entry.actor.clone(),
            class: class(&entry.verb, forced.is_some_and(|forced| forced == true)),
            verb: crate::html::verb(&entry.verb),
            task: entry.task.clone(),
            place: entry.workstation.clone().unwrap_or_default(),
            said: plainly(&entry.verb, &entry.said),
            code: refused_with(&entry.verb, &entry.said),
        }
    }

    fn of_audit(line: &AuditLine, now: Timestamp) -> LedgerLine {
        LedgerLine {
            seq: line.seq,
            at: when(line.at, now),
            actor: line.actor.to_string(),
            class: class(&line.verb, line.forced),
            verb: words(line.kind.name()),
            task: line.task.as_ref().map(ToString::to_string),
            place: line.workstation.as_ref().map(ToString::to_string).unwrap_or_default(),
            said: plainly(&line.verb, &line.detail),
            code: refused_with(&line.verb, &line.detail),
        }
    }
}

impl Strange {
    fn new(anomaly: &Anomaly) -> Strange {
        Strange {
            kind: words(anomaly.kind.name()),
            task: anomaly.task.as_ref().map(ToString::to_string),
            worker: anomaly.worker.as_ref().map(ToString::to_string),
            seq: anomaly.seq,
            detail: anomaly.detail.clone(),
        }
    }
}
