//! Charts as SVG, drawn here: they need no script, print as they are, and every figure can be read by whoever points at
//! it or listens to it.

use crate::html::Html;
use onus_core::milestone::days_left;
use onus_core::report::DayFlow;
use onus_core::time::Date;
use std::fmt::Write as _;

const WIDTH: i64 = 640;
const HEIGHT: i64 = 156;
/// Room for the words below and the numbers at the left.
const FOOT: i64 = 24;
const LEFT: i64 = 46;
/// The most words that stand beside each other below, and the most lines to read a height by.
const WORDS: usize = 8;
const LINES: i64 = 4;
/// So many days ahead have room.
const AHEAD: i64 = 120;

/// A chart's frame with its description.
fn framed(label: &str, inner: &str) -> Html {
    Html(format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">{inner}</svg>",
        escaped(label)
    ))
}

/// Text within markup of our own making.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

/// What the height of a chart counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Axis {
    Count,
    /// Seconds that several people may have worked at once: days would say nothing.
    Hours,
    /// Seconds that passed.
    Span,
    Cents,
}

impl Axis {
    /// The unit in which numbers are round, and its name.
    const fn unit(self, most: i64) -> (i64, &'static str) {
        match (self, most) {
            (Axis::Count | Axis::Cents, _) => (1, ""),
            (Axis::Span, ..120) => (1, " s"),
            (Axis::Span, ..7_200) => (60, " min"),
            (Axis::Span, 172_801..) => (86_400, " d"),
            (Axis::Hours | Axis::Span, _) => (3_600, " h"),
        }
    }

    /// How far the lines stand from each other: a round number, so that there are not too many of them.
    fn step(self, most: i64) -> i64 {
        let (unit, _) = self.unit(most);
        let round = (0..16).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power) * unit));
        round.into_iter().find(|step| step.saturating_mul(LINES) >= most).unwrap_or(most)
    }

    fn label(self, value: i64, most: i64) -> String {
        match self {
            Axis::Cents if most < 1_000 => format!("{}.{:02}", value / 100, value % 100),
            Axis::Cents => (value / 100).to_string(),
            _ => {
                let (unit, name) = self.unit(most);
                format!("{}{name}", value / unit)
            }
        }
    }
}

/// The height that a chart of so much has: the first of its lines that is not lower.
fn top(most: i64, axis: Axis) -> i64 {
    let step = axis.step(most);
    (most + step - 1) / step * step
}

/// One day, or whatever stands side by side, in parts that stand on each other.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// The class that gives the colour, how much it is, and in words.
    pub(crate) parts: Vec<(&'static str, i64, String)>,
}

/// Bars that stand side by side, each made of parts; a limit is a line across them, with its words.
pub(crate) fn bars(label: &str, bars: &[Bar], axis: Axis, limit: Option<(i64, String)>) -> Html {
    let highest = bars.iter().map(|bar| bar.parts.iter().map(|part| part.1).sum::<i64>()).max().unwrap_or(0);
    let most = top(limit.as_ref().map_or(highest, |limit| limit.0.max(highest)), axis);
    let mut inner = grid(most, axis);
    let step = (WIDTH - LEFT) / (bars.len() as i64).max(1);
    let width = (step * 7 / 10).clamp(2, 46);
    for (n, bar) in bars.iter().enumerate() {
        let x = LEFT + n as i64 * step + (step - width) / 2;
        let mut base = HEIGHT - FOOT;
        for (class, value, words) in &bar.parts {
            let height = scaled(*value, most);
            base -= height;
            if height > 0 {
                let _ = write!(
                    inner,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{base}\" width=\"{width}\" height=\"{height}\" rx=\"2\">\
                     <title>{}: {}</title></rect>",
                    escaped(&bar.label),
                    escaped(words)
                );
            }
        }
        word(&mut inner, n, bars.len(), x + width / 2, &bar.label);
    }
    if let Some((value, words)) = limit {
        let y = HEIGHT - FOOT - scaled(value, most);
        let _ = write!(
            inner,
            "<line class=\"target\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"><title>{}</title></line>",
            escaped(&words)
        );
    }
    framed(label, &inner)
}

/// What was asked for and what is complete, at the end of each day; with a day to reach it by, how fast that would take.
pub(crate) fn burn_up(flow: &[DayFlow], target: Option<Date>) -> Html {
    let most = top(flow.iter().map(|day| day.scope).max().unwrap_or(0), Axis::Count);
    let mut inner = grid(most, Axis::Count);
    // Days that are still to come until then have their room at the right; what lies years ahead has none.
    let ahead = target.zip(flow.last()).map_or(0, |(day, last)| days_left(day, last.day).clamp(0, AHEAD));
    let count = (flow.len() as i64 + ahead).max(1);
    let x = |n: usize| LEFT + (2 * n as i64 + 1) * (WIDTH - LEFT) / (2 * count);
    let line = |of: fn(&DayFlow) -> i64| {
        let points = flow.iter().enumerate();
        let points = points.map(|(n, day)| format!("{},{}", x(n), HEIGHT - FOOT - scaled(of(day), most)));
        points.collect::<Vec<_>>().join(" ")
    };
    let _ = write!(
        inner,
        "<polyline class=\"scope\" points=\"{}\"/><polyline class=\"done\" points=\"{}\"/>",
        line(|day| day.scope),
        line(|day| day.done)
    );
    if let (Some(day), Some(first)) = (target, flow.first()) {
        // Nobody was late before anything was asked for.
        let begun = flow.iter().position(|day| day.scope > 0).unwrap_or(0).saturating_sub(1);
        let place = days_left(day, first.day);
        if let Some(at) = usize::try_from(place).ok().filter(|at| (*at as i64) < count) {
            let done = flow.get(begun).map_or(0, |day| day.done);
            let all = flow.last().map_or(0, |day| day.scope);
            let (to, begin, base) = (x(at), HEIGHT - FOOT - scaled(done, most), HEIGHT - FOOT);
            let _ = write!(
                inner,
                "<polyline class=\"pace\" points=\"{},{begin} {to},{}\"/><line class=\"target\" x1=\"{to}\" y1=\"0\" \
                 x2=\"{to}\" y2=\"{base}\"><title>target {day}</title></line>",
                x(begun),
                base - scaled(all, most)
            );
        }
    }
    for (n, day) in flow.iter().enumerate() {
        let y = HEIGHT - FOOT - scaled(day.done, most);
        let _ = write!(
            inner,
            "<circle class=\"done\" cx=\"{}\" cy=\"{y}\" r=\"3\"><title>{}: {} of {} complete</title></circle>",
            x(n),
            day.day,
            day.done,
            day.scope
        );
        word(&mut inner, n, count as usize, x(n), &short(&day.day.to_string()));
    }
    let last = flow.last().map_or((0, 0), |day| (day.done, day.scope));
    framed(&format!("Burn-up: {} of {} tasks are complete", last.0, last.1), &inner)
}

/// A stretch within a day, on its own row.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) row: usize,
    /// Minutes from the beginning of the day.
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) words: String,
    /// The class that gives the colour: `people` or `agents`.
    pub(crate) whose: &'static str,
    pub(crate) running: bool,
}

/// A day as lines of hours, one row for each task or worker; `now` is a line of its own, where it is within the day.
pub(crate) fn day(
    label: &str,
    rows: &[String],
    minutes: i64,
    stretches: &[Stretch],
    now: Option<i64>,
) -> Html {
    const ROW: i64 = 22;
    const NAMES: i64 = 116;
    let height = rows.len() as i64 * ROW + FOOT;
    let x = |minute: i64| NAMES + minute.clamp(0, minutes) * (WIDTH - NAMES) / minutes.max(1);
    let mut inner = String::new();
    for hour in (0..=minutes / 60).step_by(3) {
        let at = x(hour * 60);
        let _ =
            write!(inner, "<line class=\"grid\" x1=\"{at}\" y1=\"0\" x2=\"{at}\" y2=\"{}\"/>", height - FOOT);
        if hour < minutes / 60 {
            let _ = write!(inner, "<text class=\"word\" x=\"{at}\" y=\"{}\">{hour}:00</text>", height - 5);
        }
    }
    for (n, name) in rows.iter().enumerate() {
        let y = n as i64 * ROW + 15;
        let _ = write!(inner, "<text class=\"name\" x=\"0\" y=\"{y}\">{}</text>", escaped(name));
    }
    for stretch in stretches {
        let (from, y) = (x(stretch.from), stretch.row as i64 * ROW + 3);
        let width = (x(stretch.to) - from).max(2);
        let running = if stretch.running { " running" } else { "" };
        let _ = write!(
            inner,
            "<rect class=\"{}{running}\" x=\"{from}\" y=\"{y}\" width=\"{width}\" height=\"{}\" rx=\"3\"><title>{}</title></rect>",
            stretch.whose,
            ROW - 6,
            escaped(&stretch.words)
        );
    }
    if let Some(now) = now.filter(|now| (0..minutes).contains(now)) {
        let (at, end) = (x(now), height - FOOT);
        let _ = write!(
            inner,
            "<line class=\"now\" x1=\"{at}\" y1=\"0\" x2=\"{at}\" y2=\"{end}\"><title>now</title></line>"
        );
    }
    Html(format!(
        "<svg class=\"chart day\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{inner}</svg>",
        escaped(label)
    ))
}

/// The month and the day of a date: `11-16`.
pub(crate) fn short(date: &str) -> String {
    date.get(5..).unwrap_or(date).to_owned()
}

fn scaled(value: i64, most: i64) -> i64 {
    if value <= 0 || most <= 0 {
        return 0;
    }
    (value.saturating_mul(HEIGHT - FOOT - 8) / most).max(1)
}

/// Lines to read the height by.
fn grid(most: i64, axis: Axis) -> String {
    let mut lines = String::new();
    let step = axis.step(most).max(1);
    for value in (0..=most / step).map(|line| line * step) {
        let y = HEIGHT - FOOT - scaled(value, most);
        let _ = write!(lines, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>");
        if most > 0 {
            let (x, y, words) = (LEFT - 5, y + 4, axis.label(value, most));
            let _ = write!(lines, "<text class=\"word end\" x=\"{x}\" y=\"{y}\">{words}</text>");
        }
    }
    lines
}

/// Not every bar has room for its words.
fn word(inner: &mut String, n: usize, of: usize, x: i64, words: &str) {
    let every = of.div_ceil(WORDS).max(1);
    if n.is_multiple_of(every) {
        let y = HEIGHT - 4;
        let _ = write!(inner, "<text class=\"word middle\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_high_as_its_share_and_says_what_it_is() {
        let bar = |n| Bar { label: "a<b".into(), parts: vec![("people", n, format!("{n} h"))] };
        let Html(chart) = bars("hours", &[bar(100), bar(50), bar(0)], Axis::Count, None);
        assert!(chart.contains("height=\"124\"") && chart.contains("height=\"62\""), "{chart}");
        assert_eq!(chart.matches("<rect").count(), 2, "nothing has no height");
        assert!(chart.contains("<title>a&lt;b: 100 h</title>"), "{chart}");
    }

    #[test]
    fn the_lines_are_round_numbers_and_what_they_say_is_where_they_stand() {
        let said = |axis: Axis, most: i64| {
            let (most, step) = (top(most, axis), axis.step(most));
            (0..=most / step).map(|line| axis.label(line * step, most)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(said(Axis::Count, 15), "0, 5, 10, 15");
        assert_eq!(said(Axis::Count, 156), "0, 50, 100, 150, 200");
        assert_eq!(said(Axis::Count, 1), "0, 1");
        assert_eq!(said(Axis::Hours, 29 * 3_600), "0 h, 10 h, 20 h, 30 h");
        assert_eq!(said(Axis::Hours, 300 * 3_600), "0 h, 100 h, 200 h, 300 h");
        assert_eq!(said(Axis::Span, 50 * 60), "0 min, 20 min, 40 min, 60 min");
        assert_eq!(said(Axis::Span, 26 * 3_600), "0 h, 10 h, 20 h, 30 h");
        assert_eq!(said(Axis::Span, 9 * 86_400), "0 d, 5 d, 10 d");
        assert_eq!(said(Axis::Cents, 500), "0.00, 2.00, 4.00, 6.00");
        assert_eq!(said(Axis::Cents, 2_730), "0, 10, 20, 30");
    }

    #[test]
    fn a_limit_is_a_line_that_the_chart_has_room_for() {
        let bar = Bar { label: "day".into(), parts: vec![("agents", 10, "10".into())] };
        let Html(chart) = bars("cost", &[bar], Axis::Count, Some((20, "20 at most".into())));
        assert!(
            chart.contains("class=\"target\" x1=\"46\" y1=\"8\"") && chart.contains("<title>20 at most"),
            "{chart}"
        );
        assert!(chart.contains("height=\"62\""), "{chart}");
    }

    #[test]
    fn an_empty_chart_is_a_frame() {
        let Html(chart) = bars("nothing", &[], Axis::Count, None);
        assert!(chart.starts_with("<svg") && !chart.contains("<rect"), "{chart}");
        assert!(!burn_up(&[], None).0.contains("NaN"));
    }

    #[test]
    fn a_target_stands_where_its_day_is_and_says_how_fast_it_would_take() {
        let day = |text: &str, done| DayFlow {
            day: text.parse().unwrap(),
            added: 0,
            completed: 0,
            dropped: 0,
            reopened: 0,
            leases_lost: 0,
            scope: 8,
            done,
        };
        let flow = [day("2026-11-16", 0), day("2026-11-17", 4)];
        let Html(ahead) = burn_up(&flow, Some("2026-11-19".parse().unwrap()));
        // Four days have room; the last of them is the target.
        assert!(ahead.contains("class=\"target\" x1=\"565\""), "{ahead}");
        assert!(ahead.contains("class=\"pace\" points=\"120,132 565,8\""), "{ahead}");
        let Html(past) = burn_up(&flow, Some("2026-11-16".parse().unwrap()));
        assert!(past.contains("class=\"target\" x1=\"194\""), "{past}");
        for out_of_sight in ["2026-11-01", "9999-01-01"] {
            let Html(chart) = burn_up(&flow, Some(out_of_sight.parse().unwrap()));
            assert!(!chart.contains("class=\"target\""), "{chart}");
        }
    }

    #[test]
    fn a_stretch_lies_where_it_was_in_the_day() {
        let stretch =
            Stretch { row: 0, from: 720, to: 1_440, words: "noon".into(), whose: "agents", running: false };
        let Html(chart) = day("a day", &["T-1".into()], 1_440, &[stretch], Some(60));
        assert!(chart.contains("x=\"378\"") && chart.contains("width=\"262\""), "{chart}");
        assert!(chart.contains("class=\"now\" x1=\"137\""), "{chart}");
    }
}
