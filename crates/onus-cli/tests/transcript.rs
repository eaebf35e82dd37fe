//! What people see: a day's calls and their answers, word for word. `UPDATE_CONTRACT=1` rewrites the transcript, and a
//! reviewer reads the difference.

use crate::support::Site;

/// `exit-code who| words`; words are split at spaces, `"` keeps them together.
const DAY: &str = r#"
    0 @ada-lovelace| worker add @bot --kind agent --tier opus --role builder
    0 @ada-lovelace| worker add @bot --kind agent --tier opus --role builder
    2 @ada-lovelace| worker add @bot --kind human
    0 @ada-lovelace| workstation add ws-1
    0 @ada-lovelace| workstation add ws-2 --lifecycle single-task
    5 @bot| workstation add ws-3
    0 @ada-lovelace| add "Rate limit the login" --priority P1 --origin github:api#7 --scope src/login/** --body "See RFC 6585"
    0 @ada-lovelace| add "the same ask, other words" --origin github:api#7
    0 @ada-lovelace| add "Announce the limit" --depends-on T-1 --tag docs
    0 @bot| add "Tidy up" --kind chore --priority P4 --check "make lint"
    2 @ada-lovelace| add " "
    3 @ada-lovelace| add "lost" --depends-on T-99
    0 -| list
    0 -| ready
    2 -| claim T-1 --workstation ws-1
    2 @nobody| claim T-1 --workstation ws-1
    5 @bot| claim T-1 --workstation ws-9
    5 @bot| claim T-2 --workstation ws-1
    0 @bot| claim --next --workstation ws-1
    4 @bot| claim T-1 --workstation ws-2
    5 @bot| claim T-3 --workstation ws-1
    0 @bot| note T-1 "half done"
    0 @ada-lovelace| note T-1 "thanks"
    0 @bot| renew T-1 --ttl 1h
    0 @bot| block T-1 --on person:@ada-lovelace
    4 @bot| unblock T-1 --lease 1.1.00000000000000000000000000000000
    0 @bot| unblock T-1
    4 @ada-lovelace| takeover T-1 --workstation ws-2 --reason "in a hurry"
    5 @bot| takeover T-1 --workstation ws-2 --reason "in a hurry" --force
    2 @ada-lovelace| takeover T-1 --workstation ws-2 --force
    0 @ada-lovelace| takeover T-1 --workstation ws-2 --force --reason "in a hurry"
    4 @bot| complete T-1 --resolution "done"
    2 @ada-lovelace| complete T-1
    0 @ada-lovelace| complete T-1 --resolution "Limiter with tests"
    0 @ada-lovelace| complete T-1 --resolution "again"
    4 @bot| claim T-1 --workstation ws-1
    5 @bot| reopen T-1 --reason "not good"
    0 @ada-lovelace| reopen T-1 --reason "not good"
    0 @ada-lovelace| drop T-1 --reason "not needed"
    2 @ada-lovelace| dep add T-2 T-2
    0 @ada-lovelace| dep add T-3 T-2
    2 @ada-lovelace| dep add T-2 T-3
    0 @ada-lovelace| dep remove T-2 T-1
    0 @bot| claim T-2 --workstation ws-1
    0 @bot| release T-2 --note "somebody else, please"
    5 @bot| complete T-3 --resolution "x" --force --reason "y"
    0 @ada-lovelace| complete T-3 --resolution "done elsewhere" --force --reason "migration"
    0 -| list --state all
    0 -| stale
    0 -| worker list
    0 -| workstation list
    0 -| ledger log --task T-1
    3 -| show T-99
"#;

#[test]
fn a_day_reads_as_it_should() {
    let site = Site::new();
    let mut transcript = String::new();
    for line in DAY.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, words) = line.split_once('|').unwrap();
        let (expected, who) = head.split_once(' ').unwrap();
        let mut args = split(words);
        if who != "-" {
            args.extend(["--as".to_owned(), who.to_owned()]);
        }
        args.push("--utc".to_owned());
        let output = site.command(&args).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let shown = if who == "-" { String::new() } else { format!("{who} ") };
        transcript.push_str(&format!("{shown}$ onus{words}\n{}{}", masked(&out), masked(&err)));
        let code = output.status.code();
        assert_eq!(code, expected.parse().ok(), "{line}\n{out}{err}");
        if code != Some(0) {
            transcript.push_str(&format!("[exit {expected}]\n"));
        }
        transcript.push('\n');
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts/day.txt");
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(path, &transcript).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    for (n, (was, is)) in stored.lines().zip(transcript.lines()).enumerate() {
        assert_eq!(was, is, "line {} of {path}", n + 1);
    }
    assert_eq!(stored.lines().count(), transcript.lines().count(), "{path}");
}

fn split(words: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for (n, piece) in words.split('"').enumerate() {
        if n % 2 == 1 {
            parts.push(piece.to_owned());
        } else {
            parts.extend(piece.split_whitespace().map(str::to_owned));
        }
    }
    parts
}

/// Times, hashes and paths differ from run to run.
fn masked(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", mask_line(line))).collect()
}

fn mask_line(line: &str) -> String {
    let line = line
        .split_once("may be taken over in ")
        .map_or(line.to_owned(), |(head, _)| format!("{head}may be taken over in SPAN"));
    let mut masked = String::new();
    for word in line.split_inclusive([' ', '"', ',']) {
        let bare = word.trim_end_matches([' ', '"', ',', ')', ';']);
        let tail = &word[bare.len()..];
        let digits = bare.bytes().filter(u8::is_ascii_digit).count();
        let is_date = bare.len() == 10 && digits == 8 && bare.starts_with("20");
        let is_time = bare.ends_with('Z') && bare.contains(':') && digits >= 6;
        let is_hex = bare.len() >= 8 && bare.bytes().all(|b| b.is_ascii_hexdigit()) && digits > 0;
        let is_uid = bare.len() == 36 && bare.bytes().filter(|b| *b == b'-').count() == 4 && digits > 8;
        let is_tick = bare.split('.').count() == 3 && bare.len() > 18 && digits > 4;
        if is_date || is_time {
            masked.push_str("TIME");
        } else if is_hex {
            masked.push_str("HASH");
        } else if is_uid {
            masked.push_str("UID");
        } else if is_tick {
            masked.push_str("TICK");
        } else if bare.starts_with('/') {
            masked.push_str("PATH");
        } else {
            masked.push_str(bare);
        }
        masked.push_str(tail);
    }
    // Columns are as wide as what stood there.
    masked.split_whitespace().collect::<Vec<_>>().join(" ")
}
