//! A workspace behind a server answers as the store itself does: here without a network in between.

use super::desk::{self, Desk, id, request};
use onus_app::doctor::DoctorView;
use onus_app::idempotent_admin::Asker;
use onus_app::remote;
use onus_app::submit::{ReceiptKind, Target};
use onus_app::{Onus, Sight, progress::Silent};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::handoff::{Standing, Words};
use onus_core::id::{Handle, RequestId};
use onus_core::refusal::Refusal;
use onus_core::task::Spec;
use onus_core::text::Text;
use onus_store::port::{RemoteStore, Store as _};
use onus_store::read::queue::{Filter, Which};
use onus_store::remote::Elsewhere;
use std::collections::BTreeSet;

/// Answers for the store of a desk, as the worker that it knows the caller by.
#[derive(Debug)]
struct Line {
    near: Onus,
    caller: Handle,
}

impl RemoteStore for Line {
    fn call(
        &mut self,
        name: &str,
        arguments: String,
        request: Option<&RequestId>,
    ) -> Result<String, Refusal> {
        if name == "submit" {
            let (envelope, target) = remote::arrived(&arguments, Some(&self.caller))?;
            return remote::receipt(self.near.submit(&envelope, &target)?);
        }
        let asker = Asker { actor: Some(&self.caller), request, shown: None };
        remote::answer(&mut self.near, asker, name, &arguments)
    }
}

fn far_from(desk: &Desk, caller: &str) -> Onus {
    let near = desk::open(&desk.path());
    let place = near.place.clone();
    let line = Line { near, caller: caller.parse().unwrap() };
    Onus {
        store: Box::new(Elsewhere(Box::new(line))),
        settings: onus_core::settings::Settings::default(),
        path: "elsewhere".into(),
        place,
        sight: Sight::Workstations,
    }
}

fn envelope(task: Option<&str>, command: Command) -> Envelope {
    // Whatever a client says about itself is not believed.
    let actor = Some("@mallory".parse().unwrap());
    Envelope {
        request: request(),
        actor,
        token: None,
        task: task.map(id),
        project: None,
        base: None,
        command,
    }
}

fn claim() -> Command {
    Command::Claim {
        workstation: Some("ws-1".parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
    }
}

fn add(title: &str) -> Command {
    let body = Some(Text::new(format!("the body of {title}")));
    Command::Add {
        spec: Box::new(Spec { body, kind: "feature".into(), ..Spec::titled(title) }),
        depends_on: BTreeSet::new(),
        archived: None,
    }
}

#[test]
fn a_whole_story_travels() {
    let mut desk = Desk::new();
    let mut far = far_from(&desk, "@bot");
    let added = far.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    assert_eq!((added.kind, added.task.created_by.as_str()), (ReceiptKind::Created, "@bot"));
    assert_eq!(added.task.spec.body.unwrap().content(), Some("the body of one"));
    let task = added.task.id.to_string();
    let claimed = far.submit(&envelope(None, claim()), &Target::Next(Filter::default())).unwrap();
    let token = claimed.token.clone().unwrap();
    // The token opens what the store holds, and the store's copy of the lease never left it.
    assert!(desk.onus.task(&id(&task)).unwrap().assignment().unwrap().lease.is_opened_by(&token));
    assert!(claimed.task.assignment().unwrap().lease.id.secret().is_none());
    let words = Words { summary: Some("half of it".into()), ..Words::default() };
    let handoff = far.compose_handoff(&id(&task), Standing::Released, None, &words).unwrap();
    let release =
        Command::Release { note: Some(Text::new("half".into())), handoff, warrant: Warrant::Ordinary };
    let released = Envelope { token: Some(token), ..envelope(Some(&task), release) };
    let once = far.submit(&released, &Target::Named).unwrap();
    let twice = far.submit(&released, &Target::Named).unwrap();
    assert_eq!((once.task.version, once.kind), (twice.task.version, twice.kind));
    let near = serde_json::to_value(desk.onus.show(&id(&task)).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(far.show(&id(&task)).unwrap()).unwrap(), near);
    assert_eq!(near["handoff"]["handoff"]["summary"], "half of it");
}

#[test]
fn every_question_is_answered_as_near_by() {
    let mut desk = Desk::new();
    let ada: Handle = "@ada".parse().unwrap();
    let mut far = far_from(&desk, "@ada");
    far.submit(&envelope(None, add("one")), &Target::Named).unwrap();
    let filter = Filter::default();
    let day = desk.onus.today(Some(&ada)).unwrap();
    macro_rules! same {
        ($($method:ident($($argument:expr),*);)+) => {$(
            let near = serde_json::to_value(desk.onus.$method($($argument),*).unwrap()).unwrap();
            let there = serde_json::to_value(far.$method($($argument),*).unwrap()).unwrap();
            assert_eq!(near, there, stringify!($method));
        )+};
    }
    same! {
        list(Which::Active, &filter, None, 10);
        ready(&filter, 10);
        ready_for(Some(&ada), &filter, 10);
        held();
        status();
        stale();
        log(None, None, 50);
        workers(None);
        workstations(None);
        sessions(None, None, 10);
        day(&ada, day);
        prime(Some(&ada), None);
        exceptions(None);
        validate(&mut Silent);
    }
    // Two looks at a clock see two times.
    let checked = |view: DoctorView| -> Vec<_> {
        view.checks.into_iter().map(|check| (check.name, check.ok, check.code)).collect()
    };
    assert_eq!(checked(far.doctor(&mut Silent).unwrap()), checked(desk.onus.doctor(&mut Silent).unwrap()));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let near = desk.onus.export_ledger(&mut here, &mut Silent).unwrap();
    assert_eq!(far.export_ledger(&mut there, &mut Silent).unwrap().entries, near.entries);
    assert_eq!(here, there);
}

#[test]
fn who_asks_is_the_servers_to_say() {
    let desk = Desk::new();
    let mut far = far_from(&desk, "@bot");
    let ada: Handle = "@ada".parse().unwrap();
    // The client claims to be a person; the server knows an agent.
    let refused = far.quarantine(Some(&ada), &"ws-1".parse().unwrap(), Some("why not")).unwrap_err();
    assert_eq!(refused.code, Code::HumanRequired);
}

#[test]
fn what_cannot_travel_says_so() {
    let desk = Desk::new();
    let mut far = far_from(&desk, "@ada");
    let refused = far.export_archive(&mut Vec::new(), &mut Silent).unwrap_err();
    assert!(format!("{refused:?}").contains("NotPermitted"), "{refused:?}");
    let unknown = far.store.remote().unwrap().call("no-such-call", "null".into(), None).unwrap_err();
    assert_eq!(unknown.code, Code::InvalidInput);
    let nonsense = far.store.remote().unwrap().call("show", "[42]".into(), None).unwrap_err();
    assert_eq!(nonsense.code, Code::InvalidInput);
}

/// A call that one side knows and the other does not would only show on the day somebody makes it.
#[test]
fn every_call_that_travels_is_known_on_arrival() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = BTreeSet::new();
    let mut folders = vec![source];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                for way in [
                    "self.remote_call(",
                    "self.remote::<",
                    "self.remote_call_under",
                    "self.administer",
                    ".asks(",
                ] {
                    let calls =
                        text.split(way).skip(1).filter_map(|rest| rest.split_once('"')?.1.split_once('"'));
                    // A sentence is no name: where the name is a variable, the next text is something else.
                    let calls = calls.filter(|(name, _)| !name.contains(' '));
                    names.extend(calls.map(|(name, _)| name.to_owned()));
                }
            }
        }
    }
    assert!(names.len() > 40, "{names:?}");
    let desk = Desk::new();
    let mut far = far_from(&desk, "@ada");
    for name in names.iter().filter(|name| *name != "submit") {
        if let Err(refusal) = far.store.remote().unwrap().call(name, "{}".into(), None) {
            assert!(!refusal.detail.contains("knows no call"), "{name}: {refusal}");
        }
    }
}
