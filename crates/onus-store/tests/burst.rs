//! What goes over the wire, seen by somebody in between.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use onus_core::time::Timestamp;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store};
use onus_store::postgres::{Address, Postgres};
use onus_store::{args, load, registry, sql};
use onus_testkit::Cluster;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

sql! {
    WORKERS = "SELECT count(*) FROM worker WHERE workspace = ?1";
    TASKS = "SELECT count(*) FROM task WHERE workspace = ?1";
    NOTES = "SELECT count(*) FROM note WHERE workspace = ?1";
}

/// What was said to a server.
type Heard = Arc<Mutex<Vec<u8>>>;

/// Passes on what two say to each other, and keeps what the first one says.
fn between(client: TcpStream, server: TcpStream, heard: Heard) {
    let pass = |mut from: TcpStream, mut to: TcpStream, heard: Option<Heard>| {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            if let Some(heard) = &heard {
                heard.lock().unwrap().extend_from_slice(&piece[..length]);
            }
            to.write_all(&piece[..length]).unwrap();
        }
        drop(to.shutdown(Shutdown::Both));
    };
    let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    spawn(move || pass(client, server, Some(heard)));
    spawn(move || pass(forth, back, None));
}

/// The same database, through somebody who listens.
fn overheard(url: &str) -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let server = url.split(['@', '/']).find(|part| part.starts_with("127.0.0.1:")).unwrap().to_owned();
    let (through, heard) = (url.replace(&server, &own), Heard::default());
    let kept = Arc::clone(&heard);
    spawn(move || {
        for client in listener.incoming() {
            between(client.unwrap(), TcpStream::connect(&server).unwrap(), Arc::clone(&kept));
        }
    });
    (through, heard)
}

/// How many messages there are of each of these kinds.
fn count(mut said: &[u8], kinds: [u8; 2]) -> [usize; 2] {
    let mut counts = [0; 2];
    while let Some((kind, rest)) = said.split_first() {
        kinds.iter().zip(&mut counts).for_each(|(wanted, count)| *count += usize::from(kind == wanted));
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap());
        said = &rest[length as usize..];
    }
    counts
}

/// Questions that are announced together, and changes that wait for the commit, are two bursts: each asks once for answers.
#[test]
fn what_leaves_together_is_answered_together() {
    let Some(cluster) = Cluster::shared() else { return };
    let (url, heard) = overheard(&cluster.database());
    let mut store = Postgres::create(&Address::parse(&url).unwrap()).unwrap();
    store
        .write(|tx| registry::insert_workspace(tx, "u", "key", Timestamp(1)).map(Outcome::Commit))
        .map_err(|error: StoreError| error)
        .unwrap();
    let questions = [WORKERS, TASKS, NOTES];
    let ask = |store: &mut Postgres| -> Result<(), StoreError> {
        store.write(|tx| {
            let workspace = tx.workspace().0;
            tx.expect(&questions.each_ref().map(|sql| (sql, args![workspace].into())))?;
            for sql in &questions {
                assert_eq!(tx.row(sql, &args![workspace])?.unwrap().int()?, 0);
            }
            Ok(Outcome::Rollback(()))
        })
    };
    // Until they are prepared, and their plans made anew.
    (0..10).for_each(|_| ask(&mut store).unwrap());
    heard.lock().unwrap().clear();
    ask(&mut store).unwrap();
    let [executed, synced] = count(&heard.lock().unwrap(), *b"ES");
    assert!(executed >= 5, "the lock, the clock and three questions, not {executed}");
    assert_eq!(synced, 2, "of {executed} statements");
    // One that fails takes those behind it along, and nothing else.
    let failed: Result<(), StoreError> = store.write(|tx| {
        tx.expect(&[(&WORKERS, args!["no number"].into()), (&TASKS, args![1].into())])?;
        tx.row(&TASKS, &args![1])?;
        Ok(Outcome::Commit(()))
    });
    assert!(failed.is_err());
    ask(&mut store).unwrap();
    store.read(|tx| load::workspace(tx)).unwrap();
}
