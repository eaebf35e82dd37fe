//! What people and agents say to each other about a task.

use super::Renewal;
use crate::id::{CommitId, Handle, Seq};
use crate::text::Text;
use serde::{Deserialize, Serialize};

data! {
    Messaged {
        /// None: whoever holds the task next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Handle>,
        text: Text,
        /// Present on the holder's own: activity renews.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renewal: Option<Renewal>,
    }

    MessagesRead {
        /// Everything about this task up to this entry.
        through: Seq,
    }

    LineCommented {
        /// Who holds the task, and is to do something about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Handle>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        path: String,
        /// In the commit's version of the file, counted from one.
        line: i64,
        text: Text,
    }
}
