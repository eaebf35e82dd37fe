//! SHA-256, chosen over faster hashes because any third party can check it with tools they already trust.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::fmt;

/// A SHA-256 digest; lower-case hexadecimal in documents, 32 bytes in the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// What the first entry of a chain follows.
    pub const ZERO: Digest = Digest([0; 32]);

    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    pub fn from_slice(bytes: &[u8]) -> Option<Digest> {
        bytes.try_into().ok().map(Digest)
    }

    pub fn parse(hex: &str) -> Option<Digest> {
        let mut bytes = [0; 32];
        decode_hex(hex, &mut bytes).then_some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode_hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| serde::de::Error::custom("not a SHA-256 digest in hexadecimal"))
    }
}

/// Hashes a list of fields so that no two different lists give the same bytes: each is written as a netstring
/// (`length:bytes,`).
#[derive(Debug, Clone, Default)]
pub struct Fields {
    hash: Sha256,
    /// Fields are short and many: the hash takes them together.
    waiting: Vec<u8>,
}

const WAITING_MAX: usize = 4_096;

impl Fields {
    /// `version` names the list's layout, so that a later layout can never collide with this one.
    pub fn new(version: &str) -> Fields {
        let mut fields = Fields { hash: Sha256::new(), waiting: Vec::with_capacity(512) };
        fields.bytes(version.as_bytes());
        fields
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.waiting.extend_from_slice(decimal(bytes.len() as u64, &mut [0; DIGITS_MAX]));
        self.waiting.push(b':');
        if self.waiting.len() + bytes.len() > WAITING_MAX {
            self.hash.update(&self.waiting);
            self.waiting.clear();
            self.hash.update(bytes);
        } else {
            self.waiting.extend_from_slice(bytes);
        }
        self.waiting.push(b',');
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub fn int(&mut self, n: i64) -> &mut Self {
        // The sign stands before whatever digits there are.
        let mut space = [b'-'; DIGITS_MAX + 1];
        let length = decimal(n.unsigned_abs(), &mut space).len() + usize::from(n < 0);
        self.bytes(&space[DIGITS_MAX + 1 - length..])
    }

    pub fn digest(&self) -> Digest {
        Digest(self.hash.clone().chain_update(&self.waiting).finalize().into())
    }
}

/// The digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Writes a number's digits at the end of some space and gives them.
fn decimal(mut n: u64, space: &mut [u8]) -> &[u8] {
    let mut first = space.len();
    loop {
        first -= 1;
        space[first] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &space[first..];
        }
    }
}

/// The digest of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct Running(Sha256);

impl Running {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn digest(&self) -> Digest {
        Digest(self.0.clone().finalize().into())
    }
}

pub fn encode_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}

/// Fills `into` exactly from lower-case hexadecimal; false when the text is anything else.
pub fn decode_hex(hex: &str, into: &mut [u8]) -> bool {
    let nibble = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    if hex.len() != into.len() * 2 {
        return false;
    }
    hex.as_bytes().chunks_exact(2).zip(into).all(|(pair, byte)| match (nibble(pair[0]), nibble(pair[1])) {
        (Some(high), Some(low)) => {
            *byte = high << 4 | low;
            true
        }
        _ => false,
    })
}

/// The digits of base 32, without the letters that people misread (Crockford).
pub const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Five bits a digit, the highest first; what is left of the last digit is zero.
pub fn encode_base32(bytes: &[u8]) -> String {
    let digits = (bytes.len() * 8).div_ceil(5);
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let digit = |n: usize| (0..5).fold(0, |value, at| value << 1 | usize::from(bit(n * 5 + at)));
    (0..digits).map(|n| char::from(BASE32[digit(n)])).collect()
}

/// CRC-32 as in zlib: it finds every change within 32 consecutive bits, so of any one character. No proof of anything.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_reads_back_and_refuses_the_rest() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        for bad in ["", "ba78", &"g".repeat(64), &"A".repeat(64)] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn base32_and_crc32_are_what_others_compute() {
        assert_eq!(encode_base32(&[0xff; 5]), "zzzzzzzz");
        assert_eq!(encode_base32(&[0x00, 0x44, 0x32, 0x14, 0xc7]), "01234567");
        assert_eq!(encode_base32(&[0xff]), "zw");
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn fields_are_netstrings() {
        for (value, length) in [(i64::MIN, 20), (-10, 3), (0, 1), (9, 1), (10, 2), (i64::MAX, 19)] {
            let long = vec![b'x'; 10_000];
            let mut fields = Fields::new("v");
            fields.int(value).bytes(&long).text("");
            let plain = [format!("1:v,{length}:{value},10000:").as_bytes(), &long, b",0:,"].concat();
            assert_eq!(fields.digest(), Digest::of(&plain), "{value}");
        }
    }

    #[test]
    fn fields_cannot_run_together() {
        let of = |parts: &[&str]| {
            let mut fields = Fields::new("test");
            for part in parts {
                fields.text(part);
            }
            fields.digest()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", ""]), of(&["a"]));
        assert_ne!(of(&["1:a,"]), of(&["a"]));
    }
}
