//! Statements that leave together are answered together.
//!
//! The driver asks the server to answer each statement at once, by a `Sync` behind it. So each answer is a packet of its own,
//! and wakes whoever waits for the last of them. Between two statements of one transaction that leave in one go, `Sync` has
//! nothing else to say: here it is taken out, and its answer, `ReadyForQuery`, is put in again.
//!
//! After an error the server passes over everything up to the next `Sync`. What it passed over is answered here as the server
//! would have answered it: the transaction has failed.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const SYNC: &[u8] = b"S\0\0\0\x04";

/// `ReadyForQuery`, in a transaction that is sound, and in one that has failed.
const READY: &[u8] = b"Z\0\0\0\x05T";
const READY_AFTER_FAILURE: &[u8] = b"Z\0\0\0\x05E";

/// What the server says to every statement of a transaction that has failed.
const FAILED: &[u8] = b"E\0\0\0\x32SERROR\0VERROR\0C25P02\0Mtransaction is aborted\0\0";

/// A message is its kind, a length that counts itself, and the rest.
const HEADER: usize = 5;

/// So much is read from the server at a time.
const PIECE: usize = 16 * 1024;

/// What ends the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// `ReadyForQuery`, from the server.
    FromServer,
    /// The same, put in here: its `Sync` was taken out.
    FromUs,
}

/// A stream to the server, below the driver.
pub(super) struct Burst<S> {
    stream: S,
    due: VecDeque<Due>,
    outward: Outward,
    inward: Inward,
}

impl<S> Burst<S> {
    pub(super) fn new(stream: S) -> Burst<S> {
        Burst { stream, due: VecDeque::new(), outward: Outward::default(), inward: Inward::default() }
    }
}

/// What goes to the server.
#[derive(Default)]
struct Outward {
    /// The beginning of a message whose rest has not come.
    partial: Vec<u8>,
    /// What may be sent; the first `sent` bytes of it are.
    open: Vec<u8>,
    sent: usize,
    /// Only the first message, which says who we are, has no kind.
    has_begun: bool,
    is_in_transaction: bool,
    /// The last message was an `Execute`.
    has_executed: bool,
    /// A `Sync` that may not be needed.
    held: bool,
}

impl Outward {
    fn take(&mut self, bytes: &[u8], due: &mut VecDeque<Due>) {
        self.partial.extend_from_slice(bytes);
        let partial = std::mem::take(&mut self.partial);
        let mut rest = partial.as_slice();
        while let Some(length) = length(rest, HEADER - usize::from(!self.has_begun)) {
            let (message, behind) = rest.split_at(length);
            self.message(message, due);
            rest = behind;
        }
        self.partial = rest.to_vec();
    }

    fn message(&mut self, message: &[u8], due: &mut VecDeque<Due>) {
        let kind = if self.has_begun { message.first().copied() } else { None };
        self.has_begun = true;
        if self.held {
            self.held = false;
            match kind {
                Some(b'B') => due.push_back(Due::FromUs),
                _ => self.sync(due),
            }
        }
        match kind {
            Some(b'S') if self.has_executed && self.is_in_transaction => self.held = true,
            Some(b'S') => self.sync(due),
            Some(b'Q') => {
                self.is_in_transaction = is_in_transaction(message, self.is_in_transaction);
                due.push_back(Due::FromServer);
                self.open.extend_from_slice(message);
            }
            _ => self.open.extend_from_slice(message),
        }
        self.has_executed = kind == Some(b'E');
    }

    fn sync(&mut self, due: &mut VecDeque<Due>) {
        due.push_back(Due::FromServer);
        self.open.extend_from_slice(SYNC);
    }

    /// Whoever waits for the answers must get them.
    fn release(&mut self, due: &mut VecDeque<Due>) {
        if std::mem::take(&mut self.held) {
            self.sync(due);
        }
    }
}

/// Whether a transaction is under way after these statements.
fn is_in_transaction(query: &[u8], before: bool) -> bool {
    let text = String::from_utf8_lossy(query.get(HEADER..).unwrap_or_default());
    text.split(';').map(str::trim_start).fold(before, |is, statement| {
        let ends = |word: &str| statement.starts_with(word) && !statement.starts_with("ROLLBACK TO");
        statement.starts_with("BEGIN") || (is && !ends("COMMIT") && !ends("ROLLBACK"))
    })
}

/// The length of the first message, if all of it is there.
fn length(bytes: &[u8], header: usize) -> Option<usize> {
    let said = bytes.get(header - 4..header)?;
    let length = u32::from_be_bytes(said.try_into().ok()?) as usize + header - 4;
    (bytes.len() >= length).then_some(length)
}

/// What comes from the server.
#[derive(Default)]
struct Inward {
    partial: Vec<u8>,
    /// What the driver may read; the first `read` bytes of it are.
    open: Vec<u8>,
    read: usize,
    /// The server passes over what comes before the next `Sync`.
    passes_over: bool,
}

impl Inward {
    fn take(&mut self, bytes: &[u8], due: &mut VecDeque<Due>) {
        self.partial.extend_from_slice(bytes);
        let partial = std::mem::take(&mut self.partial);
        let mut rest = partial.as_slice();
        while let Some(length) = length(rest, HEADER) {
            let (message, behind) = rest.split_at(length);
            self.message(message, due);
            rest = behind;
        }
        self.partial = rest.to_vec();
    }

    fn message(&mut self, message: &[u8], due: &mut VecDeque<Due>) {
        let kind = message.first().copied().unwrap_or_default();
        if kind == b'Z' {
            self.ready(due);
        }
        self.open.extend_from_slice(message);
        // The statement is carried out, was empty, has more rows than were asked for, or has failed.
        if matches!(kind, b'C' | b'I' | b's' | b'E') && due.front() == Some(&Due::FromUs) {
            due.pop_front();
            self.passes_over = kind == b'E';
            self.open.extend_from_slice(if self.passes_over { READY_AFTER_FAILURE } else { READY });
        }
    }

    /// The server is done with the oldest request that it was asked to answer, and with all before it.
    fn ready(&mut self, due: &mut VecDeque<Due>) {
        let passed_over = std::mem::take(&mut self.passes_over);
        while due.pop_front() == Some(Due::FromUs) {
            self.open.extend_from_slice(FAILED);
            self.open.extend_from_slice(READY_AFTER_FAILURE);
        }
        if passed_over {
            self.open.extend_from_slice(FAILED);
        }
    }

    /// Gives the driver what is there.
    fn hand_over(&mut self, buf: &mut ReadBuf<'_>) {
        let rest = self.open.get(self.read..).unwrap_or_default();
        let piece = rest.get(..buf.remaining()).unwrap_or(rest);
        buf.put_slice(piece);
        self.read += piece.len();
        if self.read == self.open.len() {
            self.open.clear();
            self.read = 0;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Burst<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.inward.open.is_empty() {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.inward.take(piece.filled(), &mut this.due);
        }
        this.inward.hand_over(buf);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Burst<S> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        this.outward.take(buf, &mut this.due);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.outward.release(&mut this.due);
        let outward = &mut this.outward;
        while let Some(rest) = outward.open.get(outward.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut this.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => outward.sent += written,
            }
        }
        outward.open.clear();
        outward.sent = 0;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], length.as_slice(), body].concat()
    }

    /// Messages by their kinds: a query begins or ends a transaction, the others say nothing that matters here.
    fn messages(kinds: &str) -> Vec<u8> {
        let of = |kind: char| match kind {
            'b' => message(b'Q', b"BEGIN\0"),
            'c' => message(b'Q', b"COMMIT\0"),
            kind => message(kind as u8, b""),
        };
        kinds.chars().flat_map(of).collect()
    }

    fn kinds(mut bytes: &[u8]) -> String {
        let mut kinds = String::new();
        while let Some(length) = length(bytes, HEADER) {
            kinds.push(char::from(bytes[0]));
            bytes = &bytes[length..];
        }
        assert!(bytes.is_empty(), "{bytes:?}");
        kinds
    }

    /// What the server sees of what the driver sends in one go, and what the driver sees of its answer, in pieces of any size.
    fn passed(sent: &str, answer: &str, piece: usize) -> (String, String) {
        let (mut outward, mut inward) =
            (Outward { has_begun: true, ..Outward::default() }, Inward::default());
        let mut due = VecDeque::new();
        messages(sent).chunks(piece).for_each(|bytes| outward.take(bytes, &mut due));
        outward.release(&mut due);
        messages(answer).chunks(piece).for_each(|bytes| inward.take(bytes, &mut due));
        assert!(due.is_empty(), "{due:?}");
        (kinds(&outward.open), kinds(&inward.open))
    }

    #[test]
    fn only_the_last_of_a_transaction_is_to_be_answered_at_once() {
        for (sent, seen, answer, heard) in [
            ("bBESBES", "QBEBES", "CZ2DC2CZ", "CZ2DCZ2CZ"),
            // A statement that is prepared has no end but this one.
            ("bPDSBESPBDESBES", "QPDSBESPBDEBES", "CZ1tTZ2CZ12TDC2CZ", "CZ1tTZ2CZ12TDCZ2CZ"),
            // Alone, each is a transaction of its own.
            ("BESBES", "BESBES", "2CZ2CZ", "2CZ2CZ"),
            ("bBEScBESBES", "QBESQBESBES", "CZ2CZCZ2CZ2CZ", "CZ2CZCZ2CZ2CZ"),
            // Told in between: notices, settings, notifications; a question without rows.
            ("bBESBESBES", "QBEBEBES", "CZ2NCS2I2ACZ", "CZ2NCZS2IZ2ACZ"),
        ] {
            for piece in 1..60 {
                assert_eq!(passed(sent, answer, piece), (seen.into(), heard.into()), "{sent} by {piece}");
            }
        }
    }

    #[test]
    fn what_the_server_passes_over_has_failed() {
        for (answer, heard) in [
            ("CZEZ", "CZEZEZEZ"),
            ("CZ2CEZ", "CZ2CZEZEZ"),
            ("CZ2C2CEZ", "CZ2CZ2CZEZ"),
            ("CZ2C2DEZ", "CZ2CZ2DEZEZ"),
        ] {
            let (_, told) = passed("bBESBESBES", answer, 7);
            assert_eq!(told, heard);
        }
        assert_eq!(length(FAILED, HEADER), Some(FAILED.len()));
        // What comes next is answered as ever.
        assert_eq!(passed("bBESBESbBESBES", "CZEZCZ2C2CZ", 7).1, "CZEZEZCZ2CZ2CZ");
    }

    #[test]
    fn a_transaction_lasts_until_it_is_ended() {
        for (text, before, after) in [
            ("BEGIN", false, true),
            ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", false, true),
            ("SAVEPOINT mark", true, true),
            ("ROLLBACK TO mark; RELEASE mark", true, true),
            ("COMMIT", true, false),
            ("ROLLBACK", true, false),
            ("BEGIN; ANALYZE task; COMMIT", false, false),
            ("SET jit = off; DO $$ BEGIN IF true THEN SET jit = on; END IF; END $$;", false, false),
        ] {
            assert_eq!(is_in_transaction(&message(b'Q', text.as_bytes()), before), after, "{text}");
        }
    }

    #[test]
    fn the_first_message_has_no_kind() {
        let (mut outward, mut due) = (Outward::default(), VecDeque::new());
        let hello = [&12_u32.to_be_bytes()[..], b"\0\x03\0\0user"].concat();
        assert_eq!(hello.len(), 12);
        [hello.clone(), messages("p")].concat().chunks(3).for_each(|bytes| outward.take(bytes, &mut due));
        assert_eq!(outward.open, [hello, messages("p")].concat());
    }
}
