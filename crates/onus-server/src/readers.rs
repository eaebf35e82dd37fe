//! A few threads that ask the store. Each has its own connection, so that questions wait neither for each other nor for
//! the writer.

use crate::store::{Open, Store, is_lost, reopen};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// So many questions may wait; the next one is told to come back.
const WAITING: usize = 4_096;

/// Says whether the connection must be replaced.
type Job = Box<dyn FnOnce(&mut Store) -> bool + Send>;

#[derive(Debug)]
pub struct Readers {
    line: Arc<Line>,
    threads: Vec<JoinHandle<()>>,
}

/// Questions that wait. One that comes wakes one thread, and no other.
#[derive(Default)]
struct Line {
    waiting: Mutex<Waiting>,
    come: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, job: Job) -> Result<(), Refusal> {
        let mut waiting = self.waiting();
        if waiting.jobs.len() >= WAITING {
            return Err(busy("too many questions wait already"));
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.come.notify_one();
        Ok(())
    }

    /// The next question; none when there will never be one again.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.come.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.waiting().is_closed = true;
        self.come.notify_all();
    }
}

impl Readers {
    pub fn start(open: &Open, count: usize) -> Result<Readers, Refusal> {
        let line = Arc::new(Line::default());
        let mut threads = Vec::with_capacity(count);
        for _ in 0..count {
            let (store, open, line) = (open()?, Arc::clone(open), Arc::clone(&line));
            threads.push(std::thread::spawn(move || answer(store, &open, &line)));
        }
        Ok(Readers { line, threads })
    }

    /// Runs `question` on one of the threads.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Store) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.line.join(Box::new(move |store| {
            let answer = question(store);
            let lost = is_lost(&answer);
            // Whoever asked may have gone.
            drop(reply.send(answer));
            lost
        }))?;
        answer.await.unwrap_or_else(|_| Err(busy("the server is shutting down")))
    }

    /// Answers what waits, then ends the threads.
    pub fn finish(self) {
        self.line.close();
        for thread in self.threads {
            drop(thread.join());
        }
    }
}

fn answer(mut store: Store, open: &Open, line: &Line) {
    while let Some(job) = line.next() {
        if job(&mut store) {
            reopen(&mut store, open);
        }
    }
}

pub(crate) fn busy(detail: &str) -> Refusal {
    Refusal::new(Code::StoreBusy, detail).hint("try again")
}
