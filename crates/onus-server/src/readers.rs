//! A few threads that ask the store. Each has its own connection, so that questions wait neither for each other nor for
//! the writer.
//!
//! Callers take turns, however many questions each of them has waiting, and none has all the threads: whoever asks little is
//! answered soon. What takes long has threads of its own, on which each caller has one question at a time, until its answer is
//! sent. Whoever asks for much of what should be short is answered there as well.

use crate::allowance::Share;
use crate::processor_time::{ProcessorTime, thread_time};
use crate::store::{Open, Store, follow, is_lost, reopen};
use onus_app::followed_settings::FollowedSettings;
use onus_app::weight::Weight;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::oneshot;

/// So many questions may wait; the next one is told to come back.
const WAITING: usize = 4_096;

/// So many of one caller's.
const WAITING_EACH: usize = 1_024;

/// So many of one caller's that take long.
const HEAVY_EACH: usize = 16;

/// How many threads there are for what takes long: one more than a single caller can keep busy.
const HEAVY_THREADS: usize = 2;

/// How much what takes long gives way to everything else, where there are too few processors for both.
const GIVES_WAY: i32 = 10;

/// Says whether the connection must be replaced.
type Job = Box<dyn FnOnce(&mut Store, ReaderTurn) -> bool + Send>;

#[derive(Debug)]
pub struct Readers {
    light: Arc<QuestionQueue>,
    heavy: Arc<QuestionQueue>,
    /// What each caller has used of the processors for questions that should be short.
    spent: Arc<ProcessorTime>,
    threads: Vec<JoinHandle<()>>,
}

/// Questions that wait. One that comes wakes one thread, and no other.
struct QuestionQueue {
    waiting: Mutex<WaitingQuestion>,
    come: Condvar,
    /// So many questions of one caller are answered at the same time.
    at_once: usize,
}

/// A caller's question that is being answered; dropped, the caller's next one may be.
#[derive(Debug)]
pub(crate) struct ReaderTurn {
    line: Arc<QuestionQueue>,
    share: Share,
}

impl Drop for ReaderTurn {
    fn drop(&mut self) {
        self.line.answered(&self.share);
    }
}

#[derive(Default)]
struct WaitingQuestion {
    callers: HashMap<Share, Caller>,
    /// Everybody who has a question waiting; the next one is first.
    turns: VecDeque<Share>,
    count: usize,
    is_closed: bool,
}

#[derive(Default)]
struct Caller {
    jobs: VecDeque<Job>,
    /// How many of its questions are being answered.
    running: usize,
}

impl std::fmt::Debug for QuestionQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl QuestionQueue {
    fn new(at_once: usize) -> Arc<QuestionQueue> {
        Arc::new(QuestionQueue { waiting: Mutex::default(), come: Condvar::new(), at_once })
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingQuestion> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of one caller's questions so many may wait.
    fn join(&self, share: Share, waiting_each: usize, job: Job) -> Result<(), Refusal> {
        let mut waiting = self.waiting();
        if waiting.count >= WAITING {
            return Err(busy("too many questions wait already"));
        }
        let caller = waiting.callers.entry(share.clone()).or_default();
        if caller.jobs.len() >= waiting_each {
            let detail = format!("{} questions of this token wait already", caller.jobs.len());
            return Err(
                Refusal::new(Code::TooManyRequests, detail).hint("wait for the answers, then try again")
            );
        }
        caller.jobs.push_back(job);
        if caller.jobs.len() == 1 {
            waiting.turns.push_back(share);
        }
        waiting.count += 1;
        drop(waiting);
        self.come.notify_one();
        Ok(())
    }

    /// The next question, and whose it is; none when there will never be one again.
    fn next(&self) -> Option<(Share, Job)> {
        let mut waiting = self.waiting();
        loop {
            if let Some(found) = waiting.take(self.at_once) {
                return Some(found);
            }
            if waiting.is_closed && waiting.count == 0 {
                return None;
            }
            waiting = self.come.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A question was answered: another one of the same caller may have waited for it.
    fn answered(&self, share: &Share) {
        let mut waiting = self.waiting();
        if let Some(caller) = waiting.callers.get_mut(share) {
            caller.running = caller.running.saturating_sub(1);
            if caller.running == 0 && caller.jobs.is_empty() {
                waiting.callers.remove(share);
            }
        }
        let (is_over, is_any) = (waiting.is_closed && waiting.count == 0, waiting.count > 0);
        drop(waiting);
        if is_over {
            self.come.notify_all();
        } else if is_any {
            self.come.notify_one();
        }
    }

    fn close(&self) {
        self.waiting().is_closed = true;
        self.come.notify_all();
    }
}

impl WaitingQuestion {
    /// The first question of the next caller that has room for it.
    fn take(&mut self, at_once: usize) -> Option<(Share, Job)> {
        for _ in 0..self.turns.len() {
            let share = self.turns.pop_front()?;
            let Some(caller) = self.callers.get_mut(&share) else { continue };
            if caller.running >= at_once {
                self.turns.push_back(share);
                continue;
            }
            let Some(job) = caller.jobs.pop_front() else { continue };
            caller.running += 1;
            self.count -= 1;
            if !caller.jobs.is_empty() {
                self.turns.push_back(share.clone());
            }
            return Some((share, job));
        }
        None
    }
}

impl Readers {
    pub fn start(open: &Open, count: usize) -> Result<Readers, Refusal> {
        // One thread is left to the others, however much one caller asks.
        let light = QuestionQueue::new(count.saturating_sub(1).max(1));
        let heavy = QuestionQueue::new(1);
        let spent = Arc::new(ProcessorTime::default());
        let mut threads = Vec::with_capacity(count + HEAVY_THREADS);
        for line in std::iter::repeat_n(&light, count).chain(std::iter::repeat_n(&heavy, HEAVY_THREADS)) {
            let gives_way = Arc::ptr_eq(line, &heavy);
            let (store, open, line) = (open()?, Arc::clone(open), Arc::clone(line));
            let spent = (!gives_way).then(|| Arc::clone(&spent));
            threads.push(std::thread::spawn(move || {
                if gives_way {
                    // Linux counts this for the thread alone, and for those it starts. Without it all is only slower.
                    let _ = rustix::process::nice(GIVES_WAY);
                }
                answer(store, &open, &line, spent.as_deref());
            }));
        }
        Ok(Readers { light, heavy, spent, threads })
    }

    /// Runs `question` on one of the threads, when it is the caller's turn.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        share: &Share,
        weight: Weight,
        question: impl FnOnce(&mut Store) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.ask_with_turn(share, weight, question).await.map(|(answer, _)| answer)
    }

    /// The same, with the turn where it took long: as long as the caller keeps that it gets no other answer that does.
    pub(crate) async fn ask_with_turn<T: Send + 'static>(
        &self,
        share: &Share,
        weight: Weight,
        question: impl FnOnce(&mut Store) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<(T, Option<ReaderTurn>), Refusal> {
        let (reply, answer) = oneshot::channel();
        let (line, waiting_each) = match weight {
            Weight::Heavy => (&self.heavy, HEAVY_EACH),
            Weight::Light if self.spent.is_over(share, Instant::now()) => (&self.heavy, WAITING_EACH),
            Weight::Light => (&self.light, WAITING_EACH),
        };
        // Strangers have one turn together, which none of them may keep.
        let keeps = weight == Weight::Heavy && *share != Share::Strangers;
        let job = Box::new(move |store: &mut Store, turn: ReaderTurn| {
            // Nobody waits for the answer any more: what is only asked need not be looked up.
            if reply.is_closed() {
                return false;
            }
            let answer = question(store);
            let lost = is_lost(&answer);
            drop(reply.send(answer.map(|answer| (answer, keeps.then_some(turn)))));
            lost
        });
        line.join(share.clone(), waiting_each, job)?;
        answer.await.unwrap_or_else(|_| Err(busy("the server is shutting down")))
    }

    /// Answers what waits, then ends the threads.
    pub fn finish(self) {
        self.light.close();
        self.heavy.close();
        for thread in self.threads {
            drop(thread.join());
        }
    }
}

fn answer(mut store: Store, open: &Open, line: &Arc<QuestionQueue>, spent: Option<&ProcessorTime>) {
    let mut settings = FollowedSettings::of(&store);
    while let Some((share, job)) = line.next() {
        follow(&mut settings, &mut store);
        let began = thread_time();
        let turn = ReaderTurn { line: Arc::clone(line), share: share.clone() };
        let lost = job(&mut store, turn);
        if let Some(spent) = spent {
            spent.count(&share, thread_time().saturating_sub(began), Instant::now());
        }
        if lost {
            reopen(&mut store, open);
        }
    }
}

pub(crate) fn busy(detail: &str) -> Refusal {
    Refusal::new(Code::StoreBusy, detail).hint("try again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_app::{Onus, Sight};
    use onus_core::hash::Digest;
    use onus_core::settings::Settings;
    use onus_store::location::Location;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use tokio::task::JoinSet;

    fn readers(directory: &std::path::Path, count: usize) -> Readers {
        let path = directory.join("onus.db");
        drop(Location::File(path.clone()).create(onus_host::clock::now).unwrap());
        let open = move || {
            let store = Location::File(path.clone()).open(onus_host::clock::now)?;
            let place = onus_host::repository::find(path.parent().unwrap())?;
            Ok(Onus {
                store,
                settings: Settings::default(),
                path: path.clone(),
                place,
                sight: Sight::Store,
                bearer: None,
            })
        };
        Readers::start(&(Arc::new(open) as Open), count).unwrap()
    }

    fn bearer(n: u8) -> Share {
        Share::Bearer(Digest([n; 32]))
    }

    /// A question that says when it is asked, and is answered when it is told to.
    fn held(
        begun: &Sender<&'static str>,
        name: &'static str,
    ) -> (Sender<()>, impl FnOnce(&mut Store) -> Result<(), Refusal> + use<>) {
        let (go, wait): (Sender<()>, Receiver<()>) = channel();
        let begun = begun.clone();
        (go, move |_: &mut Store| {
            begun.send(name).unwrap();
            let _ = wait.recv();
            Ok(())
        })
    }

    /// Asks all of these at once; none is answered before `then` has seen who began.
    fn asked(
        readers: Readers,
        questions: &[(&'static str, u8, Weight)],
        then: impl FnOnce(&Receiver<&'static str>, &mut HashMap<&'static str, Sender<()>>) + Send,
    ) {
        let (begun, began) = channel();
        let (mut gates, readers) = (HashMap::new(), Arc::new(readers));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut asking = JoinSet::new();
        for (name, who, weight) in questions {
            let (go, question) = held(&begun, name);
            gates.insert(*name, go);
            let (readers, share, weight) = (Arc::clone(&readers), bearer(*who), *weight);
            let (joined, is_in) = channel();
            asking.spawn_on(
                async move {
                    let answer = readers.ask(&share, weight, question);
                    // Polled once, it stands in the line.
                    let mut answer = std::pin::pin!(answer);
                    let first = futures_util::poll!(answer.as_mut());
                    joined.send(()).unwrap();
                    match first {
                        std::task::Poll::Ready(answer) => answer.unwrap(),
                        std::task::Poll::Pending => answer.await.unwrap(),
                    }
                },
                runtime.handle(),
            );
            is_in.recv().unwrap();
        }
        then(&began, &mut gates);
        gates.clear();
        runtime.block_on(async { while asking.join_next().await.transpose().unwrap().is_some() {} });
        drop(runtime);
        Arc::into_inner(readers).unwrap().finish();
    }

    #[test]
    fn one_caller_never_has_all_the_threads() {
        let directory = tempfile::tempdir().unwrap();
        let all = [("a1", 1), ("a2", 1), ("a3", 1), ("a4", 1), ("a5", 1), ("b1", 2)];
        let all = all.map(|(name, who)| (name, who, Weight::Light));
        asked(readers(directory.path(), 4), &all, |began, gates| {
            let mut first: Vec<_> = (0..4).map(|_| began.recv().unwrap()).collect();
            first.sort_unstable();
            assert_eq!(first, ["a1", "a2", "a3", "b1"], "the fourth thread is left to the others");
            gates.remove("a1");
            assert_eq!(began.recv().unwrap(), "a4");
        });
    }

    #[test]
    fn what_takes_long_goes_one_by_one_and_stops_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let (light, heavy) = (Weight::Light, Weight::Heavy);
        let all = [("a1", 1, heavy), ("a2", 1, heavy), ("b1", 2, heavy), ("a3", 1, light), ("c1", 3, light)];
        asked(readers(directory.path(), 2), &all, |began, gates| {
            let mut first: Vec<_> = (0..4).map(|_| began.recv().unwrap()).collect();
            first.sort_unstable();
            assert_eq!(first, ["a1", "a3", "b1", "c1"]);
            assert!(began.try_recv().is_err(), "the second one of the same caller waits");
            gates.remove("a1");
            assert_eq!(began.recv().unwrap(), "a2");
        });
    }

    #[test]
    fn of_one_caller_so_many_are_answered_at_once() {
        let line = QuestionQueue::new(1);
        for _ in 0..2 {
            line.join(bearer(1), 8, Box::new(|_, _| false)).unwrap();
        }
        let (first, _) = line.next().unwrap();
        assert!(line.waiting().take(1).is_none(), "its second one waits");
        line.answered(&first);
        assert!(line.waiting().take(1).is_some_and(|(share, _)| share == bearer(1)));
    }

    #[test]
    fn a_caller_who_does_not_wait_for_answers_is_told_to() {
        let line = QuestionQueue::new(1);
        let join = |n| line.join(bearer(n), 2, Box::new(|_, _| false));
        join(1).unwrap();
        join(1).unwrap();
        assert_eq!(join(1).unwrap_err().code, Code::TooManyRequests);
        join(2).unwrap();
        let turns: Vec<Share> = (0..2).map(|_| line.next().unwrap().0).collect();
        assert_eq!(turns, [bearer(1), bearer(2)], "callers take turns");
    }

    #[test]
    fn an_answer_that_took_long_keeps_its_turn_until_it_is_sent() {
        let directory = tempfile::tempdir().unwrap();
        let readers = readers(directory.path(), 2);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let (light, heavy) = (Weight::Light, Weight::Heavy);
            let (one, other) = (bearer(1), bearer(2));
            let (_, turn) = readers.ask_with_turn(&one, heavy, |_| Ok(())).await.unwrap();
            let mut second = std::pin::pin!(readers.ask(&one, heavy, |_| Ok(2)));
            assert!(futures_util::poll!(second.as_mut()).is_pending());
            readers.ask(&other, heavy, |_| Ok(())).await.unwrap();
            readers.ask(&one, light, |_| Ok(())).await.unwrap();
            // Whoever has used much of what should be short stands in the same line.
            readers.spent.count(&one, std::time::Duration::from_secs(60), Instant::now());
            let mut third = std::pin::pin!(readers.ask(&one, light, |_| Ok(3)));
            assert!(futures_util::poll!(third.as_mut()).is_pending());
            readers.ask(&other, light, |_| Ok(())).await.unwrap();
            assert!(futures_util::poll!(second.as_mut()).is_pending());
            assert!(futures_util::poll!(third.as_mut()).is_pending());
            drop(turn.unwrap());
            assert_eq!((second.await.unwrap(), third.await.unwrap()), (2, 3));
            let (_, turn) = readers.ask_with_turn(&Share::Strangers, heavy, |_| Ok(())).await.unwrap();
            assert!(turn.is_none(), "strangers have one turn together");
        });
        readers.finish();
    }
}
