//! A line to copy for every verb, at the end of its help. A test parses each, and finds verbs that have none.

use clap::Command;

/// The verb, and what people type.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("init", &["onus init --project API", "onus --store https://onus.example.org init"]),
    ("add", &["onus add \"Rate limit the login\" --priority P1 --scope 'src/login/**' --check 'make test'"]),
    ("edit", &["onus edit API-12 --priority P0 --tag +security", "onus edit API-12 --editor"]),
    ("list", &["onus list --role backend", "onus list --state all --sprint 2026-47"]),
    ("show", &["onus show API-12"]),
    ("ready", &["onus ready --role backend"]),
    ("claim", &["onus claim --next", "onus claim API-12 --workstation ws-backend-01"]),
    ("renew", &["onus renew API-12 --ttl 1h"]),
    ("release", &["onus release API-12 --note \"The limiter works, its tests are missing\""]),
    ("takeover", &["onus takeover API-12 --workstation ws-backend-02 --reason \"builder-01 is silent\""]),
    ("block", &["onus block API-12 --on person:@ada --note \"Which limit per minute?\""]),
    ("unblock", &["onus unblock API-12"]),
    ("note", &["onus note API-12 \"Half of the tests pass\""]),
    (
        "handoff",
        &["onus handoff API-12 --summary \"Limiter done\" --next \"Tests\"", "onus handoff API-12 --show"],
    ),
    ("check", &["onus check API-12", "onus check API-12 --add 'make test'"]),
    ("review", &["onus review API-12 --approve --as-implemented --note \"Read the limiter, ran it\""]),
    ("diff", &["onus diff API-12", "onus diff API-12 --stat"]),
    ("say", &["onus say API-12 \"Use the limiter of the gateway\""]),
    ("inbox read", &["onus inbox", "onus inbox read"]),
    ("logs", &["onus logs API-12", "onus logs -f @builder-01"]),
    ("fleet init", &["onus fleet init --preset claude --count 3"]),
    ("fleet up", &["onus fleet up", "onus fleet up --detach"]),
    ("fleet status", &["onus fleet status"]),
    ("fleet attach", &["onus fleet attach @claude-1"]),
    ("fleet stop", &["onus fleet stop @claude-1 --now"]),
    ("fleet down", &["onus fleet down"]),
    ("merge", &["onus merge API-12"]),
    ("complete", &["onus complete API-12 --resolution \"Limiter with tests\""]),
    ("reopen", &["onus reopen API-12 --reason \"It fails behind a proxy\""]),
    ("drop", &["onus drop API-12 --reason \"Not needed any more\""]),
    ("rerun", &["onus rerun API-12 --reason \"Is it still so?\""]),
    ("dep add", &["onus dep add API-12 API-7"]),
    ("dep remove", &["onus dep remove API-12 API-7"]),
    (
        "exception request",
        &[
            "onus exception request API-12 --on API-7 --reason \"API-7 waits for a vendor\" --rollback \"Turn the flag off\"",
        ],
    ),
    ("exception approve", &["onus exception approve API-12/API-7"]),
    ("exception list", &["onus exception list"]),
    ("stale", &["onus stale"]),
    ("dispatch", &["onus dispatch --dry-run", "onus dispatch --interval 30s"]),
    ("preflight", &["onus preflight --role backend"]),
    (
        "run",
        &[
            "onus run --next -- ./agent.sh",
            "onus run API-12 -- claude -p \"Work on the task that onus prime tells\"",
        ],
    ),
    ("prime", &["onus prime"]),
    ("status", &["onus status"]),
    ("validate", &["onus validate"]),
    ("consistency", &["onus consistency --since HEAD~50"]),
    ("doctor", &["onus doctor"]),
    ("export", &["onus export tasks.jsonl", "onus export --format csv --state all tasks.csv"]),
    ("import", &["onus import --dry-run issues.jsonl", "onus import --format queue Agent_Work_Queue.yaml"]),
    ("intake email", &["onus intake email --project API"]),
    ("worker add", &["onus worker add @builder-01 --kind agent --role backend"]),
    ("worker list", &["onus worker list"]),
    ("worker pause", &["onus worker pause @builder-01 --reason \"Costs too much today\""]),
    ("worker resume", &["onus worker resume @builder-01"]),
    ("worker day", &["onus worker day @builder-01 --date 2026-11-16"]),
    ("worker show", &["onus worker show @builder-01"]),
    ("worker token add", &["onus worker token add @builder-01 --kind agent --expires 30d"]),
    ("worker token list", &["onus worker token list"]),
    ("worker token link", &["onus worker token link @ada --server https://onus.example.org"]),
    ("worker token revoke", &["onus worker token revoke 3f8k2m9q --reason \"The laptop was lost\""]),
    ("workstation add", &["onus workstation add ws-backend-01 --kind worktree --role backend"]),
    ("workstation list", &["onus workstation list"]),
    ("workstation show", &["onus workstation show ws-backend-01"]),
    ("workstation probe", &["onus workstation probe ws-backend-01"]),
    (
        "workstation quarantine",
        &["onus workstation quarantine ws-backend-01 --reason \"Its database is broken\""],
    ),
    ("workstation restore", &["onus workstation restore ws-backend-01"]),
    ("workstation retire", &["onus workstation retire ws-backend-01"]),
    ("workstation sync", &["onus workstation sync ws-backend-01"]),
    ("workstation remove", &["onus workstation remove ws-backend-01"]),
    ("route show", &["onus route show"]),
    ("route check", &["onus route check executor-identity-map.yaml"]),
    ("route explain", &["onus route explain API-12"]),
    ("route history", &["onus route history backend"]),
    ("session start", &["onus session start API-12"]),
    ("session stop", &["onus session stop API-12"]),
    ("session list", &["onus session list --worker @builder-01"]),
    ("session correct", &["onus session correct 42 --duration 90m --reason \"The machine slept\""]),
    ("session usage", &["onus session usage API-12 --from-transcript session.jsonl"]),
    ("timesheet show", &["onus timesheet show --week 2026-W47 --by worker"]),
    ("timesheet export", &["onus timesheet export --format xlsx --month 2026-11 november.xlsx"]),
    ("timesheet approve", &["onus timesheet approve --worker @builder-01 --week 2026-W46"]),
    ("ledger log", &["onus ledger log --task API-12"]),
    ("ledger verify", &["onus ledger verify"]),
    ("ledger checkpoint", &["onus ledger checkpoint"]),
    ("ledger export", &["onus ledger export ledger.jsonl"]),
    (
        "ledger raise-generation",
        &["onus ledger raise-generation --reason \"Restored from last night's backup\""],
    ),
    ("report now", &["onus report now --since 2026-11-16"]),
    ("report sprint", &["onus report sprint 2026-47"]),
    ("report incident", &["onus report incident API-12"]),
    ("report audit", &["onus report audit --since 2026-11-01 --csv audit.csv"]),
    ("report anomalies", &["onus report anomalies"]),
    ("report limits", &["onus report limits"]),
    (
        "milestone add",
        &["onus milestone add beta --title \"Public beta\" --sprint 2026-47 --target 2026-11-30"],
    ),
    ("milestone edit", &["onus milestone edit beta --target 2026-12-11"]),
    ("view list", &["onus view list"]),
    ("view save", &["onus view save Payments --tag payments --priority P1"]),
    ("view remove", &["onus view remove Payments"]),
    ("milestone list", &["onus milestone list"]),
    ("milestone show", &["onus milestone show beta"]),
    ("milestone verify", &["onus milestone verify beta"]),
    ("milestone close", &["onus milestone close beta"]),
    ("mirror status", &["onus mirror status"]),
    ("mirror check", &["onus mirror check redmine"]),
    ("mirror sync", &["onus mirror sync redmine"]),
    ("mirror run", &["onus mirror run"]),
    ("mirror retry", &["onus mirror retry redmine API-12"]),
    ("mirror skip", &["onus mirror skip redmine API-12 --reason \"The issue was deleted there\""]),
    ("mirror diff", &["onus mirror diff redmine"]),
    ("hook install", &["onus hook install"]),
    ("hook uninstall", &["onus hook uninstall"]),
    ("hook status", &["onus hook status"]),
    ("hook agent", &["onus hook agent PreToolUse"]),
    ("mcp", &["onus mcp", "onus mcp --tools all"]),
    ("setup", &["onus setup claude"]),
    ("serve", &["onus serve", "onus serve --listen 0.0.0.0:7667 --tls-cert cert.pem --tls-key key.pem"]),
    ("board", &["onus board"]),
    ("demo", &["onus demo", "onus demo --speed 3"]),
    ("completions", &["onus completions bash > ~/.local/share/bash-completion/completions/onus"]),
    ("man", &["onus man --dir ~/.local/share/man/man1"]),
];

/// The tree with an example at the end of each verb's help.
pub(crate) fn shown(tree: Command) -> Command {
    below(tree, "")
}

fn below(command: Command, path: &str) -> Command {
    let lines = EXAMPLES.iter().find(|(verb, _)| *verb == path).map(|(_, lines)| lines.join("\n  "));
    let command = match lines {
        Some(lines) if lines.contains('\n') => command.after_help(format!("Examples:\n  {lines}")),
        Some(line) => command.after_help(format!("Example:\n  {line}")),
        None => command,
    };
    command.mut_subcommands(|verb| {
        let path = format!("{path} {}", verb.get_name());
        below(verb, path.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The verbs below this one that are calls, by their paths.
    fn calls(command: &Command, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
        {
            let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
            match verb.has_subcommands() {
                true => found.extend(calls(verb, &path)),
                false => found.push(path),
            }
        }
        found
    }

    #[test]
    fn every_verb_has_an_example() {
        let verbs = calls(&cli::tree(), "");
        let missing: Vec<&String> =
            verbs.iter().filter(|verb| !EXAMPLES.iter().any(|(path, _)| path == verb)).collect();
        assert!(missing.is_empty(), "without an example: {missing:?}");
        let gone: Vec<&str> = EXAMPLES
            .iter()
            .map(|(path, _)| *path)
            .filter(|path| !verbs.iter().any(|verb| verb == path))
            .collect();
        assert!(gone.is_empty(), "an example of no verb: {gone:?}");
    }

    #[test]
    fn every_example_is_understood() {
        let lines = EXAMPLES.iter().flat_map(|(verb, lines)| lines.iter().map(move |line| (verb, line)));
        let refused: Vec<&str> = lines
            .filter(|(verb, line)| {
                let words = words(line.split(" > ").next().unwrap());
                let is_about = line.contains(verb.split(' ').next().unwrap());
                !is_about || cli::parse(words.into_iter().map(Into::into)).is_err()
            })
            .map(|(_, line)| *line)
            .collect();
        assert!(refused.is_empty(), "not understood: {refused:#?}");
    }

    /// As a shell would split it.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars() {
            match (quote, c) {
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (None, ' ') => words.push(std::mem::take(&mut word)),
                (_, c) => word.push(c),
            }
        }
        words.push(word);
        words
    }

    /// Every Rust file below.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension() {
                _ if entry.is_dir() => sources(&entry, found),
                Some(ending) if ending == "rs" => found.push(entry),
                _ => {}
            }
        }
    }

    /// What a text tells people to type: from `onus` to where its words end.
    fn commands(text: &str) -> impl Iterator<Item = &str> {
        let begins = ["\"onus ", "`onus ", ": onus ", "then onus ", "; onus ", "or onus ", "(onus "];
        let at = begins
            .into_iter()
            .flat_map(|begin| text.match_indices(begin).map(move |(at, _)| at + begin.len()));
        at.map(|at| text[at..].split(['"', '`', ';', ':', ',', ')', '\n', '>']).next().unwrap())
    }

    #[test]
    fn every_command_that_a_text_names_is_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = Vec::new();
        for name in ["app", "cli", "core", "host", "mcp", "server", "store"] {
            sources(&root.join(format!("crates/onus-{name}/src")), &mut files);
        }
        sources(&root.join("web/src"), &mut files);
        // What is about the command line itself names what there is not.
        files.retain(|file| !["cli.rs", "examples.rs", "home.rs"].iter().any(|name| file.ends_with(name)));
        let (tree, mut asked, mut unknown) = (cli::tree(), 0, Vec::new());
        let named = |one: &Command, word: &str| {
            one.get_all_aliases().chain([one.get_name()]).any(|name| name == word)
        };
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let text: String = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(|line| format!("{line}\n"))
                .collect();
            for command in commands(&text).filter(|command| !command.starts_with('-')) {
                asked += 1;
                let mut words = command.split(' ').peekable();
                let (mut verb, mut missing) = (&tree, None);
                while verb.has_subcommands() && missing.is_none() {
                    let Some(word) = words.next_if(|word| !word.starts_with(['-', '{'])) else { break };
                    match verb.get_subcommands().find(|one| named(one, word)) {
                        Some(next) => verb = next,
                        // A verb with others below may be one itself: onus inbox.
                        None => missing = (verb.get_name() == tree.get_name()).then_some(word),
                    }
                    if missing.is_none() && !named(verb, word) {
                        break;
                    }
                }
                let flags = words
                    .filter_map(|word| word.strip_prefix("--"))
                    .map(|flag| flag.trim_end_matches(['.', ':']));
                let is_flag = |flag: &&str| {
                    verb.get_arguments().chain(tree.get_arguments()).any(|arg| {
                        let names = arg.get_long_and_visible_aliases().into_iter().flatten();
                        names.into_iter().any(|name| name == *flag)
                    })
                };
                let flags = flags.filter(|flag| !flag.is_empty() && !is_flag(flag));
                let wrong: Vec<&str> = missing.into_iter().chain(flags).collect();
                if !wrong.is_empty() {
                    unknown.push(format!("{}: onus {command}: {}", file.display(), wrong.join(", ")));
                }
            }
        }
        assert!(asked > 100, "{asked} commands");
        assert!(unknown.is_empty(), "{unknown:#?}");
    }

    #[test]
    fn every_flag_and_argument_has_a_sentence() {
        fn silent(command: &Command, path: &str, found: &mut Vec<String>) {
            let own = command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_help().is_none());
            found.extend(own.map(|arg| format!("{path} {}", arg.get_id())));
            for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
                silent(verb, &format!("{path} {}", verb.get_name()), found);
            }
        }
        let mut found = Vec::new();
        silent(&cli::tree(), "onus", &mut found);
        assert!(found.is_empty(), "without a sentence: {found:#?}");
    }
}
