//! `onus fleet`: agents that Onus starts, watches and ends (mission D15). Real processes, real worktrees.

use crate::support::wrapper::{signal, until};
use crate::support::{Site, finish, start, text};
use std::process::Child;

/// An agent of the shell that commits a file of its task's name, and fails, crashes or hangs where the title says so.
const AGENT: &str = r#"echo \"$ONUS_TASK begins\"
case $(onus show \"$ONUS_TASK\" --json | tr -d '\\n') in
  *'\"title\":\"crash'*) echo crashing; exit 3 ;;
esac
echo \"$ONUS_TASK\" > \"$ONUS_TASK.txt\"
git add . && git commit --quiet --message \"$ONUS_TASK\"
echo done"#;

fn fleet(count: usize) -> Site {
    let site = Site::guarded();
    let script = site.root().join("agent.sh");
    let body = AGENT.replace("\\\"", "\"").replace("onus show", &format!("{} show", crate::support::ONUS));
    std::fs::write(&script, body).unwrap();
    std::fs::write(site.repo().join("onus.yaml"), "fleet: { interval: 200ms, attempts: 2 }\n").unwrap();
    let (count, line) = (count.to_string(), format!("sh {}", script.display()));
    let words =
        ["fleet", "init", "--as", &site.person, "--preset", "shell", "--count", &count, "--worker", "@sh"];
    let made = finish(start(site.command(&words).args(["--json", "--", &line])));
    assert_eq!(made.exit, Some(0), "{made:?}");
    assert_eq!(made.json()["agents"].as_array().unwrap().len().to_string(), count);
    site
}

fn up(site: &Site) -> Child {
    start(&mut site.command(&["fleet", "up", "--as", &site.person]))
}

fn down(site: &Site, supervisor: Child) {
    site.by_person(&["fleet", "down"]);
    assert_eq!(finish(supervisor).exit, Some(0));
}

fn states(site: &Site) -> Vec<String> {
    site.tasks().iter().map(|task| text(&task["state"]).to_owned()).collect()
}

#[test]
fn five_tasks_are_merged_and_complete_and_one_that_crashes_waits_for_a_person() {
    let site = fleet(2);
    for number in 0..5 {
        site.add(&format!("work {number}"));
    }
    let bad = site.add("crash now");
    let supervisor = up(&site);
    until("all are complete or wait", || {
        states(&site).iter().all(|state| matches!(state.as_str(), "complete" | "blocked"))
    });
    let agents = site.ok(&["fleet", "status"])["agents"].clone();
    assert_eq!(agents.as_array().unwrap().len(), 2, "{agents}");
    let second = finish(start(&mut site.command(&["fleet", "up", "--as", &site.person, "--json"])));
    assert_eq!(second.exit, Some(4), "one supervisor: {second:?}");
    down(&site, supervisor);
    let waits = site.task(&bad);
    assert_eq!(waits["state"], "blocked", "{waits}");
    assert!(text(&waits["blocked_on"]).starts_with("person:"), "{waits}");
    for number in 1..=5 {
        assert!(finish(start(&mut site.command(&["logs", &format!("T-{number}")]))).stdout.contains("done"));
        assert_eq!(
            site.git_in(&site.repo(), &["show", &format!("main:T-{number}.txt")]),
            format!("T-{number}")
        );
    }
    site.assert_sound();
}

#[test]
fn a_killed_supervisor_takes_its_agents_along_and_the_next_one_goes_on() {
    let site = fleet(2);
    for number in 0..4 {
        site.add(&format!("work {number}"));
    }
    for _ in 0..2 {
        let supervisor = up(&site);
        until("somebody works or all is done", || {
            let states = states(&site);
            states.iter().any(|state| state == "in_progress")
                || states.iter().all(|state| state == "complete")
        });
        signal(&supervisor, "-KILL");
        finish(supervisor);
    }
    let supervisor = up(&site);
    until("all are complete", || states(&site).iter().all(|state| state == "complete"));
    down(&site, supervisor);
    site.assert_sound();
}

#[test]
fn a_task_that_somebody_assigned_is_picked_up() {
    let site = fleet(1);
    let task = site.add("work");
    site.by_person(&["claim", &task, "--for", "@sh-1", "--workstation", "sh-1"]);
    let supervisor = up(&site);
    until("it is complete", || site.task(&task)["state"] == "complete");
    assert_eq!(site.task(&task)["closed_by"], "@sh-1");
    down(&site, supervisor);
}
