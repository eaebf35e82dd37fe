//! The guard, row by row: whose branch, where the caller stands, what it shows, and what comes of it.

use onus_core::code::Code;
use onus_core::constraint::Constraint;
use onus_core::guard::{
    Change, Credentials, Held, Local, Mover, Naming, News, Permit, Post, Push, client, local, pushed,
    trailers, within,
};
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::lease::{Lease, LeaseId, Token};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::{GitSettings, PeoplePolicy};
use onus_core::task::Assignment;
use onus_core::time::{Millis, Tick, Timestamp};
use onus_core::worker::Kind::{self, Agent, Human};
use onus_core::workstation::WorkstationKind::{self, Checkout, Logical, Worktree};
use onus_core::workstation::WorkstationState::{self, Quarantined, Ready, Retired};

const GENERATION: i64 = 2;

/// A workstation by name; those that hold a task have a lease of their own number.
struct Station {
    name: WorkstationName,
    kind: WorkstationKind,
    state: WorkstationState,
    held: Option<(TaskId, Assignment, Kind)>,
}

fn station(
    name: &str,
    kind: WorkstationKind,
    state: WorkstationState,
    held: Option<(&str, &str, u8)>,
) -> Station {
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
            constraints: Vec::new(),
        };
        (task.parse().unwrap(), assignment, if assignee == "@ada" { Human } else { Agent })
    });
    Station { name, kind, state, held }
}

fn stations() -> Vec<Station> {
    vec![
        station("a", Worktree, Ready, Some(("API-1", "@ann", 5))),
        station("b", Worktree, Ready, Some(("API-2", "@bob", 6))),
        station("free", Worktree, Ready, None),
        station("sick", Worktree, Quarantined, Some(("API-3", "@ann", 7))),
        station("gone", Worktree, Retired, None),
        // Main checkouts: one that nobody holds, one held by an agent, one by a person.
        station("top", Checkout, Ready, None),
        station("busy", Checkout, Ready, Some(("API-4", "@bob", 8))),
        station("own", Checkout, Ready, Some(("API-5", "@ada", 9))),
        // A name only: it is wherever its worker stands.
        station("name", Logical, Ready, Some(("API-6", "@cat", 10))),
        station("ill", Worktree, Quarantined, None),
        station("shut", Worktree, Ready, None),
        with_open(
            station("out", Worktree, Ready, Some(("API-7", "@dan", 11))),
            &["free", "a", "ill", "gone"],
        ),
    ]
}

/// Its holder may work in these workstations as well.
fn with_open(mut station: Station, places: &[&str]) -> Station {
    let (_, assignment, _) = station.held.as_mut().unwrap();
    let opened = places.iter().map(|place| Constraint::Workstation(place.parse().unwrap()));
    assignment.constraints = opened.collect();
    station
}

fn post<'a>(stations: &'a [Station], name: &str) -> Option<Post<'a>> {
    let station = stations.iter().find(|station| station.name.as_str() == name)?;
    let held = station.held.as_ref();
    let held = held.map(|(task, assignment, by)| Held { task, assignment, by: *by });
    Some(Post { workstation: &station.name, kind: station.kind, state: station.state, held })
}

/// `a`, `b` and `sick` are live tokens of those workstations; the others are not.
fn token(word: &str) -> Option<Token> {
    let (generation, epoch, lease) = match word {
        "a" => (GENERATION, 5, 5),
        "b" => (GENERATION, 6, 6),
        "sick" => (GENERATION, 7, 7),
        "busy" => (GENERATION, 8, 8),
        "own" => (GENERATION, 9, 9),
        "name" => (GENERATION, 10, 10),
        "out" => (GENERATION, 11, 11),
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

const MAIN: &str = "refs/heads/main";

/// `@ada` is a person, `@zed` not registered, `owner` the person whose clone it is, `client` a coding client without a
/// name, and every other name an agent's.
fn mover<'a>(word: &str, handle: &'a Handle) -> Mover<'a> {
    match word {
        "@ada" => Mover::Named { handle, kind: Human },
        "@zed" => Mover::Unregistered(handle),
        "owner" => Mover::Owner(handle),
        "client" => Mover::Client("CLAUDECODE"),
        "-" => Mover::Nobody,
        _ => Mover::Named { handle, kind: Agent },
    }
}

/// `branch-of  stands-in  token  who`; `main` and `head` as the first word are the main branch and a `HEAD` on no branch.
fn judged(row: &str, people: PeoplePolicy) -> String {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [owner, from, shown, who] = words[..] else { panic!("{row}") };
    let (stations, token) = (stations(), token(shown));
    let handle: Handle = if who.starts_with('@') { who } else { "@ada" }.parse().unwrap();
    let update = Local {
        refname: match owner {
            "main" => MAIN,
            "head" => "HEAD",
            _ => "refs/heads/agent/x",
        },
        change: Change::Forward,
        main: Some(MAIN),
        owner: post(&stations, owner),
        from: post(&stations, from),
        holder: token.as_ref().and_then(|_| post(&stations, shown)),
        elsewhere: None,
        credentials: Credentials {
            token: token.as_ref(),
            generation: GENERATION,
            mover: mover(who, &handle),
        },
        people,
    };
    answer(local(&update))
}

fn check_all(rows: &[(&str, &str)], people: PeoplePolicy) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(row, expected)| (row, expected, judged(row, people)))
        .filter(|(_, expected, found)| found != *expected)
        .map(|(row, expected, found)| format!("{row}: {found}, not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_branch_of_a_workstation_is_its_holders() {
    check_all(
        &[
            ("a     -     a     -", "API-1"),
            ("a     -     a     @ann", "API-1"),
            ("a     top   a     @ann", "API-1"),
            ("a     a     a     @ann", "API-1"),
            ("a     a     a     @bob", "fenced"),
            ("a     a     a     @zed", "fenced"),
            ("a     a     a     owner", "API-1"),
            ("a     -     -     -", "lease_required"),
            ("a     a     -     -", "lease_required"),
            ("a     a     -     owner", "lease_required"),
            ("a     a     -     client", "lease_required"),
            ("a     a     -     @ada", "lease_required"),
            ("a     a     -     @bob", "lease_required"),
            ("a     a     -     @ann", "lease_required"),
            ("a     top   -     owner", "lease_required"),
            ("free  -     -     -", "lease_required"),
            ("free  top   -     owner", "lease_required"),
            ("free  free  stale @ann", "fenced"),
            ("a     a     stale @ann", "fenced"),
            ("a     a     forged -", "fenced"),
            ("a     a     wrong-epoch -", "fenced"),
            ("a     a     restored -", "fenced"),
            ("a     -     b     -", "fenced"),
            // A branch of one workstation from another one: neither lease opens both.
            ("b     a     a     @ann", "lease_required"),
            ("b     a     b     @bob", "fenced"),
            ("free  a     a     @ann", "lease_required"),
            ("gone  a     a     @ann", "API-1"),
            // Quarantine suspends the live lease, too.
            ("sick  sick  sick  @ann", "workstation_quarantined"),
            ("sick  -     -     -", "workstation_quarantined"),
            ("-     sick  sick  @ann", "workstation_quarantined"),
        ],
        PeoplePolicy::Free,
    );
}

#[test]
fn a_workstation_that_an_assignment_opens() {
    check_all(
        &[
            ("-     free  out   @dan", "API-7"),
            ("-     free  out   @bob", "fenced"),
            ("-     out   out   @dan", "API-7"),
            ("head  free  out   @dan", "API-7"),
            // Somebody works there, it is in quarantine, or nobody has opened it.
            ("-     a     out   @dan", "fenced"),
            ("-     ill   out   @dan", "workstation_quarantined"),
            ("-     shut  out   @dan", "fenced"),
            // Another lease opens nothing there.
            ("-     free  b     @bob", "fenced"),
        ],
        PeoplePolicy::Free,
    );
}

#[test]
fn a_branch_that_is_nobodys() {
    check_all(
        &[
            // A person moves it freely, an agent under its lease.
            ("-     -     -     owner", "passes"),
            ("-     top   -     @ada", "passes"),
            ("-     top   stale @ada", "passes"),
            ("gone  top   -     owner", "passes"),
            ("-     gone  -     owner", "passes"),
            ("-     -     -     @bob", "lease_required"),
            ("-     top   -     @bob", "lease_required"),
            ("gone  top   -     @bob", "lease_required"),
            ("-     top   stale @bob", "fenced"),
            ("-     top   -     client", "lease_required"),
            ("-     top   -     -", "identity_required"),
            ("-     top   -     @zed", "unknown_worker"),
            ("-     top   a     @ann", "API-1"),
            ("-     top   a     @bob", "fenced"),
            ("-     top   name  @cat", "API-6"),
            ("-     top   name  client", "API-6"),
            // In a registered worktree only the lease held there counts.
            ("-     a     a     @ann", "API-1"),
            ("-     a     a     -", "API-1"),
            ("-     a     -     owner", "lease_required"),
            ("-     a     b     @bob", "fenced"),
            ("-     free  -     owner", "lease_required"),
            ("-     free  -     @ann", "lease_required"),
            // In the main checkout as soon as somebody holds a task there.
            ("-     busy  -     owner", "lease_required"),
            ("-     busy  -     @ann", "lease_required"),
            ("-     busy  busy  @bob", "API-4"),
            ("-     own   -     @bob", "lease_required"),
            ("-     own   own   owner", "API-5"),
            // What is on no branch could become one.
            ("head  top   -     owner", "passes"),
            ("head  top   -     @bob", "lease_required"),
            ("head  a     a     @ann", "API-1"),
            ("head  a     -     @bob", "lease_required"),
        ],
        PeoplePolicy::Free,
    );
}

#[test]
fn the_main_branch_is_moved_by_merge_or_by_a_person() {
    check_all(
        &[
            ("main  top   -     owner", "passes"),
            ("main  top   -     @ada", "passes"),
            ("main  own   own   @ada", "API-5"),
            ("main  top   -     @bob", "lease_required"),
            ("main  top   -     client", "lease_required"),
            ("main  top   -     -", "identity_required"),
            ("main  a     a     @ann", "not_permitted"),
            ("main  busy  busy  @bob", "not_permitted"),
            ("main  busy  -     owner", "lease_required"),
            ("main  top   name  @cat", "not_permitted"),
        ],
        PeoplePolicy::Free,
    );
}

#[test]
fn people_need_a_task_where_the_team_says_so() {
    check_all(
        &[
            ("main  top   -     owner", "lease_required"),
            ("-     top   -     @ada", "lease_required"),
            ("head  top   -     @ada", "lease_required"),
            ("main  own   own   owner", "API-5"),
            ("-     own   own   @ada", "API-5"),
        ],
        PeoplePolicy::Task,
    );
}

#[test]
fn what_is_neither_branch_nor_record_is_not_guarded_locally() {
    let stations = stations();
    let record = "refs/onus/salvage/API-1/4";
    let ann: Handle = "@ann".parse().unwrap();
    for (refname, change, who, expected) in [
        ("refs/tags/v1", Change::Delete, "-", "passes"),
        ("HEADS", Change::Rewrite, "-", "passes"),
        ("refs/stash", Change::Rewrite, "@ann", "passes"),
        ("refs/remotes/origin/x", Change::Rewrite, "@ann", "passes"),
        ("refs/headsx/y", Change::Create, "@ann", "passes"),
        (record, Change::Create, "-", "passes"),
        (record, Change::Delete, "@ann", "not_permitted"),
        (record, Change::Rewrite, "client", "not_permitted"),
        (record, Change::Delete, "owner", "passes"),
    ] {
        let update = Local {
            refname,
            change,
            main: Some(MAIN),
            owner: None,
            from: post(&stations, "a"),
            holder: None,
            elsewhere: None,
            credentials: Credentials { token: None, generation: GENERATION, mover: mover(who, &ann) },
            people: PeoplePolicy::Free,
        };
        assert_eq!(answer(local(&update)), expected, "{refname} {change:?} {who}");
    }
}

#[test]
fn a_coding_client_is_known_by_what_it_sets() {
    let patterns = GitSettings::default().clients;
    for (variables, expected) in [
        (&["PATH", "HOME"][..], None),
        (&["PATH", "CLAUDECODE"], Some("CLAUDECODE")),
        (&["GEMINI_CLI"], Some("GEMINI_CLI")),
        (&["CODEX_SANDBOX"], Some("CODEX_SANDBOX")),
        (&["CURSOR_AGENT"], Some("CURSOR_AGENT")),
        // What people set to configure a client, or an editor sets in their own terminal.
        (&["CODEX_HOME", "CURSOR_TRACE_ID", "CLAUDECODER"], None),
        (&["CODEX_HOME", "CODEX_SANDBOX"], Some("CODEX_SANDBOX")),
    ] {
        assert_eq!(client(&patterns, variables.iter().copied()), expected, "{variables:?}");
    }
    assert_eq!(client(&[], ["CLAUDECODE"]), None);
}

/// `reference  change  branch-of  token  who`; the caller finds the holder by the token, as the store does. A token that
/// begins with `@` is that person's own, one that ends in `!` lay in the working tree; `landed` behind the change says that
/// all of it is on record.
fn push(row: &str, people: PeoplePolicy) -> String {
    let naming = if row.contains('!') { Naming::Required } else { Naming::Free };
    let row = row.replace('!', "");
    let words: Vec<&str> = row.split_whitespace().collect();
    let [refname, change, owner, shown, who] = words[..] else { panic!("{row}") };
    let (stations, token) = (stations(), token(shown));
    let person: Option<Handle> = shown.parse().ok();
    let handle: Handle = if who.starts_with('@') { who } else { "@ada" }.parse().unwrap();
    let (change, news) = match change.split_once('+') {
        Some((change, _)) => (change, News::Landed),
        None => (change, News::Unseen),
    };
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
        news,
        main: MAIN,
        owner: post(&stations, owner),
        holder: post(&stations, if matches!(shown, "restored" | "wrong-epoch") { "a" } else { shown }),
        person: person.as_ref(),
        people,
        naming,
        credentials: Credentials {
            token: token.as_ref(),
            generation: GENERATION,
            mover: mover(who, &handle),
        },
    };
    match pushed(&push) {
        Ok(Permit::Held(held)) => held.task.to_string(),
        Ok(Permit::Person(person)) => person.to_string(),
        Ok(Permit::Landed) => "landed".into(),
        Err(refusal) => answer(Err(refusal)),
    }
}

#[test]
fn a_push() {
    for (row, expected) in [
        // Fails closed: every reference needs a live token.
        ("refs/heads/x     create   -    -       -", "lease_required"),
        ("refs/tags/v1     create   -    -       -", "lease_required"),
        ("refs/notes/x     create   -    -       -", "lease_required"),
        ("refs/heads/x     create   -    stale   -", "fenced"),
        ("refs/heads/x     create   -    forged  -", "fenced"),
        ("refs/heads/x     create   -    restored -", "fenced"),
        ("refs/heads/x     create   -    wrong-epoch -", "fenced"),
        ("refs/heads/x     create   -    sick    -", "workstation_quarantined"),
        // Its own branch, or one that is nobody's, in any way.
        ("refs/heads/x     create   -    a       -", "API-1"),
        ("refs/heads/x     create   -    a       @ann", "API-1"),
        ("refs/heads/x     create   -    a       @bob", "fenced"),
        // What lies in a working tree serves its holder only, and a coding client that names nobody is nobody's.
        ("refs/heads/x     create   -    a!      @ann", "API-1"),
        ("refs/heads/x     create   -    a!      @bob", "fenced"),
        ("refs/heads/x     create   -    a!      -", "identity_required"),
        ("refs/heads/x     create   -    a       client", "identity_required"),
        ("refs/heads/x     rewrite  -    a       -", "API-1"),
        ("refs/heads/x     delete   -    a       -", "API-1"),
        ("refs/heads/a     rewrite  a    a       -", "API-1"),
        ("refs/heads/a     delete   a    a       -", "API-1"),
        ("refs/heads/old   forward  gone a       -", "API-1"),
        ("refs/heads/b     forward  b    a       -", "lease_required"),
        ("refs/heads/free  forward  free a       -", "lease_required"),
        ("refs/tags/v1     create   -    b       -", "API-2"),
        // The main branch: forward only.
        ("refs/heads/main  forward  -    a       -", "API-1"),
        ("refs/heads/main  create   -    a       -", "API-1"),
        ("refs/heads/main  rewrite  -    a       -", "not_permitted"),
        ("refs/heads/main  delete   -    a       -", "not_permitted"),
        // What has landed is everybody's to push there, and nowhere else.
        ("refs/heads/main  forward+landed - -    -", "landed"),
        ("refs/heads/main  forward+landed - stale @bob", "landed"),
        ("refs/heads/main  rewrite+landed - -    -", "lease_required"),
        ("refs/heads/b     forward+landed b -    -", "lease_required"),
        // A person in their own name: what is no workstation's, and the main branch forward.
        ("refs/heads/x     rewrite  -    @ada    -", "@ada"),
        ("refs/heads/x     delete   -    @ada    @ada", "@ada"),
        ("refs/heads/main  forward  -    @ada    -", "@ada"),
        ("refs/heads/main  rewrite  -    @ada    -", "not_permitted"),
        ("refs/tags/v1     create   -    @ada    -", "@ada"),
        ("refs/heads/a     forward  a    @ada    -", "lease_required"),
        ("refs/heads/free  create   free @ada    -", "lease_required"),
        ("refs/heads/old   forward  gone @ada    -", "@ada"),
        ("refs/heads/x     create   -    @ada    @bob", "not_permitted"),
        // What Onus keeps in git is added to, never changed.
        ("refs/onus/salvage/API-1/4 create  - a  -", "API-1"),
        ("refs/onus/salvage/API-1/4 create  - @ada -", "@ada"),
        ("refs/onus/salvage/API-1/4 rewrite - a  -", "not_permitted"),
        ("refs/onus/salvage/API-1/4 forward - a  -", "not_permitted"),
        ("refs/onus/salvage/API-1/4 delete  - a  -", "not_permitted"),
        ("refs/onus/salvage/API-1/4 delete  - @ada -", "not_permitted"),
        ("refs/onus/salvage/API-1/4 create  - -  -", "lease_required"),
    ] {
        assert_eq!(push(row, PeoplePolicy::Free), expected, "{row}");
    }
    assert_eq!(push("refs/heads/main forward - @ada -", PeoplePolicy::Task), "lease_required");
}

#[test]
fn a_refusal_names_the_task_and_its_holder_but_no_token() {
    let stations = stations();
    let token = token("b").unwrap();
    let credentials = Credentials { token: Some(&token), generation: GENERATION, mover: Mover::Nobody };
    let update = Local {
        refname: "refs/heads/a",
        change: Change::Forward,
        main: None,
        owner: post(&stations, "a"),
        from: None,
        holder: None,
        elsewhere: None,
        credentials,
        people: PeoplePolicy::Free,
    };
    let refusal = local(&update).unwrap_err();
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
    let text = trailers(held.task, held.assignment);
    let text: Vec<String> = text.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(text, ["Onus-Task: API-2", "Onus-Agent: @bob", "Onus-Workstation: b", "Onus-Epoch: 6"]);
}
