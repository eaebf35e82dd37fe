//! Part `board`: when a browser first paints the pages that people look at most (`web/tests/measure.mjs`).

use crate::Extent;
use crate::measure::Outcome;
use crate::place::Programs;
use crate::table::Table;
use serde_json::Value;
use std::process::{Command, Stdio};

/// The longest that anybody waits for a page, in milliseconds.
const GOAL: f64 = 300.0;

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let packages = Command::new("web/tests/browser").stderr(Stdio::inherit()).output()?;
    if !packages.status.success() {
        return Err("no browser to measure with".into());
    }
    let packages = String::from_utf8(packages.stdout)?;
    let sizes: &[usize] = extent.pick(&[5_000], &[5_000, 100_000], &[5_000, 100_000]);
    let times = extent.pick("3", "9", "21");
    let mut tables = Vec::new();
    for tasks in sizes {
        let mut node = Command::new("node");
        node.args(["web/tests/measure.mjs", &tasks.to_string(), times]);
        node.env("ONUS_BIN", &programs.onus).env("ONUS_BROWSER_PACKAGES", packages.trim());
        let said = node.stderr(Stdio::inherit()).output()?;
        if !said.status.success() {
            return Err(format!("the pages of {tasks} tasks could not be measured").into());
        }
        let mut table = Table::new(format!("First paint with {tasks} tasks, median of {times}"));
        for line in String::from_utf8(said.stdout)?.lines() {
            let seen: Value = serde_json::from_str(line)?;
            let (name, took) = (seen["name"].as_str().unwrap_or_default(), seen["ms"].as_f64());
            let took = took.ok_or("a page was never painted")?;
            table.below(name, GOAL, "ms", took, format!("{took:.0} ms"));
        }
        tables.push(table);
    }
    Ok(tables)
}
