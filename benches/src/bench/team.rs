//! A team's store: full claims on PostgreSQL beside the bare statement, on the same durable server.

use crate::Extent;
use crate::measure::{Outcome, median_of as median, output};
use crate::place::{Place, Programs, agent, id, workstation};
use crate::queues;
use crate::server::{Drained, Server, claims as claims_of, drain, token};
use crate::spent::Spent;
use crate::table::{Table, Verdict};
use onus_app::Onus;
use onus_app::submit::{Receipt, Target};
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::settings::Settings;
use onus_core::text::Text;
use onus_store::location::Location;
use onus_store::read::queue::Filter;
use onus_testkit::{Cluster, Durability};
use std::process;
use std::time::{Duration, Instant};

/// How many ask at once: the server in front puts what waits into one transaction.
const CLIENTS: usize = 32;

/// So many rounds are not measured: a statement is prepared at its third use, and its plan is then made anew once.
const WARM: usize = 5;

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
    furnish(cluster, place, cluster.database())
}

fn furnish(cluster: &Cluster, place: &Place, url: String) -> Outcome<String> {
    let archive = place.path().join("archive.jsonl");
    let archive = archive.to_string_lossy();
    output(&mut place.onus(&["export", "--format", "onus", &archive]))?;
    output(&mut place.onus(&["import", "--format", "onus", &archive, "--store", &url]))?;
    cluster.psql(database(&url), "VACUUM ANALYZE");
    Ok(url)
}

fn database(url: &str) -> &str {
    let name = url.rsplit('/').next().unwrap_or_default();
    name.split('?').next().unwrap_or_default()
}

/// One token for each of the place's agents.
pub(crate) fn tokens(place: &Place, url: &str, agents: usize) -> Outcome<Vec<String>> {
    (1..=agents).map(|n| token(place, &agent(n), Some(url))).collect()
}

/// Full claims beside the bare one, in turns.
fn claims(cluster: &Cluster, programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let (rounds, share) = (extent.pick(20, 60, 200), extent.pick(40, 100, 300));
    let turns = extent.pick(1, 3, 5);
    let by_desk = (rounds + WARM) * (CLIENTS + 1);
    let by_callers = (3 * share + rounds + 20) * CLIENTS;
    let sized = || Place::sized(programs, CLIENTS, turns * by_desk.max(by_callers) * 10 / 9 + 500);
    let (place, other) = (sized()?, sized()?);
    let mut desk = Desk { onus: open(&furnished(cluster, &place)?, &place)?, next: 1 };
    let url = furnished(cluster, &place)?;
    let tokens = tokens(&place, &url, CLIENTS)?;
    let (first, second) = (Server::start(&place, Some(&url))?, Server::start(&place, Some(&url))?);
    drain(&[&first, &second], &tokens, 10)?;
    let apart = Apart::start(cluster, &other, &url, &first, &tokens)?;
    let mut found = Vec::new();
    for _ in 0..turns {
        let bare = bare(cluster, extent.pick(3, 5, 10))?;
        let (alone, together) = (desk.claims(rounds.min(60), 1)?, desk.claims(rounds, CLIENTS)?);
        let measured = |servers: &[&Server], tokens: &[String]| {
            Spent::during(cluster, servers, || drain(servers, tokens, share))
        };
        found.push(Turn {
            bare,
            alone,
            together,
            at_once: claims_of(&first, &tokens, rounds)?,
            one: measured(&[&first], &tokens)?,
            two: measured(&[&first, &second], &tokens)?,
            apart: measured(&[&first, &apart.server], &apart.tokens)?,
        });
    }
    Ok(told(&found))
}

/// What one turn found.
struct Turn {
    bare: f64,
    alone: f64,
    together: f64,
    at_once: f64,
    one: (Drained, Spent),
    two: (Drained, Spent),
    apart: (Drained, Spent),
}

/// A second server, with a workspace of its own in the same database: every other caller goes there.
struct Apart {
    server: Server,
    tokens: Vec<String>,
}

impl Apart {
    fn start(
        cluster: &Cluster,
        place: &Place,
        url: &str,
        first: &Server,
        tokens: &[String],
    ) -> Outcome<Apart> {
        let url = furnish(cluster, place, format!("{url}?workspace=other"))?;
        let server = Server::start(place, Some(&url))?;
        let mut tokens = tokens.to_vec();
        for (n, own) in tokens.iter_mut().enumerate().skip(1).step_by(2) {
            *own = token(place, &agent(n + 1), Some(&url))?;
        }
        drain(&[first, &server], &tokens, 10)?;
        Ok(Apart { server, tokens })
    }
}

fn told(found: &[Turn]) -> Table {
    let of = |figure: &dyn Fn(&Turn) -> f64| median(found.iter().map(figure).collect());
    let [bare, alone, together] = [of(&|turn| turn.bare), of(&|turn| turn.alone), of(&|turn| turn.together)];
    let (one, two) = (of(&|turn| turn.one.0.tasks_per_second()), of(&|turn| turn.two.0.tasks_per_second()));
    let mut table = Table::new("Team store (PostgreSQL, durable)");
    table.row(
        "bare claim and ledger row, 32 clients of pgbench",
        "-",
        format!("{bare:.0}/s"),
        Verdict::Shown,
    );
    table.row("full claims, one in a transaction", "-", format!("{alone:.0}/s"), Verdict::Shown);
    let ratio = of(&|turn| turn.together / turn.bare);
    let figure = format!("{together:.0}/s to {bare:.0}/s");
    table.at_least("full claims, 32 in a transaction, to bare", 0.5, ratio, &figure);
    let at_once = of(&|turn| turn.at_once);
    let ratio = of(&|turn| turn.at_once / turn.bare);
    let figure = format!("{at_once:.0}/s to {bare:.0}/s");
    table.at_least("a claim through HTTP, 32 callers at once, to bare", 0.5, ratio, &figure);
    // Each task is two commands, and two commits for its caller: the claim and the completion.
    let ratio = of(&|turn| 2.0 * turn.one.0.tasks_per_second() / turn.bare);
    let figure = format!("{:.0} commands/s to {bare:.0}/s", 2.0 * one);
    table.at_least("through HTTP, 32 callers who claim and complete, to bare", 0.5, ratio, &figure);
    table.row("the same: tasks claimed and completed", "-", format!("{one:.0}/s"), Verdict::Shown);
    let p99 = of(&|turn| turn.one.0.wait(99));
    let wait = format!("{p99:.1} ms; half of them {:.1} ms", of(&|turn| turn.one.0.wait(50)));
    table.below("the same: a claim's wait, p99", 50.0, "ms", p99, wait);
    let ratio = of(&|turn| turn.two.0.tasks_per_second() / turn.one.0.tasks_per_second());
    table.at_least("two servers of one workspace, to one", 1.3, ratio, &format!("{two:.0}/s to {one:.0}/s"));
    let apart = of(&|turn| turn.apart.0.tasks_per_second());
    let ratio = of(&|turn| turn.apart.0.tasks_per_second() / turn.one.0.tasks_per_second());
    let figure = format!("{apart:.0}/s to {one:.0}/s");
    table.at_least("two servers with a workspace each, to one", 1.3, ratio, &figure);
    if let Some(last) = found.last() {
        let [one, two, apart] = [&last.one, &last.two, &last.apart];
        let all = [("one server", one), ("two of one workspace", two), ("two with a workspace each", apart)];
        for (what, (drained, spent)) in all {
            let figure = spent.for_each_of(2 * drained.tasks());
            table.row(format!("{what}: processor time of a command"), "-", figure, Verdict::Shown);
        }
    }
    table
}

/// What a claim costs where many tasks are open: alone, so that only the database is asked.
fn growth(cluster: &Cluster, programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let (small, large) = (1_000, extent.pick(20_000, 1_000_000, 1_000_000));
    let place = Place::sized(programs, 1, small)?;
    let mut desks = Vec::new();
    for size in [small, large] {
        let url = furnished(cluster, &place)?;
        multiply(cluster, &url, size / small);
        desks.push(Desk { onus: open(&url, &place)?, next: 1 });
    }
    let mut table = Table::new(format!("Claims on PostgreSQL, {small} open tasks and {large}"));
    for (what, how) in [("a claim's latency", How::Named), ("a claim's of the next task", How::Next)] {
        let mut took = [vec![], vec![]];
        // In turns: whatever else the machine does meets both alike.
        for _ in 0..5 {
            for (desk, took) in desks.iter_mut().zip(&mut took) {
                took.push(1e3 / desk.claimed(extent.pick(12, 30, 30), 1, how)?);
            }
        }
        let [few, many] = took.map(median);
        table.at_most(what, 1.5, many / few, &format!("{many:.2} ms to {few:.2} ms"));
    }
    Ok(table)
}

/// Makes each task so many: as open as they were, and nothing else of the store is any different.
fn multiply(cluster: &Cluster, url: &str, times: usize) {
    let database = database(url);
    cluster.psql(
        database,
        &format!(
            "INSERT INTO task (workspace, born, id, uid, title, kind, state, priority, risk, archived, epoch, version, head, \
                created_by, created_at, updated_at, forced, waits) \
             SELECT workspace, born + 1000000 * n, id || lpad(n::text, 4, '0'), gen_random_uuid()::text, title, kind, state, \
                priority, risk, archived, epoch, version, head, created_by, created_at, updated_at, forced, waits \
             FROM task, generate_series(1, {times} - 1) n"
        ),
    );
    cluster.psql(database, "VACUUM ANALYZE");
}

fn open(url: &str, place: &Place) -> Outcome<Onus> {
    let repo = place.path().join("repo");
    let here = onus_host::repository::find(&repo)?;
    Ok(Onus {
        store: Location::parse(url, &repo)?.open(onus_host::clock::now)?,
        settings: Settings::default(),
        path: here.default_store(),
        place: here,
        sight: onus_app::Sight::Store,
        bearer: None,
    })
}

/// Claims per second of pgbench.
fn bare(cluster: &Cluster, seconds: u64) -> Outcome<f64> {
    let url = cluster.database();
    cluster.psql(
        database(&url),
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
    onus: Onus,
    next: usize,
}

/// Which task a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Named,
    Next,
}

impl Desk {
    fn claims(&mut self, rounds: usize, size: usize) -> Outcome<f64> {
        self.claimed(rounds, size, How::Named)
    }

    /// Claims per second, `size` at a time; what was claimed is completed, without being measured.
    fn claimed(&mut self, rounds: usize, size: usize, how: How) -> Outcome<f64> {
        let mut took = Duration::ZERO;
        for round in 0..rounds + WARM {
            let calls = (1..=size).map(|n| self.claim(n, how)).collect::<Outcome<Vec<_>>>()?;
            let began = Instant::now();
            let claimed = self.onus.submit_many(&calls);
            if round >= WARM {
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

    fn claim(&mut self, worker: usize, how: How) -> Outcome<(Envelope, Target)> {
        // Every tenth task waits for another.
        self.next += if self.next % 10 == 9 { 2 } else { 1 };
        let task = id(self.next);
        let (named, target) = match how {
            How::Named => (Some(task.parse()?), Target::Named),
            How::Next => (None, Target::Next(Filter::default())),
        };
        let envelope = Envelope {
            request: format!("claim-{task}").parse()?,
            actor: Some(agent(worker).parse()?),
            token: None,
            task: named,
            project: None,
            base: None,
            command: Command::Claim {
                workstation: Some(workstation(worker).parse()?),
                here: None,
                assignee: None,
                ttl: None,
                warrant: Warrant::Ordinary,
                constraints: Vec::new(),
            },
        };
        Ok((envelope, target))
    }
}

fn end(call: Envelope, receipt: Receipt) -> Outcome<(Envelope, Target)> {
    let envelope = Envelope {
        request: format!("complete-{}", receipt.task.id).parse()?,
        token: receipt.token,
        task: Some(receipt.task.id),
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
