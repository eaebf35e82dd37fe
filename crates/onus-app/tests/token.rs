//! Tokens in a real store: issued once, hashed, revoked at once, and nowhere to be read.

use super::desk::{self, Desk};
use onus_app::progress::Silent;
use onus_app::token::IssuedView;
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_core::time::Millis;
use onus_core::token::{TokenKind, TokenState};
use rusqlite::Connection;

fn handle(name: &str) -> Handle {
    name.parse().unwrap()
}

fn order(whom: &str) -> TokenOrder {
    TokenOrder { worker: Some(handle(whom)), ..TokenOrder::default() }
}

fn issue(desk: &mut Desk, by: &str, order: &TokenOrder) -> Result<IssuedView, Refusal> {
    desk.onus.issue_token(Some(&handle(by)), order)
}

fn code(result: Result<impl std::fmt::Debug, Refusal>) -> Code {
    result.unwrap_err().code
}

#[test]
fn who_calls_is_told_by_the_token() {
    let mut desk = Desk::new();
    let wanted = TokenOrder {
        workstation: Some("ws-1".parse().unwrap()),
        label: Some(" night shift ".into()),
        ..order("@bot")
    };
    let issued = issue(&mut desk, "@ada", &wanted).unwrap();
    let principal = desk.onus.authenticate(&issued.secret).unwrap();
    assert_eq!(principal.token_id, issued.token.id);
    assert_eq!(principal.kind, TokenKind::Agent);
    assert_eq!(principal.worker, Some(handle("@bot")));
    assert_eq!(principal.workstation.unwrap().as_str(), "ws-1");
    assert_eq!(principal.label.as_deref(), Some("night shift"));
    let mine = issue(&mut desk, "@ada", &order("@ada")).unwrap();
    assert_eq!(desk.onus.authenticate(&mine.secret).unwrap().kind, TokenKind::Person);
    assert_eq!(desk.onus.tokens(None).unwrap().tokens.len(), 2);
    let own = desk.onus.tokens(Some(&handle("@bot"))).unwrap().tokens;
    assert_eq!(own.len(), 1);
    assert!(own[0].used_at.is_some());
    desk.assert_sound();
}

#[test]
fn an_agent_cannot_mint_nor_revoke() {
    let mut desk = Desk::new();
    let issued = issue(&mut desk, "@ada", &order("@bot")).unwrap();
    let service = TokenOrder { kind: Some(TokenKind::Service), ..TokenOrder::default() };
    for wanted in [order("@bot"), order("@ada"), service] {
        assert_eq!(code(issue(&mut desk, "@bot", &wanted)), Code::HumanRequired);
    }
    let revoked = desk.onus.revoke_token(Some(&handle("@bot")), &issued.token.id, None);
    assert_eq!(code(revoked), Code::HumanRequired);
    assert_eq!(code(desk.onus.issue_token(None, &order("@bot"))), Code::IdentityRequired);
    assert_eq!(desk.onus.tokens(None).unwrap().tokens.len(), 1);
}

#[test]
fn revocation_bites_at_once() {
    let mut desk = Desk::new();
    let issued = issue(&mut desk, "@ada", &order("@bot")).unwrap();
    // Another process, which has asked before.
    let mut other = desk::open(&desk.path());
    other.authenticate(&issued.secret).unwrap();
    let view = desk.onus.revoke_token(Some(&handle("@ada")), &issued.token.id, Some("it leaked")).unwrap();
    assert_eq!(view.state, TokenState::Revoked);
    assert_eq!(code(other.authenticate(&issued.secret)), Code::Unauthenticated);
    assert_eq!(code(desk.onus.revoke_token(Some(&handle("@ada")), &issued.token.id, None)), Code::WrongState);
    let nothing = "00000000".parse().unwrap();
    assert_eq!(code(desk.onus.revoke_token(Some(&handle("@ada")), &nothing, None)), Code::UnknownName);
    desk.assert_sound();
}

#[test]
fn an_expired_token_opens_nothing() {
    let mut desk = Desk::new();
    let soon = TokenOrder { expires_in: Some(Millis::hours(1)), ..order("@bot") };
    let issued = issue(&mut desk, "@ada", &soon).unwrap();
    desk.onus.authenticate(&issued.secret).unwrap();
    let db = Connection::open(desk.path()).unwrap();
    db.execute("UPDATE token SET expires_at = created_at", []).unwrap();
    let refused = desk.onus.authenticate(&issued.secret).unwrap_err();
    assert_eq!(refused.code, Code::Unauthenticated);
    assert!(refused.detail.contains("expired"), "{refused}");
    assert_eq!(desk.onus.tokens(None).unwrap().tokens[0].state, TokenState::Expired);
}

/// A typing error is refused while the store is out of reach: it was never asked.
#[test]
fn a_typing_error_is_refused_before_the_store_is_asked() {
    let mut desk = Desk::new();
    let issued = issue(&mut desk, "@ada", &order("@bot")).unwrap();
    let db = Connection::open(desk.path()).unwrap();
    db.execute_batch("ALTER TABLE token RENAME TO hidden").unwrap();
    assert_ne!(code(desk.onus.authenticate(&issued.secret)), Code::Unauthenticated, "the store was asked");
    for at in 0..issued.secret.len() {
        let mut changed = issued.secret.clone().into_bytes();
        changed[at] = if changed[at] == b'7' { b'8' } else { b'7' };
        let refused = desk.onus.authenticate(&String::from_utf8(changed).unwrap());
        assert_eq!(code(refused), Code::Unauthenticated, "{at}");
    }
    for text in ["", "onus_", "Bearer x", &"x".repeat(100_000)] {
        assert_eq!(code(desk.onus.authenticate(text)), Code::Unauthenticated);
    }
}

#[test]
fn a_token_of_another_store_is_not_known() {
    let (mut here, mut there) = (Desk::new(), Desk::new());
    let issued = issue(&mut there, "@ada", &order("@bot")).unwrap();
    assert_eq!(code(here.onus.authenticate(&issued.secret)), Code::Unauthenticated);
}

/// Somebody who can write to the file makes an agent a person: its token opens nothing any more.
#[test]
fn a_changed_row_lends_a_token_nothing() {
    let mut desk = Desk::new();
    let issued = issue(&mut desk, "@ada", &order("@bot")).unwrap();
    let db = Connection::open(desk.path()).unwrap();
    for change in [
        "UPDATE worker SET kind = 'human' WHERE handle = '@bot'",
        "UPDATE token SET kind = 'person'",
        "UPDATE worker SET kind = 'agent' WHERE handle = '@bot'",
        "UPDATE token SET kind = 'agent', worker = '@ada'",
    ] {
        db.execute(change, []).unwrap();
        assert_eq!(code(desk.onus.authenticate(&issued.secret)), Code::Unauthenticated, "{change}");
    }
    db.execute("UPDATE token SET worker = '@bot'", []).unwrap();
    desk.onus.authenticate(&issued.secret).unwrap();
}

#[test]
fn the_last_use_is_noted_once_a_minute_and_is_no_entry() {
    let mut desk = Desk::new();
    let issued = issue(&mut desk, "@ada", &order("@bot")).unwrap();
    let db = Connection::open(desk.path()).unwrap();
    let entries = || db.query_row("SELECT count(*) FROM ledger", [], |row| row.get::<_, i64>(0)).unwrap();
    let used = || db.query_row("SELECT used_at FROM token", [], |row| row.get::<_, Option<i64>>(0)).unwrap();
    let before = entries();
    assert_eq!(used(), None);
    desk.onus.authenticate(&issued.secret).unwrap();
    let first = used().unwrap();
    desk.onus.authenticate(&issued.secret).unwrap();
    assert_eq!(used(), Some(first), "noted within the same minute");
    db.execute("UPDATE token SET used_at = used_at - 60000", []).unwrap();
    desk.onus.authenticate(&issued.secret).unwrap();
    assert!(used().unwrap() >= first);
    // What is refused is no use.
    db.execute("UPDATE token SET used_at = 1, revoked_at = 1", []).unwrap();
    assert!(desk.onus.authenticate(&issued.secret).is_err());
    assert_eq!(used(), Some(1));
    assert_eq!(entries(), before);
}

#[test]
fn the_secret_is_nowhere_to_be_read() {
    let mut desk = Desk::new();
    let issued = issue(&mut desk, "@ada", &order("@bot")).unwrap();
    desk.onus.authenticate(&issued.secret).unwrap();
    let secret = &issued.secret[15..47];
    assert!(!format!("{issued:?}").contains(secret));
    let mut archive = Vec::new();
    desk.onus.export_archive(&mut archive, &mut Silent).unwrap();
    let view = serde_json::to_string(&desk.onus.tokens(None).unwrap()).unwrap();
    let mut wrong = issued.secret.clone();
    wrong.replace_range(53.., if wrong.ends_with('0') { "1" } else { "0" });
    let error = serde_json::to_string(&desk.onus.authenticate(&wrong).unwrap_err()).unwrap();
    let mut places = vec![("export", archive), ("list", view.into()), ("error", error.into())];
    for file in std::fs::read_dir(desk.directory.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            places.push(("store", std::fs::read(&path).unwrap()));
        }
    }
    assert!(places.iter().any(|(name, bytes)| *name == "store" && !bytes.is_empty()));
    for (name, bytes) in places {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "the secret is in the {name}");
    }
}

/// A link is good for one sign-in: it makes no calls, it ends as it begins the browser's token, and both are on record.
#[test]
fn a_link_is_followed_once() {
    let mut desk = Desk::new();
    let link = issue(&mut desk, "@ada", &TokenOrder::link(handle("@ada"))).unwrap();
    assert_eq!(code(desk.onus.authenticate(&link.secret)), Code::Unauthenticated);
    let board = desk.onus.redeem_link(&link.secret).unwrap();
    assert_eq!(board.token.label.as_deref(), Some("board"));
    assert_eq!(board.token.kind, TokenKind::Person);
    // It is put on record a moment after it was thought of.
    let life = board.token.expires_at.unwrap().since(board.token.created_at);
    assert!(Millis::minutes(11 * 60) < life && life <= Millis::hours(12), "{life:?}");
    assert_eq!(desk.onus.authenticate(&board.secret).unwrap().worker, Some(handle("@ada")));
    assert_eq!(code(desk.onus.redeem_link(&link.secret)), Code::Unauthenticated);
    // Two that were issued in one millisecond are listed in no order.
    let listed = desk.onus.tokens(None).unwrap().tokens;
    let first = listed.iter().find(|token| token.id == link.token.id).unwrap();
    assert_eq!(first.state, TokenState::Revoked);
    desk.assert_sound();
    desk.onus.sign_out(&board.secret).unwrap();
    assert_eq!(code(desk.onus.authenticate(&board.secret)), Code::Unauthenticated);
    desk.assert_sound();
}

#[test]
fn only_a_link_is_exchanged_and_only_for_oneself() {
    let mut desk = Desk::new();
    let own = issue(&mut desk, "@ada", &order("@ada")).unwrap();
    assert_eq!(code(desk.onus.redeem_link(&own.secret)), Code::Unauthenticated);
    assert!(desk.onus.authenticate(&own.secret).is_ok());
    // Whoever pasted a token keeps it when signing out.
    desk.onus.sign_out(&own.secret).unwrap();
    assert!(desk.onus.authenticate(&own.secret).is_ok());
    assert_eq!(code(issue(&mut desk, "@bot", &TokenOrder::link(handle("@ada")))), Code::HumanRequired);
    assert_eq!(code(issue(&mut desk, "@ada", &TokenOrder::link(handle("@bot")))), Code::InvalidInput);
    desk.assert_sound();
}
