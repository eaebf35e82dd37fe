//! What a notification says, and how each kind of channel wants to be told it. Words of tasks are strangers' words: they are
//! escaped where a channel would obey them.

use super::setting::Occasion;
use crate::event::Event;
use crate::mirror::{Tidings, words};
use crate::text::{is_unprintable, shortened};
use crate::time::Timestamp;
use serde_json::{Value as Json, json};

/// Chats cut longer ones.
const TEXT_MAX: usize = 3_000;
const LINE_MAX: usize = 180;

/// One message: of one thing that happened, or of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same for every repeat.
    pub id: String,
    pub at: Timestamp,
    /// `task.completed`, `digest`, `test`.
    pub name: String,
    pub title: String,
    pub text: String,
    pub data: Json,
}

impl Message {
    pub fn of(news: &Tidings, when: Occasion) -> Message {
        let what =
            news.task.as_ref().map_or_else(String::new, |task| format!("{} {}: ", task.id, task.title));
        let said = words(news).unwrap_or_else(|| in_words(news));
        let first = said.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
        let text = format!("{what}{said}");
        Message {
            id: news.id.clone(),
            at: news.at,
            name: format!("task.{}", when.name()),
            title: shortened(&one_line(&format!("{what}{first}")), LINE_MAX),
            text: shortened(&plain(&text), TEXT_MAX),
            data: data(news, when),
        }
    }

    /// Several as one, the oldest first.
    pub fn digest(id: String, at: Timestamp, news: &[(&Tidings, Occasion)]) -> Message {
        let each: Vec<Message> = news.iter().map(|(one, when)| Message::of(one, *when)).collect();
        let lines: Vec<String> = each.iter().map(|one| format!("- {}", one.title)).collect();
        Message {
            id,
            at,
            name: "digest".into(),
            title: format!("{} news from Onus", each.len()),
            text: lines.join("\n"),
            data: json!({ "news": each.into_iter().map(|one| one.data).collect::<Vec<_>>() }),
        }
    }

    pub fn test(id: String, at: Timestamp) -> Message {
        Message {
            id,
            at,
            name: "test".into(),
            title: "A test from Onus".into(),
            text: "If you read this, you will be told.".into(),
            data: json!({}),
        }
    }

    /// Standard Webhooks' own shape.
    pub fn webhook(&self) -> Json {
        let Message { id, at, name, title, text, data } = self;
        json!({ "type": name, "timestamp": at.to_string(), "id": id, "title": title, "text": text, "data": data })
    }

    /// Slack's shape, which Mattermost takes as well. Nobody is called by what a task says.
    pub fn slack(&self) -> Json {
        let escaped = self.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let calm = ["@channel", "@all", "@here", "@everyone"]
            .iter()
            .fold(escaped, |text, call| text.replace(call, &format!("@\u{200b}{}", &call[1..])));
        json!({ "text": calm })
    }

    /// An adaptive card, as Teams' workflows take it.
    pub fn teams(&self) -> Json {
        let block = |text: &str, weight: &str| json!({ "type": "TextBlock", "text": text, "weight": weight, "wrap": true });
        json!({ "type": "message", "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.2",
                "body": [block(&self.title, "bolder"), block(&self.text, "default")],
            },
        }] })
    }

    pub fn ntfy(&self, topic: &str) -> Json {
        json!({ "topic": topic, "title": self.title, "message": self.text, "tags": [self.name.replace('.', "_")] })
    }
}

fn in_words(news: &Tidings) -> String {
    let by = &news.actor;
    match &news.event {
        Event::ReviewRequested(_) => format!("{by} asks for a review."),
        Event::MilestoneAdded(added) => format!("{by} set up the milestone {}.", added.name),
        Event::MilestoneClosed(closed) => format!("{by} closed the milestone {}.", closed.name),
        Event::Refused(refused) => format!("{}: {}", refused.command, refused.detail),
        event => event.verb().replace('_', " "),
    }
}

/// What a program is told of it.
pub fn data(news: &Tidings, when: Occasion) -> Json {
    described(news, when.name())
}

pub fn described(news: &Tidings, when: &str) -> Json {
    let task = news.task.as_ref().map(|task| {
        json!({ "id": task.id, "title": task.title, "state": task.state, "assignee": task.agent,
            "workstation": task.workstation, "origin_ask_ref": task.origin, "forced": task.forced })
    });
    json!({ "id": news.id, "seq": news.seq, "at": news.at.to_string(), "when": when, "verb": news.event.verb(),
        "actor": news.actor, "workstation": news.workstation, "task": task, "text": words(news).map(|text| plain(&text)) })
}

fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

/// Without what a terminal or a reader's eye obeys.
fn plain(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unprintable(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_says_calls_nobody_and_is_no_markup() {
        let message = Message {
            text: "<!channel> @channel @here & \u{202e}x".into(),
            ..Message::test("i".into(), Timestamp(0))
        };
        let told = message.slack()["text"].as_str().unwrap().to_owned();
        assert!(
            told.contains("&lt;!channel&gt;") && !told.contains("@channel") && !told.contains("@here"),
            "{told}"
        );
        assert_eq!(plain("a\u{1b}[2J\u{202e}b\nc"), "a[2Jb\nc");
    }
}
