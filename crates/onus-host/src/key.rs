//! The Ed25519 key that signs the ledger's checkpoints (mission A7).
//!
//! It lies outside the repository and the store: who can rewrite those cannot sign what they wrote.

use crate::env::Env;
use crate::file::{
    create_new, create_private_dir, if_exists, open, read_open, refused, shown, sync_dir, temporary_beside,
};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use onus_core::code::Code;
use onus_core::hash::{decode_hex, encode_hex};
use onus_core::refusal::Refusal;
use rustix::fs::OFlags;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const COMMENT: &str =
    "# Signs the checkpoints of an Onus ledger (Ed25519 seed). Keep it private and back it up.";
const FILE_MAX: usize = 1024;

/// The signing key of one workspace.
pub struct Key(SigningKey);

impl fmt::Debug for Key {
    /// The seed must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", encode_hex(&self.public()))
    }
}

impl Key {
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// Strict: a weak public key, or a second form of the same signature, does not verify.
pub fn verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// The key of the workspace, made on first use.
pub fn create_or_load(uid: &str) -> Result<Key, Refusal> {
    create_or_load_in(&Env::of_process().keys()?, uid)
}

pub fn load(uid: &str) -> Result<Key, Refusal> {
    load_in(&Env::of_process().keys()?, uid)
}

pub fn create_or_load_in(dir: &Path, uid: &str) -> Result<Key, Refusal> {
    let path = path_of(dir, uid)?;
    if let Some(key) = read(&path)? {
        return Ok(key);
    }
    create(dir, &path).map_err(|e| refused("create the key", &path, &e))?;
    // Read back: of two that create at once, one wins, and both must sign with its key.
    load_in(dir, uid)
}

pub fn load_in(dir: &Path, uid: &str) -> Result<Key, Refusal> {
    let path = path_of(dir, uid)?;
    read(&path)?.ok_or_else(|| {
        Refusal::new(Code::UnknownName, format!("there is no key of this workspace at {}", shown(&path)))
            .hint("run this where the store was made, or copy the key from there")
    })
}

fn path_of(dir: &Path, uid: &str) -> Result<PathBuf, Refusal> {
    let is_plain =
        (1..=64).contains(&uid.len()) && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_plain {
        return Err(Refusal::invalid(format!("{} is not a workspace id", onus_core::id::shown(uid))));
    }
    Ok(dir.join(format!("{uid}.key")))
}

fn read(path: &Path) -> Result<Option<Key>, Refusal> {
    let unreadable = |e: io::Error| refused("read the key", path, &e);
    let Some(file) = if_exists(open(path, OFlags::NOFOLLOW)).map_err(unreadable)? else { return Ok(None) };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        let detail = format!("the key {} is open to others (mode {:o})", shown(path), mode & 0o777);
        return Err(Refusal::new(Code::StoreUnavailable, detail).hint(format!("chmod 600 {}", shown(path))));
    }
    let bytes = read_open(file, FILE_MAX).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut seed = [0; 32];
    match (lines.next(), lines.next()) {
        (Some(hex), None) if decode_hex(hex.trim_end(), &mut seed) => {
            Ok(Some(Key(SigningKey::from_bytes(&seed))))
        }
        _ => Err(Refusal::new(Code::StoreUnavailable, format!("{} is not a key", shown(path)))
            .hint("restore it from a backup; signatures cannot be continued with another key")),
    }
}

/// The name appears only with its whole content behind it, and never in place of another file.
fn create(dir: &Path, path: &Path) -> io::Result<()> {
    create_private_dir(dir)?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    let temporary = temporary_beside(path)?;
    let linked = create_new(&temporary, format!("{COMMENT}\n{}\n", encode_hex(&seed)).as_bytes())
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::hard_link(&temporary, path));
    // Left over at worst; what `linked` says is what matters.
    let _ = fs::remove_file(&temporary);
    match linked {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => sync_dir(dir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const UID: &str = "0198c0de-0000-7000-8000-000000000001";

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("onus/keys");
        assert_eq!(load_in(&keys, UID).unwrap_err().code, Code::UnknownName);
        let first = create_or_load_in(&keys, UID).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys.join(format!("{UID}.key"))), 0o600);
        assert_eq!(mode(&keys), 0o700);
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "no temporary file stays");
        assert_eq!(create_or_load_in(&keys, UID).unwrap().public(), first.public());
        assert_eq!(load_in(&keys, UID).unwrap().public(), first.public());
        assert_ne!(create_or_load_in(&keys, "other").unwrap().public(), first.public());
    }

    #[test]
    fn of_many_that_create_at_once_all_have_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| create_or_load_in(dir.path(), UID).unwrap().public()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn signatures_verify_only_as_they_were_made() {
        let dir = tempfile::tempdir().unwrap();
        let key = create_or_load_in(dir.path(), UID).unwrap();
        let signature = key.sign(b"root 7");
        assert!(verify(&key.public(), b"root 7", &signature));
        assert!(!verify(&key.public(), b"root 8", &signature));
        let mut bent = signature;
        bent[10] ^= 1;
        assert!(!verify(&key.public(), b"root 7", &bent));
        let other = create_or_load_in(dir.path(), "other").unwrap();
        assert!(!verify(&other.public(), b"root 7", &signature));
    }

    /// The neutral element as key and as commitment satisfies the plain equation for every message.
    #[test]
    fn a_weak_key_verifies_nothing() {
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let mut signature = [0; 64];
        signature[0] = 1;
        assert!(!verify(&neutral, b"anything", &signature));
    }

    /// RFC 8032, 7.1, test 2: what we write, other tools verify.
    #[test]
    fn signs_as_the_standard_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rfc.key");
        fs::write(&path, "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb\n").unwrap();
        set_mode(&path, 0o600);
        let key = load_in(dir.path(), "rfc").unwrap();
        let hex = encode_hex(&key.public());
        assert_eq!(hex, "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        assert!(encode_hex(&key.sign(&[0x72])).starts_with("92a009a9f0d4cab8720e820b5f642540"));
    }

    #[test]
    fn a_key_open_to_others_or_damaged_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("{UID}.key"));
        create_or_load_in(dir.path(), UID).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            set_mode(&path, mode);
            let refusal = create_or_load_in(dir.path(), UID).unwrap_err();
            assert!(refusal.hint.unwrap().starts_with("chmod 600 "), "{mode:o}");
        }
        set_mode(&path, 0o600);
        for content in
            ["", "# only a comment\n", "abcd\n", &"A".repeat(64), &format!("{0}\n{0}\n", "a".repeat(64))]
        {
            fs::write(&path, content).unwrap();
            assert_eq!(
                create_or_load_in(dir.path(), UID).unwrap_err().code,
                Code::StoreUnavailable,
                "{content}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), *content);
        }
        fs::remove_file(&path).unwrap();
        create_or_load_in(dir.path(), "other").unwrap();
        symlink(dir.path().join("other.key"), &path).unwrap();
        assert_eq!(
            load_in(dir.path(), UID).unwrap_err().code,
            Code::StoreUnavailable,
            "a link to a good key"
        );
    }

    #[test]
    fn a_workspace_id_cannot_be_a_path() {
        for uid in ["", ".", "../x", "a/b", "a b", "a\0", &"a".repeat(65)] {
            assert_eq!(load_in(Path::new("/"), uid).unwrap_err().code, Code::InvalidInput, "{uid:?}");
        }
    }

    #[test]
    fn a_key_in_a_log_shows_only_its_public_half() {
        let dir = tempfile::tempdir().unwrap();
        let key = create_or_load_in(dir.path(), UID).unwrap();
        assert_eq!(format!("{key:?}"), format!("Key({})", encode_hex(&key.public())));
    }
}
