//! iCalendar (RFC 5545): one event per session. Written by hand: it is a few lines of text, and the libraries bring
//! another clock with them.

use onus_core::id::{Handle, Seq, TaskId};
use onus_core::time::Timestamp;
use onus_store::read::effort::Counted;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The longest line in bytes, its end not counted.
const LINE_MAX: usize = 75;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Calendar {
    /// The workspace's: an event keeps its name wherever it is exported from.
    pub uid: String,
    pub now: Timestamp,
    pub events: Vec<Event>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    pub session: Seq,
    pub task: TaskId,
    pub title: String,
    pub worker: Handle,
    pub from: Timestamp,
    pub to: Timestamp,
    pub is_running: bool,
    #[serde(default)]
    pub is_corrected: bool,
}

impl Event {
    pub(super) fn new(session: &Counted<'_>) -> Result<Event, String> {
        Ok(Event {
            session: session.id,
            task: session.task.parse()?,
            title: String::new(),
            worker: session.worker.parse()?,
            from: session.from,
            to: session.to,
            is_running: session.is_running,
            is_corrected: session.is_corrected,
        })
    }
}

pub fn write(calendar: &Calendar) -> String {
    let mut text = String::new();
    let mut put = |line: &str| fold(&mut text, line);
    put("BEGIN:VCALENDAR");
    put("VERSION:2.0");
    put("PRODID:-//onus//timesheet//EN");
    for event in &calendar.events {
        put("BEGIN:VEVENT");
        put(&format!("UID:session-{}@{}", event.session, calendar.uid));
        put(&format!("DTSTAMP:{}", basic(calendar.now)));
        put(&format!("DTSTART:{}", basic(event.from)));
        put(&format!("DTEND:{}", basic(event.to)));
        let mark = if event.is_corrected { " (corrected)" } else { "" };
        put(&format!("SUMMARY:{}", escaped(&format!("{} {}{mark}", event.task, event.title))));
        put(&format!("CATEGORIES:{}", escaped(event.worker.as_str())));
        put(if event.is_running { "STATUS:TENTATIVE" } else { "STATUS:CONFIRMED" });
        put("TRANSP:TRANSPARENT");
        put("END:VEVENT");
    }
    put("END:VCALENDAR");
    text
}

/// `20261116T140500Z`
fn basic(at: Timestamp) -> String {
    let text = at.to_string();
    let digits: String = text.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    format!("{digits}Z")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | ';' | ',' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// A long line goes on in the next one, behind a space. Characters are never torn apart.
fn fold(text: &mut String, line: &str) {
    let mut used = 0;
    for c in line.chars() {
        if used + c.len_utf8() > LINE_MAX {
            text.push_str("\r\n ");
            used = 1;
        }
        text.push(c);
        used += c.len_utf8();
    }
    let _ = write!(text, "\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_cannot_leave_its_line_and_long_lines_are_folded() {
        let title = format!("a;b,c\\d\nEND:VEVENT\r\nX:{}", "ä".repeat(60));
        let event = Event {
            session: 7,
            task: "T-1".parse().unwrap(),
            title,
            worker: "@bot".parse().unwrap(),
            from: Timestamp(1_794_837_600_000),
            to: Timestamp(1_794_841_200_000),
            is_running: false,
            is_corrected: false,
        };
        let text = write(&Calendar { uid: "u".into(), now: Timestamp(0), events: vec![event] });
        assert!(text.lines().all(|line| line.len() <= LINE_MAX + 1), "{text}");
        assert_eq!(text.matches("END:VEVENT").count(), 2, "{text}");
        assert_eq!(text.lines().filter(|line| *line == "END:VEVENT").count(), 1);
        assert!(text.contains("DTSTART:20261116T140000Z\r\nDTEND:20261116T150000Z\r\n"), "{text}");
        let unfolded = text.replace("\r\n ", "");
        let summary = unfolded.lines().find(|line| line.starts_with("SUMMARY:")).unwrap();
        assert_eq!(summary, format!("SUMMARY:T-1 a\\;b\\,c\\\\d\\nEND:VEVENT\\nX:{}", "ä".repeat(60)));
    }
}
