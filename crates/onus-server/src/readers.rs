//! A few threads that ask the store. Each has its own connection, so that questions wait neither for each other nor for
//! the writer.

use crate::store::{Open, Store, is_lost, reopen};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// So many questions may wait; the next one is told to come back.
const WAITING: usize = 4_096;

/// Says whether the connection must be replaced.
type Job = Box<dyn FnOnce(&mut Store) -> bool + Send>;

#[derive(Debug)]
pub struct Readers {
    jobs: SyncSender<Job>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub fn start(open: &Open, count: usize) -> Result<Readers, Refusal> {
        let (jobs, queue) = sync_channel(WAITING);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(count);
        for _ in 0..count {
            let (store, open, queue) = (open()?, Arc::clone(open), Arc::clone(&queue));
            threads.push(std::thread::spawn(move || answer(store, &open, &queue)));
        }
        Ok(Readers { jobs, threads })
    }

    /// Runs `question` on one of the threads.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Store) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |store| {
            let answer = question(store);
            let lost = is_lost(&answer);
            // Whoever asked may have gone.
            drop(reply.send(answer));
            lost
        });
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => busy("too many questions wait already"),
            TrySendError::Disconnected(_) => busy("the server is shutting down"),
        })?;
        answer.await.unwrap_or_else(|_| Err(busy("the server is shutting down")))
    }

    /// Answers what waits, then ends the threads.
    pub fn finish(self) {
        drop(self.jobs);
        for thread in self.threads {
            drop(thread.join());
        }
    }
}

fn answer(mut store: Store, open: &Open, queue: &Mutex<Receiver<Job>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if job(&mut store) {
            reopen(&mut store, open);
        }
    }
}

pub(crate) fn busy(detail: &str) -> Refusal {
    Refusal::new(Code::StoreBusy, detail).hint("try again")
}
