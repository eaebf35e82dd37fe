//! The end of the road: `onus complete` (fetch, rebase, checks, push, record) beside the same git commands and checks typed by
//! hand. Each has a clone and a shared bare repository of its own.

use crate::Extent;
use crate::desk::Desk;
use crate::measure::{Contender, Outcome, interleaved, millis, output, ratio};
use crate::place::Programs;
use crate::table::{Table, Verdict};
use std::time::Duration;

/// A clone, and the repository that it pushes to.
fn cloned(programs: &Programs) -> Outcome<Desk> {
    let desk = Desk::new(programs)?;
    desk.set_up(&[
        &["init", "--quiet", "--bare", "--initial-branch=main", "../origin.git"],
        &["remote", "add", "origin", "../origin.git"],
        &["push", "--quiet", "origin", "main"],
    ])?;
    Ok(desk)
}

/// One commit in the worktree, as an agent makes it, and one by others in the shared main branch.
const WORK: &str = "echo $N > f$N; git add f$N; git commit --quiet -m work";
const OTHERS: &str = "git fetch -q origin; git checkout -q --detach origin/main; git commit -q --allow-empty -m other; git push -q origin HEAD:main; git checkout -q main";

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let mut table = Table::new("The road: fetch, rebase, checks, push");
    for (what, check) in [("a check that takes no time", "true"), ("a check of one second", "sleep 1")] {
        let (whole, by_hand) = compared(programs, extent, check)?;
        let figure = format!("{:.0} ms against {:.0} ms by hand", millis(whole), millis(by_hand));
        table.at_most(format!("onus complete, {what}"), 1.5, ratio(whole, by_hand), &figure);
    }
    let commits = extent.pick(1_000, 10_000, 10_000);
    let wall = consistency(programs, extent, commits)?;
    let figure = format!("{:.2} s", wall.as_secs_f64());
    table.row(
        format!("consistency over {commits} commits"),
        "< 3 s",
        figure,
        Verdict::of(wall < Duration::from_secs(3)),
    );
    Ok(vec![table])
}

/// A main branch of which every commit names one of a thousand tasks that have ended.
fn consistency(programs: &Programs, extent: &Extent, commits: usize) -> Outcome<Duration> {
    const TASKS: usize = 1_000;
    let desk = Desk::new(programs)?;
    let tasks: String =
        (1..=TASKS).map(|n| format!("{{\"title\":\"old {n}\",\"state\":\"complete\"}}\n")).collect();
    std::fs::write(desk.repo().with_file_name("tasks.jsonl"), tasks)?;
    let mut stream = String::new();
    for n in 0..commits {
        let task = n % TASKS + 1;
        let words = format!("change {n}\n\nOnus-Task: B-{task}\nOnus-Agent: @past\nOnus-Epoch: 1\n");
        let from = if n == 0 { "from refs/heads/main^0\n" } else { "" };
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata {}\n{words}\n{from}",
            1_800_000_000 + n,
            words.len()
        ));
    }
    std::fs::write(desk.repo().with_file_name("stream"), stream)?;
    let line = "export ONUS_AS=@ada; $ONUS init --project B; $ONUS import --format jsonl ../tasks.jsonl; \
        git -c core.hooksPath=/dev/null fast-import --quiet <../stream; git reset -q --hard";
    output(&mut desk.shell(&desk.repo(), line))?;
    let mut look = [Contender::new(|_| desk.shell(&desk.repo(), "exec $ONUS consistency --as @ada"))];
    Ok(interleaved(&mut look, extent.pick(3, 5, 9))?[0].wall)
}

fn compared(programs: &Programs, extent: &Extent, check: &str) -> Outcome<(Duration, Duration)> {
    let (team, hand) = (cloned(programs)?, cloned(programs)?);
    let found = "export ONUS_AS=@ada; $ONUS init --project B --remote origin; $ONUS worker add @a --kind agent; \
        $ONUS workstation add ws-a --kind worktree";
    output(&mut team.shell(&team.repo(), found))?;
    output(&mut hand.git(&hand.repo(), &["worktree", "add", "-q", "-b", "agent/ws-a", "../repo-ws-a"]))?;
    // A check that cannot fail would be refused as one.
    let check = format!("{check} && test -d .");
    let ask = format!(
        "export ONUS_AS=@ada; $ONUS add work --check '{check}' >/dev/null; cd ../repo-ws-a; export ONUS_AS=@a; \
         $ONUS claim B-$N >/dev/null; {WORK}; cd ../repo; export ONUS_AS=@ada; {OTHERS}"
    );
    let next_by_hand = format!("cd ../repo-ws-a; {WORK}; cd ../repo; {OTHERS}");
    let prepared = |desk: &Desk, line: &str, n: usize| {
        let mut shell = desk.shell(&desk.repo(), line);
        shell.env("N", n.to_string());
        shell
    };
    output(&mut prepared(&team, &ask, 1))?;
    output(&mut prepared(&hand, &next_by_hand, 1))?;
    let by_hand = format!(
        "git fetch -q origin main; git rebase -q origin/main; {check}; git push -q origin HEAD:main; \
         cd ../repo; git merge -q --ff-only origin/main"
    );
    let mut contenders = [
        Contender::new(|turn| {
            let mut onus = team.shell(&team.tree(), "exec $ONUS complete B-$N --resolution done");
            onus.env("ONUS_AS", "@a").env("N", (turn + 1).to_string());
            onus
        })
        .undone_by(|turn| prepared(&team, &ask, turn + 2)),
        Contender::new(|_| hand.shell(&hand.tree(), &by_hand))
            .undone_by(|turn| prepared(&hand, &next_by_hand, turn + 2)),
    ];
    let costs = interleaved(&mut contenders, extent.pick(5, 20, 20))?;
    Ok((costs[0].wall, costs[1].wall))
}
