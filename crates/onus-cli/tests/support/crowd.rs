//! Many callers that begin together.

use super::Agent;
use std::sync::Barrier;

/// Each caller acts in a thread of its own, none before all are there; `act` is told which caller it is.
pub(crate) fn in_parallel<T: Send>(
    bearers: &[(Agent, String)],
    act: impl Fn(usize, &Agent, &str) -> T + Sync,
) -> Vec<T> {
    let start = Barrier::new(bearers.len());
    std::thread::scope(|scope| {
        let run = |(n, (agent, token)): (usize, &(Agent, String))| {
            let (agent, token) = (agent.clone(), token.clone());
            let (start, act) = (&start, &act);
            scope.spawn(move || {
                start.wait();
                act(n, &agent, &token)
            })
        };
        let threads: Vec<_> = bearers.iter().enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
