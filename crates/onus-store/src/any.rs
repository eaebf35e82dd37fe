//! Whichever database a store is in, and the address that says so.

use crate::error::{Result, StoreError};
use crate::port::{Far, Outcome, Store, Tx};
use crate::postgres::{Address, Postgres};
use crate::sqlite::{Options, Sqlite};
use onus_core::id::shown;
use onus_core::time::Now;
use std::path::{Path, PathBuf};

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Location {
    File(PathBuf),
    Database(Box<Address>),
    /// Behind a server, at this URL.
    Server(String),
}

impl Location {
    /// Reads `sqlite:PATH` (relative to `here`), `postgres://…` or `https://…`.
    pub fn parse(url: &str, here: &Path) -> std::result::Result<Location, String> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Location::File(here.join(path))),
            Some(("postgres" | "postgresql", _)) => {
                Address::parse(url).map(|address| Location::Database(Box::new(address)))
            }
            Some(("http" | "https", _)) => Ok(Location::Server(url.to_owned())),
            _ => Err(format!("{} is not a store", shown(url))),
        }
    }

    /// What another program is given to find the same store. May contain a password.
    pub fn url(&self) -> std::ffi::OsString {
        match self {
            Location::File(path) => {
                let mut url = std::ffi::OsString::from("sqlite:");
                url.push(path);
                url
            }
            Location::Database(address) => address.url().into(),
            Location::Server(url) => url.into(),
        }
    }

    /// What people may see.
    pub fn shown(&self) -> String {
        match self {
            Location::File(path) => path.display().to_string(),
            Location::Database(address) => address.to_string(),
            Location::Server(url) => url.clone(),
        }
    }

    /// Opens the store that is there, for one call.
    pub fn open(&self, clock: fn() -> Now) -> Result<Any> {
        self.open_with(&Options::one_shot(clock))
    }

    /// Opens the store that is there, to stay.
    pub fn open_to_stay(&self, clock: fn() -> Now) -> Result<Any> {
        self.open_with(&Options::staying(clock))
    }

    fn open_with(&self, options: &Options) -> Result<Any> {
        match self {
            Location::File(path) => Sqlite::open(path, options).map(Any::Sqlite),
            Location::Database(address) => {
                Postgres::open(address).map(|store| Any::Postgres(Box::new(store)))
            }
            Location::Server(_) => Err(StoreError::Elsewhere),
        }
    }

    /// Opens the store, making it first where there is none.
    pub fn create(&self, clock: fn() -> Now) -> Result<Any> {
        match self {
            Location::File(path) => Sqlite::create(path, &Options::one_shot(clock)).map(Any::Sqlite),
            Location::Database(address) => {
                Postgres::create(address).map(|store| Any::Postgres(Box::new(store)))
            }
            Location::Server(_) => Err(StoreError::Elsewhere),
        }
    }
}

/// A store in whichever database.
#[derive(Debug)]
pub enum Any {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
    /// Only a server reaches it.
    Server(Box<dyn Far>),
}

impl Any {
    /// For a call that is over with its process: the system closes the file, quicker than SQLite, which takes its memory
    /// apart first. What was committed is on disk, and the log is left to the next call either way.
    pub fn leave(self) {
        match self {
            Any::Sqlite(store) => std::mem::forget(store),
            // A server is told that its caller is gone.
            Any::Postgres(_) | Any::Server(_) => {}
        }
    }
}

impl Store for Any {
    fn shown(&self) -> String {
        match self {
            Any::Sqlite(store) => store.shown(),
            Any::Postgres(store) => store.shown(),
            Any::Server(_) => "a server".to_owned(),
        }
    }

    fn far(&mut self) -> Option<&mut dyn Far> {
        match self {
            Any::Sqlite(_) | Any::Postgres(_) => None,
            Any::Server(far) => Some(far.as_mut()),
        }
    }

    fn read<T>(&mut self, work: impl FnOnce(&mut dyn Tx) -> Result<T>) -> Result<T> {
        match self {
            Any::Sqlite(store) => store.read(work),
            Any::Postgres(store) => store.read(work),
            Any::Server(_) => Err(StoreError::Elsewhere),
        }
    }

    fn glance<T>(&mut self, work: impl Fn(&mut dyn Tx) -> Result<T>) -> Result<T> {
        match self {
            Any::Sqlite(store) => store.glance(work),
            Any::Postgres(store) => store.glance(work),
            Any::Server(_) => Err(StoreError::Elsewhere),
        }
    }

    fn write<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut dyn Tx) -> std::result::Result<Outcome<T>, E>,
    ) -> std::result::Result<T, E> {
        match self {
            Any::Sqlite(store) => store.write(work),
            Any::Postgres(store) => store.write(work),
            Any::Server(_) => Err(StoreError::Elsewhere.into()),
        }
    }
}
