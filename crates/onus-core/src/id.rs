//! Typed ids and names. A value of these types has been checked: nothing path-like, no control characters.

use crate::hash::{BASE32, Digest, encode_base32, encode_hex};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The position of an entry in the ledger of one workspace. Also the creation order of what that entry created.
pub type Seq = i64;

/// Numbers the grants of one task. It only rises; a holder with a lower one is fenced.
pub type Epoch = i64;

/// Numbers the lives of one store. A person raises it after a restore, so that older tokens die.
pub type Generation = i64;

/// The tenant that every row belongs to; a local store has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId(pub i64);

/// Declares a checked string type: parse, display, serde and schema in one place.
macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $pattern:literal, $what:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            pub fn as_str(&self) -> &str { &self.0 }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok($name(text.into()))
                } else {
                    Err(format!("{} is not {} ({})", shown(text), $what, $pattern))
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> { stringify!($name).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "pattern": $pattern})
            }
        }
    };
}

/// Quotes a refused value for a message: shortened, control characters made visible.
pub fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.escape_debug())
}

fn name_tail(text: &str, first: fn(&u8) -> bool, rest: fn(&u8) -> bool, max: usize) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= max && bytes.first().is_some_and(first) && bytes.iter().all(rest)
}

/// The part of git's rules for reference names that needs no escaping anywhere.
fn is_branch(text: &str) -> bool {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'+' | b'-');
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.ends_with(".lock")
    };
    name_tail(text, u8::is_ascii_alphanumeric, is_plain, 200)
        && !text.contains("..")
        && text.split('/').all(is_part)
        && text != "HEAD"
}

fn is_name(text: &str) -> bool {
    name_tail(
        text,
        u8::is_ascii_lowercase,
        |b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-',
        64,
    )
}

checked_name!(
    /// A person or agent: `@builder-01`.
    Handle, "^@[a-z][a-z0-9-]{0,63}$", "a worker's handle",
    |text| text.strip_prefix('@').is_some_and(is_name)
);
checked_name!(
    /// A named execution context: `ws-backend-01`.
    WorkstationName, "^[a-z][a-z0-9-]{0,63}$", "a workstation name", is_name
);
checked_name!(
    /// A set of tasks that is verified together: `sprint-12`.
    MilestoneName, "^[a-z][a-z0-9-]{0,63}$", "a milestone's name", is_name
);
checked_name!(
    /// A client whose call is known: `claude`.
    PresetName, "^[a-z][a-z0-9-]{0,63}$", "a preset's name", is_name
);
checked_name!(
    /// The capital letters before the dash of `API-12`.
    ProjectKey, "^[A-Z][A-Z0-9]{0,15}$", "a project key",
    |text| name_tail(text, u8::is_ascii_uppercase, |b| b.is_ascii_uppercase() || b.is_ascii_digit(), 16)
);
checked_name!(
    /// What the identity map routes by: `backend_feature`.
    TaskType, "^[a-z][a-z0-9_-]{0,63}$", "a task type",
    |text| name_tail(text, u8::is_ascii_lowercase, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'), 64)
);
checked_name!(
    /// A part that several workers can play: `A-backend`.
    Role, "^[A-Za-z][A-Za-z0-9_-]{0,63}$", "a role",
    |text| name_tail(text, u8::is_ascii_alphabetic, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'), 64)
);
checked_name!(
    /// A whole commit id of git, SHA-1 or SHA-256.
    CommitId, "^([0-9a-f]{40}|[0-9a-f]{64})$", "a commit id",
    |text| matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
);
checked_name!(
    /// What a check is known by: the beginning of the digest of its text and kind.
    CheckId, "^[0-9a-f]{12}$", "a check's id",
    |text| text.len() == 12 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
);

impl CheckId {
    pub fn of(digest: &Digest) -> CheckId {
        CheckId(encode_hex(&digest.0[..6]).into())
    }
}

checked_name!(
    /// The public part of a token, by which people speak of it.
    TokenId, "^[0-9a-hjkmnp-tv-z]{8}$", "a token's id",
    |text| text.len() == 8 && text.bytes().all(|b| BASE32.contains(&b))
);
impl TokenId {
    pub fn new(random: &[u8; 5]) -> TokenId {
        TokenId(encode_base32(random).into())
    }
}

checked_name!(
    /// A clone of a repository, by a name that it drew for itself.
    CloneId, "^[0-9a-hjkmnp-tv-z]{16}$", "a clone's id",
    |text| text.len() == 16 && text.bytes().all(|b| BASE32.contains(&b))
);
impl CloneId {
    pub fn new(random: &[u8; 10]) -> CloneId {
        CloneId(encode_base32(random).into())
    }
}

checked_name!(
    /// A branch, without `refs/heads/`: `agent/ws-backend-01`.
    BranchName, "^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$", "a branch name", is_branch
);
fn is_channel(text: &str) -> bool {
    let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    name_tail(text, u8::is_ascii_lowercase, is_plain, 32)
}

checked_name!(
    /// Whoever is told what happens here: an outside system (`redmine`), a channel, a person (`@ada`).
    MirrorName, "^@?[a-z][a-z0-9-]{0,63}$", "a mirror's name",
    |text| is_name(text.strip_prefix('@').unwrap_or(text))
);
checked_name!(
    /// The system that an ask lives in: `github`.
    ChannelName, "^[a-z][a-z0-9_.-]{0,31}$", "a channel's name", is_channel
);
checked_name!(
    /// Where an ask lives in its own system: `channel:key`, e.g. `github:acme/api#12`.
    OriginRef, "^[a-z][a-z0-9_.-]{0,31}:\\S{1,400}$", "an origin (CHANNEL:KEY)",
    |text| text.split_once(':').is_some_and(|(channel, key)| {
        is_channel(channel)
            && (1..=400).contains(&key.len())
            && !key.chars().any(|c| c.is_whitespace() || c.is_control())
    })
);
checked_name!(
    /// Names one call, so that a repeat of it can be told from a second one.
    RequestId, "^[!-~]{1,200}$", "a request id",
    |text| name_tail(text, u8::is_ascii_graphic, u8::is_ascii_graphic, 200)
);

/// `API-12`: a project key and a number that is never used again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    pub project: ProjectKey,
    pub number: i64,
}

impl FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{} is not a task id (KEY-12)", shown(text));
        let (project, number) = text.split_once('-').ok_or_else(bad)?;
        // People type ids in lower case; stored ids have one form.
        let project = project.to_ascii_uppercase().parse().map_err(|_| bad())?;
        let canonical = (1..=15).contains(&number.len())
            && number.bytes().all(|b| b.is_ascii_digit())
            && !number.starts_with('0');
        if !canonical {
            return Err(bad());
        }
        Ok(TaskId { project, number: number.parse().map_err(|_| bad())? })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.project, self.number)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TaskId {
    fn schema_name() -> Cow<'static, str> {
        "TaskId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[A-Z][A-Z0-9]{0,15}-[1-9][0-9]{0,14}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids() {
        assert_eq!("API-12".parse::<TaskId>().unwrap().to_string(), "API-12");
        assert_eq!("api-12".parse::<TaskId>().unwrap().to_string(), "API-12");
        for bad in [
            "",
            "API",
            "API-",
            "-12",
            "API-0",
            "API-012",
            "API-1x",
            "../API-1",
            "API-1/..",
            "API--1",
            "API-9999999999999999",
            "ÄPI-1",
            "A\0-1",
        ] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_that_could_be_paths_or_options_are_refused() {
        for bad in [
            "",
            "@",
            "builder",
            "@-a",
            "@A",
            "@a/b",
            "@a b",
            "@a\n",
            "@..",
            "@1a",
            &format!("@a{}", "b".repeat(64)),
        ] {
            assert!(bad.parse::<Handle>().is_err(), "{bad:?}");
        }
        for bad in ["", "-ws", "../ws", "WS", "ws_1", "ws.1", "ws 1"] {
            assert!(bad.parse::<WorkstationName>().is_err(), "{bad:?}");
        }
        assert!("@agent-builder-01".parse::<Handle>().is_ok());
        assert!("ws-backend-01".parse::<WorkstationName>().is_ok());
    }

    #[test]
    fn origins_name_a_channel_and_a_key() {
        assert!("github:acme/api#12".parse::<OriginRef>().is_ok());
        assert!("mail:<a@b.c>".parse::<OriginRef>().is_ok());
        for bad in ["", "github", "github:", ":12", "GitHub:1", "a:b c", "a:b\u{7}"] {
            assert!(bad.parse::<OriginRef>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn refused_values_are_shown_without_their_control_characters() {
        assert_eq!(shown("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert!(shown(&"x".repeat(1000)).len() < 80);
    }
}
