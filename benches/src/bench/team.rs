//! A team's store: full claims on PostgreSQL beside the bare statement, on the same durable server.

use crate::Extent;
use crate::measure::{Outcome, output};
use crate::place::{Place, Programs, agent, id, workstation};
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
    let rounds = extent.pick(40, 150, 500);
    let tasks = (rounds * 2 + 1) * CLIENTS * 10 / 9 + 10;
    let place = Place::with_tasks(programs, CLIENTS, tasks)?;
    let url = cluster.database();
    let archive = place.path().join("archive.jsonl");
    let archive = archive.to_string_lossy();
    output(&mut place.onus(&["export", "--format", "onus", &archive]))?;
    output(&mut place.onus(&["import", "--format", "onus", &archive, "--store", &url]))?;
    let mut desk = Desk { onus: open(&url, &place)?, next: 1 };

    let bare = bare(&cluster, extent.pick(3, 5, 10))?;
    let alone = desk.claims(rounds.min(60), 1)?;
    let together = desk.claims(rounds, CLIENTS)?;
    let mut table = Table::new("Team store (PostgreSQL, durable)");
    let per_second = |rate: f64| format!("{rate:.0}/s");
    table.row("bare claim and ledger row, 32 clients of pgbench", "", per_second(bare), Verdict::Shown);
    table.row("full claims, one in a transaction", "", per_second(alone), Verdict::Shown);
    let figure = format!("{together:.0}/s to {bare:.0}/s");
    table.at_least("full claims, 32 in a transaction, to bare", 0.5, together / bare, &figure);
    Ok(vec![table])
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
