//! `onus` alone: the verbs of every day, in the order in which a day needs them.

use crate::cli;
use anstyle::Style;
use std::fmt::Write as _;

/// Ten verbs are enough for most days. The rest is behind `onus --all`.
const GROUPS: &[(&str, &[&str])] = &[
    ("Ask and look", &["add", "ready", "show", "status"]),
    ("Work", &["claim", "note", "block", "complete"]),
    ("Agents", &["run"]),
    ("People", &["board"]),
];

const BOLD: Style = Style::new().bold();

/// What the arguments ask for before there is any verb.
pub(crate) fn answer(words: &[&str]) -> Option<String> {
    match words {
        [] => Some(daily()),
        ["--all"] => Some(everything()),
        _ => None,
    }
}

fn about(verb: &clap::Command) -> String {
    verb.get_about().map(ToString::to_string).unwrap_or_default()
}

fn daily() -> String {
    let tree = cli::tree();
    let mut text = format!("{}\n\nUsage: onus VERB [OPTIONS]\n", about(&tree));
    for (title, verbs) in GROUPS {
        let _ = writeln!(text, "\n{BOLD}{title}{BOLD:#}");
        for verb in verbs.iter().filter_map(|name| tree.find_subcommand(name)) {
            let _ = writeln!(text, "  {:<10}{}", verb.get_name(), about(verb));
        }
    }
    let others = tree.get_subcommands().count() - GROUPS.iter().map(|(_, verbs)| verbs.len()).sum::<usize>();
    let _ = writeln!(
        text,
        "\nonus --all lists {others} more verbs · onus help VERB explains one · onus demo shows a day"
    );
    text
}

fn everything() -> String {
    cli::tree().render_help().ansi().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_verbs_that_exist_on_one_screen() {
        let verbs: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        assert_eq!(verbs.len(), 10);
        let tree = cli::tree();
        for verb in verbs {
            assert!(tree.find_subcommand(verb).is_some(), "{verb}");
        }
        let shown = anstream::adapter::strip_str(&daily()).to_string();
        assert!(shown.lines().count() <= 24, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    }
}
