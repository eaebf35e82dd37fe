
#[test]
fn a_place_that_was_made_for_the_task_is_made_again() {
    let site = Site::new();
    site.by_person(&["worker", "add", "@one", "--kind", "agent"]);
    let made = site.by_person(&["workstation", "add", "ws-once", "--kind", "worktree", "--lifecycle", "single-task"]);
    let dir = std::path::PathBuf::from(text(&made["workstation"]["path"]));
    let task = site.add("build it");
    let base = site.main();
    let lease = site.ok(&["claim", &task, "--as", "@one", "--workstation", "ws-once"]);
    let lease = text(&lease["lease"]["token"]).to_owned();
    site.ok(&["complete", &task, "--as", "@one", "--lease", &lease, "--resolution", "done"]);
    assert_eq!(site.ok(&["workstation", "show", "ws-once"])["workstation"]["state"], "retired");
    let again = site.by_person(&["rerun", &task]);
    let held = &again["assignment"];
    assert_eq!([text(&held["workstation"]), text(&held["base"])], ["ws-once", &base]);
    assert!(dir.is_dir());
    site.assert_sound();
}
