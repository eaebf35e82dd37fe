//! Running git: what it is given, and what becomes of its refusals.

use super::support::Area;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_host::git::{Failure, Git, head, user_name};

#[test]
fn the_checked_out_commit_and_the_users_name() {
    let area = Area::with_main(&[]);
    area.git("main", &["config", "user.name", "Ada Example"]);
    assert_eq!(user_name(&area.at("main")).unwrap().as_deref(), Some("Ada Example"));
    assert_eq!(head(&area.at("main")), Some(area.git("main", &["rev-parse", "HEAD"])));
    area.git(".", &["init", "-q", "empty"]);
    assert_eq!(head(&area.at("empty")), None);
    assert_eq!(head(&area.at("nowhere")), None);
}

#[test]
fn a_refusal_carries_the_first_line_git_said() {
    let area = Area::with_main(&[]);
    let failure = Git::in_dir(&area.at("main"), "rev-parse")
        .args(&["--verify"])
        .values(&["nothing"])
        .run()
        .unwrap_err();
    let refusal = Refusal::from(failure);
    assert_eq!(refusal.code, Code::StoreUnavailable);
    assert_eq!(refusal.detail, "git rev-parse failed: fatal: Needed a single revision");
}

#[test]
fn a_value_is_never_an_option() {
    let area = Area::with_main(&[]);
    let failure = Git::in_dir(&area.at("main"), "log").values(&["--output=/tmp/owned"]).run().unwrap_err();
    assert!(matches!(&failure, Failure::OptionLike(value) if value == "--output=/tmp/owned"));
    assert_eq!(Refusal::from(failure).code, Code::InvalidInput);
}

#[test]
fn the_missing_command_is_named() {
    let refusal = Refusal::from(Failure::Missing);
    assert_eq!(refusal.detail, "the git command was not found");
    assert!(refusal.hint.unwrap().contains("install git"));
    let area = Area::new();
    let failure = Git::in_dir(&area.path, "version").env("PATH", area.path.as_os_str()).run().unwrap_err();
    assert!(matches!(failure, Failure::Missing), "{failure:?}");
}

/// A child that answers while it is still being told would otherwise wait for us, and we for it.
#[test]
fn long_input_and_output_do_not_wait_for_each_other() {
    let area = Area::with_main(&[]);
    let line = format!("{}\n", area.git("main", &["rev-parse", "HEAD"]));
    let input = line.repeat(20_000);
    let output = Git::in_dir(&area.at("main"), "cat-file")
        .args(&["--batch-check"])
        .input(input.as_bytes())
        .run()
        .unwrap();
    assert_eq!(output.iter().filter(|b| **b == b'\n').count(), 20_000);
}
