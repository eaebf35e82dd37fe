//! Small pieces of HTML that several pages show.

use askama::filters::HtmlSafe;
use onus_core::task::{Assignment, StateName};
use onus_core::time::{Millis, Timestamp};
use std::fmt;

pub(crate) use onus_core::report::plain_words::{blocker, by_type, plainly, refused, words as verb};

/// Markup of our own making: templates print it as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Html(pub(crate) String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// An icon of the sprite (`assets/icons.svg`). What it means stands beside it in words.
pub(crate) fn icon(name: &str) -> Html {
    let sprite = crate::asset::address("icons.svg");
    Html(format!("<svg class=\"icon\" aria-hidden=\"true\"><use href=\"{sprite}#{name}\"/></svg>"))
}

/// The icon of a state.
pub(crate) const fn state_icon(state: StateName) -> &'static str {
    match state {
        StateName::Open => "circle",
        StateName::InProgress => "circle-dot",
        StateName::Blocked => "circle-pause",
        StateName::Complete => "circle-check",
        StateName::Dropped => "circle-x",
    }
}

/// A state as people read it: an icon, a colour and a word.
pub(crate) fn state(state: &StateName) -> Html {
    let word = state.name().replace('_', " ");
    Html(format!("<span class=\"state {}\">{}{word}</span>", state.name(), icon(state_icon(*state))))
}

/// The icon of a person or an agent.
pub(crate) fn who_icon(kind: &str) -> Html {
    match kind {
        "agent" => icon("bot"),
        "human" => icon("user"),
        _ => Html::default(),
    }
}

/// A moment for whoever points at it: to the second.
fn exactly(at: Timestamp) -> String {
    let text = at.to_string().replacen('T', " ", 1);
    format!("{} UTC", text.get(..19).unwrap_or(&text))
}

/// A moment as people say it. The scripts keep it true; `assets/time.js` has the same words.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> Html {
    let words = Millis((at.0 - now.0).abs()).in_words();
    let words = if at > now { format!("in {words}") } else { format!("{words} ago") };
    Html(format!("<time datetime=\"{at}\" data-at=\"{}\" title=\"{}\">{words}</time>", at.0, exactly(at)))
}

/// What is left of a lease, as a ring that shrinks.
pub(crate) fn ring(held: &Assignment, now: Timestamp) -> Html {
    let (end, ttl) = (held.lease.expires_at(), held.lease.ttl.0.max(1));
    let left = end.0 - now.0;
    let percent = (left.max(0).saturating_mul(100) / ttl).min(100);
    let words = Millis(left.abs()).in_words();
    let (class, words) =
        if left > 0 { ("lease", words) } else { ("lease late", format!("expired {words} ago")) };
    Html(format!(
        "<span class=\"{class}\" data-expires=\"{}\" data-ttl=\"{ttl}\" title=\"lease until {}\">\
         <svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><circle class=\"track\" cx=\"8\" cy=\"8\" r=\"6\"/>\
         <circle class=\"left\" cx=\"8\" cy=\"8\" r=\"6\" pathLength=\"100\" stroke-dasharray=\"{percent} 100\"/></svg>\
         <span class=\"words\">{words}</span></span>",
        end.0,
        exactly(end)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_their_largest_unit() {
        let later = when(Timestamp(90_000), Timestamp(0)).0;
        assert!(
            later.contains(">in 1 min<") && later.contains("title=\"1970-01-01 00:01:30 UTC\""),
            "{later}"
        );
        let earlier = when(Timestamp(0), Timestamp(90_000)).0;
        assert!(earlier.contains(">1 min ago<"), "{earlier}");
    }
}
