//! Finding the repository: what git itself would find, without asking it.

use super::support::{Area, git_at};
use onus_core::code::Code;
use onus_host::env::Env;
use onus_host::repository::{Place, Repo, find_with, lease_dir_of};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn find(dir: impl AsRef<Path>) -> Place {
    find_with(dir.as_ref(), &Env::default()).unwrap()
}

/// Asks git the same question. None for the root means git sees no working tree.
#[track_caller]
fn check_as_git(dir: impl AsRef<Path>) -> Repo {
    let dir = dir.as_ref();
    let repo = find(dir).repo.unwrap();
    let absolute = |what: &str| PathBuf::from(git_at(dir, &["rev-parse", "--path-format=absolute", what]));
    assert_eq!(repo.git_dir, absolute("--git-dir").canonicalize().unwrap(), "git dir");
    assert_eq!(repo.common_dir, absolute("--git-common-dir").canonicalize().unwrap(), "common dir");
    let inside = git_at(dir, &["rev-parse", "--is-inside-work-tree"]) == "true";
    if inside {
        assert_eq!(repo.root, Some(absolute("--show-toplevel")), "root");
    }
    if git_at(dir, &["rev-parse", "--is-bare-repository"]) == "true" {
        assert_eq!(repo.root, None, "root of a bare repository");
    }
    repo
}

#[test]
fn a_plain_checkout_and_everything_below_it() {
    let area = Area::with_main(&[]);
    check_as_git(area.at("main"));
    let place = find(area.mkdir("main/src/deep/deeper"));
    check_as_git(&place.cwd);
    assert_eq!(place.default_store(), area.at("main/.git/onus/onus.db"));
    assert_eq!(place.settings_file(), area.at("main/onus.yaml"));
    assert_eq!(place.lease_dir(), Some(area.at("main/.git/onus/lease")));
}

#[test]
fn all_worktrees_share_the_store_and_none_the_leases() {
    let area = Area::with_main(&[]);
    area.git("main", &["worktree", "add", "-q", "../lane"]);
    area.git("main", &["worktree", "add", "-q", "inside"]);
    for (dir, private) in [("lane", "lane"), ("main/inside", "inside")] {
        check_as_git(area.at(dir));
        let place = find(area.mkdir(&format!("{dir}/src")));
        assert_eq!(place.default_store(), area.at("main/.git/onus/onus.db"));
        assert_eq!(place.settings_file(), area.at("main/onus.yaml"));
        assert_eq!(place.lease_dir(), Some(area.at("main/.git/worktrees").join(private).join("onus/lease")));
        assert_eq!(lease_dir_of(&area.at(dir)), Ok(place.lease_dir()));
    }
}

#[test]
fn a_worktree_with_relative_links() {
    let area = Area::with_main(&[]);
    area.git("main", &["worktree", "add", "-q", "../lane"]);
    fs::write(area.at("lane/.git"), "gitdir: ../main/.git/worktrees/lane\r\n").unwrap();
    fs::write(area.at("main/.git/worktrees/lane/gitdir"), area.at("lane/.git").to_str().unwrap()).unwrap();
    check_as_git(area.at("lane"));
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let area = Area::with_main(&[]);
    area.git(".", &["clone", "-q", "main", "library"]);
    area.git("main", &["submodule", "--quiet", "add", "../library", "lib/first"]);
    let repo = check_as_git(area.at("main/lib/first"));
    assert_eq!(repo.common_dir, area.at("main/.git/modules/lib/first"));
    // From inside its git dir the config tells where the tree is.
    assert_eq!(find(area.at("main/.git/modules/lib/first")).repo, Some(repo));
    area.git("main", &["mv", "lib/first", "second"]);
    check_as_git(area.at("main/second"));
    assert_eq!(find(area.at("main/second")).default_project_key().unwrap().as_str(), "SECOND");
}

#[test]
fn bare_repositories_and_their_worktrees() {
    let area = Area::with_main(&[]);
    area.git(".", &["clone", "-q", "--bare", "main", "web-api.git"]);
    check_as_git(area.at("web-api.git"));
    check_as_git(area.at("web-api.git/refs"));
    let place = find(area.at("web-api.git"));
    assert_eq!(place.settings_file(), area.at("web-api.git/onus/onus.yaml"));
    assert_eq!(place.default_project_key().unwrap().as_str(), "WEBAPI");
    area.git("web-api.git", &["worktree", "add", "-q", "../lane", "main"]);
    check_as_git(area.at("lane"));
    assert_eq!(find(area.at("lane")).default_store(), area.at("web-api.git/onus/onus.db"));
    assert_eq!(find(area.at("lane")).default_project_key().unwrap().as_str(), "WEBAPI");

    // The layout of people who only ever work in worktrees.
    area.mkdir("project");
    area.git(".", &["clone", "-q", "--bare", "main", "project/.bare"]);
    fs::write(area.at("project/.git"), "gitdir: ./.bare\n").unwrap();
    check_as_git(area.at("project"));
    assert_eq!(find(area.at("project")).default_project_key().unwrap().as_str(), "PROJEC");
}

#[test]
fn inside_the_git_directory() {
    let area = Area::with_main(&[]);
    area.git("main", &["worktree", "add", "-q", "../lane"]);
    let main = check_as_git(area.at("main/.git"));
    assert_eq!(main.root, Some(area.at("main")));
    assert_eq!(find(area.at("main/.git/refs/heads")).repo, Some(main));
    let lane = check_as_git(area.at("main/.git/worktrees/lane"));
    assert_eq!(Some(lane), find(area.at("lane")).repo);
}

#[test]
fn symbolic_links_lead_to_the_same_store() {
    let area = Area::with_main(&[]);
    symlink(area.at("main"), area.at("link")).unwrap();
    assert_eq!(find(area.at("link")), find(area.at("main")));
    area.mkdir("other");
    symlink(area.at("main/.git"), area.at("other/.git")).unwrap();
    assert_eq!(find(area.at("other")).default_store(), area.at("main/.git/onus/onus.db"));
}

#[test]
fn configured_trees() {
    let area = Area::with_main(&[]);
    area.mkdir("tree");
    area.git("main", &["config", "core.worktree", area.at("tree").to_str().unwrap()]);
    assert_eq!(find(area.at("main/.git")).repo.unwrap().root, Some(area.at("tree")));

    let area = Area::with_main(&[]);
    area.git("main", &["config", "extensions.worktreeConfig", "true"]);
    area.git("main", &["config", "--worktree", "core.bare", "true"]);
    assert_eq!(check_as_git(area.at("main")).root, None);
}

/// As git calls its hooks.
#[test]
fn the_environment_names_the_repository() {
    let area = Area::with_main(&[]);
    area.git("main", &["worktree", "add", "-q", "../lane"]);
    area.git(".", &["clone", "-q", "--bare", "main", "bare.git"]);
    let outside = area.mkdir("outside");
    let with = |cwd: &Path, git_dir: &str, work_tree: Option<&str>| {
        let env = Env {
            git_dir: Some(git_dir.into()),
            git_work_tree: work_tree.map(PathBuf::from),
            ..Env::default()
        };
        find_with(cwd, &env).unwrap().repo.unwrap()
    };
    assert_eq!(Some(with(&area.at("main"), ".git", None)), find(area.at("main")).repo);
    let lane = area.at("main/.git/worktrees/lane");
    assert_eq!(Some(with(&area.at("lane"), lane.to_str().unwrap(), None)), find(area.at("lane")).repo);
    assert_eq!(
        Some(with(&outside, lane.to_str().unwrap(), None)),
        find(area.at("lane")).repo,
        "even after `cd`"
    );
    assert_eq!(Some(with(&area.at("bare.git"), ".", None)), find(area.at("bare.git")).repo);
    assert_eq!(with(&outside, "../main/.git", None).root, Some(area.at("main")));
    assert_eq!(with(&outside, "../main/.git", Some("../outside")).root, Some(outside.clone()));

    fs::rename(area.at("main/.git"), area.at("odd")).unwrap();
    assert_eq!(with(&outside, "../odd", None).root, Some(outside.clone()), "git takes the current directory");

    let common = Env { git_dir: Some(lane), git_common_dir: Some(area.at("odd")), ..Env::default() };
    assert_eq!(find_with(&outside, &common).unwrap_err().code, Code::StoreUnavailable);
    let env = Env { git_dir: Some("../nowhere".into()), ..Env::default() };
    let refusal = find_with(&outside, &env).unwrap_err();
    assert_eq!(refusal.code, Code::StoreUnavailable);
    assert!(refusal.detail.contains("nowhere is not a git repository"), "{}", refusal.detail);
}

#[test]
fn the_environment_names_the_common_directory() {
    let area = Area::with_main(&[]);
    area.git("main", &["worktree", "add", "-q", "../lane"]);
    let env = Env { git_common_dir: Some("../main/.git".into()), ..Env::default() };
    fs::remove_file(area.at("main/.git/worktrees/lane/commondir")).unwrap();
    fs::write(area.at("main/.git/worktrees/lane/commondir"), "elsewhere\n").unwrap();
    let repo = find_with(&area.at("lane"), &env).unwrap().repo.unwrap();
    assert_eq!(repo.common_dir, area.at("main/.git"));
    let refusal = find_with(&area.at("lane"), &Env::default()).unwrap_err();
    assert!(refusal.hint.unwrap().contains("git worktree repair"));
}

/// Walking on would find the repository around the broken one, and its store.
#[test]
fn a_broken_git_file_is_refused() {
    let area = Area::with_main(&[]);
    area.mkdir("main/sub/below");
    for content in
        ["", "gitdir:", "gitdir: ", "gitdir: /nonexistent\n", "gitdir: ..\n", "nonsense", &"x".repeat(20_000)]
    {
        fs::write(area.at("main/sub/.git"), content).unwrap();
        let refusal = find_with(&area.at("main/sub/below"), &Env::default()).unwrap_err();
        assert_eq!(refusal.code, Code::StoreUnavailable, "{content:.20}");
        assert!(refusal.detail.contains("main/sub/.git is broken"), "{}", refusal.detail);
        assert!(refusal.hint.unwrap().contains("git worktree repair"));
    }
}

#[test]
fn a_directory_named_git_that_is_no_repository_is_passed_by() {
    let area = Area::with_main(&[]);
    area.mkdir("main/sub/.git/objects");
    assert_eq!(check_as_git(area.at("main/sub")).root, Some(area.at("main")));
}

#[test]
fn outside_git_the_nearest_store_above_is_used() {
    let area = Area::new();
    let deep = area.mkdir("my-2nd_project/a/b");
    let place = find(&deep);
    assert_eq!(place.repo, None);
    assert_eq!(place.default_store(), deep.join(".onus/onus.db"));
    assert_eq!(place.settings_file(), deep.join("onus.yaml"));
    area.mkdir("my-2nd_project/.onus");
    assert_eq!(place.default_store(), area.at("my-2nd_project/.onus/onus.db"));
    assert_eq!(place.settings_file(), area.at("my-2nd_project/onus.yaml"));
    assert_eq!(place.lease_dir(), None);
    assert_eq!(place.default_project_key().unwrap().as_str(), "MY2NDP");
}

#[test]
fn project_keys_come_from_the_main_checkout() {
    for (name, key) in
        [("api", "API"), ("2048-game", "GAME"), ("日本", "TASK"), ("123", "TASK"), (".dotfiles", "DOTFIL")]
    {
        let area = Area::new();
        area.git(".", &["init", "-q", "-b", "main", name]);
        area.git(name, &["commit", "-q", "--allow-empty", "-m", "first"]);
        area.git(name, &["worktree", "add", "-q", "../lane"]);
        for dir in [name, "lane"] {
            assert_eq!(find(area.at(dir)).default_project_key().unwrap().as_str(), key, "{name} from {dir}");
        }
    }
}

#[test]
fn a_directory_that_is_gone_is_refused() {
    let area = Area::new();
    let refusal = find_with(&area.at("gone"), &Env::default()).unwrap_err();
    assert_eq!(refusal.code, Code::StoreUnavailable);
    assert_eq!(refusal.hint.as_deref(), Some("change to a directory that exists"));
}

/// A second store beside one that cannot be read would split the team in two.
#[test]
fn a_repository_that_cannot_be_read_is_refused() {
    let area = Area::with_main(&[]);
    let git_dir = area.at("main/.git");
    fs::set_permissions(&git_dir, fs::Permissions::from_mode(0o000)).unwrap();
    let is_superuser = fs::metadata(git_dir.join("HEAD")).is_ok();
    let found = find_with(&area.at("main"), &Env::default());
    fs::set_permissions(&git_dir, fs::Permissions::from_mode(0o755)).unwrap();
    if !is_superuser {
        assert_eq!(found.unwrap_err().code, Code::StoreUnavailable);
    }
}
