//! Writers killed with SIGKILL at any moment: an acknowledged write is never lost, and a call whose answer was lost
//! is resolved by its request id with exactly one effect (rules: every call ends ok, refused or unknown).

use crate::support::{Agent, Answer, Rng, Site, finish, is_soak, start, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const WRITERS: usize = 3;

/// One call of a writer: its words, and the request id that makes a repeat of it harmless.
#[derive(Debug, Clone)]
struct Call {
    args: Vec<String>,
    request: String,
}

impl Call {
    fn new(args: &[&str], request: String) -> Call {
        let args = args.iter().map(|word| (*word).to_owned()).collect();
        Call { args, request }
    }

    fn words(&self) -> Vec<&str> {
        let own = self.args.iter().map(String::as_str);
        own.chain(["--json", "--request-id", self.request.as_str()]).collect()
    }
}

/// How a call ended for the writer: with an answer, or killed before it could read one.
enum End {
    Answered(Answer),
    Killed,
}

fn run_until(site: &Site, call: &Call, deadline: Instant) -> End {
    let mut child = start(&mut site.command(&call.words()));
    loop {
        if child.try_wait().unwrap().is_some() {
            return End::Answered(finish(child));
        }
        if Instant::now() >= deadline {
            child.kill().unwrap();
            let answer = finish(child);
            // The call may have ended between the look and the kill: then it was answered.
            return if answer.exit.is_some() { End::Answered(answer) } else { End::Killed };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// What one writer did in one cycle: the task it worked on, and what it knows to be written.
#[derive(Debug, Default)]
struct Story {
    task: Option<String>,
    title: String,
    token: Option<String>,
    complete: bool,
    replayed: usize,
}

impl Story {
    fn learn(&mut self, step: usize, answer: &Value) {
        match step {
            0 => self.task = Some(text(&answer["task"]["id"]).to_owned()),
            1 => self.token = Some(text(&answer["lease"]["token"]).to_owned()),
            2 => {}
            _ => self.complete = true,
        }
    }
}

fn call(agent: &Agent, story: &Story, step: usize) -> Call {
    let request = format!("crash-{}-{step}", story.title.replace(' ', "-"));
    let task = story.task.as_deref().unwrap_or_default();
    let by = ["--as", &agent.handle];
    let note = format!("note of {}", story.title);
    match step {
        0 => Call::new(&["add", &story.title, by[0], by[1]], request),
        1 => Call::new(&["claim", task, by[0], by[1], "--workstation", &agent.workstation], request),
        2 => Call::new(&["note", task, &note, by[0], by[1]], request),
        _ => Call::new(&["complete", task, by[0], by[1], "--resolution", "done"], request),
    }
}

/// Add, claim, note, complete. Each call is killed after a random part of `span`, if it has not ended by then, and
/// sent again by its request id. Gives how long the calls took that nobody disturbed as well.
fn write(site: &Site, agent: &Agent, cycle: usize, mut rng: Rng, span: Duration) -> (Story, Duration) {
    let mut story = Story { title: format!("cycle {cycle} of {}", agent.handle), ..Story::default() };
    let mut calm = Duration::ZERO;
    for step in 0..4 {
        let call = call(agent, &story, step);
        let delay = Duration::from_micros(rng.below(u64::try_from(span.as_micros()).unwrap()));
        let answer = match run_until(site, &call, Instant::now() + delay) {
            End::Answered(answer) => answer,
            End::Killed => {
                story.replayed += 1;
                site.run(&call.words())
            }
        };
        assert!(answer.is_ok(), "{call:?}: {answer:#?}");
        let again = site.run(&call.words());
        assert_eq!(again.stdout, answer.stdout, "a replay gives the original answer: {call:?}");
        calm += again.took / 4;
        story.learn(step, &answer.json());
    }
    (story, calm)
}

/// Everything a writer was told, and every killed call that was sent again, is there exactly once.
fn assert_kept(site: &Site, agent: &Agent, story: &Story) {
    let id = story.task.as_deref().unwrap();
    let task = site.task(id);
    assert_eq!(
        (text(&task["title"]), text(&task["created_by"])),
        (story.title.as_str(), agent.handle.as_str())
    );
    assert!(story.complete && task["state"] == "complete", "{story:?}: {task}");
    let log = site.ok(&["ledger", "log", "--task", id]);
    let of = |verb: &str| -> Vec<&Value> {
        log["entries"].as_array().unwrap().iter().filter(|entry| entry["verb"] == verb).collect()
    };
    // The second note is the handoff that the completion leaves.
    for (verb, times) in [("added", 1), ("claimed", 1), ("noted", 2), ("completed", 1)] {
        assert_eq!(of(verb).len(), times, "one call, one effect: {verb} in {log:#}");
    }
    let handoffs = of("noted").iter().filter(|entry| entry["data"]["handoff"] == true).count();
    assert_eq!(handoffs, 1, "one call, one effect: {log:#}");
    let epoch = of("claimed")[0]["epoch"].to_string();
    assert_eq!(story.token.as_deref().and_then(|token| token.split('.').nth(1)), Some(epoch.as_str()));
}

/// Kills are spread over so many times what a call takes that nobody disturbs: writers wait for each other.
const SPAN: u32 = 3;

#[test]
fn killed_writers_lose_nothing_that_was_acknowledged() {
    let cycles = match std::env::var_os("ONUS_TEST_STORE") {
        _ if is_soak() => 1_000,
        None => 60,
        Some(_) => 20,
    };
    let site = Site::new();
    let agents = site.agents(WRITERS);
    let before = site.tasks().len();
    let mut rng = Rng::seeded(11);

    let mut killed = 0;
    // How long a call takes is the machine's affair, and may change: the cycle before tells.
    let mut span = site.run(&["show", "T-0"]).took * SPAN;
    let mut titles: BTreeMap<String, String> = BTreeMap::new();
    for cycle in 0..cycles {
        let stories: Vec<(Story, Duration)> = std::thread::scope(|scope| {
            let start = |agent| {
                let (site, rng) = (&site, rng.fork());
                scope.spawn(move || write(site, agent, cycle, rng, span))
            };
            let writers: Vec<_> = agents.iter().map(start).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        span = stories.iter().map(|(_, calm)| *calm).sum::<Duration>() / WRITERS as u32 * SPAN;
        for (agent, (story, _)) in agents.iter().zip(stories) {
            assert_kept(&site, agent, &story);
            killed += story.replayed;
            assert_eq!(titles.insert(story.title, story.task.unwrap()), None);
        }
        // What a kill has broken stays broken: the whole record is read now and then, and at the end.
        if cycle % 20 == 19 || is_soak() {
            site.assert_sound();
        }
        if cycle % 100 == 99 {
            eprintln!("crash: {} of {cycles} cycles, {killed} calls killed", cycle + 1);
        }
    }

    assert!(killed > cycles, "the kills must hit: {killed} in {cycles} cycles");
    let kept: Vec<Value> = site.tasks();
    assert_eq!(kept.len(), before + titles.len(), "as many tasks as were acknowledged");
    for (title, id) in &titles {
        let task = kept.iter().find(|task| task["id"] == id.as_str()).unwrap();
        assert_eq!((text(&task["title"]), text(&task["state"])), (title.as_str(), "complete"));
    }
    eprintln!("crash: {killed} calls killed in {cycles} cycles, nothing lost, nothing twice");
}

#[test]
fn a_killed_import_can_be_sent_again() {
    const TASKS: usize = 3_000;
    let site = Site::new();
    let mut rng = Rng::seeded(13);
    let line = |n: usize| format!("{{\"title\":\"task {n}\",\"origin_ask_ref\":\"crash:{n}\"}}\n");
    let file = site.root().join("tasks.jsonl");
    std::fs::write(&file, (0..TASKS).map(line).collect::<String>()).unwrap();
    let args = ["import", "--format", "jsonl", file.to_str().unwrap(), "--as", &site.person, "--json"];

    for _ in 0..20 {
        let mut child = start(&mut site.command(&args));
        std::thread::sleep(Duration::from_millis(rng.below(300)));
        child.kill().unwrap();
        finish(child);
        if is_soak() {
            site.assert_sound();
        }
    }
    site.assert_sound();
    let whole = site.run(&args);
    assert!(whole.is_ok(), "{whole:#?}");
    assert_eq!(site.tasks().len(), TASKS, "every line once, however often it was sent");
    site.assert_sound();
}
