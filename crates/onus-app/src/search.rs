//! Tasks by the words in them.

use crate::Onus;
use crate::queue::{BYTES, LIMIT_MAX};
use crate::remote::calls;
use crate::view::{ListView, TaskView};
use onus_core::id::{Seq, TaskId};
use onus_core::refusal::Refusal;
use onus_core::search::sought;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store};
use onus_store::read::queue::{self, Filter, Which};
use onus_store::{load, word_index};

impl Onus {
    /// Tasks in which all words are found: in title, labels, body, origin or notes.
    pub fn find(
        &mut self,
        text: &str,
        which: Which,
        filter: &Filter,
        limit: i64,
    ) -> Result<ListView, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::Find { text: text.to_owned(), which, filter: filter.clone(), limit })?
        {
            return Ok(answer);
        }
        let sought = sought(text);
        if sought.is_empty() {
            return Err(Refusal::invalid(
                "a search needs a word: letters or digits, other than “the” or “of”",
            ));
        }
        self.index_words()?;
        let limit = limit.clamp(1, LIMIT_MAX);
        let tasks = self.ask(|tx| {
            let mut found: Vec<TaskId> = Vec::new();
            queue::search(tx, &sought, which, filter, limit, &mut |passing| {
                found.push(passing.id.parse().map_err(StoreError::Corrupt)?);
                Ok(())
            })?;
            let (mut tasks, mut bytes) = (Vec::new(), 0);
            for id in &found {
                // Who finds so much asks for too little: more words find what is meant.
                if bytes > BYTES {
                    break;
                }
                let Some(stored) = load::task(tx, id)? else { continue };
                bytes += stored.task.bytes();
                tasks.push(stored.task);
            }
            Ok(tasks)
        })?;
        Ok(ListView { tasks: tasks.iter().map(TaskView::from).collect(), next: None })
    }

    /// How many entries of the record the index of words does not know.
    pub fn words_behind(&mut self) -> Result<Seq, Refusal> {
        self.ask(word_index::behind)
    }

    /// Brings the index of words up to date: a search finds what was said before it. Short transactions, one after the other.
    pub fn index_words(&mut self) -> Result<(), Refusal> {
        let mut left = self.words_behind()?;
        while left > 0 {
            left = self.store.write(|tx| Ok::<_, StoreError>(Outcome::Commit(word_index::catch_up(tx)?)))?;
        }
        Ok(())
    }
}
