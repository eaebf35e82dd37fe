//! Who looks at what: all that a page knows beside the store.

use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use onus_core::token::Principal;
use onus_core::worker::Worker;
use onus_store::load;
use onus_store::port::{Driver, Store, Tx};
use std::str::FromStr;

/// A request for a page.
#[derive(Debug, Clone)]
pub struct PageRequest {
    pub viewer: Viewer,
    /// As it stands in the address.
    pub path: String,
    params: Vec<(String, String)>,
    query: Vec<(String, String)>,
    /// What time it is where the store is.
    pub now: Timestamp,
}

/// Whom the page is drawn for.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub principal: Principal,
    /// The row of whom the token names; a service has none.
    pub worker: Option<Worker>,
}

impl Viewer {
    pub fn handle(&self) -> Option<&Handle> {
        self.worker.as_ref().map(|worker| &worker.handle)
    }

    /// What the page calls the viewer.
    pub fn name(&self) -> String {
        self.handle().map_or_else(|| self.principal.kind.name().to_owned(), ToString::to_string)
    }

    /// By whose clock the viewer's days begin.
    pub fn tz(&self) -> &str {
        self.worker.as_ref().map_or("UTC", |worker| worker.tz.as_str())
    }

    pub fn is_person(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_human)
    }
}

impl PageRequest {
    pub fn new(
        store: &mut dyn Driver,
        principal: Principal,
        path: &str,
        params: Vec<(String, String)>,
        query: Option<&str>,
    ) -> Result<PageRequest, Refusal> {
        let (worker, now) = store.read(|tx: &mut dyn Tx| {
            let worker = principal.worker.as_ref().map(|handle| load::worker(tx, handle)).transpose()?;
            Ok((worker.flatten(), tx.now()?.wall))
        })?;
        let query = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
        let path = path.to_owned();
        Ok(PageRequest { viewer: Viewer { principal, worker }, path, params, query, now })
    }

    /// A part of the path, such as the `id` of `/tasks/{id}`.
    pub fn param<T: FromStr<Err = String>>(&self, name: &str) -> Result<T, Refusal> {
        let found = self.params.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str()).parse().map_err(Refusal::invalid)
    }

    /// A word of the query; an empty one is none.
    pub fn word(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// A word of the query that must make sense.
    pub fn read<T: FromStr<Err = String>>(&self, name: &str) -> Result<Option<T>, Refusal> {
        self.word(name).map(str::parse).transpose().map_err(|why| Refusal::invalid(format!("{name}: {why}")))
    }

    /// The words of the query that say something.
    pub fn words(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query
            .iter()
            .map(|(key, value)| (key.as_str(), value.trim()))
            .filter(|(_, value)| !value.is_empty())
    }

    /// The address of this page with one word of its query changed, or left out.
    pub fn with(&self, name: &str, value: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (key, old) in self.query.iter().filter(|(key, old)| key != name && !old.is_empty()) {
            query.append_pair(key, old);
        }
        if let Some(value) = value {
            query.append_pair(name, value);
        }
        let query = query.finish();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }
}
