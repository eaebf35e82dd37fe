//! The real store that a run goes against, in a place of its own.

use super::clock::{Clock, Clocks};
use super::fault::{Faults, Faulty};
use super::seeded_bugs::SeededBug;
use super::team;
use onus_app::{Onus, Sight};
use onus_core::identity_map::FILE;
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::time::Now;
use onus_store::location::Location;
use onus_testkit::Cluster;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// A process's way to the store.
#[derive(Debug)]
pub(super) struct Seat {
    onus: Onus,
    pub faults: Faults,
}

impl Deref for Seat {
    type Target = Onus;

    fn deref(&self) -> &Onus {
        &self.onus
    }
}

impl DerefMut for Seat {
    fn deref_mut(&mut self) -> &mut Onus {
        &mut self.onus
    }
}

/// In which database a run is.
#[derive(Debug, Clone)]
pub enum Kind {
    Sqlite,
    /// At this address; every run gets a workspace of its own.
    Postgres(String),
}

impl Kind {
    /// `sqlite` or `postgres`; for the latter a server is started. None where it is not installed.
    pub fn named(name: &str) -> Option<Kind> {
        match name {
            "sqlite" => Some(Kind::Sqlite),
            "postgres" => Cluster::shared().map(|cluster| Kind::Postgres(cluster.database())),
            _ => None,
        }
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Kind::Sqlite => "sqlite",
            Kind::Postgres(_) => "postgres",
        }
    }
}

#[derive(Debug)]
pub(super) struct Site {
    directory: TempDir,
    location: Location,
    pub clock: Clock,
    plant: SeededBug,
}

/// The store's own clock is never asked: every seat has the simulation's in front of it.
fn no_clock() -> Now {
    Clock::new(Clocks::Hosts).now()
}

/// Crashes are the simulation's own, so memory serves where there is some: a sync costs nothing there.
pub(crate) fn room() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

impl Site {
    /// A new store with the team in it.
    pub(super) fn new(kind: &Kind, plant: SeededBug) -> Result<Site, Refusal> {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let unusable = |error: std::io::Error| Refusal::invalid(error.to_string());
        let directory = tempfile::Builder::new().prefix("onus-sim-").tempdir_in(room()).map_err(unusable)?;
        let here = directory.path().canonicalize().map_err(unusable)?;
        let (location, clocks) = match kind {
            Kind::Sqlite => (Location::File(here.join(".onus/onus.db")), Clocks::Hosts),
            Kind::Postgres(url) => {
                let run = RUNS.fetch_add(1, Ordering::Relaxed);
                let url = format!("{url}?workspace=run-{run}");
                (Location::parse(&url, &here).map_err(Refusal::invalid)?, Clocks::Server)
            }
        };
        drop(location.create(no_clock)?);
        let site = Site { directory, location, clock: Clock::new(clocks), plant };
        site.set_map(0)?;
        team::found(&mut *site.seat()?)?;
        Ok(site)
    }

    /// A process comes and opens the store.
    pub(super) fn seat(&self) -> Result<Seat, Refusal> {
        self.opened(self.plant)
    }

    /// A connection past everything that is planted or fails.
    pub(super) fn witness(&self) -> Result<Seat, Refusal> {
        self.opened(SeededBug::None)
    }

    fn opened(&self, bug: SeededBug) -> Result<Seat, Refusal> {
        let faults = Faults::default();
        let store = Faulty::new(self.location.open(no_clock)?, self.clock.clone(), bug, faults.clone());
        let onus = Onus {
            store: Box::new(store),
            settings: Settings::default(),
            path: self.directory.path().join(".onus/onus.db"),
            place: onus_host::repository::find(self.directory.path())?,
            sight: Sight::Store,
            bearer: None,
        };
        Ok(Seat { onus, faults })
    }

    pub(super) const fn plant(&self) -> SeededBug {
        self.plant
    }

    pub(super) fn set_map(&self, n: usize) -> Result<(), Refusal> {
        let file = self.directory.path().join(FILE);
        let written = match team::map(n) {
            Some(text) => std::fs::write(file, text),
            None if file.exists() => std::fs::remove_file(file),
            None => Ok(()),
        };
        written.map_err(|error| Refusal::invalid(error.to_string()))
    }
}
