//! `onus fleet status` at a terminal: the table, drawn anew as it changes, and what the chosen agent prints.

use super::status;
use crate::context::World;
use crate::output::Output;
use crate::render;
use crate::shutdown::Ending;
use onus_app::fleet::FleetView;
use onus_app::output::StepView;
use onus_core::code::Code;
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use onus_host::terminal::Keys;
use std::time::Duration;

const REFRESH: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
/// A page of its own, without a cursor; and back to what stood there before.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const TOP: &str = "\u{1b}[H";
const REST_OF_LINE: &str = "\u{1b}[K";
const REST_OF_PAGE: &str = "\u{1b}[J";
const KEYS: &str =
    "arrows: another agent   q: leave   onus logs -f, onus say, onus fleet stop: more of one agent";

/// The last lines of an output, read on from where it was read before.
#[derive(Default)]
struct Tail {
    session: Option<Seq>,
    next: i64,
    lines: Vec<String>,
}

const LINES_MAX: usize = 200;

/// Until whoever watches has seen enough; how things stood then.
pub(super) fn watch(world: &World, out: &Output, keys: &Keys) -> Result<FleetView, Refusal> {
    let mut ending = Ending::watch()?;
    out.print(ENTER);
    let seen = follow(world, out, keys, &mut ending);
    out.print(LEAVE);
    seen
}

fn follow(world: &World, out: &Output, keys: &Keys, ending: &mut Ending) -> Result<FleetView, Refusal> {
    let (mut chosen, mut tail) = (0_usize, Tail::default());
    loop {
        let view = status(world)?;
        chosen = chosen.min(view.agents.len().saturating_sub(1));
        tail.read_on(world, view.agents.get(chosen).and_then(|agent| agent.session))?;
        draw(out, &view, chosen, &tail.lines);
        let typed = keys.within(REFRESH).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
        match typed.as_slice() {
            b"q" | b"Q" | b"\x03" | b"\x04" | b"\x1b" => return Ok(view),
            b"\x1b[A" | b"\x1bOA" | b"k" => chosen = chosen.saturating_sub(1),
            b"\x1b[B" | b"\x1bOB" | b"j" => chosen += 1,
            _ => {}
        }
        if ending.within(MOMENT) {
            return Ok(view);
        }
    }
}

fn draw(out: &Output, view: &FleetView, chosen: usize, printed: &[String]) {
    let (columns, rows) = terminal_size::terminal_size_of(std::io::stdout())
        .map_or((80, 24), |(columns, rows)| (usize::from(columns.0), usize::from(rows.0)));
    let mut page = String::from(TOP);
    for line in render::fleet_page(view, chosen, printed, (columns, rows)).lines() {
        page.push_str(&format!("{line}{REST_OF_LINE}\n"));
    }
    out.print(&format!("{page}{REST_OF_PAGE}\u{1b}[{rows};1H{}", KEYS.get(..columns).unwrap_or(KEYS)));
}

impl Tail {
    fn read_on(&mut self, world: &World, session: Option<Seq>) -> Result<(), Refusal> {
        if self.session != session {
            *self = Tail { session, ..Tail::default() };
        }
        let Some(session) = session else { return Ok(()) };
        let mut store = world.open()?;
        loop {
            let view = store.steps(session, self.next)?;
            let text: String = view.steps.iter().map(StepView::line).collect();
            self.lines.extend(text.lines().map(str::to_owned));
            self.lines.drain(..self.lines.len().saturating_sub(LINES_MAX));
            self.next = view.next;
            if !view.more {
                return Ok(());
            }
        }
    }
}
