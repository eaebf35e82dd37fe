//! Examples made hostile.

use crate::rng::Rng;

/// Pieces that parsers stumble over.
const ODD: [&[u8]; 24] = [
    b"",
    b"\0",
    b"\xff",
    b"\xc3\x28",
    b"\r\n",
    b"\t",
    b" ",
    b"-",
    b"--",
    b"..",
    b"../",
    b"@",
    b":",
    b"\"",
    b"'",
    b"{",
    b"[",
    b"}",
    b"*",
    b"&a",
    b"9223372036854775808",
    b"-1",
    "\u{202e}".as_bytes(),
    "ß\u{301}".as_bytes(),
];

/// Longer than any limit on a single value.
const LONG: usize = 70_000;

/// One of the examples after a few random changes; the same seed gives the same bytes.
pub fn mutated(seed: u64, examples: &[impl AsRef<str>]) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let pick = |rng: &mut Rng| examples.get(rng.below(examples.len())).map_or("", AsRef::as_ref);
    let mut bytes = pick(&mut rng).as_bytes().to_vec();
    for _ in 0..rng.below(5) {
        let at = rng.below(bytes.len() + 1);
        match rng.below(9) {
            0 | 1 => drop(bytes.splice(at..at, ODD[rng.below(ODD.len())].iter().copied())),
            2 => bytes.truncate(at),
            3 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            4 if at < bytes.len() => drop(bytes.remove(at)),
            5 => {
                let other = pick(&mut rng).as_bytes();
                bytes.splice(at..at, other.iter().copied());
            }
            6 => {
                let piece: Vec<u8> = bytes[at..].iter().copied().take(16).collect();
                bytes.splice(at..at, piece.repeat(1 + rng.below(8)));
            }
            7 if rng.one_in(40) => {
                let odd = ODD[rng.below(ODD.len())];
                bytes.splice(at..at, odd.repeat(LONG / odd.len().max(1)));
            }
            _ => bytes.insert(at, u8::try_from(rng.below(256)).unwrap_or(0)),
        }
    }
    bytes
}
