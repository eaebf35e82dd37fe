//! A server with many listeners: how soon all of them have heard of a change, and what it costs to have one that idles.

use crate::Extent;
use crate::measure::Outcome;
use crate::place::{Place, Programs};
use crate::server::{Server, token};
use crate::table::{Table, Verdict};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

const LISTENERS: usize = 500;

/// Adds a task: a change that everybody hears of.
fn add(server: &Server, token: &str, title: &str) -> Outcome<()> {
    let body = format!("{{\"title\":\"{title}\"}}");
    let mut stream = TcpStream::connect(&server.address)?;
    write!(
        stream,
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 201 ") { Ok(()) } else { Err(answer.into()) }
}

/// From sending a change to the moment when the last listener has it; for each of `changes`.
fn heard(server: &Server, token: &str, changes: usize) -> Outcome<Vec<Duration>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..LISTENERS {
        let (address, tell) = (server.address.clone(), tell.clone());
        let head =
            format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
        runtime.spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await?;
            stream.write_all(head.as_bytes()).await?;
            let mut lines = tokio::io::BufReader::new(stream).lines();
            while let Some(line) = lines.next_line().await? {
                // The answer's first line says that it listens; later each event has an id.
                if (line.starts_with("HTTP/1.1 200") || line.starts_with("id: "))
                    && tell.send(Instant::now()).is_err()
                {
                    break;
                }
            }
            std::io::Result::Ok(())
        });
    }
    let all = || -> Outcome<Instant> {
        let mut last = Instant::now();
        for _ in 0..LISTENERS {
            last = told.recv_timeout(Duration::from_secs(30))?.max(last);
        }
        Ok(last)
    };
    all()?;
    // Where each of them begins is asked after its first line was sent.
    std::thread::sleep(Duration::from_secs(1));
    let mut waits = Vec::new();
    for n in 0..changes {
        let sent = Instant::now();
        add(server, token, &format!("change {n}"))?;
        waits.push(all()?.duration_since(sent));
    }
    Ok(waits)
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let place = Place::empty(programs, 1)?;
    let token = token(&place, place.person(), None)?;
    let server = Server::start(&place, None)?;
    add(&server, &token, "first")?;
    let idle = server.resident()?;
    let mut waits = heard(&server, &token, extent.pick(5, 20, 50))?;
    waits.sort_unstable();
    let of = |part: usize| {
        waits.get(waits.len() * part / 100).copied().unwrap_or_default().as_secs_f64() * 1_000.0
    };
    let mut table = Table::new("A server and 500 listeners");
    let worst = waits.last().copied().unwrap_or_default().as_secs_f64() * 1_000.0;
    let figure = format!("{:.0} ms; the slowest of {}: {worst:.0} ms", of(50), waits.len());
    table.row(
        "from a change's POST until all have heard of it",
        "< 250 ms",
        figure,
        Verdict::of(worst < 250.0),
    );
    table.row("memory of an idle server", "<= 60 MB", format!("{idle:.0} MB"), Verdict::of(idle <= 60.0));
    Ok(table)
}
