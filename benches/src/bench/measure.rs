//! One process, measured; and medians of interleaved repeats, because the machine is never quiet.

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4 as _;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// What one process cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
    /// Bytes.
    pub(crate) memory: u64,
}

/// Runs to the end with its output thrown away; a failed call would measure nothing.
pub(crate) fn cost(command: &mut Command) -> Outcome<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let used = command.spawn()?.wait4()?;
    let wall = began.elapsed();
    if !used.status.success() {
        return Err(format!("{command:?} failed: {}", explain(command)).into());
    }
    Ok(Cost { cpu: used.rusage.utime + used.rusage.stime, wall, memory: used.rusage.maxrss })
}

/// Why a measured call failed; it is run once more, with its words heard.
fn explain(command: &mut Command) -> String {
    match command.stderr(Stdio::piped()).output() {
        Ok(output) if output.status.success() => "the second attempt succeeded".to_owned(),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    }
}

/// Runs to the end and gives its standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Something that can do the call under measurement again and again.
pub(crate) struct Contender<'a> {
    /// The measured call of one repeat.
    pub(crate) call: Box<dyn FnMut(usize) -> Command + 'a>,
    /// Unmeasured: puts back what the call changed.
    pub(crate) after: Option<Box<dyn FnMut(usize) -> Command + 'a>>,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(call: impl FnMut(usize) -> Command + 'a) -> Contender<'a> {
        Contender { call: Box::new(call), after: None }
    }

    pub(crate) fn undone_by(mut self, after: impl FnMut(usize) -> Command + 'a) -> Contender<'a> {
        self.after = Some(Box::new(after));
        self
    }
}

/// The median cost of each contender. They take turns, so that whatever else the machine does meets all alike; the
/// first turns warm the caches and are not counted.
pub(crate) fn interleaved(contenders: &mut [Contender<'_>], repeats: usize) -> Outcome<Vec<Cost>> {
    const WARM: usize = 2;
    let mut costs = vec![Vec::with_capacity(repeats); contenders.len()];
    for turn in 0..repeats + WARM {
        for (contender, costs) in contenders.iter_mut().zip(&mut costs) {
            let cost = cost(&mut (contender.call)(turn))?;
            if turn >= WARM {
                costs.push(cost);
            }
            if let Some(after) = &mut contender.after {
                output(&mut after(turn))?;
            }
        }
    }
    Ok(costs.iter().map(|costs| median(costs)).collect())
}

fn median(costs: &[Cost]) -> Cost {
    fn middle<T: Ord + Copy + Default>(costs: &[Cost], of: fn(&Cost) -> T) -> T {
        let mut values: Vec<T> = costs.iter().map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    }
    Cost {
        cpu: middle(costs, |cost| cost.cpu),
        wall: middle(costs, |cost| cost.wall),
        // What must fit is the worst case, not the usual one.
        memory: costs.iter().map(|cost| cost.memory).max().unwrap_or_default(),
    }
}

/// The middle one of several figures.
pub(crate) fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-9)
}

pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
