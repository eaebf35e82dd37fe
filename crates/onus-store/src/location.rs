//! Where a store is: the address that says so, and opening whichever database is there.

use crate::error::{Result, StoreError};
use crate::port::Driver;
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

    /// The same without a secret: what may be written into a file that others read.
    pub fn public_url(&self) -> String {
        match self {
            Location::Database(address) => address.public_url(),
            Location::File(_) | Location::Server(_) => self.url().to_string_lossy().into_owned(),
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
    pub fn open(&self, clock: fn() -> Now) -> Result<Box<dyn Driver>> {
        self.open_with(&Options::one_shot(clock))
    }

    /// Opens the store that is there, to stay.
    pub fn open_to_stay(&self, clock: fn() -> Now) -> Result<Box<dyn Driver>> {
        self.open_with(&Options::staying(clock))
    }

    fn open_with(&self, options: &Options) -> Result<Box<dyn Driver>> {
        match self {
            Location::File(path) => Sqlite::open(path, options).map(boxed),
            Location::Database(address) => Postgres::open(address).map(boxed),
            Location::Server(_) => Err(StoreError::Elsewhere),
        }
    }

    /// Opens the store, making it first where there is none.
    pub fn create(&self, clock: fn() -> Now) -> Result<Box<dyn Driver>> {
        match self {
            Location::File(path) => Sqlite::create(path, &Options::one_shot(clock)).map(boxed),
            Location::Database(address) => Postgres::create(address).map(boxed),
            Location::Server(_) => Err(StoreError::Elsewhere),
        }
    }
}

fn boxed(store: impl Driver + 'static) -> Box<dyn Driver> {
    Box::new(store)
}
