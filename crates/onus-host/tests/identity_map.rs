//! Which map is in force, in real repositories.

use super::support::Area;
use onus_core::code::Code;
use onus_core::hash::Digest;
use onus_core::identity_map::{FILE, InForce, Policy, Sends, since};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::{Settings, Uncommitted};
use onus_host::env::Env;
use onus_host::identity_map::{history, load, main_branch, parse, schema};
use onus_host::repository::{Place, find_with};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A map that sends everything to this agent.
fn map(agent: &str) -> String {
    format!("routing:\n  - {{task_type: '*', agent_name: '@{agent}', workstation: ws-x-01}}\n")
}

fn place(area: &Area, dir: &str) -> Place {
    find_with(&area.at(dir), &Env::default()).unwrap()
}

fn write(area: &Area, dir: &str, content: impl AsRef<[u8]>) {
    fs::write(area.at(dir).join(FILE), content).unwrap();
}

/// Commits the map in `dir`, on the branch it is on, and gives the commit.
fn commit(area: &Area, dir: &str, content: impl AsRef<[u8]>) -> String {
    write(area, dir, content);
    area.git(dir, &["add", FILE]);
    area.git(dir, &["commit", "-q", "-m", "the map"]);
    area.git(dir, &["rev-parse", "HEAD"])
}

#[track_caller]
fn in_force_with(place: &Place, settings: &Settings) -> InForce {
    match load(place, settings).unwrap() {
        Policy::InForce(in_force) => *in_force,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn in_force(place: &Place) -> InForce {
    in_force_with(place, &Settings::default())
}

/// To whom the map in force sends everything.
#[track_caller]
fn sends_to(place: &Place) -> String {
    in_force(place).map.routing[0].agent_name.as_ref().unwrap().to_string()
}

#[track_caller]
fn invalid(place: &Place, settings: &Settings) -> Vec<Finding> {
    match load(place, settings).unwrap() {
        Policy::Invalid(broken) => broken.findings,
        other => panic!("{other:?}"),
    }
}

fn is_absent(policy: &Result<Policy, Refusal>) -> bool {
    matches!(policy, Ok(Policy::Absent))
}

fn settings(main: Option<&str>, uncommitted: Uncommitted) -> Settings {
    let mut settings = Settings::default();
    settings.git.main = main.map(str::to_owned);
    settings.routing.uncommitted = uncommitted;
    settings
}

#[test]
fn without_a_file_there_is_no_map() {
    let area = Area::with_main(&[]);
    area.mkdir("plain");
    for dir in ["main", "plain"] {
        assert!(is_absent(&load(&place(&area, dir), &Settings::default())));
    }
    area.git(".", &["init", "-q", "-b", "main", "empty"]);
    assert!(is_absent(&load(&place(&area, "empty"), &Settings::default())));
}

#[test]
fn a_map_that_was_never_committed_is_in_force_as_it_is() {
    let area = Area::with_main(&[]);
    area.mkdir("plain/.onus");
    area.git(".", &["init", "-q", "-b", "main", "empty"]);
    for dir in ["main", "empty", "plain"] {
        write(&area, dir, map("a"));
        let found = in_force(&place(&area, dir));
        assert_eq!((found.commit, found.edited), (None, false), "{dir}");
        assert_eq!(found.hash, Digest::of(map("a").as_bytes()).to_string());
    }
    let strict = settings(None, Uncommitted::Refuse);
    assert_eq!(invalid(&place(&area, "main"), &strict)[0].code, Code::MapInvalid);
    in_force_with(&place(&area, "plain"), &strict);
}

#[test]
fn the_committed_map_is_in_force_and_an_edit_is_told() {
    let area = Area::with_main(&[]);
    let id = commit(&area, "main", map("a"));
    let main = place(&area, "main");
    let found = in_force(&main);
    assert_eq!((found.commit, found.edited), (Some(id.clone()), false));
    assert_eq!(found.hash, Digest::of(map("a").as_bytes()).to_string());

    write(&area, "main", map("b"));
    let found = in_force(&main);
    assert_eq!((found.commit.as_deref(), found.edited), (Some(id.as_str()), true));
    assert_eq!(sends_to(&main), "@a");

    let strict = settings(None, Uncommitted::Refuse);
    let findings = invalid(&main, &strict);
    assert_eq!(findings[0].code, Code::MapInvalid);
    assert!(findings[0].hint.as_ref().unwrap().contains("git checkout main -- executor-identity-map.yaml"));

    fs::remove_file(area.at("main").join(FILE)).unwrap();
    assert!(in_force(&main).edited, "deleted in the tree");
    area.git("main", &["checkout", "-q", "--", FILE]);
    assert!(!in_force(&main).edited);
    in_force_with(&main, &strict);
}

#[test]
fn a_map_that_a_commit_removed_is_out_of_force() {
    let area = Area::with_main(&[]);
    commit(&area, "main", map("a"));
    assert_eq!(sends_to(&place(&area, "main")), "@a");
    area.git("main", &["rm", "-q", FILE]);
    area.git("main", &["commit", "-q", "-m", "no map"]);
    assert!(is_absent(&load(&place(&area, "main"), &Settings::default())));
}

#[test]
fn line_endings_of_a_checkout_are_no_edit() {
    let area = Area::with_main(&[]);
    commit(&area, "main", map("a"));
    area.git("main", &["config", "core.autocrlf", "true"]);
    fs::remove_file(area.at("main").join(FILE)).unwrap();
    area.git("main", &["checkout", "-q", "--", FILE]);
    assert!(fs::read(area.at("main").join(FILE)).unwrap().contains(&b'\r'), "other bytes");
    assert!(!in_force(&place(&area, "main")).edited);
}

#[test]
fn a_worktree_reads_the_map_of_main_and_not_its_own() {
    let area = Area::with_main(&[]);
    let id = commit(&area, "main", map("a"));
    area.git("main", &["worktree", "add", "-q", "-b", "agent", "../tree"]);
    commit(&area, "tree", map("b"));
    let tree = place(&area, "tree");
    assert_eq!(in_force(&tree).commit, Some(id));
    assert_eq!(sends_to(&tree), "@a");
    assert!(!in_force(&tree).edited);
    write(&area, "main", map("c"));
    assert!(in_force(&tree).edited, "the main checkout's edit is told everywhere");
}

#[test]
fn a_map_that_only_a_worktree_has_is_not_in_force() {
    let area = Area::with_main(&[]);
    area.git("main", &["worktree", "add", "-q", "-b", "agent", "../tree"]);
    write(&area, "tree", map("b"));
    assert!(is_absent(&load(&place(&area, "tree"), &Settings::default())));
    commit(&area, "tree", map("b"));
    assert!(is_absent(&load(&place(&area, "tree"), &Settings::default())));
}

#[test]
fn a_bare_repository_and_its_worktrees_have_no_edits() {
    let area = Area::with_main(&[]);
    let id = commit(&area, "main", map("a"));
    area.git(".", &["clone", "-q", "--bare", "main", "shared.git"]);
    area.git("shared.git", &["worktree", "add", "-q", "-b", "agent", "../tree"]);
    // The same, laid out as `.git` in a directory without a checkout.
    area.mkdir("layout");
    area.git(".", &["clone", "-q", "--bare", "main", "layout/.git"]);
    area.git("layout/.git", &["worktree", "add", "-q", "-b", "agent", "../tree"]);
    for dir in ["shared.git", "tree", "layout", "layout/tree"] {
        let found = in_force(&place(&area, dir));
        assert_eq!((found.commit.as_deref(), found.edited), (Some(id.as_str()), false), "{dir}");
    }
}

/// `branches` exist, the checkout is on the last one; `expected` is the reference.
#[track_caller]
fn check_main(branches: &[&str], set: Option<&str>, expected: Option<&str>) {
    let area = Area::new();
    area.git(".", &["init", "-q", "-b", branches[0], "repo"]);
    area.git("repo", &["commit", "-q", "--allow-empty", "-m", "first"]);
    for branch in &branches[1..] {
        area.git("repo", &["checkout", "-q", "-b", branch]);
    }
    let repo = place(&area, "repo").repo.unwrap();
    let settings = settings(set, Uncommitted::Report);
    let found = main_branch(&repo, &settings);
    assert_eq!(found.clone().ok().flatten().as_deref(), expected, "{found:?}");
    area.git("repo", &["pack-refs", "--all"]);
    assert_eq!(main_branch(&repo, &settings), found, "packed");
}

#[test]
fn main_is_what_is_set_or_usual_or_checked_out() {
    check_main(&["main", "master", "topic"], None, Some("refs/heads/main"));
    check_main(&["master", "topic"], None, Some("refs/heads/master"));
    check_main(&["trunk"], None, Some("refs/heads/trunk"));
    check_main(&["xmain", "feature/main", "trunk"], None, Some("refs/heads/trunk"));
    check_main(&["main", "release/2"], Some("release/2"), Some("refs/heads/release/2"));
}

#[test]
fn a_main_branch_that_does_not_exist_is_refused_where_there_are_others() {
    let area = Area::with_main(&[]);
    commit(&area, "main", map("a"));
    for odd in ["trunk", "../../HEAD", "-x", "a..b", "", "x.lock", "a//b", "HEAD^"] {
        let refusal = load(&place(&area, "main"), &settings(Some(odd), Uncommitted::Report)).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidInput, "{odd}");
        assert!(refusal.hint.is_some());
    }
    area.git(".", &["init", "-q", "-b", "trunk", "new"]);
    let new = place(&area, "new");
    let unborn = settings(Some("trunk"), Uncommitted::Report);
    assert_eq!(main_branch(new.repo.as_ref().unwrap(), &unborn), Ok(None));
}

#[test]
fn a_checkout_of_one_commit_without_branches_has_its_map() {
    for format in ["--ref-format=files", "--ref-format=reftable"] {
        let area = Area::with_main(&[format]);
        let id = commit(&area, "main", map("a"));
        area.git("main", &["checkout", "-q", "--detach"]);
        area.git("main", &["branch", "-q", "-D", "main"]);
        write(&area, "main", map("b"));
        let main = place(&area, "main");
        let found = in_force(&main);
        assert_eq!((found.commit, found.edited), (Some(id), true));
        assert_eq!(main_branch(main.repo.as_ref().unwrap(), &Settings::default()), Ok(None));
        assert_eq!(history(&main, &Settings::default()).unwrap().len(), 1);
    }
}

#[test]
fn references_in_the_other_format_are_read_by_git() {
    let area = Area::with_main(&["--ref-format=reftable"]);
    let id = commit(&area, "main", map("a"));
    let main = place(&area, "main");
    assert_eq!(in_force(&main).commit, Some(id));
    assert_eq!(
        main_branch(main.repo.as_ref().unwrap(), &Settings::default()),
        Ok(Some("refs/heads/main".into()))
    );
    area.git("main", &["branch", "-q", "-m", "trunk"]);
    assert_eq!(
        main_branch(main.repo.as_ref().unwrap(), &Settings::default()),
        Ok(Some("refs/heads/trunk".into()))
    );
}

#[test]
fn a_branch_that_stands_for_another_is_followed() {
    let area = Area::with_main(&[]);
    let id = commit(&area, "main", map("a"));
    area.git("main", &["branch", "-q", "-m", "trunk"]);
    area.git("main", &["symbolic-ref", "refs/heads/main", "refs/heads/trunk"]);
    assert_eq!(in_force(&place(&area, "main")).commit, Some(id));
}

/// Once a commit's map is known, git is not asked again: it could not answer without its objects.
#[test]
fn what_is_remembered_needs_no_git() {
    let area = Area::with_main(&[]);
    let before = place(&area, "main");
    assert!(is_absent(&load(&before, &Settings::default())));
    let objects = area.at("main/.git/objects");
    let hide = || fs::rename(&objects, area.at("objects")).unwrap();
    let show = || fs::rename(area.at("objects"), &objects).unwrap();
    hide();
    assert!(is_absent(&load(&before, &Settings::default())), "that there is none is remembered, too");
    show();

    commit(&area, "main", map("a"));
    hide();
    assert_eq!(
        load(&before, &Settings::default()).unwrap_err().code,
        Code::StoreUnavailable,
        "not yet known"
    );
    show();
    assert_eq!(sends_to(&before), "@a");
    hide();
    assert_eq!(sends_to(&before), "@a");
}

#[test]
fn the_memory_is_private_small_and_never_believed_when_damaged() {
    let area = Area::with_main(&[]);
    let dir = area.at("main/.git/onus/map");
    for n in 0..20 {
        let id = commit(&area, "main", map(&format!("a{n}")));
        assert_eq!(sends_to(&place(&area, "main")), format!("@a{n}"));
        assert!(dir.join(&id).exists());
    }
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 16);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in files {
        assert_eq!(mode(&file), 0o600);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("agent_name: '@a", "agent_name: '@x")).unwrap();
    }
    assert_eq!(sends_to(&place(&area, "main")), "@a19", "git is asked again");
    fs::remove_dir_all(&dir).unwrap();
    fs::write(&dir, "in the way").unwrap();
    assert_eq!(sends_to(&place(&area, "main")), "@a19", "and where nothing can be kept");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let area = Area::with_main(&[]);
    let check = |content: &str, expected: &str| {
        commit(&area, "main", content);
        let findings = invalid(&place(&area, "main"), &Settings::default());
        assert_eq!(findings[0].code, Code::MapInvalid);
        assert_eq!(findings[0].detail, format!("executor-identity-map.yaml:{expected}"));
        assert!(findings[0].hint.is_some());
    };
    check("routing:\n  - workstaton: x\n", "2:5: there is no entry `workstaton`");
    check("routing:\n  - agent_name: '@a'\n", "2:5: `task_type` is missing here");
    check("routing: []\nrouting: []\n", "2:1: `routing` is set twice");
    check("roles: {A: {lanes: many}}\n", "1:20: not a whole number");
    check("high_risk: {path: [a]}\n", "1:13: there is no entry `path`");
    check("routing:\n- {task_type: A b}\n", "2:15: `A b` is not a task type (^[a-z][a-z0-9_-]{0,63}$)");
    check("routing: [{task_type: a\n", "1:11: unclosed bracket '{'");
    check(
        &format!("{}roles: {{A: {{lanes: 0}}}}\n", map("a")),
        " roles.A: lanes is 0; it lies between 1 and 1000",
    );
}

#[test]
fn what_is_no_small_file_is_no_map() {
    let area = Area::with_main(&[]);
    commit(&area, "main", vec![b'#'; 256 * 1024 + 1]);
    let findings = invalid(&place(&area, "main"), &Settings::default());
    assert!(findings[0].detail.ends_with("is larger than 262144 bytes"), "{}", findings[0].detail);
    fs::remove_file(area.at("main").join(FILE)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", area.at("main").join(FILE)).unwrap();
    area.git("main", &["add", FILE]);
    area.git("main", &["commit", "-q", "-m", "link"]);
    let findings = invalid(&place(&area, "main"), &Settings::default());
    assert!(findings[0].detail.ends_with("is not a regular file"), "{}", findings[0].detail);
}

#[test]
fn history_tells_since_when_and_by_which_commit() {
    let area = Area::with_main(&[]);
    let main = place(&area, "main");
    assert_eq!(history(&main, &Settings::default()), Ok(Vec::new()));
    let first = commit(&area, "main", map("a"));
    area.git("main", &["commit", "-q", "--allow-empty", "-m", "unrelated"]);
    area.git("main", &["checkout", "-q", "-b", "topic"]);
    commit(&area, "main", map("b"));
    area.git("main", &["checkout", "-q", "main"]);
    area.git("main", &["merge", "-q", "--no-ff", "-m", "send it to @b", "topic"]);
    let merge = area.git("main", &["rev-parse", "HEAD"]);
    let broken = commit(&area, "main", "routing: 5\n");
    area.git("main", &["rm", "-q", FILE]);
    area.git("main", &["commit", "-q", "-m", "no map"]);
    let removed = area.git("main", &["rev-parse", "HEAD"]);

    let versions = history(&main, &Settings::default()).unwrap();
    let commits: Vec<&str> = versions.iter().map(|version| version.commit.as_str()).collect();
    assert_eq!(commits, [&removed, &broken, &merge, &first]);
    assert_eq!((versions[2].author.as_str(), versions[2].subject.as_str()), ("Test", "send it to @b"));
    let seconds: i64 = area.git("main", &["show", "-s", "--format=%ct", &first]).parse().unwrap();
    assert_eq!(versions[3].at.0, seconds * 1_000);

    let changes = since(&versions, None);
    let told: Vec<&Sends> = changes.iter().map(|change| &change.sends).collect();
    let to = |sends: &Sends| matches!(sends, Sends::To(to) if to[0].agent_name.as_str() == "@b");
    assert!(
        matches!(told.as_slice(), [Sends::NoMap, Sends::Invalid(_), b, Sends::To(_)] if to(b)),
        "{told:?}"
    );
}

#[test]
fn outside_git_there_is_no_history() {
    let area = Area::new();
    write(&area, ".", map("a"));
    assert_eq!(history(&place(&area, "."), &Settings::default()), Ok(Vec::new()));
}

/// The first block of the page is the smallest map, the second has everything.
#[test]
fn the_documented_maps_are_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/identity-map.md");
    let text = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> =
        text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    let maps: Vec<_> = blocks.iter().map(|block| parse(block.as_bytes(), FILE).unwrap()).collect();
    let full = serde_json::to_value(&maps[1]).unwrap();
    for (key, value) in full.as_object().unwrap() {
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        assert!(!empty, "the example does not show `{key}`");
    }
}

/// `UPDATE_CONTRACT=1 cargo test -p onus-host identity_map` writes the file anew.
#[test]
fn the_published_schema_is_the_present_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract/identity-map.schema.json");
    let present = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_CONTRACT").is_some() {
        fs::write(&path, &present).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(published, present, "run with UPDATE_CONTRACT=1 and review the difference");
}
