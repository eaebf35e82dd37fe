//! Slices of one parent in a fleet: begun side by side, merged in their order, each worked on once (mission D5, D15).

use crate::fleet::{by_person, merged};
use crate::support::wrapper::until;
use crate::support::{Site, finish, start, text};
use serde_json::json;

#[test]
fn a_slice_that_is_done_early_waits_for_its_turn_and_is_not_done_again() {
    let site = Site::guarded();
    let go = site.root().join("go");
    let line = format!(
        "echo \"$ONUS_TASK\" >$ONUS_TASK.txt; [ \"$ONUS_TASK\" = T-2 ] && while ! [ -e {} ]; do sleep 0.1; done; \
         git add . && git commit --quiet --message work",
        go.display()
    );
    let agents = json!([{ "worker": "@sh-*", "preset": "shell", "command": [line], "count": 2 }]);
    let settings = json!({ "fleet": { "interval": "200ms" }, "agents": agents });
    std::fs::write(site.repo().join("onus.yaml"), settings.to_string()).unwrap();
    let parent = site.add("whole");
    let slice = |order: &str| {
        let words = ["add", "slice", "--parent", &parent, "--merge-order", order];
        text(&site.by_person(&words)["task"]["id"]).to_owned()
    };
    let (one, two) = (slice("1"), slice("2"));
    let supervisor = start(&mut by_person(&site, &["fleet", "up", "--until-idle"]));
    until("the second one waits", || site.task(&two)["blocked_on"] == "external:what merges first");
    assert_eq!(site.task(&one)["state"], "in_progress");
    std::fs::write(&go, "").unwrap();
    until("all of it is complete", || {
        [&one, &two, &parent].iter().all(|task| site.task(task)["state"] == "complete")
    });
    let ended = finish(supervisor);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    for task in [&one, &two] {
        assert_eq!(merged(&site, task), *task);
        let sessions = site.ok(&["session", "list", "--task", task])["sessions"].clone();
        assert_eq!(site.ok(&["show", task])["assignments"].as_array().unwrap().len(), 1, "{sessions}");
    }
    site.assert_sound();
}
