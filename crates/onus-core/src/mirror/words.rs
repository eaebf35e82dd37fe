//! What an entry of the ledger is in words, for people who read them in another system.

use super::Tidings;
use crate::constraint;
use crate::event::{Event, Stamped};
use crate::handoff::Handoff;
use crate::hash::Digest;
use crate::id::{OriginRef, Seq, TaskId};

/// Whether a mirror of tasks is told of an entry. What only keeps a lease alive, or only matters here, is left out.
pub fn concerns(event: &Event) -> bool {
    match event {
        Event::Added(_)
        | Event::Claimed(_)
        | Event::TakenOver(_)
        | Event::Blocked(_)
        | Event::Unblocked(_)
        | Event::Released(_)
        | Event::Completed(_)
        | Event::Reopened(_)
        | Event::Dropped(_)
        | Event::Reviewed(_)
        | Event::Merged(_)
        | Event::ExceptionApproved(_)
        | Event::SessionStopped(_)
        | Event::SessionCorrected(_)
        | Event::Constrained(_) => true,
        // What another system has changed is none of Onus's own.
        Event::Edited(edited) => edited.outside.is_none(),
        // What was said in the other system is there already.
        Event::Noted(noted) => noted.said.is_none(),
        _ => false,
    }
}

/// Whether the far end is told whose asks have origins of this channel. That it asked for something it knows: a thousand issues
/// that become tasks are left as they are until somebody begins.
pub fn concerns_there(channel: &str, event: &Event) -> bool {
    let is_its_own =
        |origin: &OriginRef| origin.as_str().split_once(':').is_some_and(|(of, _)| of == channel);
    match event {
        Event::Added(added) => !added.spec.origin.as_ref().is_some_and(is_its_own),
        event => concerns(event),
    }
}

/// What people are told of it; nothing where it has no words of its own.
pub fn words(news: &Tidings) -> Option<String> {
    let (by, place) = (&news.actor, news.workstation.as_ref());
    let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
    // A handoff is a document; people read what it says.
    let told = news.said.as_ref().map(|text| match Handoff::parse(text) {
        Ok(handoff) => {
            let words = handoff.markdown();
            // Its heading stands above it already.
            words.split_once("\n\n").map_or(words.as_str(), |(_, below)| below).trim_end().to_owned()
        }
        Err(_) => text.clone(),
    });
    let said = |heading: String| match &told {
        Some(text) => format!("{heading}:\n\n{text}"),
        None => heading,
    };
    let because = |reason: &Option<String>| reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    Some(match &news.event {
        Event::Added(_) => {
            let id = news.task.as_ref().map(|task| task.id.to_string()).unwrap_or_default();
            format!("Known to Onus as {id}.")
        }
        Event::Claimed(claimed) => {
            let whom = claimed.grant.assignee.as_ref().unwrap_or(by);
            let assigned = if whom == by { String::new() } else { format!(", assigned by {by}") };
            let forced = if claimed.grant.forced {
                format!(" BY FORCE{}", because(&claimed.reason))
            } else {
                String::new()
            };
            format!("{whom} begins{place}{assigned}{forced}.")
        }
        Event::TakenOver(taken) => {
            let whom = taken.grant.assignee.as_ref().unwrap_or(by);
            let forced = if taken.grant.forced { " BY FORCE" } else { "" };
            format!("{whom} takes over from {}{place}{forced}: {}", taken.from, taken.reason)
        }
        Event::Noted(noted) if noted.handoff => said(format!("Handoff by {by}")),
        Event::Noted(_) => said(format!("Note by {by}")),
        Event::Blocked(blocked) if blocked.limits.is_empty() => {
            said(format!("{by} is blocked on {}", blocked.on))
        }
        Event::Blocked(blocked) => {
            let all: Vec<&str> = blocked.limits.iter().map(|one| one.detail.as_str()).collect();
            said(format!("{by} was stopped by a limit ({}) and waits for {}", all.join("; "), blocked.on))
        }
        Event::Unblocked(_) => format!("{by}: not blocked any more."),
        Event::Released(released) => {
            let forced = if released.forced { " BY FORCE" } else { "" };
            said(format!("{by} releases it{forced}{}", because(&released.reason)))
        }
        Event::Completed(completed) => {
            let forced = if completed.forced { " BY FORCE" } else { "" };
            said(format!("Resolution by {by}{forced}{}", because(&completed.reason)))
        }
        Event::Constrained(said) => {
            let allowed = constraint::words(&said.after);
            let allowed = if allowed.is_empty() { "everything" } else { &allowed };
            format!("{by} says anew what its holder may do: {allowed}.")
        }
        Event::Reopened(reopened) => format!("Reopened by {by}: {}", reopened.reason),
        Event::Dropped(dropped) => format!("Dropped by {by}: {}", dropped.reason),
        Event::Reviewed(reviewed) => said(format!("Review by {by}: {}", reviewed.verdict.name())),
        Event::Merged(merged) => format!("Landed by {by} as {}.", merged.commit),
        Event::ExceptionApproved(approved) => {
            format!("{by} lets it begin before {} is complete.", approved.on)
        }
        _ => return None,
    })
}

/// The sign under a text that the far end keeps, by which a repeat is known. Eight letters of the workspace's own hash tell
/// two stores apart that write to the same place.
pub fn mark(workspace: &str, task: &TaskId, seq: Seq) -> String {
    format!("[onus {task} #{seq} {}]", sign_of(workspace))
}

/// The entries whose marks stand in a text.
pub fn marks_in(workspace: &str, task: &TaskId, text: &str) -> Vec<Seq> {
    let (begin, end) = (format!("[onus {task} #"), format!(" {}]", sign_of(workspace)));
    let rest = text.match_indices(begin.as_str()).map(|(at, _)| &text[at + begin.len()..]);
    rest.filter_map(|rest| rest.split_once(end.as_str())?.0.parse().ok()).collect()
}

/// The sign of what is made there to try things on: nobody asks for anything by it.
pub fn mark_of_trial(workspace: &str) -> String {
    format!("[onus trial {}]", sign_of(workspace))
}

/// Whether a text was written from this store.
pub fn is_marked(workspace: &str, text: &str) -> bool {
    text.contains("[onus ") && text.contains(&format!(" {}]", sign_of(workspace)))
}

fn sign_of(workspace: &str) -> String {
    Digest::of(workspace.as_bytes()).to_string().chars().take(8).collect()
}

impl Stamped {
    /// Its name to the outside, the same for every repeat.
    pub fn news_id(&self, workspace: &str) -> String {
        format!("{workspace}:{}", self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_again_and_no_other_store_or_task_is_taken_for_it() {
        let (task, other): (TaskId, TaskId) = ("API-1".parse().unwrap(), "API-12".parse().unwrap());
        let text = format!("a note\n\n{}\n{}", mark("one", &task, 7), mark("one", &task, 12));
        assert_eq!(marks_in("one", &task, &text), [7, 12]);
        assert!(marks_in("two", &task, &text).is_empty());
        assert!(marks_in("one", &other, &text).is_empty());
        assert!(marks_in("one", &task, "[onus API-1 #x ]").is_empty());
    }
}
