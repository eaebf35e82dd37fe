//! The fleet: what a supervisor with fifty agents costs while nobody works, and `fleet status` while all do.

use crate::Extent;
use crate::desk::Desk;
use crate::measure::{Contender, Outcome, interleaved, millis, output};
use crate::place::Programs;
use crate::table::{Table, Verdict};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const AGENTS: usize = 50;
/// What the kernel counts processor time in.
const TICK: f64 = 10.0;
const PATIENCE: Duration = Duration::from_secs(300);

/// A supervisor, taken down with its agents.
struct Supervisor<'a> {
    desk: &'a Desk,
    child: Child,
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        drop(self.desk.onus(&["fleet", "down"]).output());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Supervisor<'_> {
    fn start(desk: &Desk) -> Outcome<Supervisor<'_>> {
        let mut up = desk.onus(&["fleet", "up", "-q"]);
        let child = up.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Supervisor { desk, child })
    }

    /// Megabytes.
    fn resident(&self) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        Ok(line.split_whitespace().next().unwrap_or_default().parse::<f64>()? / 1_024.0)
    }

    /// Milliseconds of the processor so far.
    fn spent(&self) -> Outcome<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(") ").ok_or("no process")?.1.split(' ').skip(11).take(2);
        let ticks: Result<Vec<f64>, _> = fields.map(str::parse).collect();
        Ok(ticks?.iter().sum::<f64>() * TICK)
    }
}

/// How many agents are in this state.
fn count(desk: &Desk, state: &str) -> Outcome<usize> {
    let text = output(&mut desk.onus(&["fleet", "status", "--json"]))?;
    Ok(text.matches(&format!("\"state\":\"{state}\"")).count())
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let desk = Desk::new(programs)?;
    let line = format!(
        "export ONUS_AS=@ada; $ONUS init --project B; \
         $ONUS fleet init --preset shell --count {AGENTS} --worker @sh -- 'echo begun; exec sleep 100000'"
    );
    output(&mut desk.shell(&desk.repo(), &line))?;
    let mut table = Table::new(format!("The fleet: {AGENTS} agents of the shell"));
    let supervisor = Supervisor::start(&desk)?;
    std::thread::sleep(Duration::from_secs(5));
    let (before, began) = (supervisor.spent()?, Instant::now());
    std::thread::sleep(Duration::from_secs(extent.pick(5, 30, 60)));
    let minute = (supervisor.spent()? - before) / began.elapsed().as_secs_f64() * 60.0;
    let idle = supervisor.resident()?;
    table.row(
        "supervisor while nobody works",
        "<= 25 MB",
        format!("{idle:.1} MB"),
        Verdict::of(idle <= 25.0),
    );
    table.row("its processor time in a minute", "-", format!("{minute:.0} ms"), Verdict::Shown);
    let tasks: String = (1..=AGENTS).map(|n| format!("{{\"title\":\"work {n}\"}}\n")).collect();
    std::fs::write(desk.repo().with_file_name("tasks.jsonl"), tasks)?;
    output(&mut desk.onus(&["import", "--format", "jsonl", "../tasks.jsonl"]))?;
    let began = Instant::now();
    while count(&desk, "working")? < AGENTS {
        if began.elapsed() > PATIENCE {
            return Err("not every agent began to work".into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let figure = format!("{:.1} s", began.elapsed().as_secs_f64());
    table.row("until all of them work", "-", figure, Verdict::Shown);
    let mut look = [Contender::new(|_| desk.onus(&["fleet", "status", "--json"]))];
    let wall = interleaved(&mut look, extent.pick(5, 31, 61))?[0].wall;
    table.below(
        "fleet status while all of them work",
        50.0,
        "ms",
        millis(wall),
        format!("{:.1} ms", millis(wall)),
    );
    let busy = supervisor.resident()?;
    table.row("supervisor while all of them work", "-", format!("{busy:.1} MB"), Verdict::Shown);
    drop(supervisor);
    Ok(vec![table])
}
