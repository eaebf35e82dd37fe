//! Sessions as time entries: one for each that has ended, replaced where it was corrected.
//!
//! Redmine rounds the hours that it shows to a hundredth. What an entry stands for is therefore in its comment, to the second;
//! the hours themselves are kept exactly, and so are their sums.

use super::{Redmine, list};
use crate::mirror::rest::{encoded, text_at};
use onus_core::mirror::{Counterpart, Picture, Tidings, Undelivered, Worked, mark, marks_in};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use ureq::http::Method;

const PAGE: usize = 100;
/// What time is booked under that no other name is given for.
const DEFAULT: &str = "default";

#[derive(Debug, Clone)]
pub(super) struct Activity {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) is_default: bool,
}

impl Redmine {
    pub(super) fn activities(&mut self) -> Result<&[Activity], Undelivered> {
        if self.activities.is_empty() {
            let answer =
                self.get("/enumerations/time_entry_activities.json")?.good("time_entry_activities")?;
            let active =
                list(&answer, "time_entry_activities").iter().filter(|one| one["active"] != json!(false));
            self.activities = active
                .filter_map(|one| {
                    let (id, name) = (one["id"].as_i64()?, one["name"].as_str()?.to_owned());
                    Some(Activity { id, name, is_default: one["is_default"] == json!(true) })
                })
                .collect();
        }
        Ok(&self.activities)
    }

    fn activity(&mut self, kind: &str) -> Result<i64, Undelivered> {
        let name = self.mirror.activities.get(kind).or_else(|| self.mirror.activities.get(DEFAULT)).cloned();
        let known = self.activities()?;
        let found = match &name {
            Some(name) => known.iter().find(|one| one.name == *name),
            None => known.iter().find(|one| one.is_default).or_else(|| known.first()),
        };
        found.map(|one| one.id).ok_or_else(|| {
            let name = name.unwrap_or_else(|| "any".to_owned());
            Undelivered::Refused(format!("Redmine has no activity `{name}` to book time under"))
        })
    }

    /// Makes the issue's time entries what the sessions are.
    pub(super) fn book(
        &mut self,
        news: &Tidings,
        task: &Picture,
        issue: &str,
        told: &mut Counterpart,
    ) -> Result<(), Undelivered> {
        let wanted: BTreeMap<i64, String> =
            news.worked.iter().filter(|one| one.seconds > 0).map(|one| (one.session, as_told(one))).collect();
        if told.worked == wanted {
            return Ok(());
        }
        let mut there: BTreeMap<i64, Vec<(String, String)>> = BTreeMap::new();
        for entry in self.entries(issue)? {
            let comment = entry["comments"].as_str().unwrap_or_default();
            if let (Some(id), [session]) =
                (text_at(&entry, "/id"), marks_in(&self.workspace, &task.id, comment).as_slice())
            {
                let says = comment.split(" [onus ").next().unwrap_or_default();
                let day = entry["spent_on"].as_str().unwrap_or_default();
                there.entry(*session).or_default().push((id, format!("{says} on {day}")));
            }
        }
        for one in &news.worked {
            let as_told = as_told(one);
            let mut found = there.remove(&one.session).unwrap_or_default();
            let right = found.iter().position(|(_, says)| *says == as_told).filter(|_| one.seconds > 0);
            let is_there = right.map(|at| found.swap_remove(at)).is_some();
            for (id, _) in found {
                self.remove(&id)?;
            }
            if !is_there && one.seconds > 0 {
                self.add(task, issue, one)?;
            }
        }
        // Sessions that are not ours to show any more.
        for (id, _) in there.into_values().flatten() {
            self.remove(&id)?;
        }
        told.worked = wanted;
        Ok(())
    }

    fn entries(&mut self, issue: &str) -> Result<Vec<Json>, Undelivered> {
        let mut found = Vec::new();
        loop {
            let (issue, offset) = (encoded(issue), found.len());
            let path = format!("/time_entries.json?issue_id={issue}&sort=id&limit={PAGE}&offset={offset}");
            let page = self.get(&path)?.good("time entries")?;
            let entries = list(&page, "time_entries");
            found.extend(entries.iter().cloned());
            if entries.len() < PAGE {
                return Ok(found);
            }
        }
    }

    fn remove(&mut self, id: &str) -> Result<(), Undelivered> {
        let path = format!("/time_entries/{}.json", encoded(id));
        let answered = self.rest.call(&Method::DELETE, &path, None)?;
        if answered.status == 404 { Ok(()) } else { answered.good("removing a time entry").map(drop) }
    }

    fn add(&mut self, task: &Picture, issue: &str, one: &Worked) -> Result<(), Undelivered> {
        let mut entry = json!({
            "issue_id": issue,
            "hours": hours(one.seconds),
            "spent_on": one.day.to_string(),
            "activity_id": self.activity(&task.kind)?,
            "comments": format!("{} {}", says(one), mark(&self.workspace, &task.id, one.session)),
        });
        if let Some(user) = self.mirror.users.get(&one.worker) {
            entry["user_id"] = user.as_str().into();
        }
        let made = self.write(&Method::POST, "/time_entries.json", &json!({ "time_entry": entry }))?;
        let read = made["time_entry"]["hours"].as_f64().unwrap_or(-1.0);
        // As Redmine shows it: to a hundredth of an hour.
        if (read - hours(one.seconds)).abs() > 0.006 {
            return Err(Undelivered::Refused(format!("Redmine booked {read} h for session {}", one.session)));
        }
        Ok(())
    }
}

fn hours(seconds: i64) -> f64 {
    seconds as f64 / 3_600.0
}

fn says(one: &Worked) -> String {
    format!("{}, {} s", one.worker, one.seconds)
}

fn as_told(one: &Worked) -> String {
    format!("{} on {}", says(one), one.day)
}
