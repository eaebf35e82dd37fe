//! `onus diff`: what a task's work changes, and what was said about its lines (mission E9).

use crate::support::at_work::{at_work, commit};
use crate::support::server::Server;
use crate::support::text;
use serde_json::Value;

fn paths(diff: &Value) -> Vec<&str> {
    diff["files"].as_array().unwrap().iter().map(|file| text(&file["path"])).collect()
}

#[test]
fn the_work_on_a_branch_is_told_line_by_line_with_its_comments() {
    let (site, task, tree) = at_work();
    let empty = site.ok(&["diff", &task]);
    assert_eq!(empty["files"], serde_json::json!([]));
    commit(
        &site,
        &tree,
        &[("src/a.txt", "one\ntwo\n"), ("evil\u{1b}[31m.txt", "\u{1b}[2Jx\n"), ("bin", "\u{0}\u{1}")],
    );
    let diff = site.ok(&["diff", &task]);
    assert_eq!(text(&diff["source"]), "branch");
    assert_eq!(paths(&diff), ["bin", "evil\u{241b}[31m.txt", "src/a.txt"], "{diff:#}");
    assert_eq!((&diff["files"][0]["binary"], &diff["added"]), (&Value::Bool(true), &Value::from(3)));
    assert_eq!(text(&diff["files"][1]["hunks"][0]["lines"][0]["text"]), "\u{241b}[2Jx");
    let line = &diff["files"][2]["hunks"][0]["lines"][1];
    assert_eq!((text(&line["sign"]), &line["new"], text(&line["text"])), ("+", &Value::from(2), "two"));
    let shown = site.run(&["diff", &task]);
    assert!(!shown.stdout.contains('\u{1b}'), "{:?}", shown.stdout);
    site.ok(&["review", &task, "--comment", "src/a.txt:2", "why two?", "--as", "@mia"]);
    let diff = site.ok(&["diff", &task]);
    assert_eq!((&diff["comments"][0]["line"], &diff["comments"][0]["outdated"]), (&2.into(), &false.into()));
    assert!(site.run(&["diff", &task]).stdout.contains("why two?"));
    let shown = site.ok(&["show", &task]);
    assert!(shown["notes"].to_string().contains("src/a.txt:2"), "{shown:#}");
    // The line's file is another one now.
    commit(&site, &tree, &[("src/a.txt", "zero\none\ntwo\n")]);
    let diff = site.ok(&["diff", &task]);
    assert_eq!(diff["comments"][0]["outdated"], true);
    assert_eq!(site.ok(&["diff", &task, "--stat"])["files"][2]["hunks"], serde_json::json!([]));
    assert_eq!(paths(&site.ok(&["diff", &task, "src/a.txt"])), ["src/a.txt"]);
    let refused = site.run(&["diff", &task, "no/such", "--json"]);
    assert_eq!(refused.code(), "unknown_name");
}

/// Words about a line that there is not are refused at every door, all of them at once.
#[test]
fn a_comment_on_a_line_that_is_not_there_is_refused() {
    let (site, task, tree) = at_work();
    commit(&site, &tree, &[("src/a.txt", "one\ntwo\n"), ("evil\u{1b}[31m.txt", "x\n"), ("bin", "\u{0}")]);
    let said = |places: &[&str]| {
        let words = places.iter().flat_map(|place| ["--comment", *place, "why?"]);
        let args: Vec<&str> =
            ["review", &task].into_iter().chain(words).chain(["--as", "@mia", "--json"]).collect();
        site.run(&args)
    };
    let wrong = said(&["src/a.txt:3", "src/b.txt:1", "bin:1", "../etc/passwd:1"]);
    assert_eq!((wrong.exit, wrong.code().as_str()), (Some(2), "invalid_input"), "{wrong:#?}");
    for words in ["`src/a.txt` has 2 lines", "no file `src/b.txt`", "`bin` has 0 lines"] {
        assert!(wrong.stderr.contains(words), "{words}: {wrong:#?}");
    }
    assert_eq!(said(&["src/a.txt:2", "evil\u{241b}[31m.txt:1"]).exit, Some(0));
    let server = Server::start(&site);
    let token = site.token(&site.person);
    let body =
        |line: i64| serde_json::json!({"comments": [{"path": "src/a.txt", "line": line, "text": "hm"}]});
    let path = format!("/v1/tasks/{task}/reviews");
    server.post(&token, &path, body(9)).refused(400, "invalid_input");
    server.post(&token, &path, body(2)).ok();
    let mut call = std::process::Command::new(crate::support::ONUS);
    let args = ["review", &task, "--comment", "src/a.txt:9", "why?", "--json", "--store", &server.url];
    // In no clone: the server's looks.
    site.surroundings(&mut call).current_dir("/").env("ONUS_TOKEN", &token).args(args);
    let far = crate::support::finish(crate::support::start(&mut call));
    assert_eq!(far.code(), "invalid_input", "{far:#?}");
    assert_eq!(site.ok(&["diff", &task])["comments"].as_array().unwrap().len(), 3);
}

/// What somebody committed by mistake is not passed on by whoever looks at it.
#[test]
fn keys_in_a_diff_are_shown_to_nobody() {
    let (site, task, tree) = at_work();
    let key = ["ghp_", "0123456789abcdefABCDEF0123456789abcd"].concat();
    commit(&site, &tree, &[("config", &format!("host = example.org\ntoken = {key}\n"))]);
    let server = Server::start(&site);
    let token = site.token(&site.person);
    let over_http = server.get(&token, &format!("/v1/tasks/{task}/diff")).ok();
    let told = [
        over_http.to_string(),
        site.ok(&["diff", &task]).to_string(),
        site.run(&["diff", &task]).stdout,
        site.ok(&["diff", &task, "config"]).to_string(),
    ];
    for told in told {
        assert!(!told.contains(&key) && told.contains("token = [redacted]"), "{told}");
    }
}

#[test]
fn what_has_landed_is_still_told() {
    let (site, task, tree) = at_work();
    commit(&site, &tree, &[("src/a.txt", "one\n")]);
    site.ok(&["complete", &task, "--resolution", "done", "--as", "@bot"]);
    let diff = site.ok(&["diff", &task]);
    assert_eq!((text(&diff["source"]), paths(&diff)), ("landed", vec!["src/a.txt"]), "{diff:#}");
}

#[test]
fn a_large_file_is_folded_and_two_hundred_are_not() {
    let (site, task, tree) = at_work();
    let many: Vec<(String, String)> =
        (0..200).map(|n| (format!("many/{n:03}.txt"), "x\n".repeat(5))).collect();
    let mut files: Vec<(&str, &str)> =
        many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let large = "y\n".repeat(2_000);
    files.push(("large.txt", &large));
    commit(&site, &tree, &files);
    let server = Server::start(&site);
    let token = site.token(&site.person);
    let diff = server.get(&token, &format!("/v1/tasks/{task}/diff")).ok();
    assert_eq!(diff["files"].as_array().unwrap().len(), 201);
    let of = |path: &str| {
        diff["files"].as_array().unwrap().iter().find(|file| file["path"] == path).unwrap().clone()
    };
    assert_eq!(
        (&of("large.txt")["folded"], &of("large.txt")["hunks"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_eq!(of("many/199.txt")["hunks"][0]["lines"].as_array().unwrap().len(), 5);
    let one = server.get(&token, &format!("/v1/tasks/{task}/diff?path=large.txt")).ok();
    assert_eq!(one["files"][0]["hunks"][0]["lines"].as_array().unwrap().len(), 2_000);
    server.get(&token, &format!("/v1/tasks/{task}/diff?path=x&stat=true")).refused(400, "invalid_input");
}
