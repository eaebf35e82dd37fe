//! The road of a team: a shared repository that asks, servers in other clones and without git, and everything that a merge
//! is asked before it moves the shared main branch (mission D11, E1).

use crate::support::server::Server;
use crate::support::team::{Team, ask, commit, files, git_as};
use crate::support::wrapper::until;
use crate::support::{Answer, Bench, ONUS, finish, start, text};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Past the hooks of the clone: what the shared repository says by itself.
const PAST: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

fn set(team: &Team, settings: &str) {
    for place in [&team.site.repo(), &team.other] {
        std::fs::write(place.join("onus.yaml"), settings).unwrap();
    }
}

/// The same, committed and pushed by the person: the shared repository has no other place for it.
fn publish(team: &Team, settings: &str) {
    let (site, repo) = (&team.site, team.site.repo());
    site.git_in(&repo, &["pull", "--quiet", "--rebase", "origin", "main"]);
    site.commit(&repo, "onus.yaml", settings, &[]);
    site.git_in(&repo, &["push", "--quiet", "origin", "main"]);
}

fn refused(said: &Answer, code: &str) {
    assert_ne!(said.exit, Some(0), "{said:#?}");
    assert!(said.stderr.contains(code), "{code}: {said:#?}");
}

fn token_of(team: &Team, handle: &str) -> String {
    text(&team.site.by_person(&["worker", "token", "add", handle])["secret"]).to_owned()
}

/// A server in a directory of its own, and `onus` in a worktree that reaches the store through it.
fn serve(team: &Team, dir: &Path) -> Server {
    let store = team.site.store_url();
    let args =
        ["serve", "--json", "--log", "quiet", "--rate", "100000", "--listen", "127.0.0.1:0", "--store"];
    let mut command = Command::new(ONUS);
    team.site.surroundings(&mut command).args(args).arg(store).current_dir(dir);
    Server::spawn(&mut command)
}

fn through(team: &Team, server: &Server, secret: &str, bench: &Bench, args: &[&str]) -> Answer {
    let mut command = Command::new(ONUS);
    team.site.surroundings(&mut command).args(args).args(["--json", "--store", &server.url]);
    finish(start(command.env("ONUS_TOKEN", secret).current_dir(&bench.dir)))
}

/// Hooks in the shared repository name it: no clone has to say anything.
#[test]
fn a_guarded_shared_repository_is_the_main_of_record() {
    let team = Team::guarded();
    let site = &team.site;
    for (bench, path) in [(site.bench("one"), "a"), (team.bench_there("two"), "b")] {
        let task = ask(site, &[path]);
        team.ok(&bench, &["claim", &task]);
        commit(site, &bench, path, "1\n");
        let done = team.ok(&bench, &["complete", &task, "--resolution", "done"]);
        assert_eq!(text(&done["landed"]["remote"]), "origin");
    }
    assert_eq!(files(site, &team.origin, "main"), ["a", "b"]);
    team.assert_in_order();
}

/// Where everybody's work goes is a person's to say, at every door and whatever a settings file says.
#[test]
fn only_a_person_names_the_main_of_record() {
    let team = Team::new();
    let site = &team.site;
    let one = site.bench("one");
    let secret = token_of(&team, "@one");
    let server = serve(&team, &site.root().join("home"));
    let wanted = json!([{ "remote": "origin", "branch": "main", "url": null, "guarded": false }]);
    let named = || site.ledger().iter().any(|entry| entry["verb"] == "main_of_record_named");
    assert_eq!(team.as_agent(&one, &["init", "--remote", "origin"]).code(), "human_required");
    assert_ne!(through(&team, &server, &secret, &one, &["init", "--remote", "origin"]).exit, Some(0));
    server.post(&secret, "/v1/call/name_main_of_record", wanted.clone()).refused(403, "human_required");
    let service = site.by_person(&["worker", "token", "add", "--kind", "service"]);
    server
        .post(text(&service["secret"]), "/v1/call/name_main_of_record", wanted)
        .refused(403, "not_permitted");
    // Hooks can be put there by whoever can write there; that names nothing.
    let installed = team.run_there(&team.origin, &["hook", "install", "--as", "@one"]);
    assert_eq!(installed.exit, Some(0), "{installed:#?}");
    assert_eq!(team.run_there(&team.origin, &["hook", "uninstall", "--as", "@one"]).exit, Some(0));
    // Nor does a file that an agent may have written, in one clone or in several.
    set(&team, "git: { remote: origin }\n");
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(site, &one, "a", "1\n");
    let complete = ["complete", task.as_str(), "--resolution", "done"];
    assert_eq!(team.as_agent(&one, &complete).code(), "main_of_record_unset");
    std::fs::remove_dir_all(&team.other).unwrap();
    let unset = team.as_agent(&one, &complete);
    assert_eq!(unset.code(), "main_of_record_unset", "{unset:#?}");
    assert!(unset.stderr.contains("a person runs once, in that clone: onus init"), "{unset:#?}");
    assert!(!named() && files(site, &team.origin, "main").is_empty());
    site.by_person(&["init"]);
    assert!(named());
    team.ok(&one, &complete);
    assert_eq!(files(site, &team.origin, "main"), ["a"]);
    let moved = json!([{ "remote": "elsewhere", "branch": "main", "url": null, "guarded": false }]);
    server.post(&secret, "/v1/call/name_main_of_record", moved).refused(403, "human_required");
}

/// The work of an earlier holder in another clone comes along: from there, or from where it was pushed to.
#[test]
fn work_of_another_clone_can_be_adopted() {
    let team = Team::guarded();
    let site = &team.site;
    let (one, two) = (site.bench("one"), team.bench_there("two"));
    for (name, is_pushed) in [("near", false), ("far", true)] {
        let task = ask(site, &[name]);
        team.ok(&two, &["claim", &task]);
        commit(site, &two, name, "by two\n");
        let hidden = team.site.root().join("hidden");
        if is_pushed {
            let pushed = git_as(site, &two, &["push", "--quiet", "--force", "origin", "HEAD"]);
            assert_eq!(pushed.exit, Some(0), "{pushed:#?}");
            std::fs::rename(&two.dir, &hidden).unwrap();
        }
        site.by_person(&["release", &task, "--force", "--reason", "silent"]);
        let claimed = team.as_agent(&one, &["claim", &task, "--adopt"]);
        assert_eq!(claimed.exit, Some(0), "{claimed:#?}");
        assert!(one.dir.join(name).exists(), "{name}: {claimed:#?}");
        let done = team.ok(&one, &["complete", &task, "--resolution", "finished"]);
        assert_eq!(done["landed"]["adopted"].as_array().unwrap().len(), 1, "{done:#}");
        if is_pushed {
            std::fs::rename(&hidden, &two.dir).unwrap();
        }
    }
    assert_eq!(files(site, &team.origin, "main"), ["far", "near"]);
    site.assert_sound();
}

/// Two takes over in its clone what one held in another: it is told of a token only once nothing of one is on its way.
fn takeover_there(team: &Team, task: &str, bench: &Bench, more: &[&str]) -> Answer {
    let place = ["--workstation", bench.agent.workstation.as_str(), "--reason", "silent"];
    let mut taken = None;
    until("the lease has run out", || {
        let answer = team.as_agent(bench, &[&["takeover", task], &place[..], more].concat());
        let is_early = answer.exit != Some(0) && answer.code() == "not_expired";
        taken = Some(answer);
        !is_early
    });
    taken.unwrap()
}

/// A takeover from another clone keeps what was left, commits and files, where it was and here; the branch that it was on
/// is nobody's concern until the next grant there.
#[test]
fn a_takeover_from_another_clone_keeps_what_was_left_in_the_first() {
    let team = Team::guarded();
    let site = &team.site;
    let (one, two) = (site.bench("one"), team.bench_there("two"));
    set(&team, "lease: { agent_ttl: 100ms, grace: 1ms }\n");
    for more in [&[][..], &["--adopt"]] {
        let task = ask(site, &["work"]);
        team.ok(&one, &["claim", &task]);
        commit(site, &one, &format!("{task}-made"), "by one\n");
        std::fs::write(one.dir.join(format!("{task}-half")), "by one\n").unwrap();
        let taken = takeover_there(&team, &task, &two, more);
        assert_eq!(taken.exit, Some(0), "{taken:#?}");
        let kept = format!("refs/onus/salvage/{task}/1");
        let names = [format!("{task}-half"), format!("{task}-made")];
        for clone in [&site.repo(), &team.other] {
            let all = files(site, clone, &kept);
            assert!(names.iter().all(|name| all.contains(name)), "{all:?}");
        }
        let is_there = names.iter().map(|name| two.dir.join(name).exists()).collect::<Vec<_>>();
        assert_eq!(is_there, vec![!more.is_empty(); 2], "{taken:#?}");
        // The old holder's branch is barred.
        let late = git_as(site, &one, &["commit", "--quiet", "--allow-empty", "-m", "late"]);
        refused(&late, "fenced");
        commit(site, &two, &format!("{task}-made"), "by two\n");
        team.ok(&two, &["complete", &task, "--resolution", "done"]);
        // What landed is not here yet; what a former holder left is not what landed.
        let unseen = site.run(&["diff", &task, "--json"]);
        assert_eq!(unseen.code(), "unknown_name", "{unseen:#?}");
        assert_eq!(unseen.error()["hint"], "git fetch");
        site.git_in(&site.repo(), &["fetch", "--quiet"]);
        assert_eq!(site.ok(&["diff", &task])["source"], "landed");
        team.assert_in_order();
    }
    let next = ask(site, &["next"]);
    team.ok(&one, &["claim", &next]);
    assert!(!one.dir.join("T-1-half").exists());
    assert_eq!(site.git_in(&one.dir, &["rev-parse", "HEAD"]), team.main());
}

/// A commit that passed its check before the takeover holds the branch's lock in the first clone: the takeover waits for it.
#[test]
fn a_takeover_from_another_clone_waits_for_what_is_on_its_way_in_the_first() {
    let team = Team::guarded();
    let site = &team.site;
    let (one, two) = (site.bench("one"), team.bench_there("two"));
    set(&team, "lease: { agent_ttl: 100ms, grace: 1ms }\n");
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    let first = commit(site, &one, "first", "1\n");
    let second = commit(site, &one, "second", "2\n");
    // As git does it: the lock, the check, the move.
    let branch = site.repo().join(".git/refs/heads").join(&one.branch);
    std::fs::write(&branch, format!("{first}\n")).unwrap();
    let lock = branch.with_extension("lock");
    std::fs::write(&lock, format!("{second}\n")).unwrap();
    let taken = std::thread::scope(|scope| {
        let taking = scope.spawn(|| takeover_there(&team, &task, &two, &["--adopt"]));
        until("the epoch has risen", || site.task(&task)["assignment"]["epoch"] == 2);
        // Time enough for one that does not wait to end; one that does has much more patience.
        let began = Instant::now();
        while !taking.is_finished() && began.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!taking.is_finished(), "it did not wait for the lock");
        std::fs::rename(&lock, &branch).unwrap();
        taking.join().unwrap()
    });
    assert_eq!(taken.exit, Some(0), "{taken:#?}");
    assert_eq!(site.git_in(&team.other, &["rev-parse", &format!("refs/onus/salvage/{task}/1")]), second);
    assert!(two.dir.join("second").exists(), "{taken:#?}");
    team.ok(&two, &["complete", &task, "--resolution", "done"]);
    team.assert_in_order();
}

/// Hooks of a shared repository ask with a token of their own: over a connection nobody's environment arrives.
#[test]
fn a_shared_repository_has_a_token_of_its_own() {
    let team = Team::new();
    let site = &team.site;
    let server = serve(&team, &site.root().join("home"));
    let service = site.by_person(&["worker", "token", "add", "--kind", "service"]);
    let file = site.root().join("hook-token");
    std::fs::write(&file, text(&service["secret"])).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut install = Command::new(ONUS);
    site.surroundings(&mut install).args(["hook", "install", "--store", &server.url]);
    install.env("ONUS_TOKEN", token_of(&team, &site.person)).env("ONUS_TOKEN_FILE", &file);
    let installed = finish(start(install.current_dir(&team.origin)));
    assert_eq!(installed.exit, Some(0), "{installed:#?}");
    assert_eq!(site.git_in(&team.origin, &["config", "onus.tokenFile"]), file.to_str().unwrap());
    let one = site.bench("one");
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(site, &one, "a", "1\n");
    let pushed = git_as(site, &one, &["push", "--quiet", "origin", "HEAD"]);
    assert_eq!(pushed.exit, Some(0), "{pushed:#?}");
    team.ok(&one, &["complete", &task, "--resolution", "done"]);
    assert_eq!(files(site, &team.origin, "main"), ["a"]);
}

/// A checkout has no branch of its own: what was committed there counts when it is in the shared main branch.
#[test]
fn work_in_a_checkout_is_complete_when_it_was_pushed() {
    let team = Team::guarded();
    let (site, there) = (&team.site, &team.other);
    let person = site.person.clone();
    let as_person = |args: &[&str]| team.run_there(there, &[args, &["--as", &person]].concat());
    let task = ask(site, &["a"]);
    let claimed = as_person(&["claim", &task]);
    assert_eq!(claimed.exit, Some(0), "{claimed:#?}");
    site.commit(there, "a", "1\n", &[]);
    let said = as_person(&["complete", &task, "--resolution", "done"]);
    refused(&said, "not_merged");
    assert!(said.stderr.contains("git push origin HEAD:main"), "{said:#?}");
    site.git_in(there, &["pull", "--quiet", "--rebase", "origin", "main"]);
    site.git_in(there, &["push", "--quiet", "origin", "HEAD:main"]);
    let done = as_person(&["complete", &task, "--resolution", "done"]);
    assert_eq!(done.exit, Some(0), "{done:#?}");
    assert_eq!(files(site, &team.origin, "main"), ["a"]);
}

/// Issue: order and review could be walked around. A push by hand is asked what a merge is asked.
#[test]
fn a_push_by_hand_is_asked_what_a_merge_is_asked() {
    let team = Team::guarded();
    let site = &team.site;
    let (one, two) = (site.bench("one"), site.bench("two"));
    let by_hand = [&PAST[..], &["push", "--quiet", "origin", "HEAD:main"]].concat();
    // A check that nobody ran.
    let checked = ask(site, &["checked", "--check", "test -f a"]);
    team.ok(&one, &["claim", &checked]);
    commit(site, &one, "a", "1\n");
    let before = team.main();
    refused(&git_as(site, &one, &by_hand), "checks_missing");
    team.ok(&one, &["check", &checked]);
    let passed = git_as(site, &one, &by_hand);
    assert_eq!(passed.exit, Some(0), "{passed:#?}");
    team.ok(&one, &["complete", &checked, "--resolution", "done"]);
    assert_ne!(team.main(), before);
    // A review that nobody gave, and one of another commit.
    publish(&team, "complete: { review: always }\n");
    let reviewed = ask(site, &["reviewed"]);
    team.ok(&one, &["claim", &reviewed]);
    let seen = commit(site, &one, "b", "1\n");
    let before = team.main();
    refused(&git_as(site, &one, &by_hand), "review_missing");
    team.ok(&two, &["review", &reviewed, "--approve", "--as-implemented", "--commit", &seen]);
    commit(site, &one, "c", "1\n");
    refused(&git_as(site, &one, &by_hand), "review_missing");
    assert_eq!(team.main(), before);
    team.ok(&one, &["release", &reviewed, "--note", "later"]);
    publish(&team, "queue: { limit: 20 }\n");
    // Slices in their order.
    let parent = ask(site, &["parent"]);
    ask(site, &["contract", "--parent", &parent, "--merge-order", "1"]);
    let second = ask(site, &["server", "--parent", &parent, "--merge-order", "2"]);
    team.ok(&one, &["claim", &second]);
    commit(site, &one, "d", "1\n");
    let before = team.main();
    refused(&git_as(site, &one, &by_hand), "dependency_incomplete");
    assert_eq!(team.as_agent(&one, &["merge", &second]).code(), "dependency_incomplete");
    assert_eq!(team.main(), before);
    // And nobody brings what it did not make.
    team.ok(&one, &["release", &second, "--note", "later"]);
    let other = ask(site, &["other"]);
    team.ok(&one, &["claim", &other]);
    let kept = format!("refs/onus/salvage/{second}/1");
    let picked = git_as(site, &one, &["-c", "core.hooksPath=/dev/null", "cherry-pick", &kept]);
    assert_eq!(picked.exit, Some(0), "{picked:#?}");
    refused(&git_as(site, &one, &by_hand), "not_own_commits");
    assert_eq!(team.as_agent(&one, &["merge", &other]).code(), "not_own_commits");
    let adopted = site.git_in(&one.dir, &["rev-parse", "HEAD"]);
    let merged = team.ok(&one, &["merge", &other, "--adopt", &adopted]);
    assert_eq!(merged["landed"]["adopted"].as_array().unwrap().len(), 1, "{merged:#}");
    site.assert_sound();
}

/// Issue: with a server in a third clone, `complete` said `not_merged` again and again.
#[test]
fn a_server_in_a_clone_that_is_behind_looks_again_before_it_says_not_merged() {
    let team = Team::new();
    let site = &team.site;
    let third = site.root().join("third");
    team.clone_to(&third);
    let one = site.bench("one");
    let secret = token_of(&team, "@one");
    let server = serve(&team, &third);
    // Three clones, and nobody has said which main branch counts.
    let task = ask(site, &["work"]);
    let lease = text(&team.ok(&one, &["claim", &task])["lease"]["token"]).to_owned();
    commit(site, &one, "a", "1\n");
    let complete = ["complete", &task, "--resolution", "done"];
    let unset = through(&team, &server, &secret, &one, &complete);
    assert_eq!(unset.code(), "main_of_record_unset", "{unset:#?}");
    assert!(text(&unset.error()["hint"]).contains("onus init --remote origin"), "{unset:#?}");
    site.by_person(&["init", "--remote", "origin"]);
    let behind = site.git_in(&third, &["rev-parse", "refs/remotes/origin/main"]);
    let merged = team.ok(&one, &["merge", &task]);
    assert_eq!(site.git_in(&third, &["rev-parse", "refs/remotes/origin/main"]), behind);
    // A plain call has no working tree: the server looks by itself.
    let body = json!({ "resolution": "done", "lease": lease });
    let done = server.post(&secret, &format!("/v1/tasks/{task}/complete"), body).ok();
    assert_eq!(text(&done["task"]["state"]), "complete", "{done:#}");
    let seen = site.git_in(&third, &["rev-parse", "refs/remotes/origin/main"]);
    assert_eq!(seen, text(&merged["commit"]));
    team.assert_in_order();
}

/// Two clones and no word about which main branch counts: a server that stands in one of them says so, too.
#[test]
fn a_server_in_another_clone_is_a_second_clone() {
    let team = Team::new();
    let site = &team.site;
    // The clone that `init` made known is gone; the only other one is the server's.
    std::fs::remove_dir_all(&team.other).unwrap();
    let third = site.root().join("third");
    team.clone_to(&third);
    let one = site.bench("one");
    let secret = token_of(&team, "@one");
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(site, &one, "a", "1\n");
    let server = serve(&team, &third);
    let done = through(&team, &server, &secret, &one, &["complete", &task, "--resolution", "done"]);
    assert_eq!(done.code(), "main_of_record_unset", "{done:#?}");
}

/// A server without git believes nobody: who vouches is on record, and `consistency` looks later.
#[test]
fn a_server_without_git_records_who_vouches() {
    let team = Team::guarded();
    let site = &team.site;
    let one = site.bench("one");
    let secret = token_of(&team, "@one");
    let nowhere = site.root().join("nowhere");
    std::fs::create_dir(&nowhere).unwrap();
    let server = serve(&team, &nowhere);
    let task = ask(site, &["work"]);
    let lease = text(&team.ok(&one, &["claim", &task])["lease"]["token"]).to_owned();
    commit(site, &one, "a", "1\n");
    // Over plain HTTP there is nobody who could have looked.
    let body = json!({ "resolution": "done", "lease": lease });
    let plain = server.post(&secret, &format!("/v1/tasks/{task}/complete"), body);
    assert_eq!(plain.code(), "not_merged", "{plain:#?}");
    assert!(text(&plain.body["hint"]).contains("onus complete"), "{plain:#?}");
    // The command line on the agent's machine lands it, and its git vouches for it.
    let done = through(&team, &server, &secret, &one, &["complete", &task, "--resolution", "done"]);
    assert_eq!(done.exit, Some(0), "{done:#?}");
    let entry = site.ledger().into_iter().rfind(|entry| entry["verb"] == "merged").unwrap();
    assert_eq!(entry["data"]["landed"]["vouched"], true, "{entry:#}");
    assert_eq!(
        (text(&entry["actor"]), text(&entry["data"]["landed"]["tip"])),
        ("@one", team.main().as_str())
    );
    team.assert_in_order();
    // What was vouched for and is not there is found.
    site.git_in(&team.origin, &[&PAST[..], &["update-ref", "refs/heads/main", "main~1"]].concat());
    let found = team.run_there(&team.other, &["consistency"]);
    assert_eq!(found.code(), "queue_invalid", "{found:#?}");
    assert!(found.stderr.contains("landed_not_there") && found.stderr.contains(&task), "{found:#?}");
}

/// A `git` that does something on the way to the real one, for one worktree's calls.
fn with_git(team: &Team, bench: &Bench, script: &str, args: &[&str]) -> Answer {
    let bin = team.site.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let real = finish(start(Command::new("sh").args(["-c", "command -v git"]))).stdout.trim().to_owned();
    let text = format!("#!/bin/sh\nreal={real}\n{script}\nexec $real \"$@\"\n");
    let git = bin.join("git");
    std::fs::write(&git, text).unwrap();
    std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let args = [args, &["--as", &bench.agent.handle, "--json"]].concat();
    let mut command = team.site.command(&args);
    finish(start(command.env("PATH", path).current_dir(&bench.dir)))
}

/// Somebody else pushes right before each push: it is tried again from the fetch, so many times, and said.
#[test]
fn whoever_is_outrun_tries_again_so_many_times_and_says_so() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let one = site.bench("one");
    let busy = site.root().join("busy");
    team.clone_to(&busy);
    // Others land as often as the file has lines left.
    let left = site.root().join("left");
    let script = format!(
        "case \" $* \" in *\" push \"*)\n  if [ -s {left} ]; then sed -i 1d {left}; cd {busy} && unset GIT_CONFIG_COUNT\n    \
         $real pull -q --rebase origin main && $real commit -q --allow-empty -m other && $real push -q origin HEAD:main\n    \
         cd - >/dev/null\n  fi;; esac",
        left = left.display(),
        busy = busy.display()
    );
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(site, &one, "a", "1\n");
    let complete = ["complete", task.as_str(), "--resolution", "done"];
    std::fs::write(&left, "x\n".repeat(40)).unwrap();
    let outrun = with_git(&team, &one, &script, &complete);
    assert_eq!(outrun.code(), "not_merged", "{outrun:#?}");
    assert!(text(&outrun.error()["detail"]).contains("moved 12 times"), "{outrun:#?}");
    std::fs::write(&left, "x\nx\n").unwrap();
    let done = with_git(&team, &one, &script, &complete);
    assert_eq!(done.exit, Some(0), "{done:#?}");
    assert_eq!(done.json()["attempts"], 3, "{done:#?}");
    assert_eq!(files(site, &team.origin, "main"), ["a"]);
}

/// Where a team lands by pull requests, the branch is offered, and merging it there counts.
#[test]
fn a_pull_request_that_was_merged_counts_as_landed() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    set(&team, "git: { land: pr }\n");
    let one = site.bench("one");
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    let made = commit(site, &one, "a", "1\n");
    let complete = ["complete", task.as_str(), "--resolution", "done"];
    let offered = team.as_agent(&one, &complete);
    assert_eq!(offered.code(), "not_merged", "{offered:#?}");
    assert!(text(&offered.error()["hint"]).contains("pull request"), "{offered:#?}");
    assert_eq!(site.git_in(&team.origin, &["rev-parse", "agent/ws-one"]), made);
    assert!(files(site, &team.origin, "main").is_empty());
    // Somebody merges it there, after others.
    site.git_in(&team.other, &["fetch", "--quiet", "origin"]);
    site.git_in(&team.other, &["merge", "--quiet", "--no-ff", "-m", "pr 1", "origin/agent/ws-one"]);
    site.git_in(&team.other, &["push", "--quiet", "origin", "main"]);
    let done = team.ok(&one, &complete);
    assert_eq!(done["landed"]["commits"], json!([made]), "{done:#}");
    site.assert_sound();
}

/// `git.unowned` says what is made of commits of no task, and nothing is said of what was there before Onus.
#[test]
fn commits_of_no_task_are_told_allowed_or_refused() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let one = site.bench("one");
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    commit(site, &one, "a", "1\n");
    team.ok(&one, &["complete", &task, "--resolution", "done"]);
    let quiet = team.run_there(&team.other, &["consistency"]);
    assert_eq!((quiet.exit, &quiet.json()["warnings"]), (Some(0), &json!([])), "{quiet:#?}");
    site.git_in(&team.other, &["pull", "--quiet", "origin", "main"]);
    site.commit(&team.other, "by-hand", "1\n", &[]);
    site.git_in(&team.other, &["push", "--quiet", "origin", "main"]);
    for (setting, exit, warned) in [("warn", 0, 1), ("allow", 0, 0), ("refuse", 5, 0)] {
        set(&team, &format!("git: {{ unowned: {setting} }}\n"));
        let looked = team.run_there(&site.repo(), &["consistency"]);
        assert_eq!(looked.exit, Some(exit), "{setting}: {looked:#?}");
        match exit {
            0 => assert_eq!(looked.json()["warnings"].as_array().unwrap().len(), warned, "{looked:#?}"),
            _ => assert!(looked.stderr.contains("commit_of_no_task"), "{looked:#?}"),
        }
    }
}

/// Issue: `consistency` found nothing when a fenced holder's commit was in the main branch.
#[test]
fn a_commit_that_its_assignment_did_not_land_is_found() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let (one, two) = (site.bench("one"), site.bench("two"));
    let task = ask(site, &["work"]);
    team.ok(&one, &["claim", &task]);
    let stale = commit(site, &one, "stale", "1\n");
    site.by_person(&["release", &task, "--force", "--reason", "silent"]);
    team.ok(&two, &["claim", &task]);
    commit(site, &two, "fresh", "1\n");
    team.ok(&two, &["complete", &task, "--resolution", "done"]);
    team.ok(&one, &["workstation", "sync", "ws-one"]);
    let agreed = team.run_there(&team.other, &["consistency"]);
    assert_eq!(agreed.exit, Some(0), "{agreed:#?}");
    site.git_in(&team.other, &["fetch", "--quiet", "origin"]);
    site.git_in(&team.other, &["reset", "--quiet", "--hard", "origin/main"]);
    site.git_in(
        &team.other,
        &["fetch", "--quiet", site.repo().to_str().unwrap(), "refs/onus/salvage/*:refs/kept/*"],
    );
    site.git_in(&team.other, &["cherry-pick", &stale]);
    site.git_in(&team.other, &["push", "--quiet", "origin", "HEAD:main"]);
    let found = team.run_there(&site.repo(), &["consistency"]);
    assert_eq!(found.code(), "queue_invalid", "{found:#?}");
    assert!(found.stderr.contains("commit_not_landed") && found.stderr.contains(&task), "{found:#?}");
}
