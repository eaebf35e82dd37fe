//! Git asks Onus before a branch moves: real worktrees, a real bare repository, real pushes (mission B5, B6, E1).

use crate::support::fleet::{Fleet, Said};
use crate::support::{HANG, Rng, Site, finish, is_soak, start, text};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn refused(said: &Said, code: &str) {
    assert_ne!(said.exit, Some(0), "{said:?}");
    assert!(said.stderr.contains(&format!(" [{code}]")), "{said:?}");
    assert!(said.stderr.contains("hint: "), "{said:?}");
}

fn passed(said: &Said) {
    assert_eq!(said.exit, Some(0), "{said:?}");
}

#[test]
fn who_does_not_hold_the_lease_moves_nothing() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    let before = fleet.at(&fleet.tree("b"), "agent/ws-b");
    refused(&fleet.commit("b", "f", "1"), "lease_required");
    refused(&fleet.git("b", &["commit", "--no-verify", "--message", "x"]), "lease_required");
    refused(&fleet.git("b", &["commit", "--amend", "--allow-empty", "--message", "x"]), "lease_required");
    refused(&fleet.git("b", &["checkout", "-b", "elsewhere"]), "lease_required");
    refused(&fleet.git("b", &["branch", "elsewhere"]), "lease_required");
    refused(&fleet.git("b", &["push", "origin", "HEAD:refs/heads/elsewhere"]), "lease_required");

    let token = fleet.claim(&task, "a");
    passed(&fleet.commit("a", "f", "1"));
    // Another one's lease opens nothing here, and nobody moves the branch of another workstation.
    let with_token = |args: &[&str]| finish(start(fleet.git_as("b", args).env("ONUS_LEASE", &token)));
    refused(&with_token(&["commit", "--message", "x"]), "fenced");
    refused(&fleet.git("b", &["update-ref", "refs/heads/agent/ws-a", "HEAD"]), "lease_required");
    // Nor does the main checkout, where people commit as they like.
    let moved = fleet.git_by(&fleet.site.repo(), &[], &["update-ref", "refs/heads/agent/ws-a", "HEAD"]);
    refused(&moved, "lease_required");
    fleet.site.git(&["commit", "--quiet", "--allow-empty", "--message=people"]);
    assert_eq!(fleet.at(&fleet.tree("b"), "agent/ws-b"), before, "nothing has moved");
    assert_eq!(fleet.at(&fleet.shared(), "elsewhere"), None);
}

/// What moves no branch to another commit is nobody's business, with or without a lease, here and in the shared one.
#[test]
fn the_housekeeping_of_git_passes() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    fleet.claim(&task, "a");
    passed(&fleet.commit("a", "f", "1"));
    passed(&fleet.commit("a", "g", "1"));
    let everybody = [fleet.tree("a"), fleet.tree("b"), fleet.site.repo(), fleet.shared()];
    for (round, args) in [
        &["gc", "--quiet"][..],
        &["pack-refs", "--all"],
        &["maintenance", "run", "--quiet"],
        &["repack", "-a", "-d", "-q"],
        &["reflog", "expire", "--expire=now", "--all"],
        &["worktree", "prune"],
        &["prune"],
        &["fsck"],
        &["update-server-info"],
    ]
    .iter()
    .enumerate()
    {
        // Something loose to pack each time, in both repositories.
        passed(&fleet.commit("a", "f", &format!("round {round}")));
        let dir = &everybody[round % everybody.len()];
        for dir in everybody.iter().filter(|other| *other != dir).chain([dir]) {
            let mut git = Command::new("git");
            passed(&finish(start(fleet.site.surroundings(&mut git).args(*args).current_dir(dir))));
        }
    }
    for args in [&["fetch", "origin"][..], &["remote", "prune", "origin"], &["stash"], &["reset", "--hard"]] {
        std::fs::write(fleet.tree("b").join("loose"), "x").unwrap();
        passed(&fleet.git("b", &["add", "loose"]));
        passed(&fleet.git("b", args));
    }
    // A branch that is really deleted is still guarded, packed or not.
    refused(&fleet.git("b", &["update-ref", "-d", "refs/heads/agent/ws-a"]), "lease_required");
    passed(&fleet.git("b", &["pack-refs", "--all"]));
    refused(&fleet.git("b", &["update-ref", "-d", "refs/heads/agent/ws-a"]), "lease_required");
    assert!(fleet.at(&fleet.shared(), "main").is_some());
    let mut git = Command::new("git");
    fleet.site.surroundings(&mut git).args(["update-ref", "-d", "refs/heads/main"]);
    refused(&finish(start(git.current_dir(fleet.shared()))), "lease_required");
    fleet.site.assert_sound();
}

const EMPTY: [&str; 4] = ["commit", "--quiet", "--allow-empty", "--message=x"];
const AGENT_B: [(&str, &str); 1] = [("ONUS_AS", "@b")];

/// The main checkout, a worktree that nobody registered, and a HEAD on no branch: an agent that holds nothing commits in none
/// of them, whether it says who it is or only that it is a coding client.
#[test]
fn an_agent_without_a_lease_commits_nowhere() {
    let fleet = Fleet::new();
    let repo = fleet.site.repo();
    let task = fleet.site.add("work");
    fleet.claim(&task, "a");
    passed(&fleet.git_by(&repo, &[], &["worktree", "add", "--quiet", "-b", "aside", "../aside"]));
    let aside = fleet.site.root().join("aside");
    let before = (fleet.site.main(), fleet.at(&aside, "aside"));
    let clients: Vec<Vec<(&str, &str)>> = [
        ("ONUS_AS", "@b"),
        ("CLAUDECODE", "1"),
        ("GEMINI_CLI", "1"),
        ("CODEX_SANDBOX", "seatbelt"),
        ("CURSOR_AGENT", "1"),
    ]
    .into_iter()
    .map(|mark| vec![mark])
    .collect();
    for who in &clients {
        refused(&fleet.git_by(&repo, who, &EMPTY), "lease_required");
        refused(
            &fleet.git_by(&repo, who, &["commit", "--amend", "--allow-empty", "--message=amended"]),
            "lease_required",
        );
        refused(&fleet.git_by(&repo, who, &["branch", "mine"]), "lease_required");
        refused(&fleet.git_by(&aside, who, &EMPTY), "lease_required");
        passed(&fleet.git_by(&aside, who, &["checkout", "--quiet", "--detach"]));
        refused(&fleet.git_by(&aside, who, &EMPTY), "lease_required");
        passed(&fleet.git_by(&aside, who, &["switch", "--quiet", "aside"]));
    }
    refused(&fleet.git_by(&repo, &[("ONUS_AS", "@zed")], &EMPTY), "unknown_worker");
    let told = fleet.git_by(&repo, &AGENT_B, &EMPTY);
    assert!(told.stderr.contains("onus claim --next"), "{told:?}");
    // The main branch moves by merge only, for whoever holds a task, too.
    passed(&fleet.commit("a", "f", "1"));
    refused(&fleet.git("a", &["update-ref", "refs/heads/main", "HEAD"]), "not_permitted");
    assert_eq!((fleet.site.main(), fleet.at(&aside, "aside")), before);
    assert_eq!(fleet.at(&repo, "mine"), None);
    // Commits of the holder on no branch are its own.
    passed(&fleet.git("a", &["checkout", "--quiet", "--detach"]));
    passed(&fleet.git("a", &EMPTY));
    fleet.site.assert_sound();
}

/// Whoever the environment says it is, or nobody: the lease in a workstation is its holder's alone.
#[test]
fn inside_a_workstation_only_its_holder_commits() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    let token = fleet.claim(&task, "a");
    let (tree, person) = (fleet.tree("a"), fleet.site.person.clone());
    let before = fleet.at(&tree, "agent/ws-a");
    for who in [&[][..], &AGENT_B, &[("ONUS_AS", &*person)], &[("CLAUDECODE", "1")], &[("ONUS_AS", "@zed")]] {
        refused(&fleet.git_by(&tree, who, &EMPTY), "lease_required");
        refused(&fleet.git_by(&tree, who, &["branch", "mine"]), "lease_required");
        passed(&fleet.git_by(&tree, who, &["checkout", "--quiet", "--detach"]));
        refused(&fleet.git_by(&tree, who, &EMPTY), "lease_required");
        passed(&fleet.git_by(&tree, who, &["switch", "--quiet", "agent/ws-a"]));
    }
    assert_eq!(fleet.at(&tree, "agent/ws-a"), before);
    // The lease itself, shown by hand, is an identity.
    passed(&fleet.git_by(&tree, &[("ONUS_LEASE", &token)], &EMPTY));
    passed(&fleet.git_by(&tree, &[("ONUS_AS", "@a"), ("CLAUDECODE", "1")], &EMPTY));
    // So is the main checkout, once somebody holds a task there.
    let other = fleet.site.add("other");
    let place = format!("ws-{}", fleet.site.repo().file_name().unwrap().to_str().unwrap());
    fleet.site.ok(&["claim", &other, "--as", "@b", "--workstation", &place]);
    let repo = fleet.site.repo();
    refused(&fleet.git_by(&repo, &[], &EMPTY), "lease_required");
    refused(&fleet.git_by(&repo, &AGENT_B, &EMPTY), "not_permitted");
    passed(&fleet.git_by(&repo, &AGENT_B, &["switch", "--quiet", "--create", "topic"]));
    passed(&fleet.git_by(&repo, &AGENT_B, &EMPTY));
    let message = fleet.git_by(&repo, &[], &["log", "-1", "--format=%B"]).stdout;
    assert!(
        message.contains(&format!("Onus-Task: {other}")) && message.contains("Onus-Agent: @b"),
        "{message}"
    );
}

/// No dummy tasks: people work on branches that are no workstation's, unless the team wants tasks of everybody.
#[test]
fn a_person_works_without_a_task_unless_the_team_says_otherwise() {
    let fleet = Fleet::new();
    let (repo, person) = (fleet.site.repo(), fleet.site.person.clone());
    let named = [("ONUS_AS", &*person)];
    for who in [&[][..], &named] {
        passed(&fleet.git_by(&repo, who, &EMPTY));
        passed(&fleet.git_by(&repo, who, &["switch", "--quiet", "--force-create", "topic"]));
        passed(&fleet.git_by(&repo, who, &EMPTY));
        passed(&fleet.git_by(&repo, who, &["rebase", "--quiet", "main"]));
        passed(&fleet.git_by(&repo, who, &["switch", "--quiet", "main"]));
        passed(&fleet.git_by(&repo, who, &["merge", "--quiet", "--no-edit", "topic"]));
        passed(&fleet.git_by(&repo, who, &["branch", "-D", "topic"]));
        refused(&fleet.git_by(&repo, who, &["update-ref", "-d", "refs/heads/agent/ws-a"]), "lease_required");
    }
    std::fs::write(repo.join("onus.yaml"), "git:\n  people: task\n").unwrap();
    for who in [&[][..], &named] {
        refused(&fleet.git_by(&repo, who, &EMPTY), "lease_required");
        refused(&fleet.git_by(&repo, who, &["branch", "topic"]), "lease_required");
    }
    let task = fleet.site.add("mine");
    fleet.site.by_person(&["claim", &task]);
    passed(&fleet.git_by(&repo, &[], &EMPTY));
    let message = fleet.git_by(&repo, &[], &["log", "-1", "--format=%B"]).stdout;
    assert!(message.contains(&format!("Onus-Task: {task}")), "{message}");
    // A clone that nobody calls their own.
    std::fs::remove_file(repo.join("onus.yaml")).unwrap();
    fleet.site.by_person(&["release", &task]);
    passed(&fleet.git_by(&repo, &[], &["config", "--unset", "onus.person"]));
    refused(&fleet.git_by(&repo, &[], &EMPTY), "identity_required");
    fleet.site.by_person(&["hook", "install"]);
    passed(&fleet.git_by(&repo, &[], &EMPTY));
}

#[test]
fn init_puts_the_hooks_in_place_and_their_absence_is_told() {
    let site = Site::empty();
    let made = site.run(&["init", "--project", "T"]);
    assert!(made.stdout.contains("Git asks Onus before a branch moves"), "{made:?}");
    let states = |site: &Site| {
        let hooks = site.ok(&["hook", "status"])["hooks"].clone();
        hooks.as_array().unwrap().iter().map(|hook| text(&hook["state"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(&site), ["current", "current", "current"]);
    assert_eq!(site.ok(&["status"])["warnings"], serde_json::json!([]));
    let bare = Site::new();
    assert_eq!(states(&bare), ["missing", "missing", "missing"]);
    let said = bare.ok(&["status"])["warnings"].to_string();
    assert!(said.contains("reference-transaction") && said.contains("onus hook install"), "{said}");
    let said = bare.run(&["prime", "--as", &bare.person]).stdout;
    assert!(said.contains("WARNING: git asks nobody before a branch moves"), "{said}");
    let said = bare.run(&["doctor"]).stdout;
    assert!(said.contains("hooks: git may ask nobody") && said.contains("onus hook install"), "{said}");
    assert_eq!(bare.ok(&["init", "--no-hooks"])["hooks"], "left_out");
    assert_eq!(bare.ok(&["init"])["hooks"], "installed");
    assert!(bare.run(&["doctor"]).stdout.contains("hooks: git asks before a branch moves"));
}

#[test]
fn the_holder_commits_amends_rebases_and_pushes() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    let token = fleet.claim(&task, "a");
    passed(&fleet.commit("a", "f", "1"));
    passed(&fleet.git("a", &["commit", "--amend", "--no-edit", "--quiet"]));
    let message = fleet.git("a", &["log", "-1", "--format=%B"]).stdout;
    let trailers: Vec<&str> = message.lines().filter(|line| line.starts_with("Onus-")).collect();
    assert_eq!(
        trailers,
        [&format!("Onus-Task: {task}"), "Onus-Agent: @a", "Onus-Workstation: ws-a", "Onus-Epoch: 1"],
        "{message}"
    );
    fleet.site.git(&["commit", "--quiet", "--allow-empty", "--message=people"]);
    passed(&fleet.git("a", &["rebase", "--quiet", "main"]));
    refused(&finish(fleet.push("a", "1.9.00000000000000000000000000000000")), "fenced");
    passed(&finish(fleet.push("a", &token)));
    assert_eq!(fleet.at(&fleet.shared(), "agent/ws-a"), fleet.at(&fleet.tree("a"), "HEAD"));
    // The holder of one task pushes its own branch, nobody's, or the main one; never another one's.
    let option = format!("onus={token}");
    let others = fleet.git("a", &["push", "-o", &option, "origin", "HEAD:refs/heads/agent/ws-b"]);
    refused(&others, "lease_required");
    let on_main = ["push", "--quiet", "-o", &option, "origin", "HEAD:refs/heads/main"];
    refused(&fleet.git("a", &on_main), "not_permitted");
    passed(&fleet.git("a", &[&["-c", "core.hooksPath=/dev/null"], &on_main[..]].concat()));
    let backwards = fleet.git("a", &["push", "--force", "-o", &option, "origin", "HEAD~1:refs/heads/main"]);
    refused(&backwards, "not_permitted");
    fleet.site.assert_sound();
}

#[test]
fn only_the_paths_of_the_scope_are_changed() {
    let fleet = Fleet::new();
    fleet.site.by_person(&["add", "work", "--scope", "src/**"]);
    let token = fleet.claim("T-1", "a");
    passed(&fleet.commit("a", "src/f", "1"));
    refused(&fleet.commit("a", "docs/f", "1"), "scope_violation");
    passed(&fleet.git("a", &["reset", "--quiet"]));
    passed(&fleet.commit("a", "src/g", "1"));
    // A commit made behind the hook's back is found at the push.
    let unseen = ["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message=sly"];
    passed(&fleet.git("a", &["add", "--", "docs/f"]));
    passed(&fleet.git("a", &unseen));
    let option = format!("onus={token}");
    let sly = ["-c", "core.hooksPath=/dev/null", "push", "-o", &option, "origin", "agent/ws-a"];
    refused(&fleet.git("a", &sly), "scope_violation");
    assert_eq!(fleet.at(&fleet.shared(), "agent/ws-a"), None);
}

#[test]
fn a_quarantined_workstation_is_silent() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    let token = fleet.claim(&task, "a");
    passed(&fleet.commit("a", "f", "1"));
    fleet.site.by_person(&["workstation", "quarantine", "ws-a", "--reason", "it burns"]);
    refused(&fleet.commit("a", "f", "2"), "workstation_quarantined");
    refused(&finish(fleet.push("a", &token)), "workstation_quarantined");
    // Its task is recoverable at once, by the ordinary rules.
    let taken = ["takeover", &task, "--as", "@b", "--workstation", "ws-b", "--reason", "ws-a burns"];
    fleet.site.ok(&taken);
    fleet.site.by_person(&["workstation", "restore", "ws-a"]);
    refused(&fleet.commit("a", "f", "3"), "fenced");
    passed(&fleet.commit("b", "f", "3"));
    fleet.site.assert_sound();
}

#[test]
fn nothing_of_a_fenced_holder_is_lost() {
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    fleet.claim(&task, "a");
    passed(&fleet.commit("a", "done", "committed"));
    std::fs::write(fleet.tree("a").join("half"), "not committed").unwrap();
    let force = ["takeover", &task, "--workstation", "ws-b", "--force", "--reason", "she is ill"];
    fleet.site.by_person(&force);
    let kept = format!("refs/onus/salvage/{task}/1");
    for (file, content) in [("done", "committed"), ("half", "not committed")] {
        let shown = fleet.git("b", &["show", &format!("{kept}:{file}")]);
        assert_eq!(shown.stdout, content, "{shown:?}");
    }
    assert_eq!(std::fs::read_to_string(fleet.tree("a").join("half")).unwrap(), "not committed");
    let entries = fleet.site.ledger();
    assert!(entries.iter().any(|entry| entry["verb"] == "salvaged" && entry["task"] == task.as_str()));
    let mut renew = fleet.site.command(&["renew", &task, "--as", "@a", "--json"]);
    let renewed = finish(start(renew.current_dir(fleet.tree("a"))));
    assert!(renewed.stderr.contains(&kept), "{renewed:?}");
    fleet.site.assert_sound();
}

/// A push that was checked before the takeover and lands after it. strace holds the receiving git for a moment between
/// the check and the move; the takeover must wait for it, and what it saw then is final.
#[test]
fn a_takeover_waits_for_a_push_that_is_on_its_way() {
    if Command::new("strace").arg("--version").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let fleet = Fleet::new();
    let task = fleet.site.add("work");
    let token = fleet.claim(&task, "a");
    passed(&fleet.commit("a", "f", "1"));
    let mut slow = Command::new("strace");
    let option = format!("onus={token}");
    fleet.site.surroundings(&mut slow).current_dir(fleet.tree("a")).env("ONUS_AS", "@a");
    // The last rename of a push moves the branch; every rename waits as long.
    slow.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=rename",
        "-e",
        "inject=rename:delay_enter=1500000",
    ]);
    slow.args(["git", "push", "--quiet", "-o", &option, "origin", "agent/ws-a"]);
    let push = start(&mut slow);
    let lock = fleet.shared().join("refs/heads/agent/ws-a.lock");
    let began = Instant::now();
    while !lock.exists() {
        assert!(began.elapsed() < HANG, "the push never came to its lock");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Long enough for the hook's check under the lock, short against the delay of the move.
    std::thread::sleep(Duration::from_millis(500));
    fleet.site.by_person(&["takeover", &task, "--workstation", "ws-b", "--force", "--reason", "race"]);
    let seen = fleet.at(&fleet.shared(), "agent/ws-a");
    let pushed = finish(push);
    assert_eq!(fleet.at(&fleet.shared(), "agent/ws-a"), seen, "it landed after the takeover: {pushed:?}");
}

/// Takeovers against pushes at every moment of their way: what the shared branch is when the takeover returns is what it
/// stays. Each fleet has a repository and a store of its own: they race side by side. `ONUS_SOAK` makes it two hundred races.
#[test]
fn a_stale_push_never_lands_after_a_takeover() {
    // The barrier is git's: other stores than the embedded one need no more than a look.
    let rounds = match (is_soak(), std::env::var_os("ONUS_TEST_STORE").is_some()) {
        (true, false) => 50,
        (_, false) | (true, true) => 10,
        (false, true) => 6,
    };
    let ends: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let fleets: Vec<_> =
            (1..=4).map(|seed| scope.spawn(move || pushes_against_takeovers(seed, rounds))).collect();
        fleets.into_iter().map(|fleet| fleet.join().unwrap()).collect()
    });
    let (landed, stopped) = ends.iter().fold((0, 0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
    eprintln!("{landed} pushes landed before the takeover, {stopped} were stopped");
    assert!(landed + stopped >= 4 * rounds);
    assert!(landed > 0 && stopped > 0, "the race was never close: {landed} landed, {stopped} stopped");
}

/// How many pushes landed, and how many were stopped: as many rounds as asked for, and more of them, within reason, where one
/// side has won all of them so far.
fn pushes_against_takeovers(seed: u64, rounds: usize) -> (usize, usize) {
    let fleet = Fleet::new();
    let mut rng = Rng::seeded(0x0005_11e5 * seed);
    let (mut landed, mut stopped) = (0, 0);
    // How long a push takes is the machine's affair: one that nobody disturbs tells, and from then on the takeovers follow
    // the moment at which pushes land.
    let mut moment = undisturbed_push(&fleet);
    for round in 1..=4 * rounds {
        if round > rounds && landed > 0 && stopped > 0 {
            break;
        }
        let (task, push) = work_pushed(&fleet, &format!("{round}"));
        let work = fleet.at(&fleet.tree("a"), "HEAD").unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(2 * moment)));
        taken_over(&fleet, &task);
        let seen = fleet.at(&fleet.shared(), "agent/ws-a");
        let pushed = finish(push);
        let after = fleet.at(&fleet.shared(), "agent/ws-a");
        assert_eq!(after, seen, "round {round}: it landed after the takeover: {pushed:?}");
        match after.as_ref() == Some(&work) {
            true => (landed, moment) = (landed + 1, moment - moment / 4),
            false => (stopped, moment) = (stopped + 1, moment + moment / 3),
        }
        // Nothing of it is lost either way.
        let kept = fleet.at(&fleet.tree("b"), &format!("refs/onus/salvage/{task}/1"));
        assert!(kept.is_some(), "round {round}: nothing was salvaged");
        fleet.site.by_person(&["drop", &task, "--reason", "next round"]);
    }
    fleet.site.assert_sound();
    (landed, stopped)
}

/// A new task of `@a`, and a commit for it on its way to the shared repository.
fn work_pushed(fleet: &Fleet, content: &str) -> (String, Child) {
    let task = fleet.site.add(&format!("round {content}"));
    let token = fleet.claim(&task, "a");
    passed(&fleet.commit("a", "f", content));
    let push = fleet.push("a", &token);
    (task, push)
}

fn taken_over(fleet: &Fleet, task: &str) {
    fleet.site.by_person(&["takeover", task, "--workstation", "ws-b", "--force", "--reason", "race"]);
}

/// How long a push takes here and now, in microseconds.
fn undisturbed_push(fleet: &Fleet) -> u64 {
    let (task, push) = work_pushed(fleet, "undisturbed");
    let pushed = finish(push);
    passed(&pushed);
    taken_over(fleet, &task);
    fleet.site.by_person(&["drop", &task, "--reason", "next round"]);
    u64::try_from(pushed.took.as_micros()).unwrap()
}
