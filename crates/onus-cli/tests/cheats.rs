//! Ways to cheat a completion, each refused with its code (mission D7-D9, D12). One table a subject; the honest way
//! through each of them is shown to be open.

use crate::support::Site;
use crate::support::attempt::Attempt;
use std::collections::BTreeSet;

/// What is tried, on what task, how, and the codes of the refusal.
///
/// The task is added by a person with these words (by `@a1` where they begin with `own`, imported where they are a JSON
/// object) and claimed by `@a1` in `ws-1`. A step is a call by `@a1`..`@a3`, by the person (`@p`) or by nobody (`@-`), or a
/// `git` or `sh` command in the repository. `T` is the task. All steps but the last must succeed.
type Cheat = (&'static str, &'static str, &'static [&'static str], &'static str);

const COMPLETE: &str = "@a1 complete T --no-merge --resolution done";
const PROVEN: &str = "--check 'test -f proof'";

const CHECKS: &[Cheat] = &[
    ("no run at all", PROVEN, &[COMPLETE], "checks_missing"),
    ("a run that fails", "--check 'test -f nothing'", &["? @a1 check T", COMPLETE], "checks_failed"),
    (
        "a program that is not there",
        "--check 'no-such-program -x'",
        &["? @a1 check T", COMPLETE],
        "checks_failed",
    ),
    ("a file that cannot be run", "--check './proof -x'", &["? @a1 check T", COMPLETE], "checks_failed"),
    (
        "a run that kills itself",
        "--check 'kill -9 $$; test -f proof'",
        &["? @a1 check T", COMPLETE],
        "checks_failed",
    ),
    (
        "a tree with uncommitted changes",
        PROVEN,
        &["sh echo x > loose", "@a1 check T", COMPLETE],
        "checks_missing",
    ),
    (
        "files that only this tree has",
        "--check 'test -f loose'",
        &["sh echo x > loose", "@a1 check T", "sh rm loose", COMPLETE],
        "checks_missing",
    ),
    (
        "a commit after the run",
        PROVEN,
        &["@a1 check T", "git commit -q --allow-empty -m more", COMPLETE],
        "checks_missing",
    ),
    (
        "an amended commit",
        PROVEN,
        &[
            "git commit -q --allow-empty -m one",
            "@a1 check T",
            "git commit -q --allow-empty --amend -m two",
            COMPLETE,
        ],
        "checks_missing",
    ),
    (
        "back to a commit that was never tried",
        PROVEN,
        &["git commit -q --allow-empty -m one", "@a1 check T", "git reset -q --hard HEAD~1", COMPLETE],
        "checks_missing",
    ),
    (
        "a run that passed before one that failed",
        "--check 'test ! -e .git/broken'",
        &["@a1 check T", "sh touch .git/broken", "? @a1 check T", "sh rm .git/broken", COMPLETE],
        "checks_failed",
    ),
    (
        "one check of two",
        "--check 'test -f proof' --check 'test -s proof'",
        &["@a1 check T --only $check", COMPLETE],
        "checks_missing",
    ),
    (
        "an easier check beside the one that was asked for",
        "--check 'test -f nothing'",
        &["@a1 check T --add 'test -d .'", "@p check T --approve", "? @a1 check T", COMPLETE],
        "checks_failed",
    ),
    ("a check of one's own", "", &["@a1 check T --add 'test -f proof'", COMPLETE], "check_unapproved"),
    (
        "running it all the same",
        "",
        &["@a1 check T --add 'test -f proof'", "@a1 check T"],
        "check_unapproved",
    ),
    (
        "approving it oneself",
        "",
        &["@a1 check T --add 'test -f proof'", "@a1 check T --approve"],
        "human_required",
    ),
    (
        "letting another agent approve it",
        "",
        &["@a1 check T --add 'test -f proof'", "@a2 check T --approve"],
        "human_required",
    ),
    (
        "a task of one's own, with its own check",
        "own --check 'test -f proof'",
        &[COMPLETE],
        "check_unapproved",
    ),
    (
        "a check that came with an import",
        r#"{"title":"imported","checks":["test -f proof"]}"#,
        &[COMPLETE],
        "check_unapproved",
    ),
    ("taking the check away", PROVEN, &["@a1 check T --remove $check --reason easier"], "human_required"),
    (
        "a check whose text was changed after the run",
        PROVEN,
        &[
            "@a1 check T",
            "@p check T --remove $check --reason edited",
            "@p check T --add 'test -f proof -a -s proof'",
            COMPLETE,
        ],
        "checks_missing",
    ),
    (
        "a change of its text by the holder",
        PROVEN,
        &["@a1 check T", "@a1 check T --add 'test -f proof # or so'", COMPLETE],
        "check_unapproved",
    ),
    ("another one's run, without the lease", PROVEN, &["@a2 check T"], "lease_required"),
    (
        "a run from before the task was reopened",
        PROVEN,
        &[
            "@a1 check T",
            COMPLETE,
            "@p reopen T --reason wrong",
            "git commit -q --allow-empty -m again",
            "@a1 claim T --workstation ws-1",
            COMPLETE,
        ],
        "checks_missing",
    ),
];

/// Checks that could not fail, offered by a person, too.
const WORDS: &[Cheat] = &[
    ("true", "", &["@p check T --add true"], "invalid_input"),
    ("a colon", "", &["@p check T --add :"], "invalid_input"),
    ("exit 0", "", &["@p check T --add 'exit 0'"], "invalid_input"),
    ("an echo", "", &["@p check T --add 'echo all tests passed'"], "invalid_input"),
    ("a failure that is swallowed", "", &["@p check T --add 'make test || true'"], "invalid_input"),
    ("a failure that something follows", "", &["@p check T --add 'make test; true'"], "invalid_input"),
    ("a failure that is piped away", "", &["@p check T --add 'make test | echo'"], "invalid_input"),
    ("a failure in the background", "", &["@p check T --add 'make test &'"], "invalid_input"),
    ("a shell that runs nothing", "", &["@p check T --add 'sh -c true'"], "invalid_input"),
    ("a comment", "", &["@p check T --add '# make test'"], "invalid_input"),
    ("a blank", "", &["@p check T --add ' '"], "invalid_input"),
    ("a sentence", "", &["@p check T --add 'The page works on mobile.'"], "invalid_input"),
];

const HOLDERS: &[Cheat] = &[
    ("who does not hold it", "", &["@a2 complete T --no-merge --resolution done"], "lease_required"),
    ("a forged secret", "", &["@a1 complete T --no-merge --resolution done --lease $forged"], "fenced"),
    ("an earlier epoch", "", &["@a1 complete T --no-merge --resolution done --lease $earlier"], "fenced"),
    (
        "another generation",
        "",
        &["@a1 complete T --no-merge --resolution done --lease $generation"],
        "fenced",
    ),
    ("no token at all", "", &["@a1 complete T --no-merge --resolution done --lease yes"], "invalid_input"),
    (
        "the holder's token, by another",
        "",
        &["@a2 complete T --no-merge --resolution done --lease $token"],
        "fenced",
    ),
    (
        "a token of the task one held before",
        "",
        &[
            "@a1 release T",
            "@a2 claim T --workstation ws-2",
            "@a1 complete T --no-merge --resolution done --lease $token",
        ],
        "fenced",
    ),
    (
        "a holder that was taken over",
        "",
        &[
            "@p takeover T --workstation ws-3 --force --reason r",
            "@a1 complete T --no-merge --resolution done --lease $token",
        ],
        "fenced",
    ),
    (
        "a task that was reopened, with the old token",
        "",
        &[
            COMPLETE,
            "@p reopen T --reason wrong",
            "@a1 complete T --no-merge --resolution done --lease $token",
        ],
        "fenced",
    ),
    (
        "a suspended holder",
        "",
        &["@p workstation quarantine ws-1 --reason smoke", COMPLETE],
        "workstation_quarantined",
    ),
    (
        "an agent's force",
        PROVEN,
        &["@a1 complete T --no-merge --resolution done --force --reason hurry"],
        "human_required",
    ),
    (
        "a force without a reason",
        PROVEN,
        &["@p complete T --no-merge --resolution done --force"],
        "reason_required",
    ),
    ("somebody unknown", "", &["@zed complete T --no-merge --resolution done"], "unknown_worker"),
    ("nobody", "", &["@- complete T --no-merge --resolution done"], "identity_required"),
    ("a task that waits", "", &["@a1 block T --on external:rain", COMPLETE], "wrong_state"),
    ("a task that does not exist", "", &["@a1 complete T-999 --no-merge --resolution done"], "unknown_task"),
    (
        "the receipt of another call",
        "",
        &[
            "@a1 note T x --request-id cheat-T",
            "@a1 complete T --no-merge --resolution done --request-id cheat-T",
        ],
        "request_conflict",
    ),
    ("without a word", "", &["@a1 complete T"], "resolution_required"),
    ("with a blank for a word", "", &["@a1 complete T --resolution ' '"], "resolution_required"),
];

const KINDS: &[Cheat] = &[
    ("a defect without its cause", "--kind defect", &[COMPLETE], "root_cause_missing+root_cause_missing"),
    (
        "a cause without a proof",
        "--kind defect",
        &["@a1 complete T --no-merge --resolution done $cause"],
        "root_cause_missing",
    ),
    (
        "a proof of something else",
        "--kind defect --check 'test -f proof'",
        &["@a1 check T", "@a1 complete T --no-merge --resolution done $cause"],
        "root_cause_missing",
    ),
    (
        "a proof without its cause",
        "--kind defect",
        &["@p check T --add 'test -f proof' --kind root-cause", "@a1 check T", COMPLETE],
        "root_cause_missing",
    ),
    (
        "a blank for a cause",
        "--kind defect",
        &["@a1 complete T --no-merge --resolution done --root-cause ' ' --owner x"],
        "invalid_input",
    ),
    (
        "high risk on somebody's word",
        "--risk high",
        &[COMPLETE],
        "evidence_missing+evidence_missing+review_missing",
    ),
    (
        "an anchor and no running path",
        "--risk high",
        &["@p check T --add 'test -f proof' --kind code-anchor", "@a1 check T", "@a2 $approve", COMPLETE],
        "evidence_missing",
    ),
    (
        "one check for both kinds",
        "--risk high --check 'test -f proof'",
        &["@a1 check T", "@a2 $approve", COMPLETE],
        "evidence_missing+evidence_missing",
    ),
    ("evidence, and nobody has looked", "--risk high", &["$evidence", COMPLETE], "review_missing"),
    (
        "a review of one's own",
        "--risk high",
        &["@a1 review T --workstation ws-2 --approve --as-implemented"],
        "self_review",
    ),
    (
        "a review where it was built",
        "--risk high",
        &["@a2 review T --workstation ws-1 --approve --as-implemented"],
        "self_review",
    ),
    (
        "a review by who built the first half",
        "--risk high",
        &[
            "@a1 release T",
            "@a3 claim T --workstation ws-3",
            "@a1 review T --workstation ws-2 --approve --as-implemented",
        ],
        "self_review",
    ),
    (
        "a review that found a design",
        "--risk high",
        &["$evidence", "@a2 review T --workstation ws-2 --approve --as-design-only", COMPLETE],
        "review_missing",
    ),
    (
        "a review that said no",
        "",
        &["@a2 review T --workstation ws-2 --reject --as-implemented", COMPLETE],
        "review_missing",
    ),
    (
        "a review of what it was before",
        "--risk high",
        &["@a2 $approve", "git commit -q --allow-empty -m more", "$evidence", COMPLETE],
        "review_missing",
    ),
    ("a review of what nobody holds", "", &["@a1 release T", "@a2 $approve"], "wrong_state"),
];

const ALL: [&[Cheat]; 4] = [CHECKS, WORDS, HOLDERS, KINDS];

fn site() -> Site {
    let site = Site::new();
    site.agents(3);
    std::fs::write(site.repo().join("proof"), "it works\n").unwrap();
    std::fs::write(site.repo().join("onus.yaml"), "complete:\n  review: high_risk\n").unwrap();
    site.git(&["add", "--all"]);
    site.git(&["commit", "--quiet", "--message=proof"]);
    site
}

fn all_refused(cheats: &[Cheat]) {
    let site = site();
    let mut wrong = Vec::new();
    for (what, how, steps, codes) in cheats {
        let attempt = Attempt::new(&site, how);
        let answered = attempt.refused(steps);
        if answered != *codes {
            wrong.push(format!("{what}: {answered}, not {codes}"));
        }
        if site.task(&attempt.task)["state"] == "complete" {
            wrong.push(format!("{what}: it is complete"));
        }
        attempt.clear();
    }
    assert!(wrong.is_empty(), "{} of {} cheats:\n{}", wrong.len(), cheats.len(), wrong.join("\n"));
    site.assert_sound();
}

#[test]
fn cheats_with_checks() {
    all_refused(CHECKS);
}

#[test]
fn cheats_with_words() {
    all_refused(WORDS);
}

#[test]
fn cheats_with_leases() {
    all_refused(HOLDERS);
}

#[test]
fn cheats_with_evidence_and_reviews() {
    all_refused(KINDS);
}

#[test]
fn there_are_forty_and_all_differ() {
    let all: Vec<&Cheat> = ALL.into_iter().flatten().collect();
    let ways: BTreeSet<_> = all.iter().map(|(_, how, steps, _)| (how, steps)).collect();
    let names: BTreeSet<_> = all.iter().map(|(what, ..)| what).collect();
    assert!(ways.len() == all.len() && names.len() == all.len() && all.len() >= 40, "{}", all.len());
}

/// Without this a refusal would prove nothing: the honest way is open on the same ground.
#[test]
fn the_honest_way_is_open() {
    let site = site();
    for (how, steps) in [
        ("", &[COMPLETE][..]),
        (PROVEN, &["@a1 check T", COMPLETE]),
        ("own --check 'test -f proof'", &["@p check T --approve", "@a1 check T", COMPLETE]),
        (
            "--kind defect",
            &[
                "@p check T --add 'test -f proof' --kind root-cause",
                "@a1 check T",
                "@a1 complete T --no-merge --resolution done $cause",
            ],
        ),
        ("--risk high", &["$evidence", "@a2 $approve", COMPLETE]),
    ] {
        let attempt = Attempt::new(&site, how);
        assert_eq!(attempt.refused(steps), "ok", "{how} {steps:?}");
        assert_eq!(site.task(&attempt.task)["state"], "complete", "{how}");
        site.git(&["clean", "-fdq"]);
    }
    site.assert_sound();
}
