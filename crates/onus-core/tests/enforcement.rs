//! The enforcement policy (mission B9): every state, command and kind of caller, decided once and written down.

mod table {
    use crate::tests::support::contract::assert_file;
    use crate::tests::support::{Done, World, handle, spec, task_id, text, workstation_of};
    use onus_core::command::{Archive, Changes, Command, Stage, Warrant, WhileBlocked};
    use onus_core::evidence::Proof;
    use onus_core::id::{Handle, TaskId};
    use onus_core::lease::Token;
    use onus_core::line_comment::LineComment;
    use onus_core::session::{Counts, Usage};
    use onus_core::task::{Blocker, Exception, StateName, Task};
    use onus_core::time::{Millis, Timestamp};
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    const PATH: &str = "docs/reference/enforcement.md";

    const INTRODUCTION: &str = "\
# Enforcement: who may do what, when

This is Onus's enforcement policy. Each table is one state of a task, each row a command, each column a kind of
caller. A cell is the state that the task is in after the command (*granted* where the caller got a new lease by it), or
the [code](../errors/README.md) of the refusal. The tables are made by asking the rules themselves, and a test fails when
they differ from this page.

**States.** *Live* means that the holder's lease runs; *expired* that it ran out and the grace period is over. *Blocked
and held* means that the holder kept the lease while it waits; *blocked and free* that it gave the lease back. *Archived*
is finished history that was imported.

**Callers.** A *holder* shows the token of its lease. A *stale holder* shows a token that was good once: the same worker,
an earlier grant. The other columns show no token. Where nobody holds the task, the holder's columns show the token of its
last grant; an archived task never had one. *Anonymous* has no identity and *unregistered* one that the store does not
know: neither may write anything.

**Commands.** *Forced* is `--force` with its reason: for people only, and on record for ever. Every caller gives a reason,
a resolution and a ready, free workstation where one is wanted, the task has no unmet dependency and no check, and its
holder is an agent unless the column says *person*: the tables show what state and caller decide, and each refusal's page
names its other causes. One of them belongs here: an agent never takes over from a person, however long the lease has
been expired (`human_required`). *session correct* and *session usage* are about an earlier session of the holder.

**Witnessed and stated.** The tables say who may act, not whether what they say is true. What Onus saw itself is *witnessed*: a run
that it started, a commit that its repository has. What a caller says is *stated*, kept under its name and shown as such, and
`complete.evidence: witnessed` refuses a completion that rests on it. [Threats](threats.md) tells which is which, and what
whoever can write to the store, or is root on its machine, can still do. What each kind of token gets at every door of a
server is in [contract/doors.txt](../../contract/doors.txt).
";

    /// A task in some state, and the tokens that were given on the way there.
    #[derive(Debug)]
    struct Fixture {
        world: World,
        task: TaskId,
        /// Of the first grant, to the holder; a second grant to the same worker may have followed.
        stale: Option<Token>,
        last: Option<Token>,
    }

    const STATES: [(&str, &str); 9] = [
        ("No such task", "none"),
        ("Open", "open"),
        ("In progress, lease live", "live"),
        ("In progress, lease expired", "expired"),
        ("Blocked and held", "held"),
        ("Blocked and free", "free"),
        ("Complete", "complete"),
        ("Dropped", "dropped"),
        ("Archived (complete)", "archived"),
    ];

    impl Fixture {
        /// Two grants to the same holder, so that it has a stale token and a good one; then on to the state.
        fn new(state: &str, holder: &str) -> Fixture {
            let mut fixture = Fixture { world: World::new(), task: task_id(1), stale: None, last: None };
            let archived = (state == "archived").then_some(Archive {
                state: StateName::Complete,
                resolution: None,
                at: None,
            });
            let other = Command::Add {
                spec: Box::new(spec("other")),
                depends_on: BTreeSet::new(),
                archived: None,
                arrival: None,
            };
            let add = Command::Add {
                spec: Box::new(spec("a task")),
                depends_on: BTreeSet::new(),
                archived,
                arrival: None,
            };
            fixture.must("p", &add);
            fixture.must("p", &other);
            if state == "none" {
                fixture.task = task_id(9);
            }
            if ["none", "archived"].contains(&state) {
                return fixture;
            }
            fixture.must(holder, &claim(holder, Warrant::Ordinary));
            fixture.stale = fixture.last.clone();
            fixture.must(holder, &release(Warrant::Ordinary));
            fixture.must(holder, &claim(holder, Warrant::Ordinary));
            match state {
                "open" => fixture.must(holder, &release(Warrant::Ordinary)),
                "expired" => fixture.world.tick(Millis::hours(25)),
                "held" => fixture.must(holder, &block(WhileBlocked::KeepLease)),
                "free" => fixture.must(holder, &block(WhileBlocked::ReleaseLease)),
                "complete" => fixture.must(holder, &complete(Warrant::Ordinary)),
                "dropped" => fixture.must("p", &Command::Drop { reason: because() }),
                _ => {}
            }
            fixture
        }

        fn must(&mut self, who: &str, command: &Command) {
            let (task, token) = (self.task.clone(), self.last.clone());
            self.world.call(Some(&handle(who)), token, Some(&task), command).unwrap();
            self.last = self.world.live_token(&task).or(self.last.take());
        }
    }

    fn because() -> Option<String> {
        Some("because".to_owned())
    }

    fn forced() -> Warrant {
        Warrant::Forced { reason: because() }
    }

    fn claim(who: &str, warrant: Warrant) -> Command {
        Command::Claim {
            workstation: Some(workstation_of(who)),
            here: None,
            assignee: None,
            ttl: None,
            warrant,
            constraints: Vec::new(),
        }
    }

    fn takeover(who: &str, warrant: Warrant) -> Command {
        Command::Takeover {
            workstation: Some(workstation_of(who)),
            here: None,
            ttl: None,
            reason: because(),
            warrant,
        }
    }

    fn release(warrant: Warrant) -> Command {
        Command::Release { note: Some(text("half done")), handoff: None, warrant }
    }

    fn complete(warrant: Warrant) -> Command {
        Command::Complete {
            resolution: Some(text("done")),
            root_cause: None,
            warrant,
            proof: onus_core::evidence::Proof::default(),
        }
    }

    fn block(lease: WhileBlocked) -> Command {
        Command::Block { on: Blocker::External("rain".to_owned()), lease, note: None, handoff: None }
    }

    fn edit(change: impl FnOnce(&mut Changes)) -> Command {
        let mut changes = Changes::default();
        change(&mut changes);
        Command::Edit { changes: Box::new(changes) }
    }

    /// What says something about a task and changes nothing of it.
    const WORDS: [&str; 4] = ["note", "say", "review --comment", "inbox read"];

    fn comment() -> Command {
        let comments = vec![LineComment { path: "src/lib.rs".into(), line: 3, text: text("why?") }];
        Command::Comment { commit: None, comments }
    }

    fn handoff() -> Command {
        let document = r#"{"format":"onus-handoff/1","task":"T-1","status":"in_progress","depends_on_satisfied":true,
            "depends_on":[],"commits":[],"files":[],"tests_run":[],"risks":[],"blockers":[],"next_slice":null,
            "lane":null,"summary":"half done","by":"@a","at":"2026-01-01T00:00:00Z","epoch":1,"workstation":"ws-a",
            "branch":null,"base":null,"head":null,"dirty":[],"salvage":null}"#;
        Command::Handoff { note: None, document: text(document) }
    }

    /// The entry of the first grant, whose session has ended; an archived task has none.
    const FIRST_SESSION: i64 = 3;

    fn correct() -> Command {
        let (started_at, ended_at) = (Timestamp(0), Timestamp(1_000));
        Command::CorrectSession { session: FIRST_SESSION, started_at, ended_at, reason: because() }
    }

    fn usage() -> Command {
        let counts = Counts { input_tokens: 1, ..Counts::default() };
        let usage = Usage { key: "k".into(), source: "reported".into(), model: None, counts };
        Command::RecordUsage { session: FIRST_SESSION, usage }
    }

    /// The word for the row, and the command as `who` gives it.
    fn commands(who: &str) -> Vec<(&'static str, Command)> {
        // A worker that is no worker has no workstation of its own.
        let place = if ["-", "x"].contains(&who) { "v" } else { who };
        let add = Command::Add {
            spec: Box::new(spec("one more")),
            depends_on: BTreeSet::new(),
            archived: None,
            arrival: None,
        };
        vec![
            ("add", add),
            ("claim", claim(place, Warrant::Ordinary)),
            ("claim, forced", claim(place, forced())),
            ("takeover", takeover(place, Warrant::Ordinary)),
            ("takeover, forced", takeover(place, forced())),
            ("renew", Command::Renew { ttl: None, process: None }),
            ("note", Command::Note { text: text("so far so good") }),
            ("say", Command::Say { to: None, text: text("mind the gap") }),
            ("review --comment", comment()),
            ("inbox read", Command::Read { through: 1 }),
            ("handoff", handoff()),
            ("block, lease kept", block(WhileBlocked::KeepLease)),
            ("block, lease released", block(WhileBlocked::ReleaseLease)),
            ("unblock", Command::Unblock),
            ("release", release(Warrant::Ordinary)),
            ("release, forced", release(forced())),
            ("complete", complete(Warrant::Ordinary)),
            ("complete, forced", complete(forced())),
            ("reopen", Command::Reopen { reason: because() }),
            ("drop", Command::Drop { reason: because() }),
            ("edit the title", edit(|changes| changes.title = Some("put better".to_owned()))),
            ("edit the tags", edit(|changes| changes.tags = Some(vec!["+urgent".to_owned()]))),
            ("edit the scope", edit(|changes| changes.scope = Some(vec!["src/**".to_owned()]))),
            ("dep add", Command::AddDependency { on: task_id(2) }),
            ("dep remove", Command::RemoveDependency { on: task_id(2) }),
            ("claim for another", claim_for(if who == "b" { "v" } else { "b" })),
            ("exception request", except()),
            ("exception approve", Command::ApproveException { on: task_id(2) }),
            ("merge", merge()),
            ("review request", Command::RequestReview { commit: None }),
            ("session start", Command::StartSession),
            ("session stop", Command::StopSession),
            ("session correct", correct()),
            ("session usage", usage()),
            ("session output", Command::CloseOutput { session: FIRST_SESSION }),
        ]
    }

    /// The column's title, who holds the task in it, who calls, and which token the caller shows.
    const CALLERS: [(&str, &str, &str, &str); 8] = [
        ("holder, agent", "a", "a", "last"),
        ("holder, person", "q", "q", "last"),
        ("stale holder, agent", "a", "a", "stale"),
        ("other agent", "a", "b", "none"),
        ("other person", "a", "p", "none"),
        ("verifier agent", "a", "v", "none"),
        ("anonymous", "a", "-", "last"),
        ("unregistered", "a", "x", "last"),
    ];

    fn cell(state: &str, row: usize, (_, holder, caller, shown): (&str, &str, &str, &str)) -> String {
        let mut fixture = Fixture::new(state, holder);
        let (name, command) = commands(caller).swap_remove(row);
        if name == "dep remove" || name.starts_with("exception") {
            depend(&mut fixture);
        }
        if name == "exception approve" {
            // What was asked for in time is still there when the task has ended.
            let task = fixture.world.tasks.get_mut(&fixture.task);
            task.into_iter().for_each(|task| drop(task.exceptions.insert(task_id(2), asked())));
        }
        let who: Option<Handle> = (caller != "-").then(|| handle(caller));
        let token = match shown {
            "last" => fixture.last.clone(),
            "stale" => fixture.stale.clone(),
            _ => None,
        };
        let before = fixture.world.tasks.get(&fixture.task).map_or(0, |task| task.epoch);
        match fixture.world.call(who.as_ref(), token, Some(&fixture.task), &command) {
            Ok(Done::Changed { task, .. }) => format!("→ {}", outcome(&fixture.world.tasks[&task], before)),
            Ok(Done::Existing(_)) => "no change".to_owned(),
            Err(refusal) => format!("`{}`", refusal.code),
        }
    }

    fn claim_for(assignee: &str) -> Command {
        let claim = claim(assignee, Warrant::Ordinary);
        let Command::Claim { workstation, here, ttl, warrant, .. } = claim else { unreachable!() };
        Command::Claim {
            workstation,
            here,
            assignee: Some(handle(assignee)),
            ttl,
            warrant,
            constraints: Vec::new(),
        }
    }

    fn except() -> Command {
        Command::RequestException { on: task_id(2), reason: because(), rollback: because(), adr: None }
    }

    fn asked() -> Exception {
        Exception {
            requested_by: handle("a"),
            reason: "because".to_owned(),
            rollback: "because".to_owned(),
            adr: None,
            approved_by: None,
        }
    }

    fn merge() -> Command {
        let (commit, onto) = ("c".repeat(40).parse().unwrap(), "0".repeat(40).parse().unwrap());
        let (root_cause, stage, proof) = (None, Stage::Land, Proof::default());
        Command::Merge { commit, onto, checks: Vec::new(), root_cause, stage, proof }
    }

    /// Writes the dependency into the row: an ended task can have one, but no command gives it one any more.
    fn depend(fixture: &mut Fixture) {
        if let Some(task) = fixture.world.tasks.get_mut(&fixture.task) {
            task.depends_on.insert(task_id(2));
        }
    }

    fn outcome(task: &Task, epoch: i64) -> String {
        let name = task.state.name();
        match task.assignment() {
            Some(held) if held.epoch > epoch => format!("{name}, granted"),
            None if name == StateName::Blocked => format!("{name}, free"),
            _ => name.to_string(),
        }
    }

    /// Without a task there is only something to add, and all other commands are alike.
    fn rows(state: &str) -> Vec<(usize, &'static str)> {
        let named: Vec<(usize, &str)> = commands("a").iter().map(|(name, _)| *name).enumerate().collect();
        if state == "none" { vec![named[0], (1, "every other command")] } else { named[1..].to_vec() }
    }

    fn render() -> String {
        let mut page = INTRODUCTION.to_owned();
        for (title, state) in STATES {
            let _ = write!(page, "\n## {title}\n\n| command |");
            for (caller, ..) in CALLERS {
                let _ = write!(page, " {caller} |");
            }
            let _ = write!(page, "\n|---|{}\n", "---|".repeat(CALLERS.len()));
            for (row, name) in rows(state) {
                let _ = write!(page, "| {name} |");
                for caller in CALLERS {
                    let _ = write!(page, " {} |", cell(state, row, caller));
                }
                page.push('\n');
            }
        }
        page
    }

    #[test]
    fn the_documented_policy_is_the_one_in_force() {
        assert_file(PATH, &render());
    }

    /// What must hold in every table, whatever the rest of it says.
    #[test]
    fn the_policy_keeps_its_promises() {
        for (_, state) in STATES {
            for (row, (name, _)) in commands("a").iter().enumerate() {
                for caller in CALLERS {
                    let said = cell(state, row, caller);
                    let at = format!("{state}, {name}, {}: {said}", caller.0);
                    let done = !said.starts_with('`');
                    match caller.0 {
                        "anonymous" => assert_eq!(said, "`identity_required`", "{at}"),
                        "unregistered" => assert_eq!(said, "`unknown_worker`", "{at}"),
                        who if state != "none" && name.ends_with("forced") && who.contains("agent") => {
                            assert_eq!(said, "`human_required`", "{at}");
                        }
                        who if state != "none" && *name == "drop" && who.contains("agent") => {
                            assert!(!done, "{at}");
                        }
                        who if state != "none" && *name == "session correct" && who.contains("agent") => {
                            assert!(!done, "{at}");
                        }
                        "other agent" | "verifier agent" if name.starts_with("session") => {
                            assert!(!done, "{at}");
                        }
                        _ if *name == "add" => assert_eq!(said, "→ open", "{at}"),
                        _ if state == "none" => assert_eq!(said, "`unknown_task`", "{at}"),
                        _ if state == "archived" && !WORDS.contains(name) && *name != "drop" => {
                            assert!(!done, "{at}");
                        }
                        "stale holder, agent"
                            if state != "archived"
                                && ["renew", "note", "say", "release", "complete", "merge"]
                                    .contains(name) =>
                        {
                            assert_eq!(said, "`fenced`", "{at}");
                        }
                        who if ["claim for another", "exception approve"].contains(name)
                            && who.contains("agent") =>
                        {
                            assert!(!done, "{at}");
                        }
                        _ if ["renew", "release", "complete", "merge"].contains(name)
                            || name.starts_with("block") =>
                        {
                            assert!(!done || caller.0.starts_with("holder"), "{at}");
                        }
                        _ => {}
                    }
                }
            }
        }
        let takeover = commands("a").iter().position(|(name, _)| *name == "takeover").unwrap();
        assert_eq!(cell("expired", takeover, ("agent, from a person", "q", "b", "none")), "`human_required`");
        assert_eq!(
            cell("expired", takeover, ("person, from a person", "q", "p", "none")),
            "→ in_progress, granted"
        );
    }
}
