//! One token that may only read, and asks for all it can get: what another caller's claims wait, and what the server needs.

use crate::Extent;
use crate::measure::Outcome;
use crate::place::{Place, Programs, agent, id};
use crate::server::{Drained, Server, drain, token};
use crate::table::{Table, Verdict};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Connections that ask again and again, each for one of the [`REQUESTS`], and those that only listen.
const ASKING: usize = 40;
const LISTENING: usize = 600;

/// What a read-only token may ask for, or may try: method, path, and how large a body it announces and sends.
const REQUESTS: &[(&str, &str, usize)] = &[
    ("GET", "/v1/ledger/verify", 0),
    ("POST", "/v1/call/export_ledger", 0),
    ("POST", "/v1/call/export_tasks", 0),
    ("GET", "/v1/tasks?limit=1000", 0),
    ("GET", "/v1/ready?limit=1000", 0),
    ("GET", "/v1/tasks/B-1", 0),
    ("GET", "/v1/reports/audit", 0),
    ("POST", "/v1/call/import_jsonl", 28 << 20),
    ("POST", "/v1/call/show", 28 << 20),
    ("POST", "/v1/call/verify", 0),
];

const PATIENCE: Duration = Duration::from_secs(30);

/// What the attack came to.
#[derive(Default)]
struct Tally {
    answered: AtomicUsize,
    refused: AtomicUsize,
    is_over: AtomicBool,
}

fn asked(address: &str, token: &str, (method, path, size): (&str, &str, usize)) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let body = match path.rsplit('/').next() {
        Some("export_tasks") => "[\"All\",null]",
        Some("export_ledger") => "[null]",
        _ => "null",
    };
    let length = if size > 0 { size } else { body.len() };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )?;
    if size == 0 {
        stream.write_all(body.as_bytes())?;
    } else {
        // Whoever does not read it ends the connection.
        let part = vec![b' '; 1 << 20];
        for _ in 0..size >> 20 {
            if stream.write_all(&part).is_err() {
                break;
            }
        }
    }
    Ok(stream)
}

/// An attacker sits at another machine: here its threads get what nobody else wants of the processors, so that what is measured
/// is what the server does about it. Linux counts this for the thread alone.
fn stand_back() {
    let _ = rustix::process::nice(19);
}

/// Asks until it is over, a new connection for each request.
fn ask(address: &str, token: &str, turn: usize, tally: &Tally) {
    let requests = REQUESTS.iter().cycle().skip(turn % REQUESTS.len());
    for request in requests.take_while(|_| !tally.is_over.load(Ordering::Relaxed)) {
        let Ok(mut stream) = asked(address, token, *request) else { continue };
        let mut head = [0; 12];
        let is_answered = stream.read_exact(&mut head).is_ok() && head == *b"HTTP/1.1 200";
        let count = if is_answered { &tally.answered } else { &tally.refused };
        count.fetch_add(1, Ordering::Relaxed);
        drop(std::io::copy(&mut BufReader::new(stream), &mut std::io::sink()));
    }
}

/// Claims and completions of one agent, while somebody else asks for everything, or not.
fn claims(
    server: &Server,
    agents: &[String],
    share: usize,
    hostile: Option<&str>,
) -> Outcome<(Drained, Tally)> {
    let tally = Tally::default();
    let drained = std::thread::scope(|scope| {
        // Opened before anything is measured, and never read.
        let streams: Vec<_> = hostile.map_or(Vec::new(), |token| {
            let listen = |_| asked(&server.address, token, ("GET", "/v1/events", 0)).ok();
            (0..LISTENING).filter_map(listen).collect()
        });
        for turn in (0..ASKING).filter(|_| hostile.is_some()) {
            let (address, token, tally) = (server.address.as_str(), hostile.unwrap_or_default(), &tally);
            scope.spawn(move || {
                stand_back();
                ask(address, token, turn, tally);
            });
        }
        if hostile.is_some() {
            // Every one of them has a request under way by then.
            while tally.answered.load(Ordering::Relaxed) + tally.refused.load(Ordering::Relaxed) < ASKING {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let drained = drain(&[server], agents, share);
        tally.is_over.store(true, Ordering::Relaxed);
        drop(streams);
        drained
    })?;
    Ok((drained, tally))
}

/// A store in which there is much to ask for: a long story, and long bodies.
fn place(programs: &Programs, extent: &Extent) -> Outcome<Place> {
    let place = Place::with_tasks(programs, 1, extent.pick(2_000, 20_000, 100_000))?;
    let person = token(&place, place.person(), None)?;
    let server = Server::start(&place, None)?;
    let words = "y".repeat(50_000);
    for n in 0..extent.pick(100, 2_000, 2_000) {
        let note = json!({ "text": format!("{n} {words}") }).to_string();
        let mut stream = TcpStream::connect(&server.address)?;
        write!(
            stream,
            "POST /v1/tasks/{}/notes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {person}\r\n\
             connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{note}",
            id(1),
            note.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 20") {
            return Err(answer.into());
        }
    }
    Ok(place)
}

fn reader(place: &Place) -> Outcome<String> {
    let said = place.by_person(&["worker", "token", "add", "--kind", "service", "--json"])?;
    let issued: Value = serde_json::from_str(&said)?;
    Ok(issued["secret"].as_str().ok_or("no token was issued")?.to_owned())
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    // Fewer are over before the attack has done its worst.
    let share = extent.pick(100, 2_500, 5_000);
    let place = place(programs, extent)?;
    let (agents, hostile) = ([token(&place, &agent(1), None)?], reader(&place)?);
    let title =
        format!("One hostile read-only token: {ASKING} connections that ask, {LISTENING} that listen");
    let mut table = Table::new(title);
    // As it is started by default, and without the rate that would turn most of it away at the door.
    for (rate, words) in [("", "as by default"), ("1000000", "without a rate")] {
        let server = Server::start_at(&place, None, rate)?;
        claims(&server, &agents, share / 10, None)?;
        let (quiet, _) = claims(&server, &agents, share, None)?;
        let (loud, tally) = claims(&server, &agents, share, Some(&hostile))?;
        let (before, after) = (quiet.wait(99), loud.wait(99));
        let figure =
            format!("{after:.1} ms to {before:.1} ms; p50 {:.1} to {:.1}", loud.wait(50), quiet.wait(50));
        table.at_most(
            format!("another caller's claim, p99, {words}"),
            3.0,
            after / before.max(1e-9),
            &figure,
        );
        let peak = server.peak()?;
        let memory = format!("{peak:.0} MB at most");
        table.row(format!("the server's memory, {words}"), "<= 300 MB", memory, Verdict::of(peak <= 300.0));
        let (answered, refused) = (tally.answered.into_inner(), tally.refused.into_inner());
        let what = format!("requests of the hostile one, {words}");
        table.row(what, "-", format!("{answered} answered, {refused} refused"), Verdict::Shown);
    }
    Ok(vec![table])
}
