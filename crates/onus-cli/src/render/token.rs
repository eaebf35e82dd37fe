//! Tokens: what they are for, never what they are.

use super::table::Table;
use super::{BOLD, paint};
use onus_app::token::{TokenView, TokensView};
use onus_core::token::TokenState;

pub(crate) fn issued(token: &TokenView) -> String {
    let whose = token.worker.as_ref().map(|worker| format!(" for {worker}")).unwrap_or_default();
    let until = token.expires_at.map(|at| format!(", good until {at}")).unwrap_or_default();
    format!(
        "{} token {}{whose}{until}. It is shown this once: keep it where the caller finds it as ONUS_TOKEN",
        token.kind.name(),
        token.id
    )
}

pub(crate) fn tokens(view: &TokensView) -> String {
    if view.tokens.is_empty() {
        return "no tokens\n".into();
    }
    let mut table =
        Table::new(["ID", "KIND", "WORKER", "WORKSTATION", "STATE", "EXPIRES", "LAST USE", "LABEL"]);
    for token in &view.tokens {
        let expires = match token.state {
            TokenState::Revoked => None,
            TokenState::Active | TokenState::Expired => token.expires_at,
        };
        table.row([
            paint(BOLD, &token.id),
            token.kind.name().to_owned(),
            token.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            token.workstation.as_ref().map(ToString::to_string).unwrap_or_default(),
            token.state.name().to_owned(),
            expires.map(|at| at.whole_second().to_string()).unwrap_or_default(),
            token.used_at.map(|at| at.whole_second().to_string()).unwrap_or_default(),
            token.label.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}
