//! What holds after every call of every history: the promises of lease, fence and ledger.

mod properties {
    use crate::tests::support::history::{Call, History, Op, hold, ops};
    use crate::tests::support::{Session, WORKSPACE, World};
    use onus_core::command::{Command, Warrant};
    use onus_core::effect::EndReason;
    use onus_core::event::Event;
    use onus_core::hash::Digest;
    use onus_core::id::TaskId;
    use onus_core::ledger::{Entry, Head, merkle_root};
    use onus_core::process::Process;
    use onus_core::task::{Assignment, State, Task};
    use onus_core::worker::Kind;
    use onus_core::workstation::WorkstationState;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn promises_hold_whatever_happens() {
        hold(512, &ops(true), |ops| {
            let mut history = History::new();
            for op in &ops {
                history.play(op, |call, after| {
                    epochs_only_rise(call, after);
                    rows_are_their_chains(call, after);
                    no_lease_changes_hands_early(call, after);
                    wrong_tokens_change_nothing(call, after);
                    agents_never_force(call, after);
                    one_holder(after);
                    sessions_are_apart_by_entry(after);
                    the_dead_are_not_paid(after);
                });
            }
        });
    }

    #[test]
    fn sessions_are_apart_by_the_clock_even_when_it_runs_backwards() {
        hold(512, &ops(true), |ops| {
            let mut history = History::new();
            for op in &ops {
                history.play(op, |_, _| {});
            }
            for group in by_place(&history.world).values() {
                for pair in group.windows(2) {
                    let recorded = pair[0].to.expect("closed before the next one").1;
                    assert!(pair[0].from.1 <= recorded, "{pair:#?}");
                    // As they count: corrected where somebody did.
                    let end = pair[0].ended().expect("closed before the next one");
                    assert!(pair[0].began() <= end && end <= pair[1].began(), "{pair:#?}");
                }
            }
        });
    }

    #[test]
    fn no_session_is_in_the_future_while_the_clock_does_not_run_backwards() {
        hold(128, &ops(false), |ops| {
            let mut history = History::new();
            for op in &ops {
                history.play(op, |_, _| {});
            }
            let now = history.world.clock.wall;
            assert!(history.world.sessions.iter().all(|s| s.began() <= now));
            assert!(history.world.sessions.iter().all(|s| s.ended().is_none_or(|at| at <= now)));
        });
    }

    /// The histories are worth something only if they reach what the rules are about.
    #[test]
    fn histories_reach_every_kind_of_entry() {
        let seen = std::cell::RefCell::new(BTreeSet::new());
        hold(256, &ops(true), |ops| {
            let mut history = History::new();
            for op in &ops {
                history.play(op, |_, _| {});
            }
            let entries = history.world.chains.values().flatten();
            let names = entries.map(|e| (e.verb.clone(), e.data.contains("\"late_by_ms\""), forced(e)));
            seen.borrow_mut().extend(names);
        });
        let expected = [
            ("added", false, false),
            ("claimed", false, false),
            ("claimed", false, true),
            ("taken_over", false, false),
            ("taken_over", false, true),
            ("renewed", false, false),
            ("renewed", true, false),
            ("noted", true, false),
            ("blocked", true, false),
            ("unblocked", false, false),
            ("released", true, false),
            ("released", false, true),
            ("completed", true, false),
            ("completed", false, true),
            ("reopened", false, false),
            ("dropped", false, false),
            ("dependency_added", false, false),
            ("dependency_removed", false, false),
            ("refused", false, false),
            ("session_started", false, false),
            ("session_stopped", true, false),
            ("session_corrected", false, false),
            ("edited", false, false),
            ("edited", true, false),
        ];
        for (verb, late, forced) in expected {
            assert!(
                seen.borrow().contains(&(verb.to_owned(), late, forced)),
                "no {verb} late={late} forced={forced}"
            );
        }
    }

    fn epochs_only_rise(call: &Call<'_>, after: &World) {
        for (id, task) in &after.tasks {
            let epoch = call.before.tasks.get(id).map_or(0, |task| task.epoch);
            let entries = new_entries(call, after, id);
            let raises =
                |entry: &&Entry| matches!(&*entry.verb, "claimed" | "taken_over" | "reopened" | "dropped");
            let raised = i64::try_from(entries.iter().filter(raises).count()).unwrap();
            assert_eq!(task.epoch, epoch + raised, "{id}");
        }
        let mut last: BTreeMap<&TaskId, i64> = BTreeMap::new();
        for row in &after.assignments {
            let before = last.insert(&row.task, row.assignment.epoch).unwrap_or(0);
            assert!(before < row.assignment.epoch, "two grants of {} share an epoch", row.task);
        }
    }

    fn rows_are_their_chains(call: &Call<'_>, after: &World) {
        for (id, row) in &after.tasks {
            let chain = &after.chains[id];
            assert_eq!(row.version, i64::try_from(chain.len()).unwrap());
            if call.before.tasks.get(id) != Some(row) {
                assert_eq!(World::replay(chain).as_ref(), Ok(row));
            }
        }
    }

    /// Worked out from the clocks once more, not by asking the lease.
    fn may_change_hands(world: &World, held: &Assignment) -> bool {
        if world.workstations[&held.workstation].state == WorkstationState::Quarantined {
            return true;
        }
        let here = |process: &&Process| process.host == world.clock.tick.host;
        if let Some(process) = held.lease.process.as_ref().filter(here)
            && (world.ended.contains(&process.wrapper.pid) || process.boot != world.clock.tick.boot)
        {
            return true;
        }
        let grace = world.settings.lease.grace.0;
        let (then, now) = (&held.lease.tick, &world.clock.tick);
        if then.host != now.host {
            return world.clock.wall.0 - held.lease.renewed_at.0 >= held.lease.ttl.0 + grace;
        }
        then.boot != now.boot || now.millis - then.millis >= held.lease.ttl.0 + grace
    }

    fn no_lease_changes_hands_early(call: &Call<'_>, after: &World) {
        for (id, task) in &after.tasks {
            let Some(old) = call.before.tasks.get(id).and_then(Task::assignment) else { continue };
            if task.assignment().is_some_and(|new| new.epoch == old.epoch) {
                continue;
            }
            let entry = after.chains[id].last().unwrap();
            let person = after.workers[call.who].kind == Kind::Human;
            match task.assignment() {
                _ if forced(entry) => assert!(person),
                Some(_) => {
                    assert!(may_change_hands(call.before, old), "{id} changed hands early: {entry:#?}");
                    assert!(person || call.before.workers[&old.assignee].kind == Kind::Agent);
                }
                None if entry.verb == "dropped" => assert!(person),
                None => assert_eq!(entry.actor, old.assignee.as_str(), "ended by somebody else: {entry:#?}"),
            }
        }
    }

    /// A holder's command by anybody who is not the holder, or does not show it, is refused without a trace.
    fn wrong_tokens_change_nothing(call: &Call<'_>, after: &World) {
        let Some(task) = call.before.tasks.get(call.task) else { return };
        let ordinary = |warrant: &Warrant| *warrant == Warrant::Ordinary;
        let needs_token = match call.command {
            Command::Renew { .. } | Command::Block { .. } | Command::Handoff { .. } => true,
            Command::Release { warrant, .. } | Command::Complete { warrant, .. } => ordinary(warrant),
            Command::Unblock => !matches!(task.state, State::Blocked { held: None, .. }),
            Command::Note { .. } | Command::Edit { .. } => call.token.is_some(),
            _ => false,
        };
        let live = call.before.live_token(call.task);
        let holds = task.assignment().is_some_and(|held| held.assignee == *call.who);
        let proven = holds && live.is_some() && live.as_ref() == call.token;
        if needs_token && !proven {
            assert!(call.answer.is_err(), "{call:#?}");
            assert_eq!(after.tasks, call.before.tasks);
            assert_eq!(after.chains, call.before.chains);
            assert_eq!(after.sessions, call.before.sessions);
            assert_eq!(after.assignments, call.before.assignments);
            assert_eq!(after.notes, call.before.notes);
        }
    }

    fn agents_never_force(call: &Call<'_>, after: &World) {
        let Some(worker) = after.workers.get(call.who) else {
            assert_eq!(after.chains, call.before.chains, "an unregistered worker left a trace");
            return;
        };
        for id in after.tasks.keys().filter(|_| worker.kind == Kind::Agent) {
            for entry in new_entries(call, after, id) {
                assert!(!forced(entry), "{entry:#?}");
                assert!(!matches!(&*entry.verb, "dropped" | "dependency_removed"), "{entry:#?}");
                assert!(entry.verb != "reopened" || worker.is_verifier(), "{entry:#?}");
            }
        }
    }

    fn one_holder(world: &World) {
        let mut places = BTreeSet::new();
        for task in world.tasks.values() {
            let live: Vec<&Assignment> = world
                .assignments
                .iter()
                .filter(|row| row.task == task.id && row.ended.is_none())
                .map(|row| &row.assignment)
                .collect();
            assert_eq!(live, task.assignment().into_iter().collect::<Vec<_>>(), "{}", task.id);
            let place = task.assignment().map(|held| &held.workstation);
            assert!(place.is_none_or(|place| places.insert(place)), "{place:?} holds two tasks");
        }
    }

    fn by_place(world: &World) -> BTreeMap<(&str, &str), Vec<&Session>> {
        let mut groups: BTreeMap<(&str, &str), Vec<&Session>> = BTreeMap::new();
        for session in &world.sessions {
            groups.entry((session.worker.as_str(), session.workstation.as_str())).or_default().push(session);
        }
        groups
    }

    fn sessions_are_apart_by_entry(world: &World) {
        for group in by_place(world).values() {
            for pair in group.windows(2) {
                let end = pair[0].to.expect("closed before the next one").0;
                assert!(end <= pair[1].from.0, "{pair:#?}");
            }
        }
        for task in world.tasks.values() {
            let open = world.sessions.iter().filter(|s| s.task == task.id && s.to.is_none()).count();
            let works = matches!(&task.state, State::InProgress(held) if !held.resting);
            assert_eq!(open, usize::from(works), "{}", task.id);
        }
    }

    /// A session that somebody else ended stops at the holder's last entry, found in the chain itself.
    fn the_dead_are_not_paid(world: &World) {
        for session in &world.sessions {
            let Some((seq, at, reason)) = session.to else { continue };
            let ended_by = world.chains[&session.task].iter().find(|e| e.seq == seq).unwrap();
            // A grant to the same name is another process; any other act of the holder is its own.
            let grant = matches!(&*ended_by.verb, "claimed" | "taken_over");
            if ended_by.actor == session.worker.as_str() && !grant {
                assert_eq!(at, ended_by.at.whole_second(), "{session:#?}");
                continue;
            }
            let others = matches!(reason, EndReason::TakenOver | EndReason::Forced | EndReason::Dropped);
            assert!(others, "{session:#?}");
            let mut signs = world.chains[&session.task].iter().filter(|e| {
                e.epoch == session.epoch
                    && e.seq < seq
                    && e.actor == session.worker.as_str()
                    && is_sign_of_life(e)
            });
            assert_eq!(Some(at), signs.next_back().map(|e| e.at.whole_second()), "{session:#?}");
        }
    }

    fn is_sign_of_life(entry: &Entry) -> bool {
        match entry.open().unwrap().event {
            Event::Claimed(_)
            | Event::TakenOver(_)
            | Event::Renewed(_)
            | Event::Unblocked(_)
            | Event::SessionStarted(_)
            | Event::SessionStopped(_) => true,
            Event::Noted(noted) => noted.renewal.is_some(),
            Event::Edited(edited) => edited.renewal.is_some(),
            _ => false,
        }
    }

    fn forced(entry: &Entry) -> bool {
        match entry.open().unwrap().event {
            Event::Claimed(claimed) => claimed.grant.forced,
            Event::TakenOver(taken) => taken.grant.forced,
            Event::Released(released) => released.forced,
            Event::Completed(completed) => completed.forced,
            _ => false,
        }
    }

    fn new_entries<'a>(call: &Call<'_>, after: &'a World, id: &TaskId) -> &'a [Entry] {
        &after.chains[id][call.before.chains.get(id).map_or(0, Vec::len)..]
    }

    // The ledger against those who would rewrite it.

    type Chains = BTreeMap<TaskId, Vec<Entry>>;

    fn heads(chains: &Chains) -> Vec<Head> {
        let head = |(id, chain): (&TaskId, &Vec<Entry>)| {
            let last = chain.last()?;
            Some(Head { chain: id.to_string(), seq: last.seq, hash: last.hash })
        };
        chains.iter().filter_map(head).collect()
    }

    /// Whether every hash and every link of one chain is right, without looking at what the entries say.
    fn linked(id: &TaskId, chain: &[Entry]) -> bool {
        let mut head = Digest::ZERO;
        chain.iter().all(|entry| {
            let fits = entry.prev == head
                && entry.hash == entry.expected_hash(WORKSPACE)
                && entry.task.as_deref() == Some(&id.to_string());
            head = entry.hash;
            fits
        })
    }

    const EDITS: usize = 10;

    fn edit(entry: &mut Entry, field: usize) {
        match field {
            0 => entry.seq += 1,
            1 => entry.task = Some("T-99".into()),
            2 => entry.at.0 += 1,
            3 => entry.actor.push('x'),
            4 => entry.workstation = entry.workstation.as_ref().map_or(Some("ws-x".into()), |_| None),
            5 => entry.epoch += 1,
            6 => entry.verb.push('x'),
            7 => entry.data.push(' '),
            8 => entry.prev.0[31] ^= 1,
            _ => entry.hash.0[0] ^= 1,
        }
    }

    /// A forger who also makes the hashes fit again, from `first` to the end of the chain.
    fn reseal(chain: &mut [Entry], first: usize) {
        for i in first..chain.len() {
            chain[i].prev = i.checked_sub(1).map_or(Digest::ZERO, |before| chain[before].hash);
            chain[i].hash = chain[i].expected_hash(WORKSPACE);
        }
    }

    fn chains_of(ops: &[Op]) -> Chains {
        let mut history = History::new();
        for op in ops {
            history.play(op, |_, _| {});
        }
        history.world.chains
    }

    #[test]
    fn every_tampering_shows() {
        let places =
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
        hold(512, &(ops(true), places, 0..EDITS), |(ops, (which, at, to), field)| {
            let chains = chains_of(&ops);
            assert!(chains.iter().all(|(id, chain)| linked(id, chain)));
            let anchored = merkle_root(&heads(&chains));
            let id = chains.keys().nth(which.index(chains.len())).unwrap();
            let chain = &chains[id];
            let (at, to) = (at.index(chain.len()), to.index(chain.len()));
            let tampered = |change: &dyn Fn(&mut Vec<Entry>)| {
                let mut copy = chain.clone();
                change(&mut copy);
                copy
            };
            let root = |forged: Vec<Entry>| {
                let mut copy = chains.clone();
                copy.insert(id.clone(), forged);
                merkle_root(&heads(&copy))
            };

            let edited = tampered(&|chain| edit(&mut chain[at], field));
            assert!(!linked(id, &edited), "an edit of field {field}");
            let doubled = tampered(&|chain| chain.insert(to, chain[at].clone()));
            assert!(!linked(id, &doubled), "a doubled entry");
            let forked = tampered(&|chain| {
                let mut other = chain[at].clone();
                other.data.push(' ');
                other.hash = other.expected_hash(WORKSPACE);
                chain.insert(at + 1, other);
            });
            assert!(!linked(id, &forked), "a fork");
            if at != to {
                assert!(!linked(id, &tampered(&|chain| chain.swap(at, to))), "a reordering");
            }
            // Without its tail a chain still fits together: that is what the anchored root is for.
            let shorter = tampered(&|chain| drop(chain.remove(at)));
            assert_eq!(linked(id, &shorter), at + 1 == chain.len(), "a deletion");
            let truncated = tampered(&|chain| chain.truncate(at));
            assert_ne!(root(truncated), anchored, "a truncation, against the anchor");

            if field < 8 {
                let resealed = tampered(&|chain| {
                    edit(&mut chain[at], field);
                    reseal(chain, at);
                });
                assert_ne!(root(resealed), anchored, "an edit made to fit, against the anchor");
            }
            assert!(!linked(&"T-99".parse().unwrap(), chain), "a chain under another task's name");
            assert!(chain.iter().all(|entry| entry.hash != entry.expected_hash("another workspace")));
        });
    }
}
