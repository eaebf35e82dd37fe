//! The rules of Onus. Pure: no I/O, no clock, no randomness; time and ids are arguments.
//!
//! Start at [`decide::decide`]: it is the only place where a rule exists. [`task::evolve`] says what an event does to
//! a task, [`effect::effects`] what it does to the rows beside it, [`ledger`] how it is written down.

pub mod agents;
pub mod amount;
pub mod boundary;
pub mod check;
pub mod code;
pub mod command;
pub mod constraint;
pub mod contract_request;
pub mod decide;
pub mod effect;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod gate;
pub mod guard;
pub mod handoff;
pub mod hash;
pub mod id;
pub mod identity_map;
pub mod intake;
pub mod lane;
pub mod lease;
pub mod ledger;
pub mod limits;
pub mod line_comment;
pub mod main_of_record;
pub mod milestone;
pub mod mirror;
pub mod naming;
pub mod notify;
pub mod order;
pub mod output;
pub mod own_commits;
pub mod price;
pub mod probe;
pub mod process;
pub mod queue;
pub mod refusal;
pub mod registry;
pub mod report;
pub mod saved_view;
pub mod scope;
pub mod search;
pub mod session;
pub mod settings;
pub mod shell_line;
pub mod task;
pub mod text;
pub mod time;
pub mod timesheet;
pub mod token;
pub mod tool_guard;
pub mod unique_json;
pub mod validate;
pub mod worker;
pub mod workstation;

/// Where the work of an ended assignment is kept. Known without looking, so that a refusal can name it.
pub fn salvage_reference(task: &id::TaskId, epoch: id::Epoch) -> String {
    format!("refs/onus/salvage/{task}/{epoch}")
}

/// Whether a reference keeps work of this assignment: its own name, or that with a number behind it where more was found
/// later.
pub fn is_salvage_of(reference: &str, task: &id::TaskId, epoch: id::Epoch) -> bool {
    let rest = reference.strip_prefix(salvage_reference(task, epoch).as_str());
    let is_number = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number))
}

/// A closed set of words: an enum whose variants have one spelling in documents, in the store and on the command line.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $word),+ } }
            pub fn parse(text: &str) -> Option<$name> { match text { $($word => Some($name::$variant),)+ _ => None } }
        }
    };
}

pub(crate) use words;

/// Serde through `Display` and `FromStr`, for values that are one word in a document.
#[macro_export]
macro_rules! serde_by_display {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

// Tests of the whole crate call it by its name, as everybody else does.
#[cfg(test)]
extern crate self as onus_core;

#[cfg(test)]
#[path = "../tests/runner.rs"]
mod tests;
