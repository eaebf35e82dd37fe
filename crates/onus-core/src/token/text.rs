//! What a caller presents: `onus_` kind id `_` secret checksum, 54 characters that scanners for leaked secrets know.

use super::TokenKind;
use crate::hash::{BASE32, Digest, crc32, encode_base32};
use crate::id::TokenId;
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "onus_";
const ID: usize = 8;
const SECRET: usize = 32;
const CHECKSUM: usize = 7;
const LENGTH: usize = PREFIX.len() + 1 + ID + 1 + SECRET + CHECKSUM;

/// What a new token is made of: 160 bits that nobody can guess, and an id to speak of it by.
#[derive(Clone)]
pub struct Random {
    pub id: [u8; 5],
    pub secret: [u8; 20],
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random(…)")
    }
}

/// A token's whole text, checked for typing errors. It is shown once, to whoever asked for it, and kept nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    kind: TokenKind,
    id: TokenId,
    whole: String,
}

impl TokenText {
    pub fn new(kind: TokenKind, random: &Random) -> TokenText {
        let id = TokenId::new(&random.id);
        let secret = encode_base32(&random.secret);
        let body = format!("{PREFIX}{}{id}_{secret}", letter(kind));
        let whole = format!("{body}{}", checksum(&body));
        TokenText { kind, id, whole }
    }

    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    pub fn id(&self) -> &TokenId {
        &self.id
    }

    /// What the store keeps. The secret is random and long: one pass of SHA-256 is enough to hide it.
    pub fn hash(&self) -> Digest {
        Digest::of(self.whole.as_bytes())
    }

    /// The secret itself, for the one place that hands it out.
    pub fn reveal(&self) -> &str {
        &self.whole
    }
}

impl fmt::Debug for TokenText {
    /// A token in a log is a token lost: only its public half is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}{}_…", letter(self.kind), self.id)
    }
}

impl FromStr for TokenText {
    type Err = String;

    /// Never quotes what it refuses: a token with a typing error is nearly a token.
    fn from_str(text: &str) -> Result<TokenText, String> {
        read(text).ok_or_else(|| "this is no token: a character is missing or wrong".to_owned())
    }
}

fn read(text: &str) -> Option<TokenText> {
    if text.len() != LENGTH || !text.is_ascii() {
        return None;
    }
    let (body, sum) = text.split_at(LENGTH - CHECKSUM);
    if checksum(body) != sum {
        return None;
    }
    let rest = body.strip_prefix(PREFIX)?;
    let kind = *TokenKind::ALL.iter().find(|kind| rest.starts_with(letter(**kind)))?;
    let (id, secret) = rest[1..].split_once('_')?;
    if secret.len() != SECRET || !secret.bytes().all(|b| BASE32.contains(&b)) {
        return None;
    }
    Some(TokenText { kind, id: id.parse().ok()?, whole: text.to_owned() })
}

const fn letter(kind: TokenKind) -> char {
    match kind {
        TokenKind::Person => 'p',
        TokenKind::Agent => 'a',
        TokenKind::Service => 's',
    }
}

fn checksum(body: &str) -> String {
    encode_base32(&crc32(body.as_bytes()).to_be_bytes())
}
