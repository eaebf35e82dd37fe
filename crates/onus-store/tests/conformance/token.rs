//! Tokens: what is written is what is read, and what the database refuses.

use super::harness::{Harness, ask, commit, furnished, id};
use onus_core::hash::Digest;
use onus_core::time::Timestamp;
use onus_core::token::{AccessToken, TokenKind, seal};
use onus_store::token;

fn made(name: &str, hash: &Digest) -> AccessToken {
    AccessToken {
        id: id(name),
        seal: seal(hash),
        kind: TokenKind::Agent,
        worker: Some(id("@bot")),
        workstation: None,
        label: Some("Ünïcödé".into()),
        created_by: id("@ada"),
        created_at: Timestamp(5),
        expires_at: Some(Timestamp(9)),
        revoked_at: None,
    }
}

pub(crate) fn a_token_reads_back<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let hash = Digest::of(b"one");
    let written = made("00000001", &hash);
    commit(&mut store, |tx| token::insert(tx, &written, &hash)).unwrap();
    let nobodys =
        AccessToken { worker: None, label: None, expires_at: None, ..made("00000000", &Digest::of(b"two")) };
    commit(&mut store, |tx| token::insert(tx, &nobodys, &Digest::of(b"two"))).unwrap();
    let mut other = harness.connect();
    let read = ask(&mut other, |tx| token::find(tx, &written.id)).unwrap();
    assert_eq!((read.token, read.hash, read.used_at), (written.clone(), hash, None));
    let every: Vec<AccessToken> =
        ask(&mut other, |tx| token::every(tx)).into_iter().map(|row| row.token).collect();
    assert_eq!(every, [nobodys, written]);
    assert!(ask(&mut other, |tx| token::find(tx, &id("zzzzzzzz"))).is_none());
}

pub(crate) fn a_token_ends_once_and_its_use_only_rises<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let hash = Digest::of(b"one");
    let made = made("00000001", &hash);
    commit(&mut store, |tx| token::insert(tx, &made, &hash)).unwrap();
    for at in [7, 6] {
        commit(&mut store, |tx| token::used(tx, &made.id, Timestamp(at))).unwrap();
    }
    commit(&mut store, |tx| token::revoke(tx, &made.id, Timestamp(8))).unwrap();
    assert!(commit(&mut store, |tx| token::revoke(tx, &made.id, Timestamp(9))).is_err());
    let read = ask(&mut store, |tx| token::find(tx, &made.id)).unwrap();
    assert_eq!((read.token.revoked_at, read.used_at), (Some(Timestamp(8)), Some(Timestamp(7))));
}

pub(crate) fn no_two_tokens_share_a_secret<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let hash = Digest::of(b"one");
    commit(&mut store, |tx| token::insert(tx, &made("00000001", &hash), &hash)).unwrap();
    assert!(commit(&mut store, |tx| token::insert(tx, &made("00000002", &hash), &hash)).is_err());
    let stranger = AccessToken { worker: Some(id("@nobody")), ..made("00000003", &Digest::of(b"two")) };
    assert!(commit(&mut store, |tx| token::insert(tx, &stranger, &Digest::of(b"two"))).is_err());
}
