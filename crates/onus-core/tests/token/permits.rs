use crate::tests::support::{handle, spec, task_id, text, workstation_of};
use onus_core::code::Code;
use onus_core::command::{Archive, Command, Envelope, Opinion, Run, Stage, Warrant, WhileBlocked};
use onus_core::evidence::{Classification, Ground, Proof, ReviewVerdict};
use onus_core::id::CheckId;
use onus_core::session::{Counts, Usage};
use onus_core::task::{Blocker, Check, CheckKind, CheckState, StateName};
use onus_core::time::Timestamp;
use onus_core::token::{Principal, TokenKind, administers, permits};
use std::collections::BTreeSet;

fn forced() -> Warrant {
    Warrant::Forced { reason: Some("because".into()) }
}

fn claim(warrant: Warrant) -> Command {
    Command::Claim {
        workstation: Some(workstation_of("a")),
        here: None,
        assignee: None,
        ttl: None,
        warrant,
        constraints: Vec::new(),
    }
}

fn claim_for(who: &str) -> Command {
    let (workstation, assignee) = (Some(workstation_of(who)), Some(handle(who)));
    Command::Claim {
        workstation,
        here: None,
        assignee,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    }
}

fn takeover(warrant: Warrant) -> Command {
    Command::Takeover { workstation: Some(workstation_of("a")), here: None, ttl: None, reason: None, warrant }
}

fn release(warrant: Warrant) -> Command {
    Command::Release { note: None, handoff: None, warrant }
}

fn complete(warrant: Warrant) -> Command {
    Command::Complete { resolution: None, root_cause: None, warrant, proof: Proof::default() }
}

fn add(archived: Option<Archive>) -> Command {
    Command::Add { spec: Box::new(spec("a task")), depends_on: BTreeSet::new(), archived, arrival: None }
}

fn run(check: CheckId) -> Command {
    Command::RecordCheck {
        run: Box::new(Run {
            check,
            exit: Some(0),
            signal: None,
            timed_out: false,
            took_ms: 1,
            ground: Ground { commit: None, dirty: false },
            output: text("ok"),
            output_length: 2,
            output_sha256: String::new(),
            environment: String::new(),
            sandbox: String::new(),
        }),
    }
}

fn review() -> Command {
    Command::Review {
        opinion: Box::new(Opinion {
            verdict: ReviewVerdict::Approved,
            classification: Classification::Implemented,
            commit: None,
            workstation: None,
            note: None,
            comments: Vec::new(),
        }),
    }
}

/// Every command, and what an agent's and a service's token are told; a person's carries all of them.
fn table() -> Vec<(Command, Option<Code>, Option<Code>)> {
    let check =
        Check { command: "make test".into(), state: CheckState::Approved, kind: CheckKind::Acceptance };
    let id = check.id();
    let commit = "0".repeat(40);
    let usage = Usage { key: "k".into(), source: "s".into(), model: None, counts: Counts::default() };
    let never = Some(Code::HumanRequired);
    let not_it = Some(Code::NotPermitted);
    let archive = Archive { state: StateName::Complete, resolution: None, at: None };
    let on = task_id(2);
    vec![
        (add(None), None, None),
        (add(Some(archive)), never, never),
        (claim(Warrant::Ordinary), None, not_it),
        (claim(forced()), never, never),
        (claim_for("a"), None, not_it),
        (claim_for("b"), never, never),
        (takeover(Warrant::Ordinary), None, not_it),
        (takeover(forced()), never, never),
        (Command::Renew { ttl: None, process: None }, None, not_it),
        (release(Warrant::Ordinary), None, not_it),
        (release(forced()), never, never),
        (
            Command::Block {
                on: Blocker::External("rain".into()),
                lease: WhileBlocked::KeepLease,
                note: None,
                handoff: None,
            },
            None,
            not_it,
        ),
        (Command::Unblock, None, not_it),
        (Command::Note { text: text("so") }, None, not_it),
        (Command::Say { to: None, text: text("so") }, None, not_it),
        (Command::Read { through: 1 }, None, not_it),
        (Command::Comment { commit: None, comments: vec![] }, None, not_it),
        (Command::Handoff { note: None, document: text("{}") }, None, not_it),
        (complete(Warrant::Ordinary), None, not_it),
        (complete(forced()), never, never),
        (Command::AddCheck { check }, None, not_it),
        (Command::ApproveCheck { check: id.clone() }, never, never),
        (Command::RemoveCheck { check: id.clone(), reason: None }, never, never),
        (run(id), None, not_it),
        (review(), None, not_it),
        (Command::Reopen { reason: None }, None, not_it),
        (Command::Drop { reason: None }, never, never),
        (Command::Edit { changes: Box::default() }, None, not_it),
        (Command::AddDependency { on: on.clone() }, None, not_it),
        (Command::RemoveDependency { on: on.clone() }, never, never),
        (Command::RequestException { on: on.clone(), reason: None, rollback: None, adr: None }, None, not_it),
        (Command::ApproveException { on }, never, never),
        (
            Command::Merge {
                commit: commit.parse().unwrap(),
                onto: commit.parse().unwrap(),
                checks: vec![],
                root_cause: None,
                stage: Stage::Land,
                proof: Proof::default(),
            },
            None,
            not_it,
        ),
        (Command::RequestReview { commit: None }, None, not_it),
        (Command::Adopt { of: 1, commits: vec![] }, None, not_it),
        (Command::Salvage { of: 1, reference: String::new(), commit: commit.parse().unwrap() }, None, not_it),
        (Command::StartSession, None, not_it),
        (Command::StopSession, None, not_it),
        (
            Command::CorrectSession {
                session: 1,
                started_at: Timestamp(0),
                ended_at: Timestamp(1),
                reason: None,
            },
            never,
            never,
        ),
        (Command::RecordUsage { session: 1, usage }, None, not_it),
        (Command::CloseOutput { session: 1 }, None, not_it),
        (Command::Tick { criteria: vec!["1".into()], withdrawn: false, workstation: None }, None, not_it),
    ]
}

/// The number of commands. A new one does not compile until it has a row above.
fn place(command: &Command) -> usize {
    match command {
        Command::Add { .. } => 0,
        Command::Claim { .. } => 1,
        Command::Takeover { .. } => 2,
        Command::Renew { .. } => 3,
        Command::Release { .. } => 4,
        Command::Block { .. } => 5,
        Command::Unblock => 6,
        Command::Note { .. } => 7,
        Command::Handoff { .. } => 8,
        Command::Complete { .. } => 9,
        Command::AddCheck { .. } => 10,
        Command::ApproveCheck { .. } => 11,
        Command::RemoveCheck { .. } => 12,
        Command::RecordCheck { .. } => 13,
        Command::Review { .. } => 14,
        Command::Reopen { .. } => 15,
        Command::Drop { .. } => 16,
        Command::AddDependency { .. } => 17,
        Command::RemoveDependency { .. } => 18,
        Command::RequestException { .. } => 19,
        Command::ApproveException { .. } => 20,
        Command::Merge { .. } => 21,
        Command::Salvage { .. } => 22,
        Command::StartSession => 23,
        Command::StopSession => 24,
        Command::CorrectSession { .. } => 25,
        Command::RecordUsage { .. } => 26,
        Command::RequestReview { .. } => 27,
        Command::Adopt { .. } => 28,
        Command::Edit { .. } => 29,
        Command::Tick { .. } => 30,
        Command::Say { .. } => 31,
        Command::Read { .. } => 32,
        Command::Comment { .. } => 33,
        Command::CloseOutput { .. } => 34,
    }
}

fn principal(kind: TokenKind) -> Principal {
    Principal {
        token_id: "01234567".parse().unwrap(),
        kind,
        worker: Some(handle("a")),
        workstation: None,
        label: None,
    }
}

fn envelope(actor: Option<&str>, command: Command) -> Envelope {
    Envelope {
        request: "r1".parse().unwrap(),
        actor: actor.map(handle),
        token: None,
        task: Some(task_id(1)),
        project: None,
        base: None,
        command,
    }
}

fn said(principal: &Principal, envelope: &Envelope) -> Option<Code> {
    permits(principal, envelope).err().map(|refusal| refusal.code)
}

#[test]
fn the_kind_of_a_token_decides_every_command() {
    let table = table();
    let covered: BTreeSet<usize> = table.iter().map(|(command, ..)| place(command)).collect();
    assert_eq!(covered, (0..35).collect());
    for (command, agent, service) in table {
        let call = envelope(Some("a"), command);
        let name = format!("{:?}", call.command);
        assert_eq!(said(&principal(TokenKind::Person), &call), None, "{name}");
        assert_eq!(said(&principal(TokenKind::Agent), &call), agent, "{name}");
        assert_eq!(said(&principal(TokenKind::Service), &call), service, "{name}");
    }
    assert!(administers(&principal(TokenKind::Person)).is_ok());
    for kind in [TokenKind::Agent, TokenKind::Service] {
        assert_eq!(administers(&principal(kind)).unwrap_err().code, Code::HumanRequired);
    }
}

#[test]
fn a_token_speaks_for_its_own_worker_only() {
    for kind in TokenKind::ALL {
        for other in [Some("b"), None] {
            let call = envelope(other, add(None));
            assert_eq!(said(&principal(*kind), &call), Some(Code::NotPermitted), "{kind:?} {other:?}");
        }
    }
    let nobodys = Principal { worker: None, ..principal(TokenKind::Service) };
    assert_eq!(said(&nobodys, &envelope(Some("a"), add(None))), Some(Code::NotPermitted));
    // Nothing anonymous enters the ledger: the rules refuse what no worker asks for.
    assert_eq!(nobodys.carry(envelope(None, add(None))).unwrap().actor, None);
}

#[test]
fn a_token_for_one_workstation_is_given_work_there_only() {
    let scoped = Principal { workstation: Some(workstation_of("a")), ..principal(TokenKind::Agent) };
    let elsewhere = Principal { workstation: Some(workstation_of("b")), ..principal(TokenKind::Agent) };
    for command in [claim(Warrant::Ordinary), takeover(Warrant::Ordinary)] {
        assert_eq!(said(&scoped, &envelope(Some("a"), command.clone())), None);
        assert_eq!(said(&elsewhere, &envelope(Some("a"), command)), Some(Code::NotPermitted));
    }
    // Unnamed, the identity map might send it anywhere.
    let anywhere = Command::Claim {
        workstation: None,
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    assert_eq!(said(&scoped, &envelope(Some("a"), anywhere.clone())), Some(Code::NotPermitted));
    let carried = scoped.carry(envelope(None, anywhere)).unwrap();
    assert_eq!(carried.actor, Some(handle("a")));
    assert_eq!(carried.command, claim(Warrant::Ordinary));
    // What is no grant happens where the holder is.
    assert_eq!(said(&scoped, &envelope(Some("a"), Command::Renew { ttl: None, process: None })), None);
}

#[test]
fn carrying_widens_nothing() {
    for (command, agent, _) in table() {
        let carried = principal(TokenKind::Agent).carry(envelope(None, command.clone()));
        assert_eq!(carried.err().map(|refusal| refusal.code), agent, "{command:?}");
        let other = principal(TokenKind::Agent).carry(envelope(Some("b"), command));
        assert_eq!(other.unwrap_err().code, Code::NotPermitted);
    }
}
