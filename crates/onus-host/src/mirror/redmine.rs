//! Redmine (5.0 and later), by its REST interface.
//!
//! It says 204 to what it drops: a status that the workflow forbids, a custom field that the tracker does not have. So every
//! write is read back. A wrong key reads a public project as a stranger, so who we are is asked first. The id of a deleted
//! issue may be given again, so an issue is known by its id and by when it was made.

mod check;
mod hours;

use super::rest::{FarServer, KeyHeader, Rest, RestAnswer, encoded, text_at};
use super::{ASKED, FarEnd, FarIssue, Polled, TriedSetting};
use onus_core::event::Event;
use onus_core::id::{MirrorName, TaskId};
use onus_core::mirror::setting::{Mirror, MirrorCreate, MirrorKind};
use onus_core::mirror::{
    AGENT, Counterpart, Picture, STATUS, TASK, TYPE, Tidings, Undelivered, WORKSTATION, concerns_there, mark,
    marks_in, wanted, words,
};
use onus_core::refusal::Refusal;
use onus_core::text::shortened;
use onus_core::time::{Millis, Timestamp};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use ureq::http::Method;

/// Redmine gives no more in one answer.
const PAGE: usize = 100;
/// A change may become visible a little after the time that it carries.
const OVERLAP: Millis = Millis::secs(60);
const NOTE_MAX: usize = 60_000;

#[derive(Debug)]
pub(super) struct Redmine {
    mirror: Mirror,
    workspace: String,
    rest: Rest,
    /// Who we are there, once it was asked; forgotten with every failure.
    me: Option<String>,
    statuses: BTreeMap<String, i64>,
    /// The ids of custom fields by their names, as issues show them.
    custom: BTreeMap<String, i64>,
    activities: Vec<hours::Activity>,
}

/// An issue with its history.
struct Issue {
    id: String,
    document: Json,
}

impl Redmine {
    pub(super) fn new(
        name: &MirrorName,
        mirror: &Mirror,
        workspace: &str,
        root: &Path,
    ) -> Result<Redmine, Refusal> {
        Ok(Redmine {
            mirror: mirror.clone(),
            workspace: workspace.to_owned(),
            rest: Rest::new(FarServer::of_mirror(name, mirror, root)?, KeyHeader::Redmine)?,
            me: None,
            statuses: BTreeMap::new(),
            custom: BTreeMap::new(),
            activities: Vec::new(),
        })
    }

    fn get(&mut self, path: &str) -> Result<RestAnswer, Undelivered> {
        self.rest.get(path)
    }

    fn write(&mut self, method: &Method, path: &str, body: &Json) -> Result<Json, Undelivered> {
        let what = format!("{method} {path}");
        self.rest.call(method, path, Some(body))?.good(&what)
    }

    /// Whose key it is. Without this question a revoked key would read as a stranger and find everything changed.
    fn known(&mut self) -> Result<(), Undelivered> {
        if self.me.is_some() {
            return Ok(());
        }
        let user = self.get("/users/current.json")?.good("who the key belongs to")?;
        let login = text_at(&user, "/user/login");
        self.me =
            Some(login.ok_or_else(|| Undelivered::Away("it does not answer as Redmine does".to_owned()))?);
        Ok(())
    }

    fn issue(&mut self, id: &str) -> Result<Option<Issue>, Undelivered> {
        let answered = self.get(&format!("/issues/{}.json?include=journals", encoded(id)))?;
        if answered.status == 404 {
            return Ok(None);
        }
        let mut answer = answered.good(&format!("issue {id}"))?;
        let document = answer["issue"].take();
        for field in list(&document, "custom_fields") {
            if let (Some(name), Some(id)) = (field["name"].as_str(), field["id"].as_i64()) {
                self.custom.insert(name.to_owned(), id);
            }
        }
        Ok(Some(Issue { id: id.to_owned(), document }))
    }

    /// The issue that a task is there; none where it has none and gets none.
    fn counterpart(&mut self, task: &Picture, told: &mut Counterpart) -> Result<Option<Issue>, Undelivered> {
        let (asked_there, made) = match self.asked_there(task) {
            Some((id, made)) => (Some(id), made),
            None => (None, None),
        };
        let known = asked_there.clone().or_else(|| told.far_id.clone());
        if let Some(id) = known {
            let made = made.or_else(|| told.far_created.clone());
            let found = self.issue(&id)?;
            let is_same = |issue: &Issue| {
                let created = text_at(&issue.document, "/created_on");
                made.as_ref().is_none_or(|made| created.as_ref() == Some(made))
            };
            match found.filter(is_same) {
                Some(issue) => {
                    told.far_created = text_at(&issue.document, "/created_on");
                    told.far_id = Some(id);
                    return Ok(Some(issue));
                }
                None if asked_there.is_some() => {
                    return Err(Undelivered::Refused(format!(
                        "issue {id}, where it was asked for, is gone from Redmine"
                    )));
                }
                // Made for the task and lost, e.g. with a backup: it is made again.
                None => *told = Counterpart::default(),
            }
        }
        if self.mirror.create == MirrorCreate::Never || asked_there.is_some() {
            return Ok(None);
        }
        let issue = match self.made_before(task)? {
            Some(id) => id,
            None => self.make(task)?,
        };
        let found = self.issue(&issue)?;
        let found =
            found.ok_or_else(|| Undelivered::Away(format!("issue {issue} was made and is not there")))?;
        told.far_created = text_at(&found.document, "/created_on");
        told.far_id = Some(issue);
        Ok(Some(found))
    }

    /// The issue that asked for the task, and when it was made, where its origin says so.
    fn asked_there(&self, task: &Picture) -> Option<(String, Option<String>)> {
        let (channel, key) = task.origin.as_ref()?.as_str().split_once(':')?;
        if channel != "redmine" {
            return None;
        }
        Some(match key.split_once('@') {
            Some((id, made)) => (id.to_owned(), Some(made.to_owned())),
            None => (key.to_owned(), None),
        })
    }

    /// The sign in the description of an issue that was made for a task.
    fn made_for(&self, task: &TaskId) -> String {
        mark(&self.workspace, task, 0)
    }

    /// An issue that an earlier attempt made for the task, of which nobody heard. Filters by fields that Redmine does not
    /// know let everything through: what is found is looked at.
    fn made_before(&mut self, task: &Picture) -> Result<Option<String>, Undelivered> {
        let project = encoded(&self.mirror.project);
        let sign = self.made_for(&task.id);
        let field = self.mirror.fields.task.as_ref().and_then(|name| self.custom.get(name)).copied();
        let mut ways = vec![format!(
            "/issues.json?project_id={project}&status_id=*&author_id=me&sort=id:desc&limit={PAGE}"
        )];
        if let Some(id) = field {
            let value = encoded(&task.id.to_string());
            ways.insert(
                0,
                format!("/issues.json?project_id={project}&status_id=*&cf_{id}={value}&sort=id&limit={PAGE}"),
            );
        }
        for way in ways {
            let answer = self.get(&way)?.good("looking for an issue made before")?;
            let has_sign =
                |issue: &&Json| issue["description"].as_str().is_some_and(|text| text.contains(&sign));
            if let Some(found) =
                list(&answer, "issues").iter().filter(has_sign).find_map(|issue| text_at(issue, "/id"))
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn make(&mut self, task: &Picture) -> Result<String, Undelivered> {
        let body =
            task.body.as_deref().map(|body| format!("{}\n\n", shortened(body, NOTE_MAX))).unwrap_or_default();
        let description = format!("{body}{}", self.made_for(&task.id));
        let mut issue = json!({
            "project_id": self.mirror.project,
            "subject": shortened(&task.title, 250),
            "description": description,
        });
        if let Some(tracker) = self.mirror.tracker.clone() {
            issue["tracker_id"] = self.named("trackers", "/trackers.json", &tracker)?.into();
        }
        let made = self.write(&Method::POST, "/issues.json", &json!({ "issue": issue }))?;
        text_at(&made, "/issue/id")
            .ok_or_else(|| Undelivered::Away("it made an issue without an id".to_owned()))
    }

    /// The id of something by its name.
    fn named(&mut self, what: &str, path: &str, name: &str) -> Result<i64, Undelivered> {
        let answer = self.get(path)?.good(what)?;
        let found = list(&answer, what).iter().find(|one| one["name"].as_str() == Some(name));
        found.and_then(|one| one["id"].as_i64()).ok_or_else(|| {
            let known: Vec<&str> =
                list(&answer, what).iter().filter_map(|one| one["name"].as_str()).collect();
            Undelivered::Refused(format!("Redmine has no `{name}` among its {what}: {}", known.join(", ")))
        })
    }

    fn status(&mut self, name: &str) -> Result<i64, Undelivered> {
        if let Some(id) = self.statuses.get(name) {
            return Ok(*id);
        }
        let id = self.named("issue_statuses", "/issue_statuses.json", name)?;
        self.statuses.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The name of the custom field that carries one of ours.
    fn custom_name(&self, field: &str) -> Option<&String> {
        let fields = &self.mirror.fields;
        match field {
            AGENT => fields.agent.as_ref(),
            WORKSTATION => fields.workstation.as_ref(),
            TASK => fields.task.as_ref(),
            TYPE => fields.task_type.as_ref(),
            _ => None,
        }
    }

    /// What an issue shows of Onus's own.
    fn shown(&self, issue: &Json) -> BTreeMap<String, String> {
        let mut fields = BTreeMap::new();
        fields.extend(text_at(issue, "/status/name").map(|status| (STATUS.to_owned(), status)));
        for field in [AGENT, WORKSTATION, TASK, TYPE] {
            let Some(name) = self.custom_name(field) else { continue };
            let found = list(issue, "custom_fields").iter().find(|one| one["name"].as_str() == Some(name));
            fields.extend(
                found.map(|one| (field.to_owned(), one["value"].as_str().unwrap_or_default().to_owned())),
            );
        }
        fields
    }

    /// Changes an issue, reads it back, and says what it did not take.
    fn change(
        &mut self,
        issue: &Issue,
        fields: &BTreeMap<String, String>,
        note: Option<&str>,
    ) -> Result<Issue, Undelivered> {
        let before = self.shown(&issue.document);
        let differs = |(name, value): &(&String, &String)| before.get(*name) != Some(*value);
        let changed: Vec<(&String, &String)> = fields.iter().filter(differs).collect();
        if changed.is_empty() && note.is_none() {
            return Ok(Issue { id: issue.id.clone(), document: issue.document.clone() });
        }
        let mut body = Map::new();
        let mut custom: Vec<Json> = Vec::new();
        for (field, value) in &changed {
            match self.custom_name(field).cloned() {
                None => drop(body.insert("status_id".into(), self.status(value)?.into())),
                Some(name) => match self.custom.get(&name) {
                    Some(id) => custom.push(json!({ "id": id, "value": value })),
                    None => {
                        return Err(Undelivered::Refused(format!(
                            "issue {} has no custom field `{name}`: its tracker or project leaves it out",
                            issue.id
                        )));
                    }
                },
            }
        }
        if !custom.is_empty() {
            body.insert("custom_fields".into(), custom.into());
        }
        body.extend(note.map(|note| ("notes".to_owned(), Json::from(note))));
        let id = &issue.id;
        self.write(&Method::PUT, &format!("/issues/{id}.json"), &json!({ "issue": body }))?;
        let after = self.issue(id)?;
        let after =
            after.ok_or_else(|| Undelivered::Away(format!("issue {id} was changed and is not there")))?;
        let shows = self.shown(&after.document);
        let dropped: Vec<String> = fields
            .iter()
            .filter(|(name, value)| shows.get(*name) != Some(*value))
            .map(|(name, value)| {
                let shown = self.custom_name(name).unwrap_or(name);
                let there = shows.get(name).map_or("", String::as_str);
                format!("`{shown}` says `{there}`, not `{value}`")
            })
            .collect();
        match dropped.is_empty() {
            true => Ok(after),
            false => Err(Undelivered::Refused(format!(
                "Redmine took the change of issue {id} and dropped a part of it: {} (a workflow, or a right that the \
                 key's user lacks)",
                dropped.join("; ")
            ))),
        }
    }

    fn marks(&self, task: &TaskId, issue: &Issue) -> Vec<i64> {
        let notes = list(&issue.document, "journals").iter().filter_map(|journal| journal["notes"].as_str());
        notes.flat_map(|note| marks_in(&self.workspace, task, note)).collect()
    }

    fn told(&mut self, news: &Tidings, task: &Picture, told: &mut Counterpart) -> Result<(), Undelivered> {
        self.known()?;
        let Some(mut issue) = self.counterpart(task, told)? else { return Ok(()) };
        let marks = self.marks(&task.id, &issue);
        if told.trace.is_some_and(|trace| !marks.contains(&trace)) {
            *told = Counterpart {
                far_id: told.far_id.take(),
                far_created: told.far_created.take(),
                ..Counterpart::default()
            };
            return Err(Undelivered::WentBack);
        }
        let fields = wanted(&self.mirror, task);
        if !marks.contains(&news.seq) {
            let note = words(news).map(|text| {
                format!("{}\n\n{}", shortened(&text, NOTE_MAX), mark(&self.workspace, &task.id, news.seq))
            });
            issue = self.change(&issue, &fields, note.as_deref())?;
            if note.is_some() {
                if !self.marks(&task.id, &issue).contains(&news.seq) {
                    return Err(Undelivered::Refused(format!(
                        "Redmine dropped a note of issue {}",
                        issue.id
                    )));
                }
                told.trace = Some(news.seq);
            }
        } else {
            told.trace = Some(news.seq);
            // Somebody may have changed it since; the newest entry has the last word.
            if news.is_newest {
                issue = self.change(&issue, &fields, None)?;
            }
        }
        told.read_back.retain(|name, _| name == ASKED);
        told.read_back
            .extend(self.shown(&issue.document).into_iter().filter(|(name, _)| fields.contains_key(name)));
        if news.is_newest { self.book(news, task, &issue.id, told) } else { Ok(()) }
    }
}

fn list<'j>(document: &'j Json, name: &str) -> &'j [Json] {
    document[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

impl FarEnd for Redmine {
    fn wants(&self, event: &Event) -> bool {
        concerns_there(MirrorKind::Redmine.name(), event)
    }

    fn deliver(&mut self, news: &Tidings, told: &mut Counterpart) -> Result<(), Undelivered> {
        let Some(task) = news.task.clone() else { return Ok(()) };
        let delivered = self.told(news, &task, told);
        if let Err(Undelivered::Away(_) | Undelivered::Silent(_)) = delivered {
            self.me = None;
        }
        delivered
    }

    fn is_well(&mut self) -> Result<(), Undelivered> {
        self.me = None;
        self.known()
    }

    fn check(&mut self) -> Vec<TriedSetting> {
        self.try_all()
    }

    fn poll(&mut self, from: Option<&str>) -> Result<Option<Polled>, Undelivered> {
        self.known()?;
        let (since, offset) = match from.and_then(|from| from.rsplit_once('+')) {
            Some((since, offset)) => (since.to_owned(), offset.parse().unwrap_or(0_usize)),
            None => (from.map(overlapping).unwrap_or_default(), 0),
        };
        let filter = if since.is_empty() {
            String::new()
        } else {
            format!("&updated_on={}", encoded(&format!(">={since}")))
        };
        let project = encoded(&self.mirror.project);
        let path = format!(
            "/issues.json?project_id={project}&status_id=*&include=relations&sort=updated_on,id&limit={PAGE}&offset={offset}{filter}"
        );
        let answer = self.get(&path)?.good("new and changed issues")?;
        let found = list(&answer, "issues");
        let last = found.last().and_then(|issue| text_at(issue, "/updated_on"));
        let more = found.len() == PAGE;
        let next = match (last, more) {
            // More of them carry the same second than fit into a page.
            (Some(last), true) if last == since => format!("{since}+{}", offset + PAGE),
            (Some(last), true) => format!("{last}+0"),
            (Some(last), false) => last,
            (None, _) => since,
        };
        let issues = found.iter().filter_map(|issue| {
            Some(FarIssue {
                id: text_at(issue, "/id")?,
                created: text_at(issue, "/created_on")?,
                document: asked(issue),
                fields: self.shown(issue),
                is_closed: issue["status"]["is_closed"] == true || issue["closed_on"].is_string(),
            })
        });
        Ok(Some(Polled { issues: issues.collect(), next, more }))
    }

    fn look(&mut self, told: &Counterpart) -> Result<Option<BTreeMap<String, String>>, Undelivered> {
        self.known()?;
        let Some(id) = told.far_id.clone() else { return Ok(None) };
        let found = self.issue(&id)?.filter(|issue| {
            told.far_created.is_none() || text_at(&issue.document, "/created_on") == told.far_created
        });
        Ok(found.map(|issue| self.shown(&issue.document)))
    }

    fn restore(&mut self, told: &Counterpart) -> Result<(), Undelivered> {
        self.known()?;
        let Some(id) = told.far_id.clone() else { return Ok(()) };
        let Some(issue) = self.issue(&id)? else { return Ok(()) };
        let mut fields = told.read_back.clone();
        fields.remove(ASKED);
        self.change(&issue, &fields, None).map(drop)
    }
}

/// What an issue asks for: what Redmine owns of it, and nothing that Onus writes there itself.
fn asked(issue: &Json) -> Json {
    let kept = [
        "id",
        "subject",
        "description",
        "tracker",
        "priority",
        "fixed_version",
        "parent",
        "relations",
        "created_on",
    ];
    let mut document: Map<String, Json> =
        kept.iter().filter_map(|name| Some(((*name).to_owned(), issue.get(*name)?.clone()))).collect();
    // How far work on it is, is ours to say.
    document.insert("status".into(), json!({ "name": "New", "is_closed": false }));
    Json::Object(document)
}

fn overlapping(since: &str) -> String {
    let at: Option<Timestamp> = serde_json::from_value(Json::from(since)).ok();
    // To the second, as Redmine writes it.
    at.map_or_else(String::new, |at| {
        let from = at.plus(Millis(-OVERLAP.0)).whole_second().to_string();
        format!("{}Z", from.split(['.', 'Z']).next().unwrap_or_default())
    })
}
