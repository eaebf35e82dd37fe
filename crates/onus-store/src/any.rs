//! Whichever database a store is in, and the address that says so.

use crate::error::{Result, StoreError};
use crate::port::{Outcome, Store, Tx};
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
}

impl Location {
    /// Reads `sqlite:PATH` (relative to `here`) or `postgres://…`.
    pub fn parse(url: &str, here: &Path) -> std::result::Result<Location, String> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Location::File(here.join(path))),
            Some(("postgres" | "postgresql", _)) => {
                Address::parse(url).map(|address| Location::Database(Box::new(address)))
            }
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
        }
    }

    /// What people may see.
    pub fn shown(&self) -> String {
        match self {
            Location::File(path) => path.display().to_string(),
            Location::Database(address) => address.to_string(),
        }
    }

    /// Opens the store that is there.
    pub fn open(&self, clock: fn() -> Now) -> Result<Any> {
        match self {
            Location::File(path) => Sqlite::open(path, &Options::one_shot(clock)).map(Any::Sqlite),
            Location::Database(address) => {
                Postgres::open(address).map(|store| Any::Postgres(Box::new(store)))
            }
        }
    }

    /// Opens the store, making it first where there is none.
    pub fn create(&self, clock: fn() -> Now) -> Result<Any> {
        match self {
            Location::File(path) => Sqlite::create(path, &Options::one_shot(clock)).map(Any::Sqlite),
            Location::Database(address) => {
                Postgres::create(address).map(|store| Any::Postgres(Box::new(store)))
            }
        }
    }
}

/// A store in whichever database.
#[derive(Debug)]
pub enum Any {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store for Any {
    fn shown(&self) -> String {
        match self {
            Any::Sqlite(store) => store.shown(),
            Any::Postgres(store) => store.shown(),
        }
    }

    fn read<T>(&mut self, work: impl FnOnce(&mut dyn Tx) -> Result<T>) -> Result<T> {
        match self {
            Any::Sqlite(store) => store.read(work),
            Any::Postgres(store) => store.read(work),
        }
    }

    fn write<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut dyn Tx) -> std::result::Result<Outcome<T>, E>,
    ) -> std::result::Result<T, E> {
        match self {
            Any::Sqlite(store) => store.write(work),
            Any::Postgres(store) => store.write(work),
        }
    }
}
