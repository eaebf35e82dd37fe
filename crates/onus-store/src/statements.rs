//! The statements that ordinary calls run, so that a test can ask the database how it would run them.

use crate::evidence;
use crate::port::Sql;
use crate::read::{queue, story};
use crate::{apply, load, load::grant};

/// Every statement of add, claim, claim --next, renew, note, complete, release, takeover, list, ready and show.
pub const HOT: &[Sql] = &[
    load::WORKSPACE,
    load::REQUEST,
    load::WORKER,
    load::TASK,
    load::DEPENDENCIES,
    load::HOLDER,
    load::SLICES,
    grant::LIVE_SCOPES,
    grant::OCCUPIED,
    grant::BUILDERS,
    grant::HOLDS,
    grant::WORKERS_OF,
    evidence::EVIDENCE,
    evidence::REVIEWS,
    grant::WORKED,
    load::STATE,
    load::REACHABLE,
    grant::WORKSTATION,
    load::ORIGIN,
    load::ASSIGNMENT_SECRET,
    queue::LIST_ACTIVE,
    queue::READY,
    queue::WINDOW,
    story::ASSIGNMENTS,
    story::SESSIONS,
    story::NOTES,
    story::DEPENDENTS,
    apply::NEXT_NUMBER,
    apply::UPDATE_TASK,
    apply::REFRESH_TASK,
    apply::REFRESH_DEPENDENTS,
    apply::RENEW_ASSIGNMENT,
    apply::END_ASSIGNMENT,
    apply::STOP_SESSION,
    apply::MOVE_HEAD,
];
