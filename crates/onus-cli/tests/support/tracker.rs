//! A real Redmine as tests see it: a project of their own, and its REST interface as its administrator.

use super::{Site, text};
use onus_testkit::Redmine;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) struct Tracker {
    pub(crate) port: u16,
    pub(crate) project: String,
    pub(crate) bot_key: String,
    pub(crate) ada: String,
    pub(crate) directory: PathBuf,
    admin_key: String,
    agent: ureq::Agent,
    /// Redmine on a file answers one at a time: tests that share it take turns.
    _turn: Option<MutexGuard<'static, ()>>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Tracker {
    /// A project in the Redmine that all tests of the program share; none where there is no Redmine.
    pub(crate) fn shared() -> Option<Tracker> {
        let (port, directory) = Redmine::shared()?;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Tracker { _turn: Some(turn), ..Tracker::at(*port, directory) })
    }

    pub(crate) fn at(port: u16, directory: &Path) -> Tracker {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let seed: Value =
            serde_json::from_slice(&std::fs::read(directory.join("seed.json")).unwrap()).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).max_idle_connections(0).build();
        let project = format!("p{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let tracker = Tracker {
            port,
            project: project.clone(),
            bot_key: text(&seed["bot_key"]).to_owned(),
            ada: seed["ada_id"].to_string(),
            directory: directory.to_owned(),
            admin_key: text(&seed["admin_key"]).to_owned(),
            agent: agent.into(),
            _turn: None,
        };
        let modules = ["issue_tracking", "time_tracking"];
        let wanted = json!({ "project": { "name": project, "identifier": project, "enabled_module_names": modules,
            "tracker_ids": [1, 2, 3] } });
        assert_eq!(tracker.post("/projects.json", &wanted).0, 201);
        for user in ["bot_id", "ada_id"] {
            let member = json!({ "membership": { "user_id": seed[user], "role_ids": [seed["role_id"]] } });
            assert_eq!(tracker.post(&format!("/projects/{project}/memberships.json"), &member).0, 201);
        }
        tracker
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let mut answer = self.agent.get(url).header("x-redmine-api-key", &self.admin_key).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap_or_default()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.agent.post(url).header("x-redmine-api-key", &self.admin_key);
        let mut answer = request.content_type("application/json").send(body.to_string()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default())
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> u16 {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.agent.put(url).header("x-redmine-api-key", &self.admin_key);
        request.content_type("application/json").send(body.to_string()).unwrap().status().as_u16()
    }

    /// A new issue's number.
    pub(crate) fn issue(&self, subject: &str) -> String {
        let wanted = json!({ "issue": { "project_id": self.project, "tracker_id": 2, "subject": subject } });
        let (status, made) = self.post("/issues.json", &wanted);
        assert_eq!(status, 201, "{made}");
        made["issue"]["id"].to_string()
    }

    pub(crate) fn read(&self, issue: &str) -> Value {
        self.get(&format!("/issues/{issue}.json?include=journals"))["issue"].take()
    }

    pub(crate) fn issues(&self) -> Vec<Value> {
        let found = self.get(&format!("/issues.json?project_id={}&status_id=*&limit=100", self.project));
        found["issues"].as_array().cloned().unwrap_or_default()
    }

    /// The settings of a mirror of this project, with more lines.
    pub(crate) fn set_up(&self, site: &Site, port: u16, more: &str) {
        let project = &self.project;
        std::fs::write(site.repo().join("key"), &self.bot_key).unwrap();
        let settings = format!(
            "mirrors:\n  redmine:\n    url: http://127.0.0.1:{port}\n    key_file: key\n    project: {project}\n    \
             tracker: Feature\n    fields: {{agent: Agent Name, workstation: Workstation, task: Onus Task}}\n    \
             statuses: {{open: New, in_progress: In Progress, blocked: Feedback, complete: Closed, dropped: Rejected}}\n    \
             activities: {{default: Development}}\n{more}"
        );
        std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
    }
}

/// What a custom field of an issue says.
pub(crate) fn field<'v>(issue: &'v Value, name: &str) -> &'v str {
    let fields = issue["custom_fields"].as_array().unwrap();
    let found = fields.iter().find(|field| field["name"] == name);
    found.unwrap_or_else(|| panic!("no field {name}: {issue}"))["value"].as_str().unwrap_or_default()
}

/// The notes of an issue, in order.
pub(crate) fn notes(issue: &Value) -> Vec<&str> {
    let journals = issue["journals"].as_array().unwrap();
    journals.iter().filter_map(|journal| journal["notes"].as_str()).filter(|text| !text.is_empty()).collect()
}

/// How a custom field changed, by its number: from and to.
pub(crate) fn history(issue: &Value, name: &str) -> Vec<(String, String)> {
    let id =
        issue["custom_fields"].as_array().unwrap().iter().find(|field| field["name"] == name).unwrap()["id"]
            .to_string();
    let details = issue["journals"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|journal| journal["details"].as_array().unwrap());
    let of = details.filter(|detail| detail["property"] == "cf" && detail["name"] == id.as_str());
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of.map(|detail| (word(&detail["old_value"]), word(&detail["new_value"]))).collect()
}

impl Tracker {
    pub(crate) fn remove(&self, url: &str) {
        let removed = self.agent.delete(url).header("x-redmine-api-key", &self.admin_key).call().unwrap();
        assert!(removed.status().is_success(), "{removed:?}");
    }
}
