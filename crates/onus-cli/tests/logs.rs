//! What runs print: kept, read while they run and afterwards, without secrets (threat 19).

use crate::support::fleet::Fleet;
use crate::support::server::Server;
use crate::support::wrapper::{ran, run, until};
use crate::support::{Site, finish, start, text};
use serde_json::Value;

fn printed(site: &Site, of: &str) -> String {
    let answer = finish(start(&mut site.command(&["logs", of])));
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    answer.stdout
}

fn closing(site: &Site, task: &str) -> Option<Value> {
    let ledger = site.ok(&["show", task])["ledger"].clone();
    let entries = ledger.as_array().unwrap();
    entries.iter().find(|entry| entry["verb"] == "output_closed").map(|entry| entry["data"].clone())
}

#[test]
fn what_a_command_prints_is_kept_cleaned_and_on_record() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.add("work");
    let line = "printf '\\033[31mred\\033[0m out\\n'; echo err >&2; printf 'no end'";
    let answer = ran(site, "a", &["T-1", "--no-complete"], line);
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    // Passed on as it was.
    assert!(answer.stdout.contains("\u{1b}[31mred"), "{answer:?}");
    let kept = printed(site, "T-1");
    assert!(kept.contains("red out\n") && kept.contains("err\n") && kept.contains("no end"), "{kept:?}");
    assert!(!kept.contains('\u{1b}'), "{kept:?}");
    assert_eq!(printed(site, "@a"), kept);
    let closed = closing(site, "T-1").expect("an entry of its digest");
    assert_eq!(closed["output"]["bytes"], kept.len(), "{closed}");
    let view = site.ok(&["logs", "T-1"]);
    assert_eq!((&view["closed"], &view["running"]), (&true.into(), &false.into()), "{view}");
    let nothing = finish(start(&mut site.command(&["logs", "@b", "--json"])));
    assert_eq!(nothing.exit, Some(3), "{nothing:?}");
    site.assert_sound();
}

/// Planted in every way that a program has, and searched for wherever anybody can look.
#[test]
fn no_secret_is_kept() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.add("work");
    let mut command = run(
        site,
        "a",
        &["T-1", "--no-complete"],
        "env; echo \"$ONUS_LEASE\"; echo \"half $ANTHROPIC_API_KEY\" | cut -c1-15 | tr -d '\\n'; sleep 0.3; \
         echo \"$ANTHROPIC_API_KEY\" | cut -c11-; echo ghp_0123456789abcdefghijKLMNOP >&2; echo visible",
    );
    let planted = [
        ("ANTHROPIC_API_KEY", "planted-key-4711-abcdef"),
        ("DB_PASSWORD", "planted pass word"),
        ("MY_SECRET_THING", "planted-secret-0815"),
        ("GITHUB_TOKEN", "planted-token-xyz"),
    ];
    let answer = finish(start(command.envs(planted)));
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let lease = answer.stdout.lines().find_map(|line| line.strip_prefix("ONUS_LEASE=")).unwrap().to_owned();
    let kept = printed(site, "T-1");
    assert!(kept.contains("visible") && kept.contains("ONUS_TASK=T-1"), "{kept}");
    let mut places = vec![kept, site.ok(&["show", "T-1"]).to_string(), site.ok(&["logs", "T-1"]).to_string()];
    // On a server's disk they are nobody's to look at.
    if let Ok(bytes) = std::fs::read(site.store()) {
        places.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    let id = lease.rsplit('.').next().unwrap();
    for (place, words) in places.iter().enumerate() {
        for (name, value) in
            planted.iter().copied().chain([("key", "ghp_0123456789abcdefghij"), ("lease", id)])
        {
            assert!(!words.contains(value), "{name} is in place {place}");
        }
    }
}

/// What a check prints is kept and told as well, also where it fails; and what a probe says.
#[test]
fn no_secret_that_a_check_prints_is_kept() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    let line =
        "cat \"$(git rev-parse --absolute-git-dir)\"/onus/lease/*; cat ../planted; echo visible; exit 1";
    std::fs::write(site.root().join("planted"), "planted-key-4711-abcdef ghp_0123456789abcdefghijKLMNOP\n")
        .unwrap();
    let task = text(&site.by_person(&["add", "work", "--check", line])["task"]["id"]).to_owned();
    let lease = fleet.claim(&task, "a");
    let mut check = site.command(&["check", &task, "--as", "@a", "--json"]);
    let check = check.current_dir(fleet.tree("a")).env("ANTHROPIC_API_KEY", "planted-key-4711-abcdef");
    let told = finish(start(check));
    assert_eq!(told.exit, Some(7), "{told:?}");
    site.by_person(&["workstation", "add", "probed", "--probe", "command:cat ../planted; exit 1"]);
    let probed = site.run(&["workstation", "probe", "probed", "--as", &site.person, "--json"]);
    let mut places = vec![
        told.stderr,
        probed.stdout + &probed.stderr,
        site.ok(&["show", &task]).to_string(),
        site.ok(&["check", &task, "--list"]).to_string(),
    ];
    assert!(
        places.iter().enumerate().all(|(place, words)| place == 1 || words.contains("visible")),
        "{places:#?}"
    );
    if let Ok(bytes) = std::fs::read(site.store()) {
        places.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    let id = lease.rsplit('.').next().unwrap();
    for (place, words) in places.iter().enumerate() {
        for value in ["ghp_0123456789abcdefghij", id] {
            assert!(!words.contains(value), "{value} is in place {place}: {words}");
        }
        // Only whoever runs it knows what the environment keeps.
        assert!(place == 1 || !words.contains("planted-key-4711"), "place {place}: {words}");
    }
}

#[test]
fn a_long_output_keeps_its_beginning_and_its_end() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    std::fs::write(site.repo().join("onus.yaml"), "run: { keep: 20000 }\n").unwrap();
    site.add("work");
    let line = "echo first; i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done; echo last";
    let answer = ran(site, "a", &["T-1", "--no-complete"], line);
    assert_eq!(answer.exit, Some(0));
    let kept = printed(site, "T-1");
    assert!(
        kept.starts_with("first\n") && kept.ends_with("last\n") && kept.contains("are left out here"),
        "{kept}"
    );
    assert!(kept.len() < 30_000, "{}", kept.len());
    let closed = closing(site, "T-1").unwrap();
    assert!(closed["output"]["bytes"].as_i64().unwrap() > 150_000, "{closed}");
    site.assert_sound();
}

#[test]
fn a_line_can_be_read_while_the_command_runs() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.add("work");
    let gate = site.root().join("gate");
    let line = format!("echo begun; while [ ! -e {} ]; do sleep 0.05; done; echo over", gate.display());
    let child = start(&mut run(site, "a", &["T-1", "--no-complete"], &line));
    until("the line is kept", || finish(start(&mut site.command(&["logs", "T-1"]))).stdout.contains("begun"));
    let follower = start(&mut site.command(&["logs", "-f", "T-1"]));
    std::fs::write(gate, "").unwrap();
    let followed = finish(follower);
    assert_eq!((followed.exit, followed.stdout.as_str()), (Some(0), "begun\nover\n"), "{followed:?}");
    assert_eq!(finish(child).exit, Some(0));
}

#[test]
fn a_command_that_says_nothing_is_ended() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    std::fs::write(site.repo().join("onus.yaml"), "run: { silence: 1s }\n").unwrap();
    site.add("work");
    let answer = ran(site, "a", &["T-1"], "echo begun; exec sleep 1000");
    assert_eq!(answer.exit, Some(124), "{answer:?}");
    assert_eq!(site.task("T-1")["state"], "open");
    let handoff = site.ok(&["handoff", "T-1", "--show"])["handoff"].clone();
    assert!(text(&handoff["summary"]).contains("said nothing for 1 s"), "{handoff}");
    assert_eq!(printed(site, "T-1"), "begun\n");
}

/// What a real Claude Code printed.
const CLAUDE: &str = include_str!("../../onus-core/tests/transcripts/claude.jsonl");

/// At every door; and JSON, which writes some secrets in another way, tells none.
#[test]
fn a_coding_clients_lines_are_steps() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    site.add("work");
    let secrets = ["pa\"ss\\wo rd-77", "ghp_0123456789abcdefghijKLMNOP"];
    let blurted = serde_json::json!({ "type": "assistant", "session_id": "s", "message": { "id": "m", "content":
        [{ "type": "text", "text": format!("<b>I blurt</b> {} {}", secrets[0], secrets[1]) }] } });
    let file = site.root().join("lines");
    std::fs::write(&file, format!("{CLAUDE}{blurted}\nplain <i>end</i>\n")).unwrap();
    // The other output tears no line.
    let line =
        format!("head -c 800 {0}; sleep 0.2; echo between >&2; sleep 0.2; tail -c +801 {0}", file.display());
    let mut command = run(site, "a", &["T-1", "--no-complete"], &line);
    let answer = finish(start(command.env("QUOTED_SECRET", secrets[0])));
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let kept = printed(site, "T-1");
    for told in
        ["▸ Bash echo hi\n", "✎ Write /w/repo/hello.txt\n", "Σ 5000 tokens, cost 0.0254\n", "between\n"]
    {
        assert!(kept.contains(told), "{told}: {kept}");
    }
    assert!(kept.ends_with("● <b>I blurt</b> [redacted] [redacted]\nplain <i>end</i>\n"), "{kept}");
    assert!(!kept.contains("\"type\""), "{kept}");
    let raw = finish(start(&mut site.command(&["logs", "T-1", "--raw"]))).stdout;
    assert!(raw.contains("\"type\":\"assistant\"") && raw.contains("\nplain"), "{raw}");
    let view = site.ok(&["logs", "T-1"]);
    let edited = view["steps"].as_array().unwrap().iter().find(|step| step["kind"] == "edited").unwrap();
    assert_eq!((text(&edited["tool"]), text(&edited["text"])), ("Write", "/w/repo/hello.txt"));
    let server = Server::start(site);
    let token = site.token(&site.person);
    let path = format!("/v1/sessions/{}/output", view["session"]);
    let steps = server.get(&token, &format!("{path}?format=steps")).ok();
    assert_eq!(steps["steps"], view["steps"]);
    assert!(steps["pieces"].as_array().unwrap().is_empty() && steps["next"] == view["next"], "{steps}");
    let plain = server.get(&token, &path).ok();
    assert!(plain.get("steps").is_none() && !plain["pieces"].as_array().unwrap().is_empty(), "{plain}");
    server.get(&token, &format!("{path}?format=pictures")).refused(400, "invalid_input");
    let cookie = format!("onus-{}={token}", server.address().rsplit(':').next().unwrap());
    let page = server.try_call("GET", "/tasks/T-1", &[("cookie", &cookie)], None).unwrap().body;
    let page = text(&page);
    assert!(page.contains("<span class=\"step called\"><b>Bash</b> echo hi</span>"), "{page}");
    assert!(!page.contains("<b>I blurt") && !page.contains("<i>end"), "words are only ever text");
    for place in [kept.as_str(), &raw, &view.to_string(), &steps.to_string(), &plain.to_string(), page] {
        for secret in ["pa\"ss", "pa\\\"ss", "pa&quot;ss", "pa&#34;ss", "rd-77", secrets[1]] {
            assert!(!place.contains(secret), "{secret}: {place}");
        }
    }
}
