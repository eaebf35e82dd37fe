//! A number for every chain, so that the rest need not carry names.

use std::collections::HashMap;
use std::rc::Rc;

/// How far beyond the chains seen so far a table may reach: whatever a store contains, the tables stay in proportion to it.
const AHEAD: usize = 1_024;

/// Two questions for each of a million tasks: a name that ends in a number is looked up by it, in a table of its project.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<Rc<str>>,
    projects: Vec<Project>,
    by_key: HashMap<Rc<str>, usize>,
    /// The project that was asked for last; most stores have one.
    last: usize,
    /// The names that no table has.
    others: HashMap<Rc<str>, usize>,
}

#[derive(Debug)]
struct Project {
    key: Rc<str>,
    /// By the task's own number.
    numbers: Vec<Option<usize>>,
}

impl Names {
    pub(super) fn number(&mut self, name: &str) -> usize {
        let slot = slot(name).map(|(key, at)| (self.project(key), at));
        let in_table = slot.and_then(|(project, at)| *self.projects[project].numbers.get(at)?);
        if let Some(number) = in_table.or_else(|| self.others.get(name).copied()) {
            return number;
        }
        let (name, number): (Rc<str>, usize) = (name.into(), self.names.len());
        match slot.filter(|(_, at)| *at < 2 * number + AHEAD) {
            Some((project, at)) => {
                let numbers = &mut self.projects[project].numbers;
                numbers.resize(numbers.len().max(at + 1), None);
                numbers[at] = Some(number);
            }
            None => drop(self.others.insert(Rc::clone(&name), number)),
        }
        self.names.push(name);
        number
    }

    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", |name| name)
    }

    fn project(&mut self, key: &str) -> usize {
        if self.projects.get(self.last).is_some_and(|project| *project.key == *key) {
            return self.last;
        }
        self.last = match self.by_key.get(key) {
            Some(known) => *known,
            None => {
                let key: Rc<str> = key.into();
                self.by_key.insert(Rc::clone(&key), self.projects.len());
                self.projects.push(Project { key, numbers: Vec::new() });
                self.projects.len() - 1
            }
        };
        self.last
    }
}

/// A name's project and number. None where the two would not give the name back: `T-01` is not `T-1`.
fn slot(name: &str) -> Option<(&str, usize)> {
    let (key, digits) = name.rsplit_once('-')?;
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    Some((key, digits.parse().ok().filter(|_| is_plain)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_number_and_no_two_share_it() {
        let mut names = Names::default();
        // The one that is far away is asked for again when the table has come to where it would be.
        let far = format!("T-{}", AHEAD + 500);
        let odd = [
            "", "T-", "-1", "T-1", "T-01", "T-+1", "T-0", "T-00", "t-1", "T--1", "A-T-1", "T-1 ", "é-1",
            "T-1é",
        ];
        let huge = ["T-18446744073709551615", "T-18446744073709551616", "T-99999999999999999999"];
        let more: Vec<String> = (2..2_000).map(|n| format!("T-{n}")).filter(|name| *name != far).collect();
        let all: Vec<&str> =
            odd.into_iter().chain(huge).chain([&*far]).chain(more.iter().map(String::as_str)).collect();
        for round in 0..2 {
            for (number, name) in all.iter().enumerate() {
                assert_eq!(names.number(name), number, "{name} in round {round}");
                assert_eq!(names.name(number), *name);
            }
        }
        assert!(names.projects.iter().all(|project| project.numbers.len() < 2 * all.len() + AHEAD));
    }
}
