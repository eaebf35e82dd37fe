//! Outside systems: what a claim costs while one of them is dead or slow, how soon one that is well is told, and how long it
//! takes to read ten thousand issues of a real Redmine. What needs a Redmine is left out where there is none.

use crate::Extent;
use crate::desk::Desk;
use crate::measure::{Contender, Outcome, interleaved, millis, output, ratio};
use crate::place::Programs;
use crate::table::{Table, Verdict};
use onus_testkit::Redmine;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PAGE: usize = 100;
/// Longer than anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// `onus mirror run`, until it is dropped.
struct Running(Child);

impl Running {
    fn start(desk: &Desk) -> Outcome<Running> {
        let mut command = desk.onus(&["mirror", "run"]);
        Ok(Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A store with a workstation, and with a mirror at `url` if there is one.
fn desk(programs: &Programs, mirror: Option<&str>) -> Outcome<Desk> {
    let desk = Desk::new(programs)?;
    if let Some(mirror) = mirror {
        std::fs::write(desk.repo().join("onus.yaml"), mirror)?;
        desk.set_up(&[&["add", "onus.yaml"], &["commit", "--quiet", "--message=settings"]])?;
    }
    let line = "export ONUS_AS=@ada; $ONUS init --project B --no-hooks; $ONUS worker add @redmine --kind agent; \
        $ONUS workstation add ws --kind logical; $ONUS add work";
    output(&mut desk.shell(&desk.repo(), line))?;
    Ok(desk)
}

fn settings(port: u16, project: &str, more: &str) -> String {
    format!(
        "mirrors:\n  redmine:\n    url: http://127.0.0.1:{port}\n    key_file: key\n    project: {project}\n    fields: {{agent: \
         Agent Name, workstation: Workstation, task: Onus Task}}\n    statuses: {{open: New, in_progress: In Progress}}\n    activities: {{default: Development}}\n{more}"
    )
}

/// A server that takes ten seconds for every answer.
fn slow_server() -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                drop(stream.read(&mut head));
                std::thread::sleep(Duration::from_secs(10));
                drop(
                    stream.write_all(b"HTTP/1.1 500 Slow\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
                );
            });
        }
    });
    Ok(port)
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let mut tables = vec![claims(programs, extent)?, beads(programs, extent)?];
    if let Some(redmine) = Redmine::start() {
        tables.push(beside_redmine(programs, extent, &redmine)?);
    }
    Ok(tables)
}

fn claims(programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let (dead, slow) = (
        settings(nobody, "p", "    create: always\n"),
        settings(slow_server()?, "p", "    create: always\n"),
    );
    let desks = [desk(programs, None)?, desk(programs, Some(&dead))?, desk(programs, Some(&slow))?];
    for desk in &desks {
        std::fs::write(desk.repo().join("key"), "0123456789abcdef0123456789abcdef")?;
    }
    let _senders = [Running::start(&desks[1])?, Running::start(&desks[2])?];
    let claim = |desk: &'_ Desk| desk.onus(&["claim", "B-1", "--workstation", "ws"]);
    let release = |desk: &'_ Desk| desk.onus(&["release", "B-1", "--note", "again"]);
    let mut contenders: Vec<Contender<'_>> = desks
        .iter()
        .map(|desk| Contender::new(move |_| claim(desk)).undone_by(move |_| release(desk)))
        .collect();
    let costs = interleaved(&mut contenders, extent.pick(20, 200, 400))?;
    let mut table = Table::new("A claim beside an outside system that fails");
    for (what, cost) in ["a mirror that is dead", "a mirror that answers after 10 s"].iter().zip(&costs[1..])
    {
        let figure =
            format!("{:.2} ms to {:.2} ms without a mirror", millis(cost.wall), millis(costs[0].wall));
        table.at_most(format!("claim, {what}, wall"), 1.2, ratio(cost.wall, costs[0].wall), &figure);
        let figure = format!("{:.2} ms to {:.2} ms", millis(cost.cpu), millis(costs[0].cpu));
        table.at_most(format!("claim, {what}, CPU"), 1.2, ratio(cost.cpu, costs[0].cpu), &figure);
    }
    Ok(table)
}

/// Issues of beads, a third of them closed, a quarter waiting for another, a tenth with a comment.
fn beads(programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let count = extent.pick(10_000, 100_000, 100_000);
    let mut lines = String::new();
    for n in 0..count {
        let (status, end) = match n % 3 {
            1 => ("closed", ",\"closed_at\":\"2025-12-18T00:00:00Z\",\"close_reason\":\"done\""),
            _ => ("open", ""),
        };
        let link = match n % 4 {
            3 => format!(",\"dependencies\":[{{\"depends_on_id\":\"bd-{}\",\"type\":\"blocks\"}}]", n - 1),
            _ => String::new(),
        };
        let said = match n % 10 {
            0 => {
                ",\"comments\":[{\"id\":1,\"author\":\"grace\",\"text\":\"A word\",\"created_at\":\"2025-12-18T10:00:00Z\"}]"
            }
            _ => "",
        };
        lines.push_str(&format!(
            "{{\"id\":\"bd-{n}\",\"title\":\"Issue {n}\",\"description\":\"What is to be done, and why it matters.\",\"status\":\
             \"{status}\",\"priority\":{},\"issue_type\":\"task\",\"created_at\":\"2025-12-16T18:06:59Z\",\"updated_at\":\
             \"2025-12-17T01:02:03Z\",\"labels\":[\"api\"]{end}{link}{said}}}\n",
            n % 5
        ));
    }
    let desk = desk(programs, None)?;
    std::fs::write(desk.repo().with_file_name("issues.jsonl"), &lines)?;
    let mut walls = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        output(&mut desk.onus(&["import", "../issues.jsonl"]))?;
        walls.push(began.elapsed().as_secs_f64());
    }
    let mut table = Table::new("Issues of another tool");
    let figure = format!("{:.1} s; the same file again {:.1} s", walls[0], walls[1]);
    table.below(format!("{count} issues of beads imported"), 10.0, "s", walls[0], figure);
    Ok(table)
}

/// A project in Redmine with so many issues, put there as its own program would.
fn seeded(redmine: &Redmine, count: usize) -> Outcome<()> {
    let store = rusqlite::Connection::open(redmine.directory().join("db.sqlite3"))?;
    store.busy_timeout(Duration::from_secs(30))?;
    store.execute_batch(&onus_testkit::redmine_issues("bench", count))?;
    Ok(())
}

fn beside_redmine(programs: &Programs, extent: &Extent, redmine: &Redmine) -> Outcome<Table> {
    let count = extent.pick(1_000, 10_000, 10_000);
    seeded(redmine, count)?;
    let seed: serde_json::Value =
        serde_json::from_slice(&std::fs::read(redmine.directory().join("seed.json"))?)?;
    let key = seed["bot_key"].as_str().ok_or("no key of Redmine")?;
    let mut table = Table::new("A real Redmine");
    let bare = bare_requests(redmine.port, key, count)?;
    let reads =
        desk(programs, Some(&settings(redmine.port, "bench", "    worker: \"@redmine\"\n    poll: 1ms\n")))?;
    std::fs::write(reads.repo().join("key"), key)?;
    let mut walls = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        output(&mut reads.onus(&["mirror", "sync", "redmine"]))?;
        walls.push(began.elapsed());
        let listed = output(&mut reads.shell(&reads.repo(), "$ONUS export --state all --as @ada | wc -l"))?;
        // The one task that the desk begins with is among them.
        if listed.trim() != (count + 1).to_string() {
            return Err(format!("{} tasks after {count} issues", listed.trim()).into());
        }
    }
    let figure = format!("{:.1} s to {:.1} s", walls[0].as_secs_f64(), bare.as_secs_f64());
    table.at_most(
        format!("{count} issues polled, to the bare requests"),
        3.0,
        ratio(walls[0], bare),
        &figure,
    );
    table.row("the same again", "-", format!("{:.1} s", walls[1].as_secs_f64()), Verdict::Shown);
    lag(programs, extent, redmine.port, key, &mut table)?;
    Ok(table)
}

/// The same pages, read and thrown away.
fn bare_requests(port: u16, key: &str, count: usize) -> Outcome<Duration> {
    let began = Instant::now();
    for page in 0..count.div_ceil(PAGE) {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let offset = page * PAGE;
        write!(
            stream,
            "GET /issues.json?project_id=bench&status_id=*&include=relations&sort=updated_on,id&limit={PAGE}&offset={offset} \
             HTTP/1.0\r\nHost: 127.0.0.1\r\nX-Redmine-API-Key: {key}\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(b"HTTP/1.1 200") && !answer.starts_with(b"HTTP/1.0 200") {
            return Err("Redmine did not answer a bare request".into());
        }
    }
    Ok(began.elapsed())
}

/// From the end of a claim until the outbox is empty.
fn lag(programs: &Programs, extent: &Extent, port: u16, key: &str, table: &mut Table) -> Outcome<()> {
    let tells = desk(programs, Some(&settings(port, "bench", "    create: always\n")))?;
    std::fs::write(tells.repo().join("key"), key)?;
    let _sender = Running::start(&tells)?;
    let until_empty = |began: Instant| -> Outcome<Duration> {
        loop {
            let stand: serde_json::Value =
                serde_json::from_str(&output(&mut tells.onus(&["mirror", "status", "--json"]))?)?;
            if stand["mirrors"][0]["pending"] == 0 {
                return Ok(began.elapsed());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("the outbox is not emptied: {stand}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until_empty(Instant::now())?;
    let mut lags = Vec::new();
    for _ in 0..extent.pick(3, 15, 30) {
        output(&mut tells.onus(&["claim", "B-1", "--workstation", "ws"]))?;
        lags.push(until_empty(Instant::now())?);
        output(&mut tells.onus(&["release", "B-1", "--note", "again"]))?;
        until_empty(Instant::now())?;
    }
    lags.sort_unstable();
    let worst = lags.last().copied().unwrap_or_default();
    let figure = format!(
        "{:.2} s at worst, {:.2} s in the middle of {}",
        worst.as_secs_f64(),
        lags[lags.len() / 2].as_secs_f64(),
        lags.len()
    );
    table.below("a claim is told, with the issue read back", 2.0, "s", worst.as_secs_f64(), figure);
    Ok(())
}
