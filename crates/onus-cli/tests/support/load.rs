//! Callers that add, claim and complete without a pause while things break around them, and remember what they were told.

use super::pair::Pair;
use super::{Agent, Site, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longer than any fault that a test makes; callers that finish nothing for so long never will.
const STANDSTILL: Duration = Duration::from_secs(240);

/// What the callers were told: each complete task, by its id.
#[derive(Debug, Default)]
pub(crate) struct Load {
    done: Mutex<BTreeMap<String, String>>,
    over: AtomicBool,
}

impl Load {
    /// Runs the callers while `script` breaks things; gives what was acknowledged.
    pub(crate) fn run(pair: &Pair<'_>, bearers: &[(Agent, String)], script: impl FnOnce(&Load)) -> Load {
        let load = Load::default();
        std::thread::scope(|scope| {
            for (n, (agent, token)) in bearers.iter().enumerate() {
                let load = &load;
                scope.spawn(move || load.work(pair, n, agent, token));
            }
            // A script that fails must not leave its callers working for ever.
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| script(&load)));
            load.over.store(true, Ordering::Relaxed);
            ended.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        });
        load
    }

    fn work(&self, pair: &Pair<'_>, n: usize, agent: &Agent, token: &str) {
        for round in 0.. {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let title = format!("{round} of {}", agent.handle);
            let call = |path: &str, body: Value| pair.ask(n, token, "POST", path, Some(&body)).ok();
            let added = call("/v1/tasks", json!({ "title": title }));
            let task = text(&added["task"]["id"]).to_owned();
            let claimed =
                call(&format!("/v1/tasks/{task}/claim"), json!({ "workstation": agent.workstation }));
            let finish = json!({ "lease": claimed["lease"]["token"], "resolution": "done" });
            call(&format!("/v1/tasks/{task}/complete"), finish);
            let before = self.done.lock().unwrap().insert(task, title);
            assert_eq!(before, None, "no task twice");
        }
    }

    pub(crate) fn finished(&self) -> usize {
        self.done.lock().unwrap().len()
    }

    /// Waits until so many more tasks are complete, and says how long that took.
    pub(crate) fn until_finished(&self, more: usize) -> Duration {
        let (began, before) = (Instant::now(), self.finished());
        while self.finished() < before + more {
            assert!(began.elapsed() < STANDSTILL, "nobody finishes anything any more");
            std::thread::sleep(Duration::from_millis(5));
        }
        began.elapsed()
    }

    /// Everything that was acknowledged is there, once, and nothing else is.
    pub(crate) fn assert_kept(&self, site: &Site) {
        let done = self.done.lock().unwrap();
        let tasks = site.tasks();
        assert_eq!(tasks.len(), done.len(), "one key, one task");
        for task in &tasks {
            let title = done.get(text(&task["id"])).unwrap_or_else(|| panic!("nobody was told of {task}"));
            assert_eq!((text(&task["title"]), text(&task["state"])), (title.as_str(), "complete"));
        }
        let claims = site.ledger().iter().filter(|entry| entry["verb"] == "claimed").count();
        assert_eq!(claims, done.len(), "one claim for each task, none twice");
        site.assert_sound();
    }
}
