//! Statements: one text for every database, parameters with names, and beside the text what a driver may assume about it.
//!
//! [`sql!`](crate::sql) makes two things of a statement: a `static` with its text, and a struct of the same name whose
//! fields are its parameters. A call fills the struct in, so that a wrong name or a missing one does not compile:
//!
//!     STATE(task) = "SELECT state FROM task WHERE workspace = :workspace AND id = :task";
//!     tx.row(&STATE { task: id })?
//!
//! `:workspace` is never given: it is the transaction's, so no call can name another one.

use crate::port::Value;
use onus_core::hash::Digest;
use onus_core::id::{
    CommitId, Handle, MilestoneName, MirrorName, OriginRef, ProjectKey, Role, TaskId, TaskType, TokenId,
    WorkstationName,
};
use onus_core::time::{Date, Millis, Timestamp};

/// A statement's text and what is known about it. TEXT, BIGINT and binary only; no clock, no rules, no locks: a writer is
/// alone in its workspace.
///
/// A plus before a column (`+workspace`) keeps SQLite from that column's indexes; other databases are not told.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    pub name: &'static str,
    /// With numbers for the parameters' names: `?1` is the workspace, where the statement names it.
    pub text: &'static str,
    pub names_workspace: bool,
    pub effect: StatementEffect,
}

/// What a driver may assume about a statement when it sends several of them together, or remembers an answer.
#[derive(Debug, Clone, Copy)]
pub enum StatementEffect {
    /// Nothing: any change may alter its answer, and it may alter any answer.
    Unknown,
    /// A question. Its answer is altered only by changes of the rows that it names.
    Reads {
        rows: &'static [Key],
        /// Rows that the answer itself names, in any of its columns.
        found: &'static [&'static str],
    },
    /// A change of the rows that it names, as far as any question with `Reads` can see. Changes of the same text whose
    /// `row` is another one can be made together.
    Touches { rows: &'static [Key], row: &'static [Key] },
    /// A change that is computed from what all others leave, however often it is made, and seen by no question with
    /// `Reads`: it is made after them.
    Last,
}

/// A parameter that names rows, and its place among the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub at: usize,
}

/// A statement with the values of its parameters.
pub trait Statement {
    fn sql(&self) -> &'static Sql;

    /// In the order of the parameters' numbers, without the workspace.
    fn values(&self) -> Vec<Value<'_>>;
}

/// Parameters that several statements share, such as the columns of a row.
pub trait Params {
    const NAMES: &'static [&'static str];

    fn add_to<'s>(&'s self, values: &mut Vec<Value<'s>>);
}

/// What can be given for a parameter.
pub trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

impl ToValue for Value<'_> {
    fn to_value(&self) -> Value<'_> {
        match self {
            Value::Null => Value::Null,
            Value::Int(n) => Value::Int(*n),
            Value::Text(text) => Value::from(&**text),
            Value::Blob(bytes) => Value::from(&**bytes),
        }
    }
}

macro_rules! to_value {
    ($($given:ident: $type:ty => $value:expr;)+) => {
        $(impl ToValue for $type {
            fn to_value(&self) -> Value<'_> {
                let $given = self;
                Value::from($value)
            }
        })+
    };
}

to_value! {
    n: i64 => *n;
    yes: bool => *yes;
    text: str => text;
    text: String => text.as_str();
    bytes: [u8] => bytes;
    bytes: Vec<u8> => bytes.as_slice();
    digest: Digest => digest;
    at: Timestamp => at.0;
    length: Millis => length.0;
    day: Date => day.to_string();
    id: TaskId => id.to_string();
    id: CommitId => id.as_str();
    id: TokenId => id.as_str();
    handle: Handle => handle.as_str();
    name: MilestoneName => name.as_str();
    name: MirrorName => name.as_str();
    name: WorkstationName => name.as_str();
    origin: OriginRef => origin.as_str();
    key: ProjectKey => key.as_str();
    role: Role => role.as_str();
    task_type: TaskType => task_type.as_str();
}

const fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

const fn is_same(text: &[u8], from: usize, to: usize, name: &[u8]) -> bool {
    if to - from != name.len() {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if text[from + at] != name[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Where the name that begins here ends; the same place where none begins.
const fn end_of_name(text: &[u8], from: usize) -> usize {
    let mut to = from;
    while to < text.len() && is_of_a_name(text[to]) {
        to += 1;
    }
    to
}

/// Whether a text has `:workspace` in it.
pub const fn names_workspace(pieces: &[&str]) -> bool {
    let mut piece = 0;
    while piece < pieces.len() {
        let text = pieces[piece].as_bytes();
        let mut at = 0;
        while at < text.len() {
            if text[at] == b':' && is_same(text, at + 1, end_of_name(text, at + 1), b"workspace") {
                return true;
            }
            at += 1;
        }
        piece += 1;
    }
    false
}

/// The place of a parameter among the values that a database is given; the build stops where there is none of that name.
const fn place(text: &[u8], from: usize, to: usize, pieces: &[&str], params: &[&[&str]]) -> usize {
    let mut place = if names_workspace(pieces) { 1 } else { 0 };
    if is_same(text, from, to, b"workspace") {
        return 0;
    }
    let mut list = 0;
    loop {
        assert!(list < params.len(), "the text names a parameter that is not declared");
        let mut param = 0;
        while param < params[list].len() {
            if is_same(text, from, to, params[list][param].as_bytes()) {
                return place;
            }
            place += 1;
            param += 1;
        }
        list += 1;
    }
}

pub const fn key(name: &'static str, param: &str, pieces: &[&str], params: &[&[&str]]) -> Key {
    Key { name, at: place(param.as_bytes(), 0, param.len(), pieces, params) }
}

/// What statements may say that they read or touch.
const ROWS: &[&str] = &["task", "workstation", "worker", "request", "token"];

/// A name of rows; the build stops where there are none of that name, because nothing would ever meet them.
pub const fn rows(name: &'static str) -> &'static str {
    let mut known = 0;
    loop {
        assert!(known < ROWS.len(), "a statement reads or touches rows of another name");
        if is_same(name.as_bytes(), 0, name.len(), ROWS[known].as_bytes()) {
            return name;
        }
        known += 1;
    }
}

/// The text with numbers for names, and its length; with no room for it only the length. The build stops where a parameter
/// is declared and not used, or used and not declared.
pub const fn numbered<const ROOM: usize>(pieces: &[&str], params: &[&[&str]]) -> ([u8; ROOM], usize) {
    let (mut out, mut length) = ([0; ROOM], 0);
    let mut used: u128 = 0;
    let mut is_quoted = false;
    let mut piece = 0;
    while piece < pieces.len() {
        let text = pieces[piece].as_bytes();
        let mut at = 0;
        while at < text.len() {
            if text[at] == b'\'' {
                is_quoted = !is_quoted;
            }
            assert!(is_quoted || text[at] != b'?', "a parameter has a number instead of a name");
            let end = end_of_name(text, at + 1);
            if text[at] != b':' || is_quoted || end == at + 1 {
                if length < ROOM {
                    out[length] = text[at];
                }
                length += 1;
                at += 1;
                continue;
            }
            let number = place(text, at + 1, end, pieces, params) + 1;
            used |= 1 << number;
            let digits = [b'?', b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
            let mut digit = 0;
            while digit < digits.len() {
                if digit != 1 || number >= 10 {
                    if length < ROOM {
                        out[length] = digits[digit];
                    }
                    length += 1;
                }
                digit += 1;
            }
            at = end;
        }
        piece += 1;
    }
    let mut count = if names_workspace(pieces) { 1 } else { 0 };
    let mut list = 0;
    while list < params.len() {
        count += params[list].len();
        list += 1;
    }
    assert!(used == (1 << (count + 1)) - 2, "a parameter is declared that the text does not name");
    (out, length)
}

/// The text in one piece.
pub const fn text(bytes: &'static [u8]) -> &'static str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

/// Names statements once, for every driver: `NAME(parameters) effect = "text", "more text";`
///
/// The effect is one of these, or nothing (see [`Effect`](crate::statement::StatementEffect)):
///
/// - `reads [task]`: the rows named by the parameter `task`; `reads [request: id]` where the parameter has another name;
///   with `found [task]` also those that the answer names.
/// - `touches [task, workstation] row [task, epoch]`
/// - `last []`
///
/// After the parameters a list of them can be taken over: `NAME(limit, ..filter: FilterParams)`.
#[macro_export]
macro_rules! sql {
    ($(
        $(#[$doc:meta])* $vis:vis $name:ident
        $(($($param:ident),* $(,)? $(..$rest:ident: $group:ident)?))?
        $($effect:ident [$($keys:tt)*])*
        = $($text:expr),+ ;
    )+) => { $(
        $(#[$doc])*
        $vis static $name: $crate::statement::Sql = {
            const TEXT: &[&str] = &[$($text),+];
            const PARAMS: &[&[&str]] = &[
                &[$($(stringify!($param)),*)?],
                $($(<$group<$crate::port::Value<'static>> as $crate::statement::Params>::NAMES)?)?
            ];
            $crate::sql_of!(stringify!($name), TEXT, PARAMS; $($effect [$($keys)*])*)
        };
        $crate::statement!($(#[$doc])* $vis $name $(($($param),* $(; $rest: $group)?))?);
    )+ };
}

/// The static part of a statement, from the constants `TEXT` and `PARAMS`.
#[doc(hidden)]
#[macro_export]
macro_rules! sql_of {
    ($name:expr, $text:ident, $params:ident; $($effect:tt)*) => {{
        const LENGTH: usize = $crate::statement::numbered::<0>($text, $params).1;
        const BYTES: [u8; LENGTH] = $crate::statement::numbered::<LENGTH>($text, $params).0;
        $crate::statement::Sql {
            name: $name,
            text: $crate::statement::text(&BYTES),
            names_workspace: $crate::statement::names_workspace($text),
            effect: $crate::effect!($text, $params; $($effect)*),
        }
    }};
}

/// Pieces of a text without parameters as one constant.
macro_rules! joined {
    ($($piece:expr),+ $(,)?) => {{
        const PIECES: &[&str] = &[$($piece),+];
        const LENGTH: usize = $crate::statement::numbered::<0>(PIECES, &[]).1;
        const BYTES: [u8; LENGTH] = $crate::statement::numbered::<LENGTH>(PIECES, &[]).0;
        $crate::statement::text(&BYTES)
    }};
}

/// Parameters that several statements share.
macro_rules! params {
    ($(#[$doc:meta])* $vis:vis $group:ident { $($param:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        $vis struct $group<T> {
            $($vis $param: T,)+
        }

        impl $crate::statement::Params for $group<$crate::port::Value<'_>> {
            const NAMES: &'static [&'static str] = &[$(stringify!($param)),+];

            fn add_to<'s>(&'s self, values: &mut Vec<$crate::port::Value<'s>>) {
                values.extend([$($crate::statement::ToValue::to_value(&self.$param)),+]);
            }
        }
    };
}

pub(crate) use {joined, params};

/// The struct of a statement's parameters.
#[doc(hidden)]
#[macro_export]
macro_rules! statement {
    ($(#[$doc:meta])* $vis:vis $name:ident) => { $crate::statement!($(#[$doc])* $vis $name()); };
    ($(#[$doc:meta])* $vis:vis $name:ident($($param:ident),*)) => {
        $(#[$doc])*
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named like its text, and its fields like their types")]
        #[derive(Debug)]
        $vis struct $name<$($param),*> { $($vis $param: $param),* }

        #[allow(non_camel_case_types, reason = "as above")]
        impl<$($param: $crate::statement::ToValue),*> $crate::statement::Statement for $name<$($param),*> {
            fn sql(&self) -> &'static $crate::statement::Sql {
                &$name
            }

            fn values(&self) -> Vec<$crate::port::Value<'_>> {
                vec![$($crate::statement::ToValue::to_value(&self.$param)),*]
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis $name:ident($($param:ident),*; $rest:ident: $group:ident)) => {
        $(#[$doc])*
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named like its text, and its fields like their types")]
        #[derive(Debug)]
        $vis struct $name<'v, $($param),*> { $($vis $param: $param,)* $vis $rest: $group<$crate::port::Value<'v>> }

        #[allow(non_camel_case_types, reason = "as above")]
        impl<$($param: $crate::statement::ToValue),*> $crate::statement::Statement for $name<'_, $($param),*> {
            fn sql(&self) -> &'static $crate::statement::Sql {
                &$name
            }

            fn values(&self) -> Vec<$crate::port::Value<'_>> {
                let mut values = vec![$($crate::statement::ToValue::to_value(&self.$param)),*];
                $crate::statement::Params::add_to(&self.$rest, &mut values);
                values
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! effect {
    ($text:ident, $params:ident;) => { $crate::statement::StatementEffect::Unknown };
    ($text:ident, $params:ident; reads [$($read:ident $(: $by:ident)?),*] $(found [$($found:ident),*])?) => {
        $crate::statement::StatementEffect::Reads {
            rows: &[$($crate::key!($text, $params; rows $read $(: $by)?)),*],
            found: &[$($(const { $crate::statement::rows(stringify!($found)) }),*)?],
        }
    };
    ($text:ident, $params:ident; touches [$($touched:ident $(: $by:ident)?),*] row [$($row:ident),+]) => {
        $crate::statement::StatementEffect::Touches {
            rows: &[$($crate::key!($text, $params; rows $touched $(: $by)?)),*],
            row: &[$($crate::key!($text, $params; $row)),+],
        }
    };
    ($text:ident, $params:ident; last []) => { $crate::statement::StatementEffect::Last };
}

#[doc(hidden)]
#[macro_export]
macro_rules! key {
    ($text:ident, $params:ident; rows $name:ident) => { $crate::key!($text, $params; rows $name: $name) };
    ($text:ident, $params:ident; rows $name:ident: $by:ident) => {
        const { $crate::statement::key($crate::statement::rows(stringify!($name)), stringify!($by), $text, $params) }
    };
    ($text:ident, $params:ident; $param:ident) => {
        const { $crate::statement::key(stringify!($param), stringify!($param), $text, $params) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        Page { after, limit }
    }

    sql! {
        MOVED(worker, task) touches [task, worker] row [task] =
            "UPDATE task SET by = :worker WHERE workspace = :workspace AND id = :task AND by <> :worker AND at <> '12:30'";
        CLOCK = "SELECT 'x:y', 1";
        PAGE(task, ..page: Page) reads [task] found [task] =
            "SELECT id FROM task WHERE parent = :task AND ", "id > :after LIMIT :limit";
    }

    #[test]
    fn parameters_have_names_and_databases_get_numbers() {
        let text = "UPDATE task SET by = ?2 WHERE workspace = ?1 AND id = ?3 AND by <> ?2 AND at <> '12:30'";
        assert_eq!((MOVED.text, MOVED.names_workspace), (text, true));
        assert_eq!((CLOCK.text, CLOCK.names_workspace), ("SELECT 'x:y', 1", false));
        assert_eq!(PAGE.text, "SELECT id FROM task WHERE parent = ?1 AND id > ?2 LIMIT ?3");
    }

    /// In whatever order a call names them.
    #[test]
    fn values_come_in_the_order_of_the_numbers() {
        let moved = MOVED { task: "T-1", worker: "@a" };
        assert_eq!(moved.values(), [Value::from("@a"), Value::from("T-1")]);
        let page = Page { limit: Value::Int(9), after: Value::Null };
        assert_eq!(PAGE { page, task: "T-1" }.values(), [Value::from("T-1"), Value::Null, Value::Int(9)]);
        assert!(CLOCK {}.values().is_empty());
    }

    #[test]
    fn what_a_statement_reads_and_touches_is_found_by_name() {
        let StatementEffect::Touches { rows, row } = MOVED.effect else { panic!("{:?}", MOVED.effect) };
        assert_eq!(rows, [Key { name: "task", at: 2 }, Key { name: "worker", at: 1 }]);
        assert_eq!(row, [Key { name: "task", at: 2 }]);
        let StatementEffect::Reads { rows, found } = PAGE.effect else { panic!("{:?}", PAGE.effect) };
        assert_eq!((rows, found), ([Key { name: "task", at: 0 }].as_slice(), ["task"].as_slice()));
    }

    /// At build time these are errors of the compiler.
    #[test]
    fn a_text_and_its_declaration_must_agree() {
        fn stops<T>(work: fn() -> T) -> bool {
            std::panic::catch_unwind(work).is_err()
        }
        assert!(stops(|| numbered::<0>(&["id = :task"], &[&["tsak"]])));
        assert!(stops(|| numbered::<0>(&["id = :task"], &[&["task", "worker"]])));
        assert!(stops(|| numbered::<0>(&["id = ?1"], &[])));
        assert!(stops(|| key("task", "tsak", &["id = :task"], &[&["task"]])));
        assert!(stops(|| rows("tasks")));
        assert!(!stops(|| numbered::<0>(&["id = :task"], &[&["task"]])));
    }
}
