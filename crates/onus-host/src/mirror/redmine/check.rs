//! `mirror check`: everything that the settings name is tried on an issue of its own and read back.

use super::{Issue, Redmine, list};
use crate::mirror::rest::{encoded, text_at};
use crate::mirror::{TriedSetting, why};
use onus_core::mirror::{AGENT, STATUS, TASK, TYPE, Undelivered, WORKSTATION, mark_of_trial};
use serde_json::json;
use std::collections::BTreeMap;
use ureq::http::Method;

const SUBJECT: &str = "onus mirror check";

impl Redmine {
    pub(super) fn try_all(&mut self) -> Vec<TriedSetting> {
        self.me = None;
        let known = self.known().map_err(why);
        let who = known.map(|()| self.me.clone().unwrap_or_default());
        let is_known = who.is_ok();
        let mut tried = vec![TriedSetting::new("the key", who)];
        if !is_known {
            return tried;
        }
        tried.push(TriedSetting::new(format!("the project {}", self.mirror.project), self.try_project()));
        let names: Vec<String> = self.mirror.statuses.values().cloned().collect();
        for name in names {
            let found = self.status(&name).map(|id| format!("number {id}")).map_err(why);
            tried.push(TriedSetting::new(format!("the status {name}"), found));
        }
        if let Some(tracker) = self.mirror.tracker.clone() {
            let found = self
                .named("trackers", "/trackers.json", &tracker)
                .map(|id| format!("number {id}"))
                .map_err(why);
            tried.push(TriedSetting::new(format!("the tracker {tracker}"), found));
        }
        let wanted: Vec<String> = self.mirror.activities.values().cloned().collect();
        let activities =
            self.activities().map(|known| known.iter().map(|one| one.name.clone()).collect::<Vec<_>>());
        for name in wanted {
            let found = match &activities {
                Ok(known) if known.contains(&name) => Ok("it is there".to_owned()),
                Ok(known) => Err(format!("Redmine has {}", known.join(", "))),
                Err(error) => Err(why(error.clone())),
            };
            tried.push(TriedSetting::new(format!("the activity {name}"), found));
        }
        for (worker, user) in self.mirror.users.clone() {
            let found = self.try_user(&user);
            tried.push(TriedSetting::new(format!("{worker} as the user {user}"), found));
        }
        match self.trial() {
            Ok(issue) => self.try_fields(&issue, &mut tried),
            Err(error) => tried.push(TriedSetting::new("an issue to try on", Err(why(error)))),
        }
        tried
    }

    fn try_project(&mut self) -> Result<String, String> {
        let path = format!("/projects/{}.json", encoded(&self.mirror.project));
        let answered = self.get(&path).map_err(why)?;
        let project = answered.good("the project").map_err(why)?;
        text_at(&project, "/project/name").ok_or_else(|| "it has no name".to_owned())
    }

    fn try_user(&mut self, user: &str) -> Result<String, String> {
        let path = format!("/projects/{}/memberships.json?limit=100", encoded(&self.mirror.project));
        let members = self.get(&path).and_then(|answer| answer.good("the members")).map_err(why)?;
        let found = list(&members, "memberships")
            .iter()
            .find(|one| text_at(one, "/user/id").as_deref() == Some(user));
        found
            .and_then(|one| text_at(one, "/user/name"))
            .ok_or_else(|| "no member of the project has this number".to_owned())
    }

    /// One issue that every check uses again: made once, closed at the end.
    fn trial(&mut self) -> Result<Issue, Undelivered> {
        let (project, subject) = (encoded(&self.mirror.project), encoded(SUBJECT));
        let path =
            format!("/issues.json?project_id={project}&status_id=*&author_id=me&subject={subject}&limit=100");
        let answer = self.get(&path)?.good("looking for the issue to try on")?;
        let found = list(&answer, "issues").iter().find(|one| one["subject"] == SUBJECT);
        let id = match found.and_then(|one| text_at(one, "/id")) {
            Some(id) => id,
            None => {
                let description = mark_of_trial(&self.workspace);
                let mut issue = json!({ "project_id": self.mirror.project, "subject": SUBJECT, "description": description });
                if let Some(tracker) = self.mirror.tracker.clone() {
                    issue["tracker_id"] = self.named("trackers", "/trackers.json", &tracker)?.into();
                }
                let made = self.write(&Method::POST, "/issues.json", &json!({ "issue": issue }))?;
                text_at(&made, "/issue/id").unwrap_or_default()
            }
        };
        self.issue(&id)?.ok_or_else(|| Undelivered::Away(format!("issue {id} is not there")))
    }

    fn try_fields(&mut self, issue: &Issue, tried: &mut Vec<TriedSetting>) {
        let id = issue.id.clone();
        for field in [AGENT, WORKSTATION, TASK, TYPE] {
            let Some(name) = self.custom_name(field).cloned() else { continue };
            let old = self.shown(&issue.document).get(field).cloned().unwrap_or_default();
            let value = if old == "onus-check" { "onus-check-2" } else { "onus-check" };
            let found = self.try_change(&id, field, value);
            tried.push(TriedSetting::new(
                format!("the field {name}"),
                found.map(|()| "set and read back".to_owned()),
            ));
        }
        let statuses: Vec<String> = self.mirror.statuses.values().cloned().collect();
        for status in statuses {
            let found = self.try_change(&id, STATUS, &status);
            tried.push(TriedSetting::new(
                format!("setting the status {status}"),
                found.map(|()| "set and read back".to_owned()),
            ));
        }
        tried.push(TriedSetting::new("booking time", self.try_time(&id)));
    }

    fn try_change(&mut self, id: &str, field: &str, value: &str) -> Result<(), String> {
        let issue = self.issue(id).map_err(why)?.ok_or("the issue is gone")?;
        let fields = BTreeMap::from([(field.to_owned(), value.to_owned())]);
        self.change(&issue, &fields, None).map(drop).map_err(why)
    }

    fn try_time(&mut self, id: &str) -> Result<String, String> {
        let activity =
            self.activities().map_err(why)?.first().map(|one| one.id).ok_or("there is no activity")?;
        let entry = json!({ "issue_id": id, "hours": 0.01, "activity_id": activity, "comments": SUBJECT });
        let made =
            self.write(&Method::POST, "/time_entries.json", &json!({ "time_entry": entry })).map_err(why)?;
        let entry = text_at(&made, "/time_entry/id").ok_or("it made a time entry without an id")?;
        let removed = self.rest.call(&Method::DELETE, &format!("/time_entries/{entry}.json"), None);
        removed.and_then(|answer| answer.good("removing it")).map_err(why)?;
        Ok("booked and removed".to_owned())
    }
}
