//! What real clients printed, as steps. Recorded with a scripted model; long lists that say nothing here are left out.

use onus_core::output::step::{Step, StepReader, resumable};

const CLAUDE: &str = include_str!("transcripts/claude.jsonl");
const CODEX: &str = include_str!("transcripts/codex.jsonl");
const GEMINI: &str = include_str!("transcripts/gemini.jsonl");
const OPENCODE: &str = include_str!("transcripts/opencode.jsonl");

fn steps(text: &str) -> Vec<Step> {
    let mut reader = StepReader::default();
    let mut all = reader.push(0, text);
    all.extend(reader.finish());
    all
}

fn lines(text: &str) -> Vec<String> {
    steps(text).iter().map(|step| step.line().trim_end().to_owned()).collect()
}

#[test]
fn a_client_tells_what_it_does() {
    for (text, told) in [
        (
            CLAUDE,
            &[
                "session 105c07b5-9748-4ac1-b921-a21f9d172270",
                "● I look first.",
                "▸ Bash echo hi",
                "  │ hi",
                "✎ Write /w/repo/hello.txt",
                "  │ File created successfully at: /w/repo/hello.txt (file state is current in your context — no need to Read it back)",
                "▸ Bash false",
                "  ✗ Exit code 1",
                "● hello is said",
                "Σ 5000 tokens, cost 0.0254",
            ][..],
        ),
        (
            CODEX,
            &[
                "session 01a1ee6e-a410-7561-a4e7-6befb5c5e734",
                "! Model metadata for `scripted` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.",
                "● I look first.",
                "▸ shell /bin/bash -lc 'echo hi > hello.txt; cat hello.txt'",
                "  │ hi",
                "▸ shell /bin/bash -lc \"apply_patch '*** Begin Patch\n    *** Add File: c.txt\n    +hello\n    *** End Patch'; false\"",
                "  ✗ /bin/bash: line 4: apply_patch: command not found",
                "● hello is said",
                "Σ 4200 tokens",
            ],
        ),
        (
            GEMINI,
            &[
                "session 5de9240b-e305-45fc-9fe1-0d82e8059a5c",
                "● I look first.",
                "▸ run_shell_command echo hi",
                "  │ hi",
                "✎ write_file /w/repo/hello.txt",
                "▸ run_shell_command false",
                "  │ Command exited with code: 1",
                "● hello is said",
                "Σ 4200 tokens",
            ],
        ),
        (
            OPENCODE,
            &[
                "session ses_e118fbe0affeJnam0J5jCqf4OT",
                "● I look first.",
                "▸ bash echo hi",
                "  │ hi",
                "Σ 1050 tokens, cost 0.00092",
                "✎ write /w/repo/hello.txt",
                "  │ Wrote file successfully.",
                "Σ 1050 tokens, cost 0.00092",
                "● hello is said",
                "Σ 1050 tokens, cost 0.00092",
            ],
        ),
    ] {
        assert_eq!(lines(text), told);
    }
}

/// What a reader that begins anew at every step's end is told.
fn in_pages(text: &str, size: usize) -> Vec<Step> {
    let (mut all, mut from) = (Vec::new(), 0);
    let mut to = 0;
    while to < text.len() {
        to = text.ceil_char_boundary((to + size).min(text.len()));
        let mut reader = StepReader::from(i64::try_from(from).unwrap());
        all.extend(reader.push(i64::try_from(from).unwrap(), &text[from..to]));
        if to == text.len() {
            all.extend(reader.finish());
        }
        from = usize::try_from(reader.next()).unwrap();
    }
    all
}

#[test]
fn pieces_and_pages_give_what_the_whole_gives() {
    for text in [CLAUDE, CODEX, GEMINI] {
        let whole = steps(text);
        for size in [1, 7, 100, 4_096] {
            assert_eq!(in_pages(text, size), whole, "{size}");
            let mut reader = StepReader::default();
            let mut at = 0;
            let mut all = Vec::new();
            while at < text.len() {
                let end = text.ceil_char_boundary((at + size).min(text.len()));
                all.extend(reader.push(i64::try_from(at).unwrap(), &text[at..end]));
                at = end;
            }
            all.extend(reader.finish());
            assert_eq!(all, whole, "{size}");
        }
    }
}

#[test]
fn what_no_client_says_passes_as_it_is() {
    for text in [
        "a prompt without an end> ",
        "two\nlines\n",
        "{\"type\":\"assistant\"}\n",
        "{\"type\":\"message\",\"timestamp\":4}\n",
        "{\"type\":7,\"session_id\":\"s\"}\n",
        "{ torn\n",
        "[1]\n{}\n",
    ] {
        let printed: String = steps(text).iter().map(Step::line).collect();
        assert_eq!(printed, text);
        assert!(steps(text).iter().all(|step| step.kind() == "printed"), "{text}");
    }
    // The beginning of a line is shown before its end is there.
    assert_eq!(StepReader::default().push(0, "proceed? ").len(), 1);
}

#[test]
fn words_that_come_in_parts_are_one_step() {
    let part = |text: &str| {
        format!(
            "{{\"type\":\"message\",\"timestamp\":\"t\",\"role\":\"assistant\",\"content\":\"{text}\",\"delta\":true}}\n"
        )
    };
    let text = [part("hel"), part("lo"), "over\n".to_owned(), part("bye")].concat();
    assert_eq!(lines(&text), ["● hello", "over", "● bye"]);
    assert_eq!(in_pages(&text, 30), steps(&text));
}

#[test]
fn what_is_left_out_tears_no_step() {
    let mut reader = StepReader::default();
    let (first, rest) = CLAUDE.split_at(900);
    let mut all = reader.push(0, first);
    all.extend(reader.push(i64::try_from(first.len() + 100).unwrap(), &rest[100..]));
    all.extend(reader.finish());
    let lines: Vec<String> = all.iter().map(Step::line).collect();
    assert!(lines.concat().contains("\n[100 bytes are left out here]\n"), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "Σ 5000 tokens, cost 0.0254\n");
    let is_torn = |step: &Step| matches!(step, Step::Printed { text } if text.contains("\"usage\""));
    assert!(all.iter().filter(|step| is_torn(step)).count() <= 1, "only what came before: {lines:#?}");
}

#[test]
fn a_session_is_resumed_unless_its_client_gave_up() {
    for text in [CLAUDE, CODEX, GEMINI, OPENCODE] {
        assert!(resumable(&steps(text)).is_some());
        let cut = text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
        assert!(resumable(&steps(&cut)).is_some(), "it was killed in the middle");
    }
    let gave_up = "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"session_id\":\"s\",\
        \"modelUsage\":{},\"errors\":[\"No conversation found with session ID: s\"]}\n";
    assert_eq!(lines(gave_up), ["✗ No conversation found with session ID: s"]);
    assert_eq!(resumable(&steps(gave_up)), None, "what it could not find is not tried again");
    assert_eq!(resumable(&steps(&format!("{CLAUDE}{gave_up}"))), None);
    assert_eq!(resumable(&steps("hello\n")), None);
}

/// What JSON writes as an escape is a control character once it is read.
#[test]
fn nothing_of_a_step_drives_a_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2Jred\u{9b}31m \u{202e}txt\u{8}";
    let text = serde_json::Value::from(hostile).to_string();
    for line in [
        format!(
            r#"{{"type":"assistant","session_id":"s","message":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
        ),
        format!(
            r#"{{"type":"assistant","session_id":"s","message":{{"content":[{{"type":"tool_use","name":{text},"input":{{"command":{text}}}}}]}}}}"#
        ),
        format!(
            r#"{{"type":"assistant","session_id":"s","message":{{"content":[{{"type":"tool_use","name":"Edit","input":{{"path":{text}}}}}]}}}}"#
        ),
        format!(
            r#"{{"type":"user","session_id":"s","message":{{"content":[{{"type":"tool_result","content":{text}}}]}}}}"#
        ),
        format!(r#"{{"type":"result","session_id":"s","is_error":true,"result":{text}}}"#),
        format!(r#"{{"type":"error","timestamp":"t","message":{text}}}"#),
    ] {
        let shown = lines(&line).join("\n");
        assert!(shown.contains("red"), "{line}: {shown}");
        assert!(
            !shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{line}: {shown:?}"
        );
    }
}
