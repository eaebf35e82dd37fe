//! The guard, row by row: whose branch, where the caller stands, what it shows, and what comes of it.

use onus_core::code::Code;
use onus_core::guard::{Change, Credentials, Held, Local, Post, Push, local, pushed, trailers, within};
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::lease::{Lease, LeaseId, Token};
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::Assignment;
use onus_core::time::{Millis, Tick, Timestamp};
use onus_core::workstation::WorkstationState::{self, Quarantined, Ready, Retired};

const GENERATION: i64 = 2;

/// A workstation by name; those that hold a task have a lease of their own number.
struct Station {
    name: WorkstationName,
    state: WorkstationState,
    held: Option<(TaskId, Assignment)>,
}

fn station(name: &str, state: WorkstationState, held: Option<(&str, &str, u8)>) -> Station {
    let name: WorkstationName = name.parse().unwrap();
    let held = held.map(|(task, assignee, number)| {
        let lease = Lease {
            id: LeaseId::new([number; 16]),
            ttl: Millis(1),
            // Long expired: that alone takes nothing away.
            renewed_at: Timestamp(0),
            tick: Tick { host: "h".into(), boot: "b".into(), millis: 0 },
            renewals: 0,
            process: None,
        };
        let assignment = Assignment {
            assignee: assignee.parse().unwrap(),
            tier: None,
            workstation: name.clone(),
            epoch: i64::from(number),
            assigned_at: Timestamp(0),
            lease,
            handoff_reason: None,
            forced: false,
            route: None,
            lane: None,
            base: None,
            resting: false,
        };
        (task.parse().unwrap(), assignment)
    });
    Station { name, state, held }
}

fn stations() -> Vec<Station> {
    vec![
        station("a", Ready, Some(("API-1", "@ann", 5))),
        station("b", Ready, Some(("API-2", "@bob", 6))),
        station("free", Ready, None),
        station("sick", Quarantined, Some(("API-3", "@ann", 7))),
        station("gone", Retired, None),
    ]
}

fn post<'a>(stations: &'a [Station], name: &str) -> Option<Post<'a>> {
    let station = stations.iter().find(|station| station.name.as_str() == name)?;
    let held = station.held.as_ref().map(|(task, assignment)| Held { task, assignment });
    Some(Post { workstation: &station.name, state: station.state, held })
}

/// `a`, `b` and `sick` are live tokens of those workstations; the others are not.
fn token(word: &str) -> Option<Token> {
    let (generation, epoch, lease) = match word {
        "a" => (GENERATION, 5, 5),
        "b" => (GENERATION, 6, 6),
        "sick" => (GENERATION, 7, 7),
        "stale" => (GENERATION, 4, 4),
        "forged" => (GENERATION, 5, 99),
        "wrong-epoch" => (GENERATION, 4, 5),
        "restored" => (GENERATION - 1, 5, 5),
        _ => return None,
    };
    Some(Token { generation, epoch, lease: [lease; 16] })
}

fn answer(result: Result<Option<Held<'_>>, Refusal>) -> String {
    match result {
        Ok(None) => "passes".into(),
        Ok(Some(held)) => held.task.to_string(),
        Err(refusal) => {
            assert!(refusal.hint.is_some(), "{refusal}");
            refusal.code.to_string()
        }
    }
}

/// `branch-of  stands-in  token  ONUS_AS`
fn check_local(row: &str, expected: &str) {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [owner, from, shown, worker] = words[..] else { panic!("{row}") };
    let (stations, token) = (stations(), token(shown));
    let worker: Option<Handle> = worker.parse().ok();
    let update = Local {
        refname: "refs/heads/agent/x",
        owner: post(&stations, owner),
        from: post(&stations, from),
        credentials: Credentials { token: token.as_ref(), generation: GENERATION, worker: worker.as_ref() },
    };
    assert_eq!(answer(local(&update)), expected, "{row}");
}

#[test]
fn a_local_branch() {
    for (row, expected) in [
        // Nobody's branch, moved from no registered worktree.
        ("-     -     -     -", "passes"),
        ("-     -     stale @bob", "passes"),
        ("gone  -     -     -", "passes"),
        ("-     gone  -     -", "passes"),
        // The branch of a workstation, from anywhere: its holder only.
        ("a     -     a     -", "API-1"),
        ("a     -     a     @ann", "API-1"),
        ("a     a     a     @ann", "API-1"),
        ("a     a     a     @bob", "fenced"),
        ("a     -     -     -", "lease_required"),
        ("a     a     -     @ann", "lease_required"),
        ("free  -     -     -", "lease_required"),
        ("free  free  stale @ann", "fenced"),
        ("a     a     stale @ann", "fenced"),
        ("a     a     forged -", "fenced"),
        ("a     a     wrong-epoch -", "fenced"),
        ("a     a     restored -", "fenced"),
        ("a     -     b     -", "fenced"),
        // Nobody's branch from a registered worktree: the lease held there.
        ("-     a     a     -", "API-1"),
        ("-     a     -     -", "lease_required"),
        ("-     a     b     -", "fenced"),
        ("-     free  -     -", "lease_required"),
        // A branch of one workstation from another one: neither lease opens both.
        ("b     a     a     @ann", "lease_required"),
        ("b     a     b     @bob", "fenced"),
        ("free  a     a     @ann", "lease_required"),
        ("gone  a     a     @ann", "API-1"),
        // Quarantine suspends the live lease, too.
        ("sick  sick  sick  @ann", "workstation_quarantined"),
        ("sick  -     -     -", "workstation_quarantined"),
        ("-     sick  sick  @ann", "workstation_quarantined"),
    ] {
        check_local(row, expected);
    }
}

#[test]
fn only_branches_are_guarded_locally() {
    let stations = stations();
    for refname in ["refs/tags/v1", "HEAD", "refs/remotes/origin/x", "refs/headsx/y"] {
        let update = Local {
            refname,
            owner: None,
            from: post(&stations, "a"),
            credentials: Credentials { token: None, generation: GENERATION, worker: None },
        };
        assert_eq!(answer(local(&update)), "passes", "{refname}");
    }
}

/// `reference  change  branch-of  token`; the caller finds the holder by the token, as the store does.
fn check_push(row: &str, expected: &str) {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [refname, change, owner, shown] = words[..] else { panic!("{row}") };
    let (stations, token) = (stations(), token(shown));
    let change = match change {
        "create" => Change::Create,
        "forward" => Change::Forward,
        "rewrite" => Change::Rewrite,
        "delete" => Change::Delete,
        other => panic!("{other}"),
    };
    let push = Push {
        refname,
        change,
        main: "refs/heads/main",
        owner: post(&stations, owner),
        holder: post(&stations, if matches!(shown, "restored" | "wrong-epoch") { "a" } else { shown }),
        credentials: Credentials { token: token.as_ref(), generation: GENERATION, worker: None },
    };
    assert_eq!(answer(pushed(&push).map(Some)), expected, "{row}");
}

#[test]
fn a_push() {
    for (row, expected) in [
        // Fails closed: every reference needs a live token.
        ("refs/heads/x     create   -    -", "lease_required"),
        ("refs/tags/v1     create   -    -", "lease_required"),
        ("refs/notes/x     create   -    -", "lease_required"),
        ("refs/heads/x     create   -    stale", "fenced"),
        ("refs/heads/x     create   -    forged", "fenced"),
        ("refs/heads/x     create   -    restored", "fenced"),
        ("refs/heads/x     create   -    wrong-epoch", "fenced"),
        ("refs/heads/x     create   -    sick", "workstation_quarantined"),
        // Its own branch, or one that is nobody's, in any way.
        ("refs/heads/x     create   -    a", "API-1"),
        ("refs/heads/x     rewrite  -    a", "API-1"),
        ("refs/heads/x     delete   -    a", "API-1"),
        ("refs/heads/a     rewrite  a    a", "API-1"),
        ("refs/heads/a     delete   a    a", "API-1"),
        ("refs/heads/old   forward  gone a", "API-1"),
        ("refs/heads/b     forward  b    a", "lease_required"),
        ("refs/heads/free  forward  free a", "lease_required"),
        ("refs/tags/v1     create   -    b", "API-2"),
        // The main branch: forward only.
        ("refs/heads/main  forward  -    a", "API-1"),
        ("refs/heads/main  create   -    a", "API-1"),
        ("refs/heads/main  rewrite  -    a", "not_permitted"),
        ("refs/heads/main  delete   -    a", "not_permitted"),
        // What Onus keeps in git is added to, never changed.
        ("refs/onus/salvage/API-1/4 create  - a", "API-1"),
        ("refs/onus/salvage/API-1/4 rewrite - a", "not_permitted"),
        ("refs/onus/salvage/API-1/4 forward - a", "not_permitted"),
        ("refs/onus/salvage/API-1/4 delete  - a", "not_permitted"),
        ("refs/onus/salvage/API-1/4 create  - -", "lease_required"),
    ] {
        check_push(row, expected);
    }
}

#[test]
fn a_refusal_names_the_task_and_its_holder_but_no_token() {
    let stations = stations();
    let token = token("b").unwrap();
    let credentials = Credentials { token: Some(&token), generation: GENERATION, worker: None };
    let owner = post(&stations, "a");
    let refusal = local(&Local { refname: "refs/heads/a", owner, from: None, credentials }).unwrap_err();
    assert_eq!(refusal.task.as_deref(), Some("API-1"));
    assert!(refusal.detail.contains("@ann"), "{refusal}");
    assert!(!format!("{refusal:?}").contains("0606"), "{refusal:?}");
}

#[test]
fn every_path_outside_is_told_at_once() {
    let stations = stations();
    let held = post(&stations, "a").unwrap().held.unwrap();
    assert_eq!(within(&held, vec![]), Ok(()));
    let finding = |path: &str| Finding::new(Code::ScopeViolation, format!("{path} is outside"));
    let refusal = within(&held, vec![finding("a.rs"), finding("b.rs")]).unwrap_err();
    assert_eq!((refusal.code, refusal.findings.len()), (Code::ScopeViolation, 2));
    assert_eq!(refusal.task.as_deref(), Some("API-1"));
}

#[test]
fn trailers_name_the_assignment() {
    let stations = stations();
    let held = post(&stations, "b").unwrap().held.unwrap();
    let text: Vec<String> = trailers(&held).iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(text, ["Onus-Task: API-2", "Onus-Agent: @bob", "Onus-Workstation: b", "Onus-Epoch: 6"]);
}
