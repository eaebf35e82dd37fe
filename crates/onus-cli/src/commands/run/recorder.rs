//! What a supervised command prints: passed on as it comes, and kept without control sequences and secrets.

use super::lease::GrantedLease;
use crate::context::{Store, World};
use crate::output::Output;
use onus_app::limits::LimitView;
use onus_app::usage::Reporter;
use onus_app::usage::stream::StreamUsage;
use onus_core::output::{Plain, Redactor, is_secret_name};
use onus_core::refusal::Refusal;
use onus_core::session::Usage;
use onus_core::settings::RunSettings;
use onus_host::env::secret_values;
use onus_host::supervise::{OutputPipes, Pulse};
use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a line waits for more before it is kept: somebody may be watching.
const WAIT: Duration = Duration::from_millis(80);
/// The bytes of a piece, unless little is kept at all.
const PIECE: usize = 16_384;
/// So much waits in memory for a store that does not answer; what comes behind it is not kept.
const WAITING_MAX: usize = 1_048_576;
/// How long what is still open is read, and a store that does not answer is asked, when the command has ended.
const DRAIN: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads both outputs of a command to their ends.
#[derive(Debug)]
pub(super) struct Recorder {
    keeper: JoinHandle<(Result<(), Refusal>, Vec<Usage>)>,
    done: Receiver<()>,
    stop: Sender<Heard>,
}

/// What the keeper hears.
#[derive(Debug)]
enum Heard {
    Out(Vec<u8>),
    Err(Vec<u8>),
    /// An output has come to its end.
    End,
    /// What is still open is not waited for.
    Enough,
}

impl Recorder {
    pub(super) fn start(
        world: &World,
        held: &GrantedLease,
        settings: &RunSettings,
        secrets: Vec<String>,
        (is_watched, stream): (bool, StreamUsage),
        nudge: Sender<()>,
    ) -> io::Result<(Recorder, OutputPipes)> {
        let (out, stdout) = io::pipe()?;
        let (err, stderr) = io::pipe()?;
        let pulse = Arc::new(Pulse::default());
        let (tell, heard) = channel();
        let own = |own: Box<dyn Write + Send>| if is_watched { own } else { Box::new(io::sink()) };
        pass_on(out, own(Box::new(io::stdout())), Heard::Out, tell.clone(), Arc::clone(&pulse))?;
        pass_on(err, own(Box::new(io::stderr())), Heard::Err, tell.clone(), Arc::clone(&pulse))?;
        let (ended, done) = channel();
        let piece = PIECE.min((settings.keep as usize / 8).max(1_024));
        let mut keeper = Keeper {
            world: world.clone(),
            held: held.clone(),
            store: None,
            piece,
            position: 0,
            waiting: String::new(),
            lost: 0,
            streams: [Stream::new(&secrets), Stream::new(&secrets)],
            begun: None,
            usage: UsageTeller::new(stream, nudge),
        };
        let keeper = std::thread::Builder::new().name("output".into()).spawn(move || {
            let kept = keeper.run(&heard);
            drop(ended);
            (kept, keeper.usage.stream.usages())
        })?;
        let silence = settings.silence.and_then(|most| u64::try_from(most.0).ok()).map(Duration::from_millis);
        Ok((Recorder { keeper, done, stop: tell }, OutputPipes { stdout, stderr, pulse, silence }))
    }

    /// The command has ended: keeps the rest and puts the digest on record. What goes wrong here takes nothing from the task.
    pub(super) fn finish(self, world: &World, out: &Output, held: &GrantedLease) {
        if matches!(self.done.recv_timeout(DRAIN), Err(RecvTimeoutError::Timeout)) {
            // Something that left the group keeps it open.
            let _ = self.stop.send(Heard::Enough);
        }
        let (kept, used) = self.keeper.join().unwrap_or((Ok(()), Vec::new()));
        let closed = kept.and_then(|()| {
            let request = world.another_request()?;
            world.open()?.close_output(request, &held.worker, &held.task, held.session)
        });
        if let Err(refusal) = closed {
            out.warn(&format!("not all of the output is kept: {refusal}"));
        }
        for usage in used {
            if let Err(refusal) = report(world, held, usage) {
                out.warn(&format!("what it used up is not on record: {refusal}"));
            }
        }
    }
}

fn report(world: &World, held: &GrantedLease, usage: Usage) -> Result<(), Refusal> {
    report_to(&mut world.open()?, world, held, usage)
}

/// In the worker's own name, for the session that the command worked in.
fn report_to(store: &mut Store, world: &World, held: &GrantedLease, usage: Usage) -> Result<(), Refusal> {
    let request = world.another_request()?;
    let reporter = Reporter { request: &request, actor: Some(&held.worker), task: &held.task, worker: None };
    store.report_usage(&reporter, Some(held.session), usage).map(drop)
}

/// Reads one output and writes it where it would have gone without us.
fn pass_on(
    mut from: PipeReader,
    mut to: impl Write + Send + 'static,
    wrap: fn(Vec<u8>) -> Heard,
    tell: Sender<Heard>,
    pulse: Arc<Pulse>,
) -> io::Result<()> {
    let read = move || {
        let mut buffer = vec![0; 16_384];
        let mut is_wanted = true;
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            pulse.beat();
            // Nobody reads it any more; it is still kept.
            is_wanted = is_wanted && to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_ok();
            if tell.send(wrap(buffer[..count].to_vec())).is_err() {
                break;
            }
        }
        let _ = tell.send(Heard::End);
    };
    std::thread::Builder::new().name("output".into()).spawn(read).map(drop)
}

/// One of the two outputs, on its way to be kept.
struct Stream {
    plain: Plain,
    redactor: Redactor,
    /// The beginning of a line: the other output must not tear it.
    line: String,
}

/// A longer line is kept in parts.
const LINE_MAX: usize = 262_144;

impl Stream {
    fn new(secrets: &[String]) -> Stream {
        let redactor = Redactor::new(secrets.iter().cloned());
        Stream { plain: Plain::default(), redactor, line: String::new() }
    }

    /// The lines that are whole.
    fn push(&mut self, bytes: &[u8]) -> String {
        let text = self.plain.push(bytes);
        self.line.push_str(&self.redactor.push(&text));
        let end = match self.line.rfind('\n') {
            Some(end) => end + 1,
            None if self.line.len() > LINE_MAX => self.line.len(),
            None => 0,
        };
        let rest = self.line.split_off(end);
        std::mem::replace(&mut self.line, rest)
    }

    /// Whether there is the beginning of a line that somebody may be watching: a prompt, dots of progress. A client's line
    /// is of use only whole, and one whose end may be a secret soon goes on.
    fn is_begun(&self) -> bool {
        !self.line.is_empty() && !self.line.starts_with('{') && !self.redactor.is_holding()
    }

    fn finish(&mut self) -> String {
        let text = self.plain.finish();
        let mut rest = std::mem::take(&mut self.line) + &self.redactor.push(&text);
        rest.push_str(&self.redactor.finish());
        rest
    }
}

struct Keeper {
    world: World,
    held: GrantedLease,
    /// Kept open: lines come often.
    store: Option<Store>,
    piece: usize,
    /// Where what waits begins.
    position: i64,
    waiting: String,
    /// Bytes that were not kept because the store did not answer.
    lost: usize,
    streams: [Stream; 2],
    /// The output whose line has begun and not ended in what was kept last.
    begun: Option<usize>,
    /// What a known client says that it used up.
    usage: UsageTeller,
}

/// Puts on record what a client has used up while it runs, and has the lease renewed where that reached a limit.
struct UsageTeller {
    stream: StreamUsage,
    began: Instant,
    told: Vec<Usage>,
    told_at: Option<Instant>,
    nudge: Sender<()>,
}

impl UsageTeller {
    fn new(stream: StreamUsage, nudge: Sender<()>) -> UsageTeller {
        UsageTeller { stream, began: Instant::now(), told: Vec::new(), told_at: None, nudge }
    }

    /// When there is something to tell: the longer it runs the less often, so that what is told late is a small part of the
    /// whole, and the record stays short.
    fn due(&self) -> Option<Instant> {
        if self.stream.usages() == self.told {
            return None;
        }
        let pause = (self.began.elapsed() / 30).max(Duration::from_secs(1));
        Some(self.told_at.map_or(self.began, |at| at + pause))
    }

    fn tell(&mut self, world: &World, held: &GrantedLease, store: &mut Store) -> Result<(), Refusal> {
        self.told_at = Some(Instant::now());
        let usages = self.stream.usages();
        for usage in usages.iter().filter(|usage| !self.told.contains(usage)) {
            report_to(store, world, held, usage.clone())?;
        }
        self.told = usages;
        if store.limits(Some(&held.task))?.limits.iter().any(LimitView::stops) {
            let _ = self.nudge.send(());
        }
        Ok(())
    }
}

impl Keeper {
    fn run(&mut self, heard: &Receiver<Heard>) -> Result<(), Refusal> {
        let (mut open, mut due): (u8, Option<Instant>) = (2, None);
        while open > 0 {
            let next = due.into_iter().chain(self.usage.due()).min();
            let wait = next
                .map_or(Duration::from_secs(3_600), |next| next.saturating_duration_since(Instant::now()));
            match heard.recv_timeout(wait) {
                Ok(Heard::Out(bytes)) => self.add(0, &bytes),
                Ok(Heard::Err(bytes)) => self.add(1, &bytes),
                Ok(Heard::End) => open -= 1,
                Ok(Heard::Enough) | Err(RecvTimeoutError::Disconnected) => open = 0,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.tell_usage();
            if self.waiting.is_empty() && !self.streams.iter().any(Stream::is_begun) {
                due = None;
                continue;
            }
            let at = *due.get_or_insert_with(|| Instant::now() + WAIT);
            if Instant::now() >= at || self.waiting.len() >= self.piece {
                due = None;
                self.show_begun();
                // One that does not answer is asked again with what comes next, and at the end.
                let _ = self.flush();
            }
        }
        for stream in 0..self.streams.len() {
            let rest = self.streams[stream].finish();
            self.tell(stream, &rest);
        }
        self.last_flush()
    }

    /// One that does not answer is asked again later, and at the end.
    fn tell_usage(&mut self) {
        if self.usage.due().is_none_or(|due| due > Instant::now()) {
            return;
        }
        let told = self.with_store(|keeper, store| keeper.usage.tell(&keeper.world, &keeper.held, store));
        if told.is_err() {
            self.store = None;
        }
    }

    fn with_store<T>(
        &mut self,
        work: impl FnOnce(&mut Keeper, &mut Store) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut store = match self.store.take() {
            Some(store) => store,
            None => self.world.open()?,
        };
        let done = work(self, &mut store);
        self.store = Some(store);
        done
    }

    fn add(&mut self, stream: usize, bytes: &[u8]) {
        let text = self.streams[stream].push(bytes);
        self.tell(stream, &text);
    }

    fn show_begun(&mut self) {
        for stream in 0..self.streams.len() {
            if self.streams[stream].is_begun() {
                let text = std::mem::take(&mut self.streams[stream].line);
                self.tell(stream, &text);
            }
        }
    }

    /// Puts text of one output behind what waits, on a line of its own.
    fn tell(&mut self, stream: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        if stream == 0 {
            self.usage.stream.push(text);
        }
        if self.begun.is_some_and(|begun| begun != stream) {
            self.wait_with("\n");
        }
        self.wait_with(text);
        self.begun = (!text.ends_with('\n')).then_some(stream);
    }

    fn wait_with(&mut self, text: &str) {
        if self.waiting.len() + text.len() > WAITING_MAX {
            self.lost += text.len();
            return;
        }
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            self.waiting.push_str(&format!("\n[{lost} bytes are lost: the store did not answer]\n"));
        }
        self.waiting.push_str(text);
    }

    /// The store may be away for a moment; the run does not wait for it for ever.
    fn last_flush(&mut self) -> Result<(), Refusal> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.flush() {
                Err(refusal) if refusal.code.exit_code() == 69 && Instant::now() < until => {
                    std::thread::sleep(WAIT);
                }
                flushed => return flushed,
            }
        }
    }

    fn flush(&mut self) -> Result<(), Refusal> {
        while !self.waiting.is_empty() {
            let end = self.waiting.floor_char_boundary(self.piece.min(self.waiting.len()));
            let kept = self.keep(end);
            if kept.is_err() {
                self.store = None;
            }
            kept?;
            self.position += i64::try_from(end).unwrap_or(0);
            self.waiting.drain(..end);
        }
        Ok(())
    }

    fn keep(&mut self, end: usize) -> Result<(), Refusal> {
        self.with_store(|keeper, store| {
            let text = &keeper.waiting[..end];
            store.keep_output(Some(&keeper.held.worker), keeper.held.session, keeper.position, text)
        })
    }
}

/// What must not be seen by anybody who reads the output: the lease, and what the environment keeps under a telling name.
pub(super) fn secrets(
    world: &World,
    held: &GrantedLease,
    environment: &[(&'static str, OsString)],
) -> Vec<String> {
    let lease = held.token.to_string();
    let mut all: Vec<String> = lease.rsplit('.').next().map(str::to_owned).into_iter().collect();
    all.extend(secret_values());
    let given = environment.iter().filter(|(name, _)| is_secret_name(name));
    all.extend(given.map(|(_, value)| value.to_string_lossy().into_owned()));
    all.extend(password(&world.location.url().to_string_lossy()));
    all
}

/// The password within an address.
fn password(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let (user, _) = rest.split_once('@')?;
    user.split_once(':').map(|(_, password)| password.to_owned())
}
