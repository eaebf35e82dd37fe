//! The recording of a terminal that README begins with: the real program's words, drawn as one SVG that plays by itself.
//! `UPDATE_CONTRACT=1` draws it anew.

use crate::support::{Site, text};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/terminal.svg");

/// Who types what, in the worktree of the agent; shown without the set-up before it.
const TYPED: &[(&str, &str)] = &[
    ("@bot", r#"onus add "Rate limit the login" --check 'grep -q five limit.txt' --as @ada-lovelace"#),
    ("@bot", "onus claim --next"),
    ("@bot", "onus claim T-1 --as @painter --workstation ws-2"),
    ("@bot", r#"echo "five a minute" > limit.txt && git add . && git commit -qm "limiter: five a minute""#),
    ("@bot", r#"onus complete T-1 --resolution "Five attempts a minute, then 429""#),
    ("@bot", "onus show T-1"),
];

/// Seconds until a line is shown after the one before it.
const TYPING: f64 = 1.4;
const ANSWER: f64 = 0.25;
const LINE: usize = 19;
const COLUMNS: usize = 96;
/// So many lines of one answer are shown.
const SHOWN: usize = 5;

fn played() -> Vec<(bool, String)> {
    let site = Site::guarded();
    for args in [
        ["worker", "add", "@bot", "--kind", "agent"].as_slice(),
        &["worker", "add", "@painter", "--kind", "agent"],
        &["workstation", "add", "ws-2"],
    ] {
        site.by_person(args);
    }
    let made = site.by_person(&["workstation", "add", "ws-1", "--kind", "worktree"]);
    let tree = PathBuf::from(text(&made["workstation"]["path"]));
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_onus")).parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut lines = Vec::new();
    for (who, typed) in TYPED {
        lines.push((true, (*typed).to_owned()));
        let mut shell = Command::new("bash");
        site.surroundings(&mut shell).args(["-c", typed]).current_dir(&tree);
        let ran = shell.env("PATH", &path).env("ONUS_AS", who).env("NO_COLOR", "1").output().unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said).replace(&*site.root().to_string_lossy(), "~");
        let answer = said.lines().filter(|line| !line.trim().is_empty()).take(SHOWN);
        lines.extend(answer.map(|line| (false, masked(line))));
    }
    lines
}

/// Moments and hashes differ from one recording to the next; what people read of them does not.
fn masked(line: &str) -> String {
    let line = undated(line);
    let words = line.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != ':');
        let is_hash = bare.len() >= 7
            && bare.chars().all(|c| c.is_ascii_hexdigit())
            && bare.chars().any(|c| c.is_ascii_digit())
            && bare.chars().any(|c| c.is_ascii_alphabetic());
        let is_clock = bare.len() == 5 && bare.as_bytes()[2] == b':' && bare[..2].parse::<u8>().is_ok();
        match (is_hash, is_clock) {
            (true, _) => word.replace(bare, &"0123abc4567d"[..bare.len().min(12)]),
            (_, true) => word.replace(bare, "09:41"),
            _ => word.to_owned(),
        }
    });
    let line: String = words.collect::<Vec<_>>().join(" ");
    line.chars().take(COLUMNS).collect()
}

/// Shortly before midnight a lease ends tomorrow, and its day stands before the clock.
fn undated(line: &str) -> String {
    let is_day = |at: usize| {
        let word = line.as_bytes().get(at..at + 11).unwrap_or_default();
        word.iter().enumerate().all(|(n, byte)| match n {
            4 | 7 => *byte == b'-',
            10 => *byte == b' ',
            _ => byte.is_ascii_digit(),
        }) && word.len() == 11
    };
    match (0..line.len()).find(|at| is_day(*at)) {
        Some(at) => undated(&format!("{}{}", &line[..at], &line[at + 11..])),
        None => line.to_owned(),
    }
}

fn drawn(lines: &[(bool, String)]) -> String {
    let (width, height) = (COLUMNS * 8 + 32, lines.len() * LINE + 52);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"A terminal: a task is added, claimed, refused to a second agent, committed, completed\">\n\
         <style>text{{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d7dae0;white-space:pre;opacity:0;\
         animation:show .01s linear forwards}}.typed{{fill:#9ece6a}}.no{{fill:#f7768e}}@keyframes show{{to{{opacity:1}}}}\
         @media (prefers-reduced-motion:reduce){{text{{animation-delay:0s!important}}}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16161e\"/>\
         <circle cx=\"20\" cy=\"18\" r=\"5\" fill=\"#f7768e\"/><circle cx=\"38\" cy=\"18\" r=\"5\" fill=\"#e0af68\"/>\
         <circle cx=\"56\" cy=\"18\" r=\"5\" fill=\"#9ece6a\"/>\n"
    );
    let mut at = 0.3;
    for (n, (is_typed, line)) in lines.iter().enumerate() {
        at += if *is_typed { TYPING } else { ANSWER };
        let class = match (is_typed, line.starts_with("error:")) {
            (true, _) => " class=\"typed\"",
            (_, true) => " class=\"no\"",
            _ => "",
        };
        let prompt = if *is_typed { "$ " } else { "" };
        let safe = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let y = 48 + n * LINE;
        let _ = writeln!(
            svg,
            "<text{class} x=\"16\" y=\"{y}\" style=\"animation-delay:{at:.2}s\">{prompt}{safe}</text>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_recording_is_what_the_program_says() {
    let lines = played();
    let refused = lines.iter().filter(|(_, line)| line.starts_with("error:")).count();
    assert_eq!(refused, 1, "the second agent, and nobody else: {lines:#?}");
    assert!(lines.iter().any(|(_, line)| line.contains("T-1 complete")), "{lines:#?}");
    let svg = drawn(&lines);
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        std::fs::write(FILE, &svg).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(kept == svg, "docs/terminal.svg is not what the program says: UPDATE_CONTRACT=1\n{svg}");
}
