//! A store behind a server, as a driver: it runs no transaction, and says who can be asked instead.

use crate::error::{Result, StoreError};
use crate::port::{Backend, Driver, Ending, RemoteStore, Tx};

/// Whatever needs a transaction is refused: whole calls travel instead.
#[derive(Debug)]
pub struct Elsewhere(pub Box<dyn RemoteStore>);

impl Driver for Elsewhere {
    fn shown(&self) -> String {
        "a server".to_owned()
    }

    fn backend(&mut self) -> Backend<'_> {
        Backend::Remote(self.0.as_mut())
    }

    fn view(&mut self, _: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        Err(StoreError::Elsewhere)
    }

    fn change(&mut self, _: &mut dyn FnMut(&mut dyn Tx) -> Ending) -> Result<()> {
        Err(StoreError::Elsewhere)
    }
}
