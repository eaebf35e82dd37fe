//! `mirror check`: what the settings name is tried on an issue of its own and read back. GitHub says yes to labels of whoever may
//! not push, and drops them.

use super::{CLOSED, Forge, Issue, PAGE, list};
use crate::mirror::rest::{encoded, text_at};
use crate::mirror::{TriedSetting, why};
use onus_core::mirror::{AGENT, STATUS, TASK, TYPE, Undelivered, WORKSTATION, is_marked, mark_of_trial};
use serde_json::json;
use ureq::http::Method;

const TITLE: &str = "onus mirror check";

impl Forge {
    pub(super) fn try_all(&mut self) -> Vec<TriedSetting> {
        self.me = None;
        let who = self.known().map(|()| self.me.clone().unwrap_or_default()).map_err(why);
        let is_known = who.is_ok();
        let mut tried = vec![TriedSetting::new("the key", who)];
        if !is_known {
            return tried;
        }
        let path = format!("{}?per_page=1", self.issues());
        let issues = self.get(&path).and_then(|answer| answer.good("issues"));
        let can_read = issues.is_ok();
        let found = issues.map(|_| "they can be read".to_owned()).map_err(why);
        tried.push(TriedSetting::new(format!("the issues of {}", self.mirror.project), found));
        match can_read.then(|| self.trial()) {
            Some(Ok(issue)) => self.try_words(&issue, &mut tried),
            Some(Err(error)) => tried.push(TriedSetting::new("an issue to try on", Err(why(error)))),
            None => {}
        }
        tried
    }

    /// One issue that every check uses again: made once, closed at the end.
    fn trial(&mut self) -> Result<Issue, Undelivered> {
        let me = encoded(self.me.as_deref().unwrap_or_default());
        let own = match self.is_gitlab() {
            true => format!("scope=all&author_username={me}&order_by=created_at&sort=asc"),
            false => format!("state=all&creator={me}&sort=created&direction=asc"),
        };
        let path = format!("{}?{own}&per_page={PAGE}", self.issues());
        let answer = self.get(&path)?.good("looking for the issue to try on")?;
        let is_it =
            |one: &&serde_json::Value| one["title"] == TITLE && is_marked(&self.workspace, self.text_of(one));
        let found = list(&answer).iter().find(is_it).and_then(|one| self.number(one));
        let number = match found {
            Some(number) => number,
            None => self.make(TITLE, &mark_of_trial(&self.workspace))?,
        };
        self.issue(&number)?.ok_or_else(|| Undelivered::Away(format!("issue {number} is not there")))
    }

    fn try_words(&mut self, issue: &Issue, tried: &mut Vec<TriedSetting>) {
        let shown = self.shown(&issue.document);
        let named = |field: &&str| self.prefix(field).is_some();
        let fields: Vec<&str> = [AGENT, WORKSTATION, TASK, TYPE].into_iter().filter(named).collect();
        for field in &fields {
            let is_set = shown.get(*field).is_some_and(|value| value == "onus-check");
            let value = if is_set { "onus-check-2" } else { "onus-check" };
            let what = format!("labels of {}", self.prefix(field).unwrap_or_default());
            let found = self.try_change(&issue.number, &[(field, value), (CLOSED, "false")]);
            tried.push(TriedSetting::new(what, found));
        }
        let statuses: Vec<String> = self.mirror.statuses.values().cloned().collect();
        for status in statuses {
            let found = self.try_change(&issue.number, &[(STATUS, &status), (CLOSED, "false")]);
            tried.push(TriedSetting::new(format!("the label {status}"), found));
        }
        tried.push(TriedSetting::new("comments", self.try_comment(&issue.number)));
        let cleared = fields.iter().map(|field| (*field, "")).chain([(STATUS, ""), (CLOSED, "true")]);
        let found = self.try_change(&issue.number, &cleared.collect::<Vec<_>>());
        tried.push(TriedSetting::new("closing an issue", found));
    }

    fn try_change(&mut self, number: &str, wanted: &[(&str, &str)]) -> Result<String, String> {
        let issue = self.issue(number).map_err(why)?.ok_or("the issue is gone")?;
        let mut fields = self.shown(&issue.document);
        fields.extend(wanted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.change(&issue, &fields).map_err(why)?;
        Ok("set and read back".to_owned())
    }

    fn try_comment(&mut self, number: &str) -> Result<String, String> {
        let body = json!({ "body": mark_of_trial(&self.workspace) });
        let made = self.write(&Method::POST, &self.comments_of(number), &body).map_err(why)?;
        let id = text_at(&made, "/id").ok_or("it made a comment without an id")?;
        let path = match self.is_gitlab() {
            true => format!("{}/{id}", self.comments_of(number)),
            false => format!("{}/comments/{id}", self.issues()),
        };
        let removed = self.rest.call(&Method::DELETE, &path, None);
        removed.and_then(|answer| answer.good("removing it")).map_err(why)?;
        Ok("written and removed".to_owned())
    }
}
