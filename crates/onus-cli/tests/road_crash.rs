//! `complete` dies at every step and is simply repeated: nothing is lost, nothing lands twice, nobody is stuck (mission D11).
//!
//! Between any two steps of it there is a run of git. A `git` of our own counts them and kills `onus` before, or after, the
//! one whose turn it is.

use crate::support::team::{Team, ask, commit, files};
use crate::support::{Answer, Bench, ONUS, finish, start, text};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// More runs of git than a `complete` has.
const MOST: u32 = 200;

struct Killer {
    path: String,
    count: PathBuf,
    turn: PathBuf,
}

/// Puts a `git` of our own before the real one, which `{real}` stands for in its text; gives the path to look for programs in.
/// Where its parent's own words are others it is the real one: hooks of that git run in other processes.
pub(crate) fn own_git(team: &Team, parent: &str, text: &str) -> String {
    let bin = team.site.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let real = finish(start(Command::new("sh").args(["-c", "command -v git"]))).stdout.trim().to_owned();
    let others = format!(
        "if ! tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q '{parent}'; then exec {{real}} \"$@\"; fi"
    );
    let script = format!("#!/bin/sh\n{others}\n{text}").replace("{real}", &real);
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

fn completes(team: &Team, bench: &Bench, task: &str, path: &str) -> Answer {
    let mut onus = Command::new(ONUS);
    team.site.surroundings(&mut onus).current_dir(&bench.dir).env("PATH", path);
    onus.args(["complete", task, "--resolution", "done", "--as", &bench.agent.handle, "--json"]);
    finish(start(&mut onus))
}

impl Killer {
    /// Two runs at once may both be counted before either looks: whoever comes at the turn or behind it kills.
    fn new(team: &Team) -> Killer {
        let (count, turn) = (team.site.root().join("count"), team.site.root().join("turn"));
        let text = format!(
            "read -r turn when < {turn}\n\
             echo x >> {count}\n\
             n=$(wc -l < {count})\n\
             if [ $n -lt $turn ]; then exec {{real}} \"$@\"; fi\n\
             if [ $when = after ]; then {{real}} \"$@\"; fi\n\
             kill -9 $PPID\n",
            turn = turn.display(),
            count = count.display(),
        );
        Killer { path: own_git(team, " complete ", &text), count, turn }
    }

    /// Completes, and dies at this run of git; false where there are not so many.
    fn kills(&self, team: &Team, bench: &Bench, task: &str, turn: u32, when: &str) -> bool {
        std::fs::write(&self.turn, format!("{turn} {when}\n")).unwrap();
        std::fs::write(&self.count, "").unwrap();
        let ended = completes(team, bench, task, &self.path);
        match ended.exit {
            None => true,
            Some(0) => false,
            Some(_) => panic!("{turn} {when}: {ended:#?}"),
        }
    }
}

#[test]
fn complete_dies_at_every_step_and_is_repeated() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let (one, two) = (site.bench("one"), team.bench_there("two"));
    let killer = Killer::new(&team);
    let is_soak = std::env::var_os("ONUS_SOAK").is_some();
    let (mut expected, mut turn) = (Vec::new(), 1);
    loop {
        assert!(turn < MOST);
        // Before every one of them; after every one only in the long run, else after every other one.
        let when: &[&str] = match (is_soak, turn % 2) {
            (true, _) => &["before", "after"],
            (false, 1) => &["before"],
            (false, _) => &["after"],
        };
        let mut is_over = false;
        for when in when {
            let name = format!("f{turn}-{when}");
            let task = ask(site, &[&name, "--check", &format!("test -f {name}")]);
            team.ok(&one, &["claim", &task]);
            // Somebody else lands meanwhile, so that there is something to rebase on.
            if turn % 2 == 1 {
                let other = ask(site, &[&format!("other {turn}")]);
                team.ok(&two, &["claim", &other]);
                commit(site, &two, &format!("o{turn}-{when}"), "1\n");
                team.ok(&two, &["complete", &other, "--resolution", "done"]);
                expected.push(format!("o{turn}-{when}"));
            }
            commit(site, &one, &name, "1\n");
            expected.push(name);
            is_over |= !killer.kills(&team, &one, &task, turn, when);
            let done = team.ok(&one, &["complete", &task, "--resolution", "done"]);
            assert_eq!(text(&done["task"]["state"]), "complete", "{turn} {when}: {done:#}");
            assert_eq!(done["landed"]["commits"].as_array().unwrap().len(), 1, "{turn} {when}: {done:#}");
        }
        if is_over {
            break;
        }
        turn += 1;
    }
    eprintln!("complete: killed at {} runs of git", turn - 1);
    assert!(turn > 7, "{turn}");
    expected.sort();
    assert_eq!(files(site, &team.origin, "main"), expected);
    // Each landed once: a commit for each file, and the one that was there first.
    let count = site.git_in(&team.origin, &["rev-list", "--count", "main"]);
    assert_eq!(count, (expected.len() + 1).to_string());
    team.assert_in_order();
}

/// A fetch or a push that is ended by a signal tells nothing of the shared repository: it is asked again, whether the push had
/// arrived or not.
#[test]
fn a_git_that_dies_without_a_word_is_asked_again() {
    let team = Team::new();
    let site = &team.site;
    site.by_person(&["init", "--remote", "origin"]);
    let one = site.bench("one");
    let died = site.root().join("died");
    for (verb, first) in [("fetch", ""), ("push", ""), ("push", "{real} \"$@\"")] {
        let text = format!(
            "case \" $* \" in *' {verb} '*) [ -e {died} ] || {{ touch {died}; {first}\nkill -PIPE $$; }};; esac\n\
             exec {{real}} \"$@\"\n",
            died = died.display(),
        );
        let path = own_git(&team, " complete ", &text);
        let task = ask(site, &["work"]);
        team.ok(&one, &["claim", &task]);
        let made = commit(site, &one, &task, "1\n");
        let done = completes(&team, &one, &task, &path);
        assert_eq!(done.exit, Some(0), "{verb}: {done:#?}");
        assert_eq!(done.json()["landed"]["commits"], serde_json::json!([made]), "{verb}");
        std::fs::remove_file(&died).unwrap();
    }
    team.assert_in_order();
}
