//! What the record says, as people say it: without the names by which programs tell things apart.

/// The rule that lets a person take any task, as it is written down with a grant.
const PERSON: &str = "person";

/// What a blocked task waits for, without the word for its kind.
pub fn blocker(text: &str) -> &str {
    let plain = ["task:", "person:", "external:"].iter().find_map(|kind| text.strip_prefix(kind));
    plain.unwrap_or(text)
}

/// `taken over`, not the name of an entry, a state or a reason.
pub fn words(name: &str) -> String {
    match name {
        "session_used" => "told its tokens".to_owned(),
        "output_closed" => "kept its output".to_owned(),
        "check_run" => "ran a check".to_owned(),
        "check_approved" => "approved a check".to_owned(),
        "check_removed" => "removed a check".to_owned(),
        "dependency_added" => "made it wait".to_owned(),
        "dependency_removed" => "freed it from waiting".to_owned(),
        "refused" => "was refused".to_owned(),
        name => name.replace('_', " "),
    }
}

/// Why something was refused, and the code, where an entry says so.
pub fn refused<'a>(verb: &str, said: &'a str) -> Option<(&'a str, &'a str)> {
    let (detail, code) = said.rsplit_once(" (").filter(|_| verb == "refused")?;
    Some((detail, code.strip_suffix(')')?))
}

/// What an entry says beyond its verb ([`super::said`]).
pub fn plainly(verb: &str, said: &str) -> String {
    if let Some((detail, _)) = refused(verb, said) {
        return by_type(detail);
    }
    match verb {
        "blocked" => {
            said.strip_prefix("on ").map_or_else(|| said.to_owned(), |on| format!("on {}", blocker(on)))
        }
        "claimed" => said.split(", ").map(granted).collect::<Vec<_>>().join(", "),
        "taken_over" => {
            let parts = said.split(", ").filter(|part| *part != PERSON);
            parts.map(granted).collect::<Vec<_>>().join(", ")
        }
        "dependency_added" | "dependency_removed" => format!("for {said}"),
        // Which check it was, a program tells by its number.
        "check_run" => said.split_once(' ').map_or(said, |(_, rest)| rest).to_owned(),
        "check_removed" => said.split_once(": ").map_or(said, |(_, why)| why).to_owned(),
        "check_approved" => String::new(),
        _ => said.to_owned(),
    }
}

/// Who has it, and where, stands beside it; what is left to say is why.
fn granted(part: &str) -> String {
    match part {
        PERSON => "a person takes what they choose".to_owned(),
        _ => rule(part)
            .map_or_else(|| part.to_owned(), |(task_type, _)| format!("as the map has it for {task_type}")),
    }
}

/// Rules of the map by the type that they are for, not by their numbers: `the rule for web allows …`.
pub fn by_type(text: &str) -> String {
    let mut parts = text.split("routing[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("] ") {
            Some((number, rest)) if number.chars().all(|c| c.is_ascii_digit()) => {
                plain.push_str("the rule for ");
                plain.push_str(rest);
            }
            _ => {
                plain.push_str("routing[");
                plain.push_str(part);
            }
        }
    }
    plain
}

/// A rule of the map as it is written down with a grant, `routing[1] web -> @pixel in ws-1`: the type, and to whom it goes.
pub fn rule(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("routing[")?.split_once("] ")?.1.split_once(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_says_is_plain() {
        for (verb, said, plain) in [
            ("claimed", "routing[1] web -> @pixel in ws-1", "as the map has it for web"),
            (
                "claimed",
                "for @b, routing[0] * -> @b in ws-1, please",
                "for @b, as the map has it for *, please",
            ),
            ("claimed", "person", "a person takes what they choose"),
            ("taken_over", "from @b, person, it is silent", "from @b, it is silent"),
            ("refused", "claim: @b holds it (now) (lease_held)", "claim: @b holds it (now)"),
            (
                "refused",
                "claim: routing[12] web allows @a (routing_denied)",
                "claim: the rule for web allows @a",
            ),
            ("blocked", "on external:the bank, late", "on the bank, late"),
            ("dependency_added", "API-7", "for API-7"),
            ("check_run", "0c7744a6de60 timed out, at 49fb07a8", "timed out, at 49fb07a8"),
            ("check_removed", "0c7744a6de60: it proves nothing", "it proves nothing"),
            ("dropped", "nobody wants it", "nobody wants it"),
        ] {
            assert_eq!(plainly(verb, said), plain, "{verb}");
        }
        assert_eq!(words("taken_over"), "taken over");
    }
}
