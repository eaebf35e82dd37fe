//! One flipped bit anywhere in the write-ahead log: whatever it takes back of what was acknowledged is noticed (ADR 21).

use super::desk::{Desk, clock};
use onus_core::command::Command;
use onus_core::text::Text;
use onus_store::port::Store as _;
use onus_store::read;
use onus_store::sqlite::{Options, Sqlite};
use std::fs;
use std::path::Path;

/// The log's own header, and that of each page in it.
const LOG_HEADER: usize = 32;
const PAGE_HEADER: usize = 24;
const PAGE: usize = 4_096;

fn beside(path: &Path, suffix: &str) -> std::path::PathBuf {
    format!("{}{suffix}", path.display()).into()
}

/// How many entries the store has, and the number of the one that it knows to be lost.
fn found(path: &Path) -> (i64, Option<i64>) {
    let mut store = Sqlite::open(path, &Options::one_shot(clock)).unwrap();
    let newest = store.read(|tx| read::ledger::count(tx)).unwrap();
    (newest, store.lost().unwrap().map(|lost| lost.seq))
}

#[test]
fn no_flipped_bit_takes_an_entry_back_in_silence() {
    let mut desk = Desk::new();
    desk.import("{\"title\":\"one\"}\n");
    let empty = rusqlite::Connection::open(desk.path()).unwrap();
    empty.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(empty);
    for n in 0..6 {
        let words = Text::new(format!("note {n} {}", "x".repeat(700)));
        desk.submit("@ada", "T-1", None, Command::Note { text: words });
    }
    let log = fs::read(beside(&desk.path(), "-wal")).unwrap();
    let turn = fs::read(beside(&desk.path(), "-queue")).unwrap();
    let store = fs::read(desk.path()).unwrap();

    let copy = desk.directory.path().join("copy.db");
    let seen_in = |bytes: &[u8]| {
        drop(fs::remove_file(beside(&copy, "-shm")));
        fs::write(&copy, &store).unwrap();
        fs::write(beside(&copy, "-wal"), bytes).unwrap();
        fs::write(beside(&copy, "-queue"), &turn).unwrap();
        found(&copy)
    };
    let (acknowledged, none) = seen_in(&log);
    assert_eq!(none, None, "a log that is whole");
    let frames = (log.len() - LOG_HEADER) / (PAGE_HEADER + PAGE);
    assert!(frames >= 20, "{frames} pages");
    let (mut tried, mut lost) = (0, 0);
    let of_frame = |frame: usize| {
        let start = LOG_HEADER + frame * (PAGE_HEADER + PAGE);
        // Its page's number, the size that marks a commit, both salts, both checksums, and the page itself.
        [0, 4, 8, 12, 16, 20, PAGE_HEADER, PAGE_HEADER + 97, PAGE_HEADER + PAGE - 1].map(|at| start + at)
    };
    for at in (0..LOG_HEADER).step_by(3).chain((0..frames).flat_map(of_frame)) {
        let mut odd = log.clone();
        odd[at] ^= 1 << (at % 8);
        let (newest, told) = seen_in(&odd);
        tried += 1;
        if newest < acknowledged {
            lost += 1;
            assert_eq!(told, Some(acknowledged), "byte {at} took {} entries back", acknowledged - newest);
        }
    }
    // Every page of the log but the bytes of its header that say nothing counts for something.
    assert!(lost > tried * 9 / 10, "{lost} of {tried} took something back");
}
