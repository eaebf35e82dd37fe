//! A team's store: full claims on PostgreSQL beside the bare statement, on the same durable server.

use crate::Extent;
use crate::measure::{Outcome, median_of as median, output};
use crate::place::{Place, Programs, agent, id, workstation};
use crate::queues;
use crate::server::{Server, drain, token};
use crate::table::{Table, Verdict};
use onus_app::Onus;
use onus_app::submit::{Receipt, Target};
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::settings::Settings;
use onus_core::text::Text;
use onus_store::any::{Any, Location};
use onus_testkit::{Cluster, Durability};
use std::process;
use std::time::{Duration, Instant};

/// How many ask at once: the server in front puts what waits into one transaction.
const CLIENTS: usize = 32;

/// What a queue does at the least: take the most important row, and write down that it did.
const BARE: &str = "WITH next AS MATERIALIZED (SELECT id FROM bare WHERE state = 'open' ORDER BY priority, id LIMIT 1 \
    FOR UPDATE SKIP LOCKED), taken AS (UPDATE bare b SET state = 'held', epoch = epoch + 1 FROM next WHERE b.id = next.id \
    RETURNING b.id) INSERT INTO bare_ledger SELECT id, clock_timestamp() FROM taken;";

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let cluster = Cluster::start(Durability::Durable).ok_or("PostgreSQL is not installed")?;
    let mut tables = vec![claims(&cluster, programs, extent)?, growth(&cluster, programs, extent)?];
    if extent.peers {
        tables.push(queues::run(&cluster, programs, extent)?);
    }
    Ok(tables)
}

/// A store in a database of its own, with the place's workers, workstations and tasks.
pub(crate) fn furnished(cluster: &Cluster, place: &Place) -> Outcome<String> {
    let url = cluster.database();
    let archive = place.path().join("archive.jsonl");
    let archive = archive.to_string_lossy();
    output(&mut place.onus(&["export", "--format", "onus", &archive]))?;
    output(&mut place.onus(&["import", "--format", "onus", &archive, "--store", &url]))?;
    cluster.psql(url.rsplit('/').next().unwrap_or_default(), "VACUUM ANALYZE");
    Ok(url)
}

/// One token for each of the place's agents.
pub(crate) fn tokens(place: &Place, url: &str, agents: usize) -> Outcome<Vec<String>> {
    (1..=agents).map(|n| token(place, &agent(n), Some(url))).collect()
}

/// Full claims beside the bare one, in turns.
fn claims(cluster: &Cluster, programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let (rounds, share) = (extent.pick(20, 60, 200), extent.pick(40, 100, 300));
    let turns = extent.pick(1, 3, 5);
    let tasks = turns * (rounds + 3).max(2 * share) * CLIENTS * 10 / 9 + 200 * turns + 500;
    let place = Place::sized(programs, CLIENTS, tasks)?;
    let mut desk = Desk { onus: open(&furnished(cluster, &place)?, &place)?, next: 1 };
    let url = furnished(cluster, &place)?;
    let tokens = tokens(&place, &url, CLIENTS)?;
    let (first, second) = (Server::start(&place, Some(&url))?, Server::start(&place, Some(&url))?);
    // The database learns what its tables hold, as it does by itself within a minute.
    drain(&[&first, &second], &tokens, 10)?;
    cluster.psql(url.rsplit('/').next().unwrap_or_default(), "ANALYZE");
    let mut found = Vec::new();
    for _ in 0..turns {
        let bare = bare(cluster, extent.pick(3, 5, 10))?;
        let (alone, together) = (desk.claims(rounds.min(60), 1)?, desk.claims(rounds, CLIENTS)?);
        let one = drain(&[&first], &tokens, share)?;
        let two = drain(&[&first, &second], &tokens, share)?;
        found.push([
            bare,
            alone,
            together,
            one.tasks_per_second(),
            one.wait(50),
            one.wait(99),
            two.tasks_per_second(),
        ]);
    }
    let of = |n: usize| median(found.iter().map(|turn| turn[n]).collect());
    let ratio = |n: usize, m: usize| median(found.iter().map(|turn| turn[n] / turn[m]).collect());
    let mut table = Table::new("Team store (PostgreSQL, durable)");
    let per_second = |n: usize| format!("{:.0}/s", of(n));
    let beside = |n: usize, m: usize| format!("{} to {}", per_second(n), per_second(m));
    table.row("bare claim and ledger row, 32 clients of pgbench", "-", per_second(0), Verdict::Shown);
    table.row("full claims, one in a transaction", "-", per_second(1), Verdict::Shown);
    table.at_least("full claims, 32 in a transaction, to bare", 0.5, ratio(2, 0), &beside(2, 0));
    // Each task is two commands, and two commits for its caller: the claim and the completion.
    let commands = format!("{:.0} commands/s to {}", 2.0 * of(3), per_second(0));
    table.at_least(
        "through HTTP, 32 callers who claim and complete, to bare",
        0.5,
        2.0 * ratio(3, 0),
        &commands,
    );
    table.row("the same: tasks claimed and completed", "-", per_second(3), Verdict::Shown);
    let p99 = of(5);
    let wait = format!("{p99:.1} ms; half of them {:.1} ms", of(4));
    table.below("the same: a claim's wait, p99", 50.0, "ms", p99, wait);
    table.at_least("two servers, to one", 1.3, ratio(6, 3), &beside(6, 3));
    Ok(table)
}

/// What a claim costs where many tasks are open: alone, so that only the database is asked.
fn growth(cluster: &Cluster, programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let (small, large) = (1_000, extent.pick(20_000, 100_000, 1_000_000));
    let mut desks = Vec::new();
    for size in [small, large] {
        let place = Place::sized(programs, 1, size)?;
        let url = furnished(cluster, &place)?;
        desks.push((Desk { onus: open(&url, &place)?, next: 1 }, place));
    }
    let rounds = extent.pick(60, 150, 150);
    let mut took = [vec![], vec![]];
    // In turns: whatever else the machine does meets both alike.
    for _ in 0..5 {
        for ((desk, _), took) in desks.iter_mut().zip(&mut took) {
            took.push(1e3 / desk.claims(rounds / 5, 1)?);
        }
    }
    let [few, many] = took.map(median);
    let mut table = Table::new(format!("Claims on PostgreSQL, {small} open tasks and {large}"));
    table.at_most("a claim's latency", 1.5, many / few, &format!("{many:.2} ms to {few:.2} ms"));
    Ok(table)
}

fn open(url: &str, place: &Place) -> Outcome<Onus<Any>> {
    let repo = place.path().join("repo");
    let here = onus_host::place::find(&repo)?;
    Ok(Onus {
        store: Location::parse(url, &repo)?.open(onus_host::clock::now)?,
        settings: Settings::default(),
        path: here.default_store(),
        place: here,
        sight: onus_app::Sight::Store,
    })
}

/// Claims per second of pgbench.
fn bare(cluster: &Cluster, seconds: u64) -> Outcome<f64> {
    let url = cluster.database();
    let database = url.rsplit('/').next().unwrap_or_default();
    cluster.psql(
        database,
        "CREATE TABLE bare (id BIGINT PRIMARY KEY, priority BIGINT NOT NULL, state TEXT NOT NULL, epoch BIGINT NOT NULL); \
         CREATE TABLE bare_ledger (id BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL); \
         INSERT INTO bare SELECT n, n % 5, 'open', 0 FROM generate_series(1, 500000) n; \
         CREATE INDEX bare_open ON bare (priority, id) WHERE state = 'open'; ANALYZE",
    );
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), BARE)?;
    let mut pgbench = process::Command::new(cluster.program("pgbench"));
    pgbench.args(["-n", "-M", "prepared", "-c", "32", "-j", "2", "-T", &seconds.to_string(), "-f"]);
    let said = output(pgbench.arg(script.path()).arg(&url))?;
    let line = said.lines().find_map(|line| line.strip_prefix("tps = ")).ok_or("pgbench told no rate")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

struct Desk {
    onus: Onus<Any>,
    next: usize,
}

impl Desk {
    /// Claims per second, `size` at a time; what was claimed is completed, without being measured.
    fn claims(&mut self, rounds: usize, size: usize) -> Outcome<f64> {
        let mut took = Duration::ZERO;
        // The first round finds every statement unprepared.
        for round in 0..=rounds {
            let calls = (1..=size).map(|n| self.claim(n)).collect::<Outcome<Vec<_>>>()?;
            let began = Instant::now();
            let claimed = self.onus.submit_many(&calls);
            if round > 0 {
                took += began.elapsed();
            }
            let ends = calls.into_iter().zip(claimed);
            let ends = ends.map(|((call, _), claimed)| end(call, claimed?)).collect::<Outcome<Vec<_>>>()?;
            for ended in self.onus.submit_many(&ends) {
                ended?;
            }
        }
        Ok((rounds * size) as f64 / took.as_secs_f64())
    }

    fn claim(&mut self, worker: usize) -> Outcome<(Envelope, Target)> {
        // Every tenth task waits for another.
        self.next += if self.next % 10 == 9 { 2 } else { 1 };
        let task = id(self.next);
        let envelope = Envelope {
            request: format!("claim-{task}").parse()?,
            actor: Some(agent(worker).parse()?),
            token: None,
            task: Some(task.parse()?),
            project: None,
            base: None,
            command: Command::Claim {
                workstation: Some(workstation(worker).parse()?),
                here: None,
                assignee: None,
                ttl: None,
                warrant: Warrant::Ordinary,
            },
        };
        Ok((envelope, Target::Named))
    }
}

fn end(call: Envelope, receipt: Receipt) -> Outcome<(Envelope, Target)> {
    let envelope = Envelope {
        request: format!("complete-{}", receipt.task.id).parse()?,
        token: receipt.token,
        command: Command::Complete {
            resolution: Some(Text::new("done".to_owned())),
            root_cause: None,
            warrant: Warrant::Ordinary,
            proof: onus_core::evidence::Proof::default(),
        },
        ..call
    };
    Ok((envelope, Target::Named))
}
