//! The inbox of whoever looks: what waits for them, each with the way to deal with it.

use crate::html::{Html, when};
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::inbox::{InboxItem, InboxKind};
use onus_core::refusal::Refusal;

pub(crate) fn page() -> Page {
    Page { path: "/inbox", name: "Inbox", key: Some('i'), ask }
}

#[derive(Debug, Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    items: Vec<Line>,
    more: bool,
}

#[derive(Debug)]
struct Line {
    item: InboxItem,
    at: Option<Html>,
    /// The form that deals with it, by its verb, and the word on its button.
    form: Option<(&'static str, &'static str)>,
    /// The call that does, and its body.
    call: Option<(String, String)>,
    /// The word on its button, and what is said when it is done.
    act: &'static str,
    done: &'static str,
    /// The work itself is what is to be looked at.
    diff: bool,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let view = onus.inbox(seen.viewer.principal.worker.as_ref())?;
    let page =
        InboxPage { items: view.items.into_iter().map(|item| line(item, seen)).collect(), more: view.more };
    Ok(Drawn { title: "Inbox".to_owned(), main: rendered(&page)? })
}

fn line(item: InboxItem, seen: &PageRequest) -> Line {
    let read = item.task.as_ref().zip(item.seq).filter(|_| item.kind == InboxKind::Message);
    let read =
        read.map(|(task, seq)| (format!("/v1/tasks/{task}/messages/read"), format!("{{\"through\":{seq}}}")));
    let (act, done) = match item.kind {
        InboxKind::Workstation => ("Restore", "It is back from quarantine"),
        InboxKind::Check | InboxKind::Exception | InboxKind::Timesheet => ("Approve", "It is approved"),
        _ => ("Mark as read", "It is read"),
    };
    Line {
        act,
        done,
        at: item.at.map(|at| when(at, seen.now)),
        form: match item.kind {
            InboxKind::Question | InboxKind::Budget | InboxKind::Message => Some(("say", "Answer")),
            InboxKind::Stuck if item.action.starts_with("onus takeover ") => Some(("takeover", "Take over")),
            _ => None,
        },
        call: item.call.as_ref().map(|call| (call.path.clone(), call.body.to_string())).or(read),
        diff: item.kind == InboxKind::Review,
        item,
    }
}
