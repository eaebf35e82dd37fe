//! Charts as SVG, drawn here: they need no script, print as they are, and every figure can be read by whoever points at
//! it or listens to it.

use crate::html::Html;
use onus_core::milestone::days_left;
use onus_core::report::DayFlow;
use onus_core::time::Date;
use std::fmt::Write as _;

const WIDTH: i64 = 640;
const HEIGHT: i64 = 150;
/// Room for the words below and the numbers at the left.
const FOOT: i64 = 18;
const LEFT: i64 = 30;
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

/// One day, or whatever stands side by side, in parts that stand on each other.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// The class that gives the colour, how much it is, and in words.
    pub(crate) parts: Vec<(&'static str, i64, String)>,
}

/// Bars that stand side by side, each made of parts.
pub(crate) fn bars(label: &str, bars: &[Bar], unit: impl Fn(i64) -> String) -> Html {
    let most = bars.iter().map(|bar| bar.parts.iter().map(|part| part.1).sum::<i64>()).max().unwrap_or(0);
    let mut inner = grid(most, unit);
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
    framed(label, &inner)
}

/// What was asked for and what is complete, at the end of each day; with a day to reach it by, how fast that would take.
pub(crate) fn burn_up(flow: &[DayFlow], target: Option<Date>) -> Html {
    let most = flow.iter().map(|day| day.scope).max().unwrap_or(0);
    let mut inner = grid(most, |n| n.to_string());
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
            let (to, begin, base) = (x(at), HEIGHT - FOOT - scaled(done, most), HEIGHT - FOOT);
            let _ = write!(
                inner,
                "<polyline class=\"pace\" points=\"{},{begin} {to},{}\"/><line class=\"target\" x1=\"{to}\" y1=\"0\" \
                 x2=\"{to}\" y2=\"{base}\"><title>target {day}</title></line>",
                x(begun),
                base - scaled(most, most)
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
    const NAMES: i64 = 86;
    let height = rows.len() as i64 * ROW + FOOT;
    let x = |minute: i64| NAMES + minute.clamp(0, minutes) * (WIDTH - NAMES) / minutes.max(1);
    let mut inner = String::new();
    for hour in (0..=minutes / 60).step_by(3) {
        let at = x(hour * 60);
        let _ =
            write!(inner, "<line class=\"grid\" x1=\"{at}\" y1=\"0\" x2=\"{at}\" y2=\"{}\"/>", height - FOOT);
        if hour < minutes / 60 {
            let _ = write!(inner, "<text class=\"word\" x=\"{}\" y=\"{}\">{hour}</text>", at + 2, height - 5);
        }
    }
    for (n, name) in rows.iter().enumerate() {
        let y = n as i64 * ROW + 15;
        let _ = write!(inner, "<text class=\"name\" x=\"0\" y=\"{y}\">{}</text>", escaped(name));
    }
    for stretch in stretches {
        let (from, y) = (x(stretch.from), stretch.row as i64 * ROW + 3);
        let width = (x(stretch.to) - from).max(2);
        let class = if stretch.running { "people running" } else { "people" };
        let _ = write!(
            inner,
            "<rect class=\"{class}\" x=\"{from}\" y=\"{y}\" width=\"{width}\" height=\"{}\" rx=\"3\"><title>{}</title></rect>",
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

/// Three lines to read the height by.
fn grid(most: i64, unit: impl Fn(i64) -> String) -> String {
    let mut lines = String::new();
    for part in 0..=2 {
        let (value, y) = (most * part / 2, HEIGHT - FOOT - scaled(most * part / 2, most));
        let _ = write!(lines, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>");
        if most > 0 && (part == 0 || value > 0) {
            let _ = write!(
                lines,
                "<text class=\"word end\" x=\"{}\" y=\"{}\">{}</text>",
                LEFT - 4,
                y + 3,
                unit(value)
            );
        }
    }
    lines
}

/// Not every bar has room for its words.
fn word(inner: &mut String, n: usize, of: usize, x: i64, words: &str) {
    let every = of.div_ceil(10).max(1);
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
        let Html(chart) = bars("hours", &[bar(100), bar(50), bar(0)], |n| n.to_string());
        assert!(chart.contains("height=\"124\"") && chart.contains("height=\"62\""), "{chart}");
        assert_eq!(chart.matches("<rect").count(), 2, "nothing has no height");
        assert!(chart.contains("<title>a&lt;b: 100 h</title>"), "{chart}");
    }

    #[test]
    fn an_empty_chart_is_a_frame() {
        let Html(chart) = bars("nothing", &[], |n| n.to_string());
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
        assert!(ahead.contains("class=\"target\" x1=\"563\""), "{ahead}");
        assert!(ahead.contains("class=\"pace\" points=\"106,132 563,8\""), "{ahead}");
        let Html(past) = burn_up(&flow, Some("2026-11-16".parse().unwrap()));
        assert!(past.contains("class=\"target\" x1=\"182\""), "{past}");
        for out_of_sight in ["2026-11-01", "9999-01-01"] {
            let Html(chart) = burn_up(&flow, Some(out_of_sight.parse().unwrap()));
            assert!(!chart.contains("class=\"target\""), "{chart}");
        }
    }

    #[test]
    fn a_stretch_lies_where_it_was_in_the_day() {
        let stretch = Stretch { row: 0, from: 720, to: 1_440, words: "noon".into(), running: false };
        let Html(chart) = day("a day", &["T-1".into()], 1_440, &[stretch], Some(60));
        assert!(chart.contains("x=\"363\"") && chart.contains("width=\"277\""), "{chart}");
        assert!(chart.contains("class=\"now\" x1=\"109\""), "{chart}");
    }
}
