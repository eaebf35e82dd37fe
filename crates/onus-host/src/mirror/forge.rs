//! Issues of GitHub and GitLab, by their REST interfaces. They have no custom fields: agent, workstation, task and state are
//! labels, under the prefixes and words of the settings; labels of others are left alone. The story is comments.

mod check;

use super::rest::{FarServer, KeyHeader, Rest, RestAnswer, encoded, text_at};
use super::{ASKED, FarEnd, FarIssue, Polled, TriedSetting};
use onus_core::event::Event;
use onus_core::id::{MirrorName, TaskId};
use onus_core::mirror::setting::{Mirror, MirrorCreate, MirrorKind};
use onus_core::mirror::{
    AGENT, Counterpart, Picture, STATUS, TASK, TYPE, Tidings, Undelivered, WORKSTATION, concerns_there,
    is_marked, mark, marks_in, wanted, words,
};
use onus_core::refusal::Refusal;
use onus_core::text::shortened;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use ureq::http::Method;

const PAGE: usize = 100;
/// GitHub takes 65,536 letters.
const NOTE_MAX: usize = 60_000;
/// Whether an issue is open is a field of its own, beside the label of the state.
const CLOSED: &str = "closed";

#[derive(Debug)]
pub(super) struct Forge {
    kind: MirrorKind,
    mirror: Mirror,
    workspace: String,
    rest: Rest,
    me: Option<String>,
}

/// An issue, and the comments under it.
struct Issue {
    number: String,
    document: Json,
    comments: Vec<Json>,
}

impl Forge {
    pub(super) fn new(
        name: &MirrorName,
        kind: MirrorKind,
        mirror: &Mirror,
        workspace: &str,
        root: &Path,
    ) -> Result<Forge, Refusal> {
        let header = if kind == MirrorKind::Gitlab { KeyHeader::Gitlab } else { KeyHeader::Bearer };
        Ok(Forge {
            kind,
            mirror: mirror.clone(),
            workspace: workspace.to_owned(),
            rest: Rest::new(FarServer::of_mirror(name, mirror, root)?, header)?,
            me: None,
        })
    }

    fn is_gitlab(&self) -> bool {
        self.kind == MirrorKind::Gitlab
    }

    /// Where the project's issues are.
    fn issues(&self) -> String {
        match self.is_gitlab() {
            true => format!("/api/v4/projects/{}/issues", encoded(&self.mirror.project)),
            false => format!("/repos/{}/issues", self.mirror.project),
        }
    }

    fn comments_of(&self, number: &str) -> String {
        format!("{}/{number}/{}", self.issues(), if self.is_gitlab() { "notes" } else { "comments" })
    }

    fn get(&mut self, path: &str) -> Result<RestAnswer, Undelivered> {
        self.rest.get(path)
    }

    fn write(&mut self, method: &Method, path: &str, body: &Json) -> Result<Json, Undelivered> {
        let what = format!("{method} {path}");
        self.rest.call(method, path, Some(body))?.good(&what)
    }

    fn known(&mut self) -> Result<(), Undelivered> {
        if self.me.is_some() {
            return Ok(());
        }
        let path = if self.is_gitlab() { "/api/v4/user" } else { "/user" };
        let user = self.get(path)?.good("who the key belongs to")?;
        let login = text_at(&user, "/login").or_else(|| text_at(&user, "/username"));
        self.me = Some(
            login.ok_or_else(|| Undelivered::Away("it does not say who the key belongs to".to_owned()))?,
        );
        Ok(())
    }

    fn issue(&mut self, number: &str) -> Result<Option<Issue>, Undelivered> {
        let answered = self.get(&format!("{}/{number}", self.issues()))?;
        // GitHub says 410 to what was deleted.
        if matches!(answered.status, 404 | 410) {
            return Ok(None);
        }
        let document = answered.good(&format!("issue {number}"))?;
        let mut comments = Vec::new();
        for page in 1.. {
            let path = format!("{}?per_page={PAGE}&page={page}", self.comments_of(number));
            let found = self.get(&path)?.good("comments")?;
            let list = found.as_array().cloned().unwrap_or_default();
            let is_last = list.len() < PAGE;
            comments.extend(list);
            if is_last {
                break;
            }
        }
        Ok(Some(Issue { number: number.to_owned(), document, comments }))
    }

    fn key(&self, number: &str) -> String {
        format!("{}#{number}", self.mirror.project)
    }

    /// The number of the issue that asked for a task.
    fn asked_there(&self, task: &Picture) -> Option<String> {
        let (channel, key) = task.origin.as_ref()?.as_str().split_once(':')?;
        let (project, number) = key.rsplit_once('#')?;
        let is_here = channel == self.kind.name() && project == self.mirror.project;
        (is_here && number.bytes().all(|b| b.is_ascii_digit())).then(|| number.to_owned())
    }

    fn counterpart(&mut self, task: &Picture, told: &mut Counterpart) -> Result<Option<Issue>, Undelivered> {
        let asked = self.asked_there(task);
        let before =
            told.far_id.as_ref().and_then(|id| id.rsplit_once('#')).map(|(_, number)| number.to_owned());
        if let Some(number) = asked.clone().or(before) {
            match self.issue(&number)? {
                Some(issue) => return Ok(Some(self.remembered(issue, told))),
                None if asked.is_some() => {
                    return Err(Undelivered::Refused(format!(
                        "issue {number}, where it was asked for, is gone"
                    )));
                }
                None => *told = Counterpart::default(),
            }
        }
        if self.mirror.create == MirrorCreate::Never || asked.is_some() {
            return Ok(None);
        }
        let number = match self.made_before(&task.id)? {
            Some(number) => number,
            None => self.make_for(task)?,
        };
        let issue = self.issue(&number)?;
        let issue =
            issue.ok_or_else(|| Undelivered::Away(format!("issue {number} was made and is not there")))?;
        Ok(Some(self.remembered(issue, told)))
    }

    fn remembered(&self, issue: Issue, told: &mut Counterpart) -> Issue {
        told.far_id = Some(self.key(&issue.number));
        told.far_created = text_at(&issue.document, "/created_at");
        issue
    }

    fn number(&self, document: &Json) -> Option<String> {
        text_at(document, if self.is_gitlab() { "/iid" } else { "/number" })
    }

    fn text_of<'j>(&self, document: &'j Json) -> &'j str {
        document[if self.is_gitlab() { "description" } else { "body" }].as_str().unwrap_or_default()
    }

    /// An issue that an earlier attempt made, of which nobody heard: it is among the newest.
    fn made_before(&mut self, task: &TaskId) -> Result<Option<String>, Undelivered> {
        let order = match self.is_gitlab() {
            true => "scope=all&order_by=created_at&sort=desc",
            false => "state=all&sort=created&direction=desc",
        };
        let path = format!("{}?{order}&per_page={PAGE}", self.issues());
        let answer = self.get(&path)?.good("looking for an issue made before")?;
        let sign = mark(&self.workspace, task, 0);
        let found = list(&answer).iter().find(|issue| self.text_of(issue).contains(&sign));
        Ok(found.and_then(|issue| self.number(issue)))
    }

    fn make_for(&mut self, task: &Picture) -> Result<String, Undelivered> {
        let body =
            task.body.as_deref().map(|body| format!("{}\n\n", shortened(body, NOTE_MAX))).unwrap_or_default();
        let text = format!("{body}{}", mark(&self.workspace, &task.id, 0));
        self.make(&shortened(&task.title, 250), &text)
    }

    fn make(&mut self, title: &str, text: &str) -> Result<String, Undelivered> {
        let name = if self.is_gitlab() { "description" } else { "body" };
        let made = json!({ "title": title, name: text });
        let made = self.write(&Method::POST, &self.issues(), &made)?;
        self.number(&made).ok_or_else(|| Undelivered::Away("it made an issue without a number".to_owned()))
    }

    fn prefix(&self, field: &str) -> Option<&str> {
        let fields = &self.mirror.fields;
        match field {
            AGENT => fields.agent.as_deref(),
            WORKSTATION => fields.workstation.as_deref(),
            TASK => fields.task.as_deref(),
            TYPE => fields.task_type.as_deref(),
            _ => None,
        }
    }

    fn labels(document: &Json) -> Vec<String> {
        let name = |label: &Json| {
            label.as_str().map_or_else(|| text_at(label, "/name"), |text| Some(text.to_owned()))
        };
        list(&document["labels"]).iter().filter_map(name).collect()
    }

    /// What an issue shows of Onus's own.
    fn shown(&self, document: &Json) -> BTreeMap<String, String> {
        let labels = Forge::labels(document);
        let mut fields = BTreeMap::new();
        for field in [AGENT, WORKSTATION, TASK, TYPE] {
            let Some(prefix) = self.prefix(field) else { continue };
            let value = labels.iter().find_map(|label| label.strip_prefix(prefix));
            fields.insert(field.to_owned(), value.unwrap_or_default().to_owned());
        }
        let is_status = |label: &&String| self.mirror.statuses.values().any(|status| status == *label);
        fields.insert(STATUS.to_owned(), labels.iter().find(is_status).cloned().unwrap_or_default());
        let is_closed = document["state"] == "closed";
        fields.insert(CLOSED.to_owned(), is_closed.to_string());
        fields
    }

    fn is_ours(&self, label: &str) -> bool {
        [AGENT, WORKSTATION, TASK, TYPE]
            .iter()
            .any(|field| self.prefix(field).is_some_and(|prefix| label.starts_with(prefix)))
            || self.mirror.statuses.values().any(|status| status == label)
    }

    fn wanted(&self, task: &Picture) -> BTreeMap<String, String> {
        let mut fields = wanted(&self.mirror, task);
        fields.insert(CLOSED.to_owned(), task.state.is_terminal().to_string());
        fields.entry(STATUS.to_owned()).or_default();
        fields
    }

    /// Changes labels and state, and reads them back.
    fn change(&mut self, issue: &Issue, fields: &BTreeMap<String, String>) -> Result<Issue, Undelivered> {
        let before = self.shown(&issue.document);
        if fields.iter().all(|(name, value)| before.get(name) == Some(value)) {
            return Ok(Issue {
                number: issue.number.clone(),
                document: issue.document.clone(),
                comments: issue.comments.clone(),
            });
        }
        let mut labels: Vec<String> = Forge::labels(&issue.document);
        labels.retain(|label| !self.is_ours(label));
        for (field, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            match (field.as_str(), self.prefix(field)) {
                (CLOSED, _) => {}
                (_, Some(prefix)) => labels.push(format!("{prefix}{value}")),
                (_, None) => labels.push(value.clone()),
            }
        }
        let closes = fields.get(CLOSED).is_some_and(|closed| closed == "true");
        let body = match self.is_gitlab() {
            true => {
                json!({ "labels": labels.join(","), "state_event": if closes { "close" } else { "reopen" } })
            }
            false => json!({ "labels": labels, "state": if closes { "closed" } else { "open" } }),
        };
        let method = if self.is_gitlab() { Method::PUT } else { Method::PATCH };
        let path = format!("{}/{}", self.issues(), issue.number);
        self.write(&method, &path, &body)?;
        let after = self.issue(&issue.number)?;
        let after = after.ok_or_else(|| Undelivered::Away(format!("issue {} is not there", issue.number)))?;
        let shows = self.shown(&after.document);
        let dropped: Vec<String> = fields
            .iter()
            .filter(|(name, value)| shows.get(*name) != Some(*value))
            .map(|(name, value)| {
                format!("`{name}` says `{}`, not `{value}`", shows.get(name).map_or("", String::as_str))
            })
            .collect();
        match dropped.is_empty() {
            true => Ok(after),
            false => {
                Err(Undelivered::Refused(format!("a part of the change was dropped: {}", dropped.join("; "))))
            }
        }
    }

    fn marks(&self, task: &TaskId, issue: &Issue) -> Vec<i64> {
        let texts = issue.comments.iter().filter_map(|comment| comment["body"].as_str());
        texts.flat_map(|text| marks_in(&self.workspace, task, text)).collect()
    }

    fn told(&mut self, news: &Tidings, task: &Picture, told: &mut Counterpart) -> Result<(), Undelivered> {
        self.known()?;
        let Some(issue) = self.counterpart(task, told)? else { return Ok(()) };
        let marks = self.marks(&task.id, &issue);
        if told.trace.is_some_and(|trace| !marks.contains(&trace)) {
            told.trace = None;
            return Err(Undelivered::WentBack);
        }
        let fields = self.wanted(task);
        let is_told = marks.contains(&news.seq);
        let mut after = None;
        if !is_told || news.is_newest {
            // Fields first: the comment is the sign that all of it was told.
            after = Some(self.change(&issue, &fields)?);
        }
        if let Some(text) = words(news).filter(|_| !is_told) {
            let text =
                format!("{}\n\n{}", shortened(&text, NOTE_MAX), mark(&self.workspace, &task.id, news.seq));
            let path = self.comments_of(&issue.number);
            let made = self.write(&Method::POST, &path, &json!({ "body": text }))?;
            if !marks_in(&self.workspace, &task.id, made["body"].as_str().unwrap_or_default())
                .contains(&news.seq)
            {
                return Err(Undelivered::Refused(format!("a comment on issue {} was dropped", issue.number)));
            }
            told.trace = Some(news.seq);
        } else if is_told {
            told.trace = Some(news.seq);
        }
        told.read_back.retain(|name, _| name == ASKED);
        let shown = self.shown(&after.as_ref().unwrap_or(&issue).document);
        told.read_back.extend(shown.into_iter().filter(|(name, _)| fields.contains_key(name)));
        Ok(())
    }
}

fn list(document: &Json) -> &[Json] {
    document.as_array().map(Vec::as_slice).unwrap_or_default()
}

impl FarEnd for Forge {
    fn wants(&self, event: &Event) -> bool {
        concerns_there(self.kind.name(), event)
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
        let (since, page) = match from.and_then(|from| from.rsplit_once(' ')) {
            Some((since, page)) => (since.to_owned(), page.parse().unwrap_or(1_usize)),
            None => (from.unwrap_or_default().to_owned(), 1),
        };
        let (order, name) = match self.is_gitlab() {
            true => ("scope=all&order_by=updated_at&sort=asc", "updated_after"),
            false => ("state=all&sort=updated&direction=asc", "since"),
        };
        let filter = if since.is_empty() { String::new() } else { format!("&{name}={}", encoded(&since)) };
        let path = format!("{}?{order}{filter}&per_page={PAGE}&page={page}", self.issues());
        let answer = self.get(&path)?.good("new and changed issues")?;
        let found = list(&answer);
        let last = found.last().and_then(|issue| text_at(issue, "/updated_at"));
        let more = found.len() == PAGE;
        let next = match (last, more) {
            (Some(last), true) if last == since => format!("{since} {}", page + 1),
            (Some(last), true) => format!("{last} 1"),
            (Some(last), false) => last,
            (None, _) => since,
        };
        let workspace = self.workspace.clone();
        let is_issue = |issue: &&Json| issue.get("pull_request").is_none_or(Json::is_null);
        let issues = found.iter().filter(is_issue).filter_map(|issue| {
            let number = self.number(issue)?;
            let created = text_at(issue, "/created_at")?;
            let text = self.text_of(issue);
            let mut labels = Forge::labels(issue);
            labels.retain(|label| !self.is_ours(label));
            // What was made from here is known by its sign, whatever else it says.
            let description =
                if is_marked(&workspace, text) { text.to_owned() } else { shortened(text, NOTE_MAX) };
            Some(FarIssue {
                id: self.key(&number),
                document: json!({
                    "id": self.key(&number), "subject": issue["title"], "description": description,
                    "created_on": created, "labels": labels, "status": { "name": "New", "is_closed": false },
                    "fixed_version": issue["milestone"].get("title").map(|title| json!({ "name": title })),
                }),
                created,
                fields: self.shown(issue),
                is_closed: issue["state"] == "closed",
            })
        });
        Ok(Some(Polled { issues: issues.collect(), next, more }))
    }

    fn look(&mut self, told: &Counterpart) -> Result<Option<BTreeMap<String, String>>, Undelivered> {
        self.known()?;
        let Some((_, number)) = told.far_id.as_ref().and_then(|id| id.rsplit_once('#')) else {
            return Ok(None);
        };
        let number = number.to_owned();
        Ok(self.issue(&number)?.map(|issue| self.shown(&issue.document)))
    }

    fn restore(&mut self, told: &Counterpart) -> Result<(), Undelivered> {
        self.known()?;
        let Some((_, number)) = told.far_id.as_ref().and_then(|id| id.rsplit_once('#')) else {
            return Ok(());
        };
        let number = number.to_owned();
        let Some(issue) = self.issue(&number)? else { return Ok(()) };
        let mut fields = told.read_back.clone();
        fields.remove(ASKED);
        self.change(&issue, &fields).map(drop)
    }
}
