//! Every operation, in the order of the documentation.

mod body;
mod claims;
mod effort;
mod exceptions;
mod milestones;
mod mirrors;
mod queue;
mod registry;
mod reports;
mod tasks;
mod verbs;
mod views;

pub(crate) use effort::{OUTPUT, OutputFormat};

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
    table.extend(views::routes());
    table.extend(mirrors::routes());
    table.extend(reports::routes());
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::RouteKind;
    use onus_app::remote::{CallName, Class};

    /// Permission goes by the route's kind: every route that changes the workspace is `Administration`.
    #[test]
    fn what_changes_the_workspace_is_known_as_such() {
        let table = table();
        let changes = table.iter().filter(|route| route.sort == RouteKind::Administration);
        let names: Vec<_> = changes.map(|route| route.name).collect();
        assert!(names.len() >= 10, "{names:?}");
        for name in names {
            let class = CallName::parse(name).map(CallName::class);
            assert!(matches!(class, Some(Class::Administration | Class::Judgement)), "{name}: {class:?}");
        }
    }
}
