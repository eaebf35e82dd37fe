//! What the hooks cost: a commit and a rebase with and without them, and the rebase that Onus does itself.

use crate::Extent;
use crate::desk::Desk;
use crate::measure::{Contender, Outcome, interleaved, millis, output, ratio};
use crate::place::Programs;
use crate::table::{Table, Verdict};
use std::process::Command;

/// How many commits a rebase moves.
const SERIES: usize = 20;

/// A repository with one worktree, in which `@a` holds a task. `scope` bounds the task; `hooks` puts them in place.
fn held(programs: &Programs, hooks: bool, scope: Option<&str>) -> Outcome<Desk> {
    let desk = Desk::new(programs)?;
    let add: Vec<&str> = ["add", "work"].into_iter().chain(scope.map(|_| "--scope")).chain(scope).collect();
    for args in [
        &["init", "--project", "B", "--no-hooks"][..],
        &["worker", "add", "@a", "--kind", "agent"],
        &["workstation", "add", "ws-a", "--kind", "worktree"],
        &add,
    ] {
        output(&mut desk.onus(args))?;
    }
    output(&mut desk.onus(&["claim", "B-1", "--for", "@a", "--workstation", "ws-a", "--ttl", "24h"]))?;
    if hooks {
        output(&mut desk.onus(&["hook", "install"]))?;
    }
    Ok(desk)
}

/// A series of commits on the worktree's branch, and one on main that it does not have.
fn diverge(desk: &Desk) -> Outcome<()> {
    let tree = desk.tree();
    for n in 0..SERIES {
        std::fs::create_dir_all(tree.join("src"))?;
        std::fs::write(tree.join(format!("src/f{n}")), n.to_string())?;
        output(&mut desk.git(&tree, &["add", "."]))?;
        output(&mut desk.git(&tree, &["commit", "--quiet", "--message", &format!("change {n}")]))?;
    }
    output(&mut desk.git(&tree, &["tag", "begin"]))?;
    let people = ["commit", "--quiet", "--allow-empty", "--message=people"];
    output(&mut desk.git(&desk.repo(), &people)).map(drop)
}

fn back(desk: &Desk) -> Command {
    desk.git(&desk.tree(), &["-c", "core.hooksPath=/dev/null", "reset", "--quiet", "--hard", "begin"])
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    Ok(vec![commits(programs, extent)?, rebases(programs, extent)?])
}

fn commits(programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let desks =
        [held(programs, false, None)?, held(programs, true, None)?, held(programs, true, Some("**"))?];
    let commit = ["commit", "--quiet", "--allow-empty", "--message=work"];
    let mut contenders: Vec<Contender<'_>> =
        desks.iter().map(|desk| Contender::new(move |_| desk.git(&desk.tree(), &commit))).collect();
    let costs = interleaved(&mut contenders, extent.pick(15, 60, 60))?;
    let mut table = Table::new("Git: one commit");
    table.row("without hooks", "-", format!("{:.1} ms", millis(costs[0].wall)), Verdict::Shown);
    for (what, cost) in [("hooks", costs[1]), ("hooks, task with a scope", costs[2])] {
        let more = millis(cost.wall) - millis(costs[0].wall);
        let figure = format!("+{more:.1} ms wall, +{:.1} ms CPU", millis(cost.cpu) - millis(costs[0].cpu));
        table.row(what, "<= 15 ms more", figure, Verdict::of(more <= 15.0));
    }
    Ok(table)
}

fn rebases(programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let (bare, idle) = (held(programs, false, None)?, held(programs, false, None)?);
    let (hooked, synced) = (held(programs, true, None)?, held(programs, true, None)?);
    for desk in [&bare, &idle, &hooked, &synced] {
        diverge(desk)?;
    }
    // A hook that does nothing at all: what git itself costs by asking.
    let nothing = idle.repo().join(".git/hooks/reference-transaction");
    std::os::unix::fs::symlink("/bin/true", nothing)?;
    let rebase = |desk: &Desk| desk.git(&desk.tree(), &["rebase", "--quiet", "main"]);
    let mut contenders = [
        Contender::new(|_| rebase(&bare)).undone_by(|_| back(&bare)),
        Contender::new(|_| rebase(&idle)).undone_by(|_| back(&idle)),
        Contender::new(|_| rebase(&hooked)).undone_by(|_| back(&hooked)),
        Contender::new(|_| {
            let mut onus = synced.onus(&["workstation", "sync", "ws-a"]);
            onus.env("ONUS_AS", "@a").current_dir(synced.tree());
            onus
        })
        .undone_by(|_| back(&synced)),
    ];
    let costs = interleaved(&mut contenders, extent.pick(5, 20, 20))?;
    let mut table = Table::new(format!("Git: a rebase of {SERIES} commits"));
    let figure =
        |n: usize| format!("{:.0} ms against {:.0} ms", millis(costs[n].wall), millis(costs[0].wall));
    table.at_most("onus workstation sync", 1.3, ratio(costs[3].wall, costs[0].wall), &figure(3));
    table.at_most("git rebase with our hooks", 1.3, ratio(costs[2].wall, costs[0].wall), &figure(2));
    let idle = format!("{:.2}x ({})", ratio(costs[1].wall, costs[0].wall), figure(1));
    table.row("git rebase with /bin/true as the only hook", "-", idle, Verdict::Shown);
    Ok(table)
}
