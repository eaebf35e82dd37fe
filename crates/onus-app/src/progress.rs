//! Long work says how far it is; the front end decides how that looks.

/// Told about long work as it goes on.
pub trait Progress {
    /// Work of `total` steps begins; `None` when nobody knows how many.
    fn begin(&mut self, what: &str, total: Option<u64>);

    /// `done` steps are behind us.
    fn at(&mut self, done: u64);

    fn end(&mut self);
}

/// For callers that do not watch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: &str, _: Option<u64>) {}
    fn at(&mut self, _: u64) {}
    fn end(&mut self) {}
}
