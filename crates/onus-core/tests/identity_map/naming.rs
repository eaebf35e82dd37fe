//! What a workstation's name says.

use super::workstation;
use onus_core::naming::{Convention, Parsed};

#[track_caller]
fn check(convention: &Convention, name: &str, expected: (&str, Option<&str>, Option<u32>, Option<&str>)) {
    let (scope, domain, number, stage) = expected;
    let expected = Parsed {
        scope: scope.to_owned(),
        domain: domain.map(str::to_owned),
        number,
        stage: stage.map(str::to_owned),
    };
    assert_eq!(convention.parse(&workstation(name)), Ok(expected));
}

#[track_caller]
fn check_odd(convention: &Convention, name: &str, expected: &str) {
    assert_eq!(convention.parse(&workstation(name)), Err(expected.to_owned()));
}

#[test]
fn names_tell_scope_domain_and_number_or_stage() {
    let usual = Convention::default();
    check(&usual, "ws-backend-01", ("backend", None, Some(1), None));
    check(&usual, "ws-infra-prod", ("infra", None, None, Some("prod")));
    check(&usual, "ws-frontend-staging", ("frontend", None, None, Some("staging")));
    check(&usual, "ws-backend-payments-02", ("backend", Some("payments"), Some(2), None));
    check(&usual, "ws-backend-card-payments-dev", ("backend", Some("card-payments"), None, Some("dev")));
}

#[test]
fn what_does_not_fit_is_told() {
    let usual = Convention::default();
    check_odd(&usual, "backend-01", "backend-01 does not begin with `ws-`");
    check_odd(&usual, "wsx-backend-01", "wsx-backend-01 does not begin with `ws-`");
    let no_scope = "names no scope after `ws-` that is followed by more (known: a word)";
    check_odd(&usual, "ws-backend", &format!("ws-backend {no_scope}"));
    check_odd(&usual, "ws--01", &format!("ws--01 {no_scope}"));
    check_odd(&usual, "ws-backend--x-01", "ws-backend--x-01 has two dashes in a row");
    let end = "ends neither in a number nor in a stage (known: dev, test, staging, prod)";
    for name in ["ws-backend-", "ws-backend-x1", "ws-backend-99999999999"] {
        check_odd(&usual, name, &format!("{name} {end}"));
    }
}

#[test]
fn a_team_sets_its_own_words() {
    let own = Convention {
        prefix: "box".to_owned(),
        scopes: ["web", "web-admin"].map(str::to_owned).to_vec(),
        stages: vec!["qa".to_owned()],
        ..Convention::default()
    };
    check(&own, "box-web-01", ("web", None, Some(1), None));
    check(&own, "box-web-admin-01", ("web-admin", None, Some(1), None));
    check(&own, "box-web-shop-qa", ("web", Some("shop"), None, Some("qa")));
    check_odd(
        &own,
        "box-api-01",
        "box-api-01 names no scope after `box-` that is followed by more (known: web, web-admin)",
    );
    check_odd(&own, "box-web-prod", "box-web-prod ends neither in a number nor in a stage (known: qa)");
}
