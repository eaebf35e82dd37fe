//! Small pieces of HTML that several pages show.

use askama::filters::HtmlSafe;
use onus_core::task::{Assignment, StateName};
use onus_core::time::{Millis, Timestamp};
use std::fmt;

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

/// What a blocked task waits for, without the word by which a program tells the kinds apart.
pub(crate) fn blocker(text: &str) -> &str {
    let plain = ["task:", "person:", "external:"].iter().find_map(|kind| text.strip_prefix(kind));
    plain.unwrap_or(text)
}

/// What happened, in words.
pub(crate) fn verb(verb: &str) -> String {
    match verb {
        "session_used" => "told its tokens".to_owned(),
        "output_closed" => "kept its output".to_owned(),
        verb => verb.replace('_', " "),
    }
}

/// Why something was refused, and the code, where an entry says so.
pub(crate) fn refused<'a>(verb: &str, said: &'a str) -> Option<(&'a str, &'a str)> {
    let (detail, code) = said.rsplit_once(" (").filter(|_| verb == "refused")?;
    Some((detail, code.strip_suffix(')')?))
}

/// What an entry says, without the words of programs: a refusal's code, the number of a rule.
pub(crate) fn plainly(verb: &str, said: &str) -> String {
    if let Some((detail, _)) = refused(verb, said) {
        return detail.to_owned();
    }
    if verb == "blocked"
        && let Some(on) = said.strip_prefix("on ")
    {
        return format!("on {}", blocker(on));
    }
    if verb == "claimed" && said == "person" {
        return "people take what they choose".to_owned();
    }
    let rule = said.strip_prefix("routing[").and_then(|rest| rest.split_once("] "));
    match rule.and_then(|(_, rest)| rest.split_once(" -> ")) {
        Some((kind, whom)) => format!("{whom}, as the map has it for {kind}"),
        None => said.to_owned(),
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
    fn what_an_entry_says_is_plain() {
        assert_eq!(
            plainly("claimed", "routing[1] web -> @pixel in ws-1"),
            "@pixel in ws-1, as the map has it for web"
        );
        assert_eq!(plainly("refused", "claim: @b holds it (now) (lease_held)"), "claim: @b holds it (now)");
        assert_eq!(plainly("claimed", "person"), "people take what they choose");
        assert_eq!(plainly("blocked", "on external:the bank, late"), "on the bank, late");
        assert_eq!(plainly("dropped", "nobody wants it"), "nobody wants it");
    }

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
