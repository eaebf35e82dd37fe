//! Every operation, in the order of the documentation.

mod body;
mod claims;
mod effort;
mod exceptions;
mod milestones;
mod queue;
mod registry;
mod reports;
mod tasks;
mod verbs;

use crate::route::Route;

pub(crate) fn table() -> Vec<Route> {
    let mut table = tasks::routes();
    table.extend(verbs::routes());
    table.extend(exceptions::routes());
    table.extend(claims::routes());
    table.extend(queue::routes());
    table.extend(registry::routes());
    table.extend(effort::routes());
    table.extend(milestones::routes());
    table.extend(reports::routes());
    table
}
