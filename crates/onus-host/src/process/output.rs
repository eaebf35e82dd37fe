//! What a command printed: hashed whole, kept at both ends.

use onus_core::hash::Digest;
use onus_core::text::is_unprintable;
use sha2::{Digest as _, Sha256};

/// Collects output as it comes, in bounded memory.
pub(super) struct Capture {
    hash: Sha256,
    length: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    head_max: usize,
    tail_max: usize,
}

impl Capture {
    pub(super) fn new(keep: usize) -> Capture {
        let head_max = keep / 2;
        let (head, tail) = (Vec::new(), Vec::new());
        Capture { hash: Sha256::new(), length: 0, head, tail, head_max, tail_max: keep - head_max }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Not at every call: the front of a vector is dear to take away.
        if self.tail.len() > self.tail_max * 2 {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.tail_max);
        self.tail.drain(..surplus);
    }

    pub(super) fn finish(mut self) -> Captured {
        self.trim();
        let sha256 = Digest(self.hash.finalize().into());
        Captured { head: self.head, tail: self.tail, length: self.length, sha256 }
    }
}

/// The beginning and the end of an output, and the length and hash of all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub length: u64,
    pub sha256: Digest,
}

impl Captured {
    /// How many bytes between head and tail were not kept.
    pub fn left_out(&self) -> u64 {
        self.length - (self.head.len() + self.tail.len()) as u64
    }

    /// For people. Bytes that are no text are replaced, zeros too: not every database keeps them. Where something was
    /// left out, a line says how much.
    pub fn text(&self) -> String {
        let text = match self.left_out() {
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat()).into_owned(),
            bytes => {
                let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
                format!("{head}\n[{bytes} bytes left out]\n{tail}")
            }
        };
        if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
    }

    /// The last line that says something. Programs give their reason last.
    pub fn last_line(&self) -> Option<String> {
        let text = self.text();
        let line = text.lines().map(str::trim).rfind(|line| line.chars().any(|c| !is_unprintable(c)))?;
        Some(line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(keep: usize, chunks: &[&str]) -> Captured {
        let mut capture = Capture::new(keep);
        for chunk in chunks {
            capture.add(chunk.as_bytes());
        }
        capture.finish()
    }

    #[test]
    fn what_fits_is_kept_whole_however_it_comes() {
        for chunks in [&["hello wörld"][..], &["hel", "lo w", "örld"], &["", "hello", " wörld", ""]] {
            let output = captured(12, chunks);
            assert_eq!((output.text().as_str(), output.left_out()), ("hello wörld", 0));
            assert_eq!(output.sha256, Digest::of("hello wörld".as_bytes()));
        }
    }

    #[test]
    fn the_middle_is_left_out_and_counted() {
        for chunks in [&["abcdefghijklmnopqrstuvwxyz"][..], &["abc", "defghijklmnopq", "rstuvwxy", "z"]] {
            let output = captured(7, chunks);
            assert_eq!(output.text(), "abc\n[19 bytes left out]\nwxyz");
            assert_eq!(output.length, 26);
            assert_eq!(output.sha256, Digest::of(b"abcdefghijklmnopqrstuvwxyz"));
        }
        assert_eq!(captured(0, &["abc"]).left_out(), 3);
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        assert_eq!(captured(9, &["a\0b"]).text(), "a\u{fffd}b");
    }

    #[test]
    fn the_last_line_that_says_something() {
        assert_eq!(captured(99, &["a\nb: no\n\n \n"]).last_line().as_deref(), Some("b: no"));
        assert_eq!(captured(99, &["\n"]).last_line(), None);
    }
}
