//! One story: what many clients are told by two servers on one store, while the servers are killed, has one order.
//! With `ONUS_TEST_STORE=postgres` the store is a database; `ONUS_SOAK` makes it longer.

use crate::support::pair::Pair;
use crate::support::server::Reply;
use crate::support::{Agent, Rng, Site, text};
use onus_sim::history::{Act, Answer, History, Stage, Verdict};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How many of the tasks are wanted at the same time: few enough that clients meet.
const WANTED: u64 = 12;

/// How many clients, how often each of them acts, on how many tasks, and how often a server is killed meanwhile.
struct Size {
    clients: usize,
    acts: usize,
    tasks: u64,
    kills: usize,
}

fn size() -> Size {
    match std::env::var_os("ONUS_SOAK") {
        Some(_) => Size { clients: 64, acts: 1_500, tasks: 800, kills: 40 },
        None => Size { clients: 32, acts: 40, tasks: WANTED, kills: 6 },
    }
}

/// What a client holds, or held: a holder that was given up must be refused for ever.
#[derive(Clone)]
struct Token {
    task: u32,
    epoch: i64,
    lease: String,
}

struct Client<'s> {
    number: u32,
    agent: Agent,
    token: String,
    servers: &'s Pair<'s>,
    ids: &'s [String],
    history: &'s History,
    holds: Option<Token>,
    held: Option<Token>,
}

impl Client<'_> {
    /// One act; `first` is where the tasks begin that are wanted by now.
    fn act(&mut self, rng: &mut Rng, first: u64) {
        let choice = rng.below(100);
        let task = u32::try_from(first + rng.below(WANTED)).unwrap();
        match self.holds.clone() {
            Some(token) if choice < 40 => self.write(&token, Act::Renew(token.epoch), "renew", json!({})),
            Some(token) if choice < 80 => {
                self.write(&token, Act::Release(token.epoch), "release", json!({ "note": "half" }));
            }
            Some(token) if choice < 86 => {
                self.write(&token, Act::Complete(token.epoch), "complete", json!({ "resolution": "done" }));
            }
            None if choice < 70 => self.claim(task),
            _ if choice < 92 => match self.held.clone() {
                Some(old) => self.write(&old, Act::Release(old.epoch), "release", json!({ "note": "late" })),
                None => self.look(task),
            },
            _ => self.look(task),
        }
    }

    fn post(&self, task: u32, verb: &str, body: &Value) -> Reply {
        let path = format!("/v1/tasks/{}/{verb}", self.ids[task as usize]);
        self.servers.ask(self.number as usize, &self.token, "POST", &path, Some(body))
    }

    fn claim(&mut self, task: u32) {
        let mut lease = String::new();
        let answer = self.history.record(self.number, task, Act::Claim, || {
            let reply = self.post(task, "claim", &json!({ "workstation": self.agent.workstation }));
            if reply.status == 200 {
                lease = text(&reply.body["lease"]["token"]).to_owned();
                return Answer::Granted(reply.body["lease"]["epoch"].as_i64().unwrap());
            }
            assert!(matches!(reply.code(), "lease_held" | "not_claimable"), "{reply:#?}");
            Answer::NotClaimable
        });
        if let Answer::Granted(epoch) = answer {
            self.holds = Some(Token { task, epoch, lease });
        }
    }

    fn write(&mut self, token: &Token, act: Act, verb: &str, mut body: Value) {
        body["lease"] = json!(token.lease);
        let answer = self.history.record(self.number, token.task, act, || {
            let reply = self.post(token.task, verb, &body);
            if reply.status == 200 {
                return Answer::Done;
            }
            assert!(matches!(reply.code(), "fenced" | "lease_required" | "wrong_state"), "{reply:#?}");
            Answer::Fenced
        });
        if answer == Answer::Done && !matches!(act, Act::Renew(_)) {
            self.held = self.holds.take();
        }
    }

    fn look(&self, task: u32) {
        self.history.record(self.number, task, Act::Look, || {
            let path = format!("/v1/tasks/{}", self.ids[task as usize]);
            let seen = self.servers.ask(self.number as usize, &self.token, "GET", &path, None).ok();
            let seen = if seen["task"].is_object() { seen["task"].clone() } else { seen };
            Answer::Seen(match text(&seen["state"]) {
                "open" => Stage::Open,
                "complete" => Stage::Complete,
                _ => Stage::Held(seen["assignment"]["epoch"].as_i64().unwrap()),
            })
        });
    }
}

#[test]
fn what_clients_are_told_has_one_order() {
    let Size { clients, acts, tasks, kills } = size();
    let site = Site::new();
    let bearers = site.token_bearers(clients);
    site.import((0..tasks).map(|n| format!("{{\"title\":\"wanted {n}\"}}\n")).collect());
    let ids: Vec<String> = site.tasks().iter().map(|task| text(&task["id"]).to_owned()).collect();
    let servers = Pair::start(&site);
    let history = History::default();
    let mut seeds = Rng::seeded(7_919);
    let (done, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            // Evenly over the work, however fast it goes.
            for n in 0..kills {
                let until = (n + 1) * acts * clients / (kills + 1);
                while done.load(Ordering::Relaxed) < until && !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                servers.replace(n, "KILL");
            }
        });
        let threads: Vec<_> = (0..)
            .zip(&bearers)
            .map(|(number, (agent, token))| {
                let (servers, ids, history, done) = (&servers, &ids, &history, &done);
                let mut rng = seeds.fork();
                scope.spawn(move || {
                    let mut client = Client {
                        number,
                        agent: agent.clone(),
                        token: token.clone(),
                        servers,
                        ids,
                        history,
                        holds: None,
                        held: None,
                    };
                    for act in 0..acts as u64 {
                        client.act(&mut rng, act * (tasks - WANTED) / acts as u64);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = threads.into_iter().map(|client| client.join()).collect();
        over.store(true, Ordering::Relaxed);
        killer.join().unwrap();
        ended.into_iter().for_each(|end| end.unwrap());
    });
    assert_eq!(history.len(), acts * clients);
    assert_eq!(history.check(Duration::from_secs(120)), Verdict::Linearizable);
    site.assert_sound();
    eprintln!("{clients} clients, {} acts, {kills} kills: one order", history.len());
}
