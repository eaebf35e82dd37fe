//! One worker of a drain that stays: it opens the store once and claims through the same code as the command line,
//! as a supervisor or a server does. What remains beside the bare statement is the rules, the ledger and the session.

use crate::measure::Outcome;
use onus_app::Onus;
use onus_app::submit::Target;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::id::{Handle, RequestId, WorkstationName};
use onus_core::settings::Settings;
use onus_core::text::Text;
use onus_store::read::queue::Filter;
use onus_store::sqlite::{Options, Sqlite};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The hidden first word that makes the runner a worker.
pub(crate) const WORD: &str = "drain-worker";

/// Claims and completes until nothing is ready, then prints how many and the longest wait for a claim, in microseconds.
pub(crate) fn run(words: &[String]) -> Outcome<()> {
    let [store, handle, workstation] = words else {
        return Err(format!("{WORD} STORE HANDLE WORKSTATION").into());
    };
    let path = Path::new(store);
    let options = Options::staying(onus_host::clock::now);
    let mut onus = Onus {
        store: Box::new(Sqlite::open(path, &options)?),
        settings: Settings::default(),
        path: path.to_owned(),
        place: onus_host::repository::find(path.parent().unwrap_or(path))?,
        sight: onus_app::Sight::Workstations,
        bearer: None,
    };
    let actor: Handle = handle.parse()?;
    let workstation: WorkstationName = workstation.parse()?;

    let (mut count, mut longest) = (0_u64, Duration::ZERO);
    loop {
        let claim = Command::Claim {
            workstation: Some(workstation.clone()),
            here: None,
            assignee: None,
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        };
        let mut envelope = Envelope {
            request: request(&actor, count, "claim")?,
            actor: Some(actor.clone()),
            token: None,
            task: None,
            project: None,
            base: None,
            command: claim,
        };
        let began = Instant::now();
        let claimed = onus.submit(&envelope, &Target::Next(Filter::default()));
        longest = longest.max(began.elapsed());
        let receipt = match claimed {
            Ok(receipt) => receipt,
            Err(refusal) if refusal.code == Code::NothingReady => break,
            Err(refusal) => return Err(refusal.into()),
        };
        envelope.request = request(&actor, count, "complete")?;
        envelope.token = receipt.token;
        envelope.task = Some(receipt.task.id);
        envelope.command = Command::Complete {
            resolution: Some(Text::new("done".to_owned())),
            root_cause: None,
            warrant: Warrant::Ordinary,
            proof: onus_core::evidence::Proof::default(),
        };
        onus.submit(&envelope, &Target::Named)?;
        count += 1;
    }
    Ok(writeln!(std::io::stdout(), "{count} {}", longest.as_micros())?)
}

fn request(actor: &Handle, count: u64, verb: &str) -> Result<RequestId, String> {
    format!("{actor}-{count}-{verb}").parse()
}
