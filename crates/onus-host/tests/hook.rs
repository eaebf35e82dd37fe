//! Hooks in real repositories: ours refuse, those that were there go on working, and uninstalling leaves no trace.

use super::support::{Area, try_git_at};
use onus_core::code::Code;
use onus_host::git::Incoming;
use onus_host::hook::{Hook, HookState, Site, install, sign, status, uninstall};
use onus_host::refs::History;
use onus_host::repository::Repo;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Stands in for the program: writes down how it was called and refuses when a file says so.
const PROGRAM: &str = r#"dir=${0%/*}
echo "$PPID" >>"$dir/parents"
{ echo "run $*"; if [ "$3" != prepare-commit-msg ]; then cat; fi; } >>"$dir/calls"
[ ! -e "$dir/refuse" ]"#;

struct Case {
    area: Area,
    onus: PathBuf,
}

fn case() -> Case {
    let area = Area::with_main(&[]);
    let onus = area.script("bin of 'onus'/onus", PROGRAM);
    Case { area, onus }
}

impl Case {
    fn repo(&self) -> Repo {
        self.area.repo("main")
    }

    fn install(&self) -> Vec<Hook> {
        install(&self.repo(), Site::Work, &self.onus, None).unwrap()
    }

    fn calls(&self) -> String {
        let file = self.onus.with_file_name("calls");
        let calls = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        calls
    }

    fn refuse(&self) {
        fs::write(self.onus.with_file_name("refuse"), "").unwrap();
    }

    fn git(&self, args: &[&str]) -> bool {
        try_git_at(&self.area.at("main"), args).status.success()
    }
}

fn states(hooks: &[Hook]) -> String {
    let all: Vec<_> = hooks.iter().map(|hook| format!("{} {}", hook.name, hook.state.name())).collect();
    all.join(", ")
}

/// Everything about a directory's files that could be told apart.
fn photograph(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, Option<PathBuf>)> {
    let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
            let content = fs::read(&path).unwrap_or_default();
            let link = fs::read_link(&path).ok();
            (path, (content, mode, link))
        })
        .collect()
}

#[test]
fn installed_twice_is_installed_once_and_leaves_no_trace() {
    let case = case();
    let hooks = case.area.at("main/.git/hooks");
    let before = photograph(&hooks);
    let missing = "reference-transaction missing, prepare-commit-msg missing, pre-push missing";
    assert_eq!(states(&status(&case.repo(), Site::Work, &case.onus).unwrap()), missing);
    let current = "reference-transaction current, prepare-commit-msg current, pre-push current";
    assert_eq!(states(&case.install()), current);
    let installed = photograph(&hooks);
    assert_eq!(states(&case.install()), current);
    assert_eq!(photograph(&hooks), installed);
    let elsewhere = status(&case.repo(), Site::Work, Path::new("/elsewhere/onus")).unwrap();
    assert!(elsewhere.iter().all(|hook| hook.state == HookState::Outdated), "{elsewhere:?}");
    fs::set_permissions(&elsewhere[0].path, fs::Permissions::from_mode(0o644)).unwrap();
    let off = status(&case.repo(), Site::Work, &case.onus).unwrap();
    assert_eq!(off[0].state, HookState::Outdated, "git does not run it");
    assert_eq!(states(&case.install()), current);
    assert_eq!(states(&uninstall(&case.repo(), Site::Work, &case.onus).unwrap()), missing);
    assert_eq!(photograph(&hooks), before);
    uninstall(&case.repo(), Site::Work, &case.onus).unwrap();
}

#[test]
fn only_a_branch_that_is_about_to_move_is_asked_about() {
    let case = case();
    case.install();
    let old = case.area.head("main");
    assert!(case.git(&["tag", "t"]) && case.git(&["update-ref", "refs/x/y", "HEAD"]));
    assert!(case.git(&["symbolic-ref", "HEAD", "refs/heads/main"]) && case.git(&["stash"]));
    let calls = case.calls();
    assert!(!calls.contains("reference-transaction"), "{calls}");
    // A commit on no branch could become one.
    assert!(
        case.git(&["checkout", "-q", "--detach"]) && case.git(&["commit", "-q", "--allow-empty", "-m", "x"])
    );
    let calls = case.calls();
    assert!(calls.contains(&format!("{old} {} HEAD\n", case.area.head("main"))), "{calls}");
    assert!(case.git(&["branch", "other", &old]));
    let zeros = "0".repeat(40);
    let expected = format!("run hook run reference-transaction prepared\n{zeros} {old} refs/heads/other\n\n");
    assert_eq!(case.calls(), expected);
    case.refuse();
    for args in [
        &["branch", "-f", "other", "HEAD"][..],
        &["branch", "-D", "other"],
        &["branch", "-m", "other", "third"],
        &["update-ref", "-d", "refs/heads/other"],
        &["symbolic-ref", "refs/heads/other", "refs/heads/main"],
        &["update-ref", "refs/onus/salvage/T-1/1", "HEAD"],
    ] {
        assert!(!case.git(args), "{args:?}");
    }
    case.git(&["checkout", "-q", "other"]);
    for args in [
        &["commit", "-q", "--allow-empty", "--no-verify", "-m", "x"][..],
        &["commit", "-q", "--allow-empty", "--amend", "--no-verify", "-m", "x"],
        &["reset", "-q", "--hard", "t"],
    ] {
        let moved = case.git(args) && case.area.git("main", &["rev-parse", "other"]) != old;
        assert!(!moved, "{args:?}");
    }
    assert_eq!(case.area.git("main", &["rev-parse", "other"]), old);
}

#[test]
fn every_storage_of_references_asks() {
    for init in ["--ref-format=reftable", "--object-format=sha256"] {
        let area = Area::with_main(&[init]);
        let case = Case { onus: area.script("bin/onus", PROGRAM), area };
        case.install();
        assert!(case.git(&["commit", "-q", "--allow-empty", "-m", "x"]));
        let calls = case.calls();
        assert!(calls.contains(&format!("{} refs/heads/main\n", case.area.head("main"))), "{init}: {calls}");
        case.refuse();
        let old = case.area.head("main");
        assert!(!case.git(&["update-ref", "HEAD", "HEAD^"]), "{init}");
        assert_eq!(case.area.head("main"), old);
    }
}

#[test]
fn a_message_is_asked_about_only_where_a_lease_is() {
    let case = case();
    case.install();
    case.area.git("main", &["worktree", "add", "-q", "-b", "work", "../lane"]);
    case.area.write("main/.git/worktrees/lane/onus/lease/API-1.a", "token");
    for (dir, asked) in [("main", false), ("lane", true)] {
        case.calls();
        case.area.git(dir, &["commit", "-q", "--allow-empty", "-m", "x"]);
        assert_eq!(case.calls().contains("prepare-commit-msg"), asked, "{dir}");
    }
}

#[test]
fn without_the_program_nothing_moves() {
    let case = case();
    case.install();
    fs::remove_file(&case.onus).unwrap();
    let output = try_git_at(&case.area.at("main"), &["branch", "other"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("onus hook install"), "{said}");
    assert!(case.git(&["tag", "t"]), "what is not ours goes on");
}

#[test]
fn hooks_that_were_there_run_first_and_their_refusal_stands() {
    let case = case();
    let area = &case.area;
    for name in ["reference-transaction", "pre-push"] {
        let body = format!(
            "{{ echo \"{name} $*\"; cat; }} >>'{}'\n[ \"$1\" != prepared ] || [ ! -e '{}' ]",
            area.at("seen").display(),
            area.at("stop").display()
        );
        area.script(&format!("main/.git/hooks/{name}"), &body);
    }
    area.script("shared-hook", &format!("echo \"message $2\" >>'{}'", area.at("seen").display()));
    symlink("../../../shared-hook", area.at("main/.git/hooks/prepare-commit-msg")).unwrap();
    let hooks = area.at("main/.git/hooks");
    let before = photograph(&hooks);
    let installed = case.install();
    assert!(installed.iter().all(|hook| hook.state == HookState::Current && hook.before.is_some()));
    assert_eq!(states(&case.install()), states(&installed));

    assert!(case.git(&["commit", "-q", "--allow-empty", "-m", "x"]));
    let seen = fs::read_to_string(area.at("seen")).unwrap();
    for part in ["message message\n", "reference-transaction prepared\n", "reference-transaction committed\n"]
    {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    assert!(seen.contains(&format!("{} refs/heads/main\n", area.head("main"))), "the same input: {seen}");
    assert!(case.calls().contains("reference-transaction prepared"));
    area.git(".", &["clone", "-q", "--bare", "main", "shared.git"]);
    assert!(case.git(&["push", "-q", "../shared.git", "HEAD:refs/heads/new"]));
    let seen = fs::read_to_string(area.at("seen")).unwrap();
    assert!(seen.contains("pre-push ../shared.git"), "{seen}");
    let calls = case.calls();
    assert!(
        calls.contains("run hook run pre-push ../shared.git") && calls.contains("refs/heads/new"),
        "{calls}"
    );

    area.write("stop", "");
    assert!(!case.git(&["branch", "refused"]));
    assert_eq!(case.calls(), "", "ours is not asked any more");
    fs::remove_file(area.at("stop")).unwrap();
    uninstall(&case.repo(), Site::Work, &case.onus).unwrap();
    assert_eq!(photograph(&hooks), before);
}

#[test]
fn a_hook_that_replaced_ours_is_never_lost() {
    let case = case();
    let path = case.area.script("main/.git/hooks/pre-push", "true first");
    case.install();
    fs::remove_file(&path).unwrap();
    case.area.script("main/.git/hooks/pre-push", "true second");
    let found = status(&case.repo(), Site::Work, &case.onus).unwrap();
    assert_eq!(found[2].state, HookState::Foreign);
    let before = photograph(path.parent().unwrap());
    let refusal = install(&case.repo(), Site::Work, &case.onus, None).unwrap_err();
    assert_eq!((refusal.code, refusal.findings.len()), (Code::InvalidInput, 1));
    assert_eq!(photograph(path.parent().unwrap()), before);
    uninstall(&case.repo(), Site::Work, &case.onus).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("second"));
    assert!(fs::read_to_string(path.with_extension("before-onus")).unwrap().contains("first"));
}

#[test]
fn an_installation_that_died_half_way_is_finished_or_undone() {
    let case = case();
    let path = case.area.script("main/.git/hooks/pre-push", "true first");
    let before = photograph(path.parent().unwrap());
    let kept = path.with_extension("before-onus");
    fs::hard_link(&path, &kept).unwrap();
    uninstall(&case.repo(), Site::Work, &case.onus).unwrap();
    assert_eq!(photograph(path.parent().unwrap()), before);
    fs::hard_link(&path, &kept).unwrap();
    assert_eq!(case.install()[2].state, HookState::Current);
    uninstall(&case.repo(), Site::Work, &case.onus).unwrap();
    assert_eq!(photograph(path.parent().unwrap()), before);
}

#[test]
fn the_hooks_path_of_the_repository_is_honoured() {
    let case = case();
    let area = &case.area;
    area.git("main", &["worktree", "add", "-q", "-b", "work", "../lane"]);
    area.git("main", &["config", "core.hooksPath", ".team hooks"]);
    let paths: Vec<_> = case.install().into_iter().map(|hook| hook.path).collect();
    assert_eq!(paths.len(), 6, "one set in each working tree: {paths:?}");
    case.refuse();
    assert!(!case.git(&["branch", "x"]));
    assert!(!try_git_at(&area.at("lane"), &["branch", "x"]).status.success());
    uninstall(&case.repo(), Site::Work, &case.onus).unwrap();
    area.git("main", &["config", "core.hooksPath", area.at("team").to_str().unwrap()]);
    assert_eq!(case.install()[0].path, area.at("team/reference-transaction"));
    assert!(!case.git(&["branch", "x"]));
}

#[test]
fn a_rebase_keeps_the_trailers_and_signs_what_has_none() {
    let case = case();
    let area = &case.area;
    let program = |task: &str| {
        let sign =
            format!("git interpret-trailers --in-place --if-exists replace --trailer 'Onus-Task: {task}'");
        let body = format!("if [ \"$3\" = prepare-commit-msg ]; then {sign} \"$4\"; fi");
        area.script("bin of 'onus'/onus", &body);
    };
    area.commit("main", "a.txt", "1\n");
    area.git("main", &["checkout", "-q", "-b", "work"]);
    area.commit("main", "unsigned.txt", "x\n");
    case.install();
    area.write("main/.git/onus/lease/API-1.a", "token");
    program("API-1");
    area.commit("main", "first.txt", "x\n");
    area.commit_as("main", "second.txt", "x\n", "second\n\nBody.\n\nSigned-off-by: A <a@b>");
    area.git("main", &["checkout", "-q", "main"]);
    area.commit("main", "b.txt", "1\n");
    area.git("main", &["checkout", "-q", "work"]);
    program("API-2");
    area.git("main", &["rebase", "-q", "main"]);
    let format = "--format=%s %(trailers:key=Onus-Task,valueonly,separator=%x2C)";
    let signed = area.git("main", &["log", format, "main..work"]);
    assert_eq!(signed, "second API-1\nfirst.txt: x API-1\nunsigned.txt: x API-2");
    area.git("main", &["commit", "-q", "--amend", "--no-edit"]);
    assert_eq!(
        area.git("main", &["log", "-1", format]),
        "second API-2",
        "an amended commit is the amender's"
    );
}

/// Messages of one line are signed without git; they come out as git would have written them.
#[test]
fn in_a_worktree_a_message_is_signed_as_git_would_sign_it() {
    let case = case();
    let area = &case.area;
    area.git("main", &["worktree", "add", "-q", "-b", "work", "../lane"]);
    case.install();
    area.write("main/.git/worktrees/lane/onus/lease/API-1.a", "token");
    area.write("main/.git/worktrees/lane/onus/trailers", "Onus-Task: API-1\nOnus-Agent: @a\n");
    let file = area.at("main/.git/worktrees/lane/COMMIT_EDITMSG");
    let hook = area.at("main/.git/hooks/prepare-commit-msg");
    for message in [
        "work\n",
        "topic: what and why\n",
        "Onus-Task: API-9\n",
        "  # 100% \\n 'done' $HOME\n",
        "no line feed",
        "---\n",
        "two\nlines\n",
        "subject\n\n",
        "subject\n\nOnus-Task: API-9\nSigned-off-by: A <a@b>\n",
        "subject\n\nbody\n# a comment\n",
    ] {
        fs::write(&file, message).unwrap();
        let trailers = [("Onus-Task", "API-1"), ("Onus-Agent", "@a")];
        sign(&area.at("lane"), &file, &trailers).unwrap();
        let by_git = fs::read_to_string(&file).unwrap();
        fs::write(&file, message).unwrap();
        let ran = std::process::Command::new(&hook).arg(&file).current_dir(area.at("lane")).status();
        assert!(ran.unwrap().success(), "{message:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), by_git, "{message:?}");
    }
}

#[test]
fn a_message_is_signed_once_whatever_is_in_it() {
    let area = Area::with_main(&[]);
    let file = area.at("main/.git/COMMIT_EDITMSG");
    let signed = |text: &str, task: &str| {
        fs::write(&file, text).unwrap();
        let trailers = [("Onus-Task", task), ("Onus-Agent", "@a"), ("Onus-Epoch", "3")];
        sign(&area.at("main"), &file, &trailers).unwrap();
        fs::read_to_string(&file).unwrap()
    };
    let once = signed("subject\n", "API-1");
    assert_eq!(once, "subject\n\nOnus-Task: API-1\nOnus-Agent: @a\nOnus-Epoch: 3\n");
    assert_eq!(signed(&once, "API-1"), once);
    let other = "subject\n\nOnus-Task: API-2\nOnus-Agent: @a\nOnus-Epoch: 3\n";
    assert_eq!(signed(&once, "API-2"), other, "an amended commit is the amender's");
    let text = "s\n\nbody: not a trailer\n\nSigned-off-by: A <a@b>\n# a comment\n";
    let full = signed(text, "API-1");
    assert!(full.contains("Signed-off-by: A <a@b>\nOnus-Task: API-1\n"), "{full}");
    assert!(full.ends_with("# a comment\n"), "{full}");
}

/// What a push brings lies apart until `pre-receive` has agreed; only what git tells that hook leads to it.
#[test]
fn the_objects_of_a_push_can_be_read_before_they_are_taken() {
    let area = Area::with_main(&[]);
    area.git(".", &["clone", "-q", "--bare", "main", "shared.git"]);
    let (told, go) = (area.at("told"), area.at("go"));
    let body = format!(
        "printf '%s\\n' \"$GIT_OBJECT_DIRECTORY\" \"$GIT_ALTERNATE_OBJECT_DIRECTORIES\" >'{0}.new'\n\
         mv '{0}.new' '{0}'\nwhile [ ! -e '{1}' ]; do sleep 0.01; done",
        told.display(),
        go.display()
    );
    area.script("shared.git/hooks/pre-receive", &body);
    let new = area.commit("main", "dir/b.txt", "x\n");
    std::thread::scope(|scope| {
        let pushing =
            scope.spawn(|| area.git("main", &["push", "-q", "../shared.git", "HEAD:refs/heads/new"]));
        while !told.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let told = fs::read_to_string(&told).unwrap();
        let (objects, alternates) = told.trim_end().split_once('\n').unwrap();
        let incoming = Incoming { objects: objects.into(), alternates: alternates.into() };
        let shared = area.at("shared.git");
        let paths = History::receiving(&shared, Some(&incoming)).changed_paths(&new, &["refs/heads/main"]);
        let without = History::at(&shared).resolve(&new);
        fs::write(&go, "").unwrap();
        assert_eq!((paths, without), (Ok(vec!["dir/b.txt".to_owned()]), Ok(None)));
        pushing.join().unwrap();
    });
}

#[test]
fn a_shared_repository_asks_before_it_takes() {
    let case = case();
    let area = &case.area;
    area.git(".", &["clone", "-q", "--bare", "main", "shared.git"]);
    let repo = area.repo("shared.git");
    let config = fs::read(area.at("shared.git/config")).unwrap();
    let hooks = photograph(&area.at("shared.git/hooks"));
    for _ in 0..2 {
        let installed = install(&repo, Site::Shared, &case.onus, Some("sqlite:/srv/onus.db")).unwrap();
        assert_eq!(states(&installed), "pre-receive current, reference-transaction current");
    }
    assert_eq!(area.git("shared.git", &["config", "onus.store"]), "sqlite:/srv/onus.db");
    let push = |refs: &str| case.git(&["push", "-q", "-o", "onus=1.2.ab", "../shared.git", refs]);
    assert!(push("HEAD:refs/heads/new"));
    let (calls, head) = (case.calls(), area.head("main"));
    let line = format!("{} {head} refs/heads/new\n", "0".repeat(40));
    let expected =
        format!("run hook run pre-receive\n{line}run hook run reference-transaction prepared\n{line}\n");
    assert_eq!(calls, expected);
    // One receive-pack runs both: what the ticket relies on.
    let parents = fs::read_to_string(case.onus.with_file_name("parents")).unwrap();
    let parents: Vec<_> = parents.lines().collect();
    assert!(parents.len() == 2 && parents[0] == parents[1], "{parents:?}");
    assert!(push("HEAD:refs/tags/t"));
    assert!(case.calls().contains("reference-transaction prepared"), "tags, too");
    case.refuse();
    assert!(!push("HEAD:refs/heads/more"));
    assert!(!case.calls().contains("reference-transaction"));
    uninstall(&repo, Site::Shared, &case.onus).unwrap();
    assert_eq!(photograph(&area.at("shared.git/hooks")), hooks);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let left = text(fs::read(area.at("shared.git/config")).unwrap());
    assert_eq!(left, text(config));
}
