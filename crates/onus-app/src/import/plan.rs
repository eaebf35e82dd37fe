//! What each line becomes: an existing task, or a new one under which id and behind which others.

use super::UnresolvedView;
use super::file::{Complaints, File, shown_path};
use super::line::{ImportLine, Reference};
use onus_core::code::Code;
use onus_core::id::{OriginRef, ProjectKey, TaskId};
use onus_core::intake::{derived_origin, may_be_kept};
use onus_core::queue;
use onus_core::refusal::{Finding, Refusal};
use onus_store::port::Tx;
use onus_store::{bulk, load};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use uuid::Uuid;

/// How many lines of a circle are named.
const NAMED: usize = 10;

/// What becomes of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// The ask is a task already.
    Existing(TaskId),
    New(TaskId),
    /// The same ask stands on an earlier line of the file.
    Repeats(usize),
}

/// What a new line refers to.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) depends_on: BTreeSet<TaskId>,
    pub(super) parent: Option<TaskId>,
    /// The parent's place among the lines, when it is new as well.
    parent_line: Option<usize>,
}

/// The fates of all lines, and how they hang together.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fates: Vec<Fate>,
    pub(super) links: Vec<Links>,
    /// What lines of another system refer to and nobody has: it is kept with the line.
    pub(super) unresolved: Vec<UnresolvedView>,
    /// The highest number that each project will have given away.
    pub(super) numbers: BTreeMap<ProjectKey, i64>,
}

impl Plan {
    pub(super) fn id(&self, place: usize) -> &TaskId {
        match &self.fates[place] {
            Fate::Existing(id) | Fate::New(id) => id,
            Fate::Repeats(first) => self.id(*first),
        }
    }

    /// Whether what a line refers to matters: it is new, or another system's word on a task that is there.
    fn is_told(&self, place: usize, line: &ImportLine) -> bool {
        match &self.fates[place] {
            Fate::New(_) => true,
            Fate::Existing(_) => line.outside,
            Fate::Repeats(_) => false,
        }
    }

    /// The new lines in the order of the file, but parents before their children.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut placed = vec![false; self.fates.len()];
        let mut order = Vec::with_capacity(self.fates.len());
        for place in 0..self.fates.len() {
            if !matches!(self.fates[place], Fate::New(_)) {
                continue;
            }
            let mut ancestors = vec![place];
            while let Some(parent) = ancestors.last().and_then(|child| self.links[*child].parent_line)
                && !placed[parent]
            {
                ancestors.push(parent);
            }
            for ancestor in ancestors.into_iter().rev() {
                if !std::mem::replace(&mut placed[ancestor], true) {
                    order.push(ancestor);
                }
            }
        }
        order
    }
}

/// Where new ids come from when a line brings none that it can keep.
#[derive(Debug)]
pub(super) struct Numbers {
    last: BTreeMap<ProjectKey, i64>,
    home: ProjectKey,
}

impl Numbers {
    /// `wanted` is the project that the caller or the settings name; else the store's first one is home.
    pub(super) fn load(tx: &mut dyn Tx, wanted: Option<&ProjectKey>) -> Result<Numbers, Refusal> {
        let counters = bulk::counters(tx)?;
        let home = match wanted {
            Some(project) if counters.iter().any(|(key, _)| key == project) => project.clone(),
            Some(project) => {
                return Err(Refusal::new(Code::UnknownName, format!("there is no project {project}"))
                    .hint(format!("onus init --project {project}")));
            }
            None => counters.first().map(|(key, _)| key.clone()).ok_or_else(|| {
                Refusal::new(Code::UnknownName, "the store has no project").hint("onus init")
            })?,
        };
        Ok(Numbers { last: counters.into_iter().collect(), home })
    }

    fn keep(&mut self, id: &TaskId) {
        if let Some(last) = self.last.get_mut(&id.project) {
            *last = id.number.max(*last);
        }
    }

    fn next(&mut self) -> TaskId {
        let last = self.last.entry(self.home.clone()).or_default();
        *last += 1;
        TaskId { project: self.home.clone(), number: *last }
    }
}

/// Asks the store about the lines and decides what each becomes. Complaints go into the file's own.
pub(super) fn plan(tx: &mut dyn Tx, file: &mut File, mut numbers: Numbers) -> Result<Plan, Refusal> {
    let mut complaints = std::mem::take(&mut file.complaints);
    let names = Names::of(&file.lines, &mut complaints);
    let knows_nothing = bulk::is_empty(tx)?;
    let mut known: Vec<Option<Fate>> = Vec::with_capacity(file.lines.len());
    for (place, line) in file.lines.iter().enumerate() {
        let fate = match names.first_with_origin(line, place) {
            Some(first) => Some(Fate::Repeats(first)),
            None if knows_nothing => kept(line, &numbers),
            None => look_up(tx, line, &numbers)?,
        };
        if let Some(Fate::New(id)) = &fate {
            numbers.keep(id);
        }
        known.push(fate);
    }
    // Only now: an id that is given away must not be one that a later line keeps.
    let fates = known.into_iter().map(|fate| fate.unwrap_or_else(|| Fate::New(numbers.next()))).collect();
    let mut plan = Plan { fates, links: Vec::new(), unresolved: Vec::new(), numbers: numbers.last };
    let mut resolver = Resolver {
        file,
        names: &names,
        plan: &plan,
        complaints: &mut complaints,
        knows_nothing,
        unresolved: Vec::new(),
    };
    let links = resolver.links(tx)?;
    let unresolved = resolver.unresolved;
    plan.links = links;
    plan.unresolved = unresolved;
    file.complaints = complaints;
    Ok(plan)
}

/// Where the lines of a file are, by what they call themselves.
struct Names {
    ids: HashMap<TaskId, usize>,
    origins: HashMap<OriginRef, usize>,
}

impl Names {
    fn of(lines: &[ImportLine], complaints: &mut Complaints) -> Names {
        let mut names =
            Names { ids: HashMap::with_capacity(lines.len()), origins: HashMap::with_capacity(lines.len()) };
        let mut uids: HashSet<Uuid> = HashSet::new();
        for (place, line) in lines.iter().enumerate() {
            let repeated = line.spec.origin.as_ref().is_some_and(|origin| names.origins.contains_key(origin));
            if let Some(origin) = line.spec.origin.as_ref().filter(|_| !repeated) {
                names.origins.insert(origin.clone(), place);
            }
            if repeated {
                if let (true, Some(origin)) = (line.outside, &line.spec.origin) {
                    let first = names.origins.get(origin).map(|first| &lines[*first]);
                    let detail = match first.filter(|first| !first.place.is_empty()) {
                        Some(first) => format!("{origin} stands in {}, too", shown_path(&first.place)),
                        None => {
                            format!("{origin} stands on line {}, too", first.map_or(0, |first| first.number))
                        }
                    };
                    complaints.add_at(line.number, &line.place, Finding::new(Code::InvalidInput, detail));
                }
                continue;
            }
            if let Some(id) = &line.id
                && let Some(first) = names.ids.insert(id.clone(), place)
            {
                let detail = format!("{id} stands on line {}, too", lines[first].number);
                complaints.add(line.number, Finding::new(Code::InvalidInput, detail));
            }
            if let Some(uid) = line.uid
                && !uids.insert(uid)
            {
                complaints.add(
                    line.number,
                    Finding::new(Code::InvalidInput, format!("the uid {uid} stands on another line, too")),
                );
            }
        }
        names
    }

    fn first_with_origin(&self, line: &ImportLine, place: usize) -> Option<usize> {
        let first = *self.origins.get(line.spec.origin.as_ref()?)?;
        (first != place).then_some(first)
    }
}

/// What the store says about a line; `None` when it is new and needs an id.
fn look_up(tx: &mut dyn Tx, line: &ImportLine, numbers: &Numbers) -> Result<Option<Fate>, Refusal> {
    let origin = line.spec.origin.clone().or_else(|| derived_origin(line.id.as_ref(), line.uid));
    if let Some(origin) = origin
        && let Some(id) = load::task_by_origin(tx, &origin)?
    {
        return Ok(Some(Fate::Existing(id)));
    }
    let Some(id) = &line.id else {
        return Ok(None);
    };
    Ok(match bulk::uid(tx, id)? {
        Some(uid) if line.uid == Some(uid) => Some(Fate::Existing(id.clone())),
        Some(_) => None,
        None => kept(line, numbers),
    })
}

/// A line whose id nobody has keeps it, if its project is here.
fn kept(line: &ImportLine, numbers: &Numbers) -> Option<Fate> {
    let id = line.id.as_ref()?;
    (numbers.last.contains_key(&id.project) && may_be_kept(id)).then(|| Fate::New(id.clone()))
}

/// Follows the references of new lines into the file and into the store.
struct Resolver<'a> {
    file: &'a File,
    names: &'a Names,
    plan: &'a Plan,
    complaints: &'a mut Complaints,
    knows_nothing: bool,
    unresolved: Vec<UnresolvedView>,
}

impl Resolver<'_> {
    fn links(&mut self, tx: &mut dyn Tx) -> Result<Vec<Links>, Refusal> {
        let mut all = Vec::with_capacity(self.file.lines.len());
        let (mut waits, mut parents) = (Vec::new(), Vec::new());
        for (place, line) in self.file.lines.iter().enumerate() {
            let mut links = Links::default();
            if self.plan.is_told(place, line) {
                for reference in &line.depends_on {
                    if let Some((id, at)) = self.follow(tx, line, reference)? {
                        waits.extend(at.map(|at| (place, at)));
                        links.depends_on.insert(id);
                    }
                }
                if let Some(reference) = &line.parent
                    && let Some((id, at)) = self.follow(tx, line, reference)?
                {
                    parents.extend(at.map(|at| (place, at)));
                    links.parent = Some(id);
                    links.parent_line = at.filter(|at| matches!(self.plan.fates[*at], Fate::New(_)));
                }
            }
            all.push(links);
        }
        // A circle that is not in the file alone goes through a task that is there: whoever changes that one looks.
        self.refuse_circles(&waits, Code::DependencyCycle, "wait for each other");
        for place in self.refuse_circles(&parents, Code::InvalidInput, "are each other's parents") {
            all[place].parent_line = None;
        }
        Ok(all)
    }

    /// The task that a reference means, and its place in the file if the file says what that one refers to.
    fn follow(
        &mut self,
        tx: &mut dyn Tx,
        line: &ImportLine,
        reference: &Reference,
    ) -> Result<Option<(TaskId, Option<usize>)>, Refusal> {
        let place = match reference {
            Reference::Id(id) => self.names.ids.get(id),
            Reference::Origin(origin) => self.names.origins.get(origin),
        };
        if let Some(place) = place {
            let is_told = self.plan.is_told(*place, &self.file.lines[*place]);
            return Ok(Some((self.plan.id(*place).clone(), is_told.then_some(*place))));
        }
        let stored = match reference {
            _ if self.knows_nothing => None,
            Reference::Id(id) => load::state(tx, id)?.map(|_| id.clone()),
            Reference::Origin(origin) => load::task_by_origin(tx, origin)?,
        };
        if stored.is_none() && line.outside {
            self.unresolved.push(UnresolvedView {
                line: line.number,
                file: Some(line.place.clone()).filter(|file| !file.is_empty()),
                reference: reference.to_string(),
            });
        } else if stored.is_none() && !self.file.may_name(reference) {
            let detail = format!("there is no task {reference}, neither in the file nor in the store");
            let finding = Finding::new(Code::UnknownTask, detail).hint("onus list --state all");
            self.complaints.add(line.number, finding);
        }
        Ok(stored.map(|id| (id, None)))
    }

    /// Complains about every circle and returns the places that lie on one.
    fn refuse_circles(&mut self, edges: &[(usize, usize)], code: Code, what: &str) -> Vec<usize> {
        let lines = &self.file.lines;
        let pairs =
            edges.iter().filter_map(|(a, b)| Some((u32::try_from(*a).ok()?, u32::try_from(*b).ok()?)));
        let mut places = Vec::new();
        for group in queue::cycles(pairs) {
            let group: Vec<usize> = group.into_iter().map(|place| place as usize).collect();
            // Where each file is one task, every line is the first; and some tools have several tasks in an entry.
            let numbers: HashSet<usize> = group.iter().map(|place| lines[*place].number).collect();
            let name = |place: &usize| match (lines[*place].place.as_str(), &lines[*place].spec.origin) {
                ("", Some(origin)) if numbers.len() < group.len() => origin.to_string(),
                ("", _) => lines[*place].number.to_string(),
                (file, _) => shown_path(file),
            };
            let is_of_files = group.iter().all(|place| !lines[*place].place.is_empty());
            let mut named: Vec<String> = group.iter().take(NAMED).map(name).collect();
            if group.len() > NAMED {
                named.push(format!("and {} more", group.len() - NAMED));
            }
            let these = match (is_of_files, numbers.len() < group.len()) {
                (true, _) => "these files",
                (false, true) => "these",
                (false, false) => "these lines",
            };
            let detail = format!("{these} {what}: {}", named.join(", "));
            let first = &lines[group[0]];
            self.complaints.add_at(first.number, &first.place, Finding::new(code, detail));
            places.extend(group);
        }
        places
    }
}
