//! The forms of what a person can do. A form is one call of the HTTP interface: its fields are the fields of the call's
//! body, and `assets/act.js` sends it. Nothing is decided here; what is refused comes back from the call.

use askama::Template;
use onus_core::task::{By, Move};

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// The name under which scripts and buttons ask for it.
    pub(crate) verb: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// `{id}` stands for the task.
    pub(crate) path: &'static str,
    pub(crate) fields: &'static [Field],
    /// Sent with the lease token, where this browser has it.
    pub(crate) held: bool,
    /// A person may force it, with a reason.
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) input: Input,
    pub(crate) required: bool,
    /// Out of sight until somebody asks for more.
    pub(crate) folded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Line,
    Text,
    /// A day of the calendar.
    Day,
    /// A line whose words are chosen from the list of this name in the layout.
    Listed(&'static str),
    /// One of these; the first one is the default.
    Choice(&'static [&'static str]),
    /// One of these, and nothing is chosen for anybody.
    Decision(&'static [&'static str]),
    /// What kind of thing work waits for, and which one.
    Blocker,
    /// Several values, one on each line.
    Lines,
    Flag,
}

impl Field {
    /// Its label without the explanation: `Labels`, of `Labels, one on each line`.
    pub(crate) fn short(&self) -> String {
        self.label.split([',', ':']).next().unwrap_or(self.label).to_lowercase()
    }
}

const fn field(name: &'static str, label: &'static str, input: Input) -> Field {
    Field { name, label, input, required: false, folded: false }
}

const fn folded(name: &'static str, label: &'static str, input: Input) -> Field {
    Field { name, label, input, required: false, folded: true }
}

const fn required(name: &'static str, label: &'static str, input: Input) -> Field {
    Field { name, label, input, required: true, folded: false }
}

const REASON: Field = required("reason", "Why? It goes into the ledger", Input::Line);

/// Every form, by verb.
pub(crate) const FORMS: &[Form] = &[
    Form {
        verb: "add",
        title: "Ask for something",
        about: "One ask, one task.",
        path: "/v1/tasks",
        fields: &[
            required("title", "What is to be done, in one line", Input::Line),
            field("body", "Details (Markdown)", Input::Text),
            field("priority", "Priority", Input::Choice(&["P2", "P0", "P1", "P3", "P4"])),
            field("kind", "Kind", Input::Choice(&["feature", "defect", "chore", "docs"])),
            field("type", "Type: the map sends it to whoever does such work", Input::Line),
            field("project", "Project", Input::Listed("projects")),
            folded("tags", "Labels, one on each line", Input::Lines),
            folded("role", "Role", Input::Line),
            folded("sprint", "Sprint", Input::Line),
            folded("depends_on", "Waits for, one task on each line", Input::Lines),
            folded("scope", "Scope: paths that the work may touch, one pattern on each line", Input::Lines),
        ],
        held: false,
        force: false,
    },
    Form {
        verb: "claim",
        title: "Claim",
        about: "You become its holder; the lease is kept in this browser.",
        path: "/v1/tasks/{id}/claim",
        fields: &[
            field("workstation", "Where you will work", Input::Listed("workstations")),
            field("assignee", "For somebody else", Input::Listed("workers")),
        ],
        held: false,
        force: true,
    },
    Form {
        verb: "takeover",
        title: "Take over",
        about: "Its holder has gone silent. What is left of the work is kept.",
        path: "/v1/tasks/{id}/takeover",
        fields: &[REASON, field("workstation", "Where you will work", Input::Listed("workstations"))],
        held: false,
        force: true,
    },
    Form {
        verb: "renew",
        title: "Renew the lease",
        about: "Stay its holder for longer.",
        path: "/v1/tasks/{id}/renew",
        fields: &[],
        held: true,
        force: false,
    },
    Form {
        verb: "release",
        title: "Release",
        about: "It goes back to the queue.",
        path: "/v1/tasks/{id}/release",
        fields: &[field("summary", "What the next holder should know", Input::Text)],
        held: true,
        force: true,
    },
    Form {
        verb: "block",
        title: "Block",
        about: "The work waits for something.",
        path: "/v1/tasks/{id}/block",
        fields: &[
            required("on", "What it waits for", Input::Blocker),
            field("summary", "What the next one should know", Input::Text),
            field("release_lease", "Give the lease back meanwhile", Input::Flag),
        ],
        held: true,
        force: false,
    },
    Form {
        verb: "unblock",
        title: "Unblock",
        about: "What the work waited for is there.",
        path: "/v1/tasks/{id}/unblock",
        fields: &[],
        held: true,
        force: false,
    },
    Form {
        verb: "note",
        title: "Write a note",
        about: "Progress of its holder, or anybody's comment.",
        path: "/v1/tasks/{id}/notes",
        fields: &[required("text", "Note (Markdown)", Input::Text)],
        held: true,
        force: false,
    },
    Form {
        verb: "say",
        title: "Say something",
        about: "To whoever holds it; the answer, where it waits for you.",
        path: "/v1/tasks/{id}/messages",
        fields: &[
            required("text", "Message", Input::Text),
            field("to", "To whom, if not to the holder", Input::Listed("workers")),
        ],
        held: true,
        force: false,
    },
    Form {
        verb: "complete",
        title: "Complete",
        about: "Every approved check must have passed at this commit.",
        path: "/v1/tasks/{id}/complete",
        fields: &[
            required("resolution", "What was done", Input::Text),
            field("commit", "At which commit", Input::Line),
        ],
        held: true,
        force: true,
    },
    Form {
        verb: "review",
        title: "Review",
        about: "Say what somebody else's work is.",
        path: "/v1/tasks/{id}/reviews",
        fields: &[
            required("verdict", "Verdict", Input::Decision(&["approved", "rejected"])),
            required(
                "classification",
                "Work that runs, or words about it",
                Input::Decision(&["implemented", "design-only"]),
            ),
            field("commit", "At which commit", Input::Line),
            field("note", "Note", Input::Text),
        ],
        held: false,
        force: false,
    },
    Form {
        verb: "reopen",
        title: "Reopen",
        about: "It is not complete after all.",
        path: "/v1/tasks/{id}/reopen",
        fields: &[REASON],
        held: false,
        force: false,
    },
    Form {
        verb: "drop",
        title: "Drop",
        about: "Give it up for good.",
        path: "/v1/tasks/{id}/drop",
        fields: &[REASON],
        held: false,
        force: false,
    },
    Form {
        verb: "add_worker",
        title: "Register a worker",
        about: "A person or an agent, under a name of its own.",
        path: "/v1/workers",
        fields: &[
            required("handle", "Handle, such as @builder-01", Input::Line),
            field("kind", "Kind", Input::Choice(&["agent", "human"])),
            field("tier", "Model or class", Input::Line),
            field("role", "Role", Input::Line),
            field("tz", "Time zone of its days, such as Europe/Berlin", Input::Line),
        ],
        held: false,
        force: false,
    },
    Form {
        verb: "pause_worker",
        title: "Pause",
        about: "No new work; what it holds stays its own.",
        path: "/v1/workers/{id}/pause",
        fields: &[REASON],
        held: false,
        force: false,
    },
    Form {
        verb: "resume_worker",
        title: "Resume",
        about: "It may have work again.",
        path: "/v1/workers/{id}/resume",
        fields: &[],
        held: false,
        force: false,
    },
    Form {
        verb: "add_workstation",
        title: "Register a workstation",
        about: "A name that work can go to. A directory is registered where it is: onus workstation add.",
        path: "/v1/workstations",
        fields: &[
            required("name", "Name, such as ws-backend-01", Input::Line),
            field("lifecycle", "Lifecycle", Input::Choice(&["reusable", "single-task"])),
            field("probes", "What must hold there, one probe on each line", Input::Lines),
        ],
        held: false,
        force: false,
    },
    Form {
        verb: "quarantine",
        title: "Quarantine",
        about: "No new work goes there; whoever works there is suspended, and the task can be taken over.",
        path: "/v1/workstations/{id}/quarantine",
        fields: &[REASON],
        held: false,
        force: false,
    },
    Form {
        verb: "restore",
        title: "Restore",
        about: "Back from quarantine; with probes it is ready once they pass.",
        path: "/v1/workstations/{id}/restore",
        fields: &[field("reason", "Why? It goes into the ledger", Input::Line)],
        held: false,
        force: false,
    },
    Form {
        verb: "retire",
        title: "Retire",
        about: "No work there ever again, under this registration; its directory stays.",
        path: "/v1/workstations/{id}/retire",
        fields: &[REASON],
        held: false,
        force: false,
    },
    Form {
        verb: "add_milestone",
        title: "Add a milestone",
        about: "Tasks that are verified together: by name, or by what they share.",
        path: "/v1/milestones",
        fields: &[
            required("name", "Name, such as sprint-12", Input::Line),
            field("title", "What it stands for", Input::Line),
            field("target", "Target date", Input::Day),
            field("sprint", "All tasks of this sprint", Input::Line),
            field("tag", "All tasks with this label", Input::Line),
            field("parent", "This task and its slices", Input::Line),
            field("tasks", "Tasks, one on each line", Input::Lines),
        ],
        held: false,
        force: false,
    },
    Form {
        verb: "close_milestone",
        title: "Close",
        about: "For good, if nothing is missing. What was verified goes into the ledger.",
        path: "/v1/milestones/{id}/close",
        fields: &[],
        held: false,
        force: false,
    },
];

/// Moves as a card carries them: `claim:in_progress complete!:complete`. A forced one bears a mark.
pub(crate) fn moves(moves: &[Move]) -> String {
    let words = moves.iter().map(|found| {
        let mark = match found.by {
            By::Rule => "",
            By::Force => "!",
        };
        format!("{}{mark}:{}", found.verb, found.to)
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Form {
    /// What is asked at once, and what only of those who want to say more.
    pub(crate) fn parts(&self) -> (Vec<&Field>, Vec<&Field>) {
        self.fields.iter().partition(|field| !field.folded)
    }

    /// Whether it gives the work to somebody, who then works somewhere.
    pub(crate) fn gives(&self) -> bool {
        matches!(self.verb, "claim" | "takeover")
    }
}

/// The forms as templates of the page: scripts copy them when they are asked for.
#[derive(Debug, Template)]
#[template(path = "part/forms.html")]
pub(crate) struct Forms {
    pub(crate) forms: &'static [Form],
    /// Only people are offered force.
    pub(crate) person: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form of a verb offers what its input takes, as the input takes it.
    #[test]
    fn forms_are_made_of_their_verbs_inputs() {
        let inputs = onus_app::input::schemas();
        let mut compared = 0;
        for form in FORMS {
            let Some((_, schema)) = inputs.iter().find(|(verb, _)| *verb == form.verb) else { continue };
            let properties = schema.get("properties").unwrap();
            let required = schema.get("required").cloned().unwrap_or_default();
            for field in form.fields {
                let about = format!("{}.{}", form.verb, field.name);
                let property = &properties[field.name];
                assert!(!property.is_null(), "{about} is no field of the input");
                assert_eq!(property["type"] == "boolean", field.input == Input::Flag, "{about}: {property}");
                let is_list = property.to_string().contains("\"array\"");
                assert_eq!(is_list, field.input == Input::Lines, "{about}: {property}");
                if let (Input::Choice(words) | Input::Decision(words), true) = (
                    field.input,
                    property.to_string().contains("\"const\"") || property.to_string().contains("\"enum\""),
                ) {
                    let told = property.to_string();
                    for word in words {
                        assert!(told.contains(&format!("\"{word}\"")), "{about}: {word} is not in {told}");
                    }
                }
            }
            for name in required.as_array().into_iter().flatten().filter_map(|name| name.as_str()) {
                let field = form.fields.iter().find(|field| field.name == name);
                let is_asked =
                    field.is_some_and(|field| field.required || matches!(field.input, Input::Choice(_)));
                assert!(is_asked, "{} does not ask for {name}", form.verb);
            }
            assert_eq!(form.held, !properties["lease"].is_null(), "{}: lease", form.verb);
            assert_eq!(form.force, !properties["force"].is_null(), "{}: force", form.verb);
            compared += 1;
        }
        assert!(compared >= 12, "{compared}");
    }
}
