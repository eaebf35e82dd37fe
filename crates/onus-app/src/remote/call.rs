//! What every travelling call has: a name, arguments, an answer, and a class that says who may make it.

use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::remote::calls::CallName;
use onus_core::id::shown;
use onus_core::refusal::Refusal;
use onus_core::token::{Principal, administers, judges, reports, speaks};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One call that travels. The table in [`super::calls`] has them all.
pub(crate) trait Call: Serialize + DeserializeOwned {
    const NAME: CallName;
    type Answer: Serialize + DeserializeOwned;

    /// Answers it where the store is.
    fn answer(self, onus: &mut Onus, asker: Asker<'_>) -> Result<Self::Answer, Refusal>;
}

/// Who may make a call, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Anybody with a token may ask.
    Question,
    /// How the store is kept: people only, and nothing changes.
    Upkeep,
    /// A command about a task, or its rehearsal. What its command takes is asked once it is read.
    Command,
    /// What is seen where somebody works: what a workstation's probes say, a clone that begins to use the store. Whose place
    /// it is is asked once it is read.
    Report,
    /// A person's push, on record under the token that they pushed along; whose call it is says nothing.
    Push,
    /// A judgement about finished work.
    Judgement,
    /// A change of the workspace itself: people only.
    Administration,
    /// The same with a whole file.
    Import,
}

/// The bytes of one file of tasks, at most.
const IMPORT_MAX: usize = 128 * 1024 * 1024;
/// The bytes of a report of probes: sixteen results of a few hundred characters.
const REPORT_MAX: usize = 64 * 1024;

impl Class {
    /// Whether such a call writes, or takes the writers' turn.
    pub const fn is_write(self) -> bool {
        match self {
            Class::Question | Class::Upkeep => false,
            Class::Command
            | Class::Report
            | Class::Push
            | Class::Judgement
            | Class::Administration
            | Class::Import => true,
        }
    }

    /// How long the arguments may be, where any other request may have `usual` bytes.
    pub const fn body_limit(self, usual: usize) -> usize {
        match self {
            Class::Question | Class::Upkeep | Class::Command | Class::Judgement | Class::Administration => {
                usual
            }
            Class::Report | Class::Push if usual < REPORT_MAX => usual,
            Class::Report | Class::Push => REPORT_MAX,
            Class::Import => IMPORT_MAX,
        }
    }
}

/// Whether a token may make a call at all: asked before a byte of its arguments is read.
pub fn permits(principal: &Principal, call: CallName) -> Result<(), Refusal> {
    match call.class() {
        Class::Question | Class::Push => Ok(()),
        Class::Command => speaks(principal),
        Class::Report => reports(principal),
        Class::Judgement => judges(principal),
        Class::Upkeep | Class::Administration | Class::Import => administers(principal),
    }
}

impl CallName {
    /// The call of this name, or a refusal that says what to do about it.
    pub fn known(name: &str) -> Result<CallName, Refusal> {
        CallName::parse(name).ok_or_else(|| {
            Refusal::invalid(format!("this server knows no call {}", shown(name))).hint("update the server")
        })
    }
}

/// Makes the table: a type for each call, their names, and who answers them.
macro_rules! calls {
    ($($call:ident $name:literal ($($field:ident: $type:ty),*) -> $answer:ty, $class:ident $weight:ident,
        |$onus:ident, $asker:ident| $act:expr;)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $call { $(pub(crate) $field: $type),* }

            // Arguments travel as a list in the table's order: one too many or too few is refused.
            impl serde::Serialize for $call {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serde::Serialize::serialize(&($(&self.$field,)*), serializer)
                }
            }

            impl<'de> serde::Deserialize<'de> for $call {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let list: ($($type,)*) = serde::Deserialize::deserialize(deserializer)?;
                    let ($($field,)*) = list;
                    Ok($call { $($field),* })
                }
            }

            impl Call for $call {
                const NAME: CallName = CallName::$call;
                type Answer = $answer;

                fn answer(self, $onus: &mut Onus, $asker: Asker<'_>) -> Result<$answer, Refusal> {
                    let _ = $asker;
                    let $call { $($field),* } = self;
                    $act
                }
            }
        )+

        /// Every call that travels.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CallName { $($call),+ }

        impl CallName {
            pub const ALL: &[CallName] = &[$(CallName::$call),+];

            pub const fn name(self) -> &'static str {
                match self { $(CallName::$call => $name),+ }
            }

            pub const fn class(self) -> Class {
                match self { $(CallName::$call => Class::$class),+ }
            }

            pub const fn weight(self) -> Weight {
                match self { $(CallName::$call => Weight::$weight),+ }
            }

            pub fn parse(name: &str) -> Option<CallName> {
                match name { $($name => Some(CallName::$call),)+ _ => None }
            }
        }

        /// Answers a call that arrived from somebody whom the server knows.
        pub fn answer(
            onus: &mut Onus,
            asker: Asker<'_>,
            call: CallName,
            arguments: &str,
        ) -> Result<String, Refusal> {
            match call { $(CallName::$call => reply::<$call>(onus, asker, arguments)),+ }
        }
    };
}
pub(super) use calls;

pub(super) fn reply<C: Call>(onus: &mut Onus, asker: Asker<'_>, arguments: &str) -> Result<String, Refusal> {
    let call: C = super::read(arguments)?;
    super::write(&call.answer(onus, asker)?)
}
