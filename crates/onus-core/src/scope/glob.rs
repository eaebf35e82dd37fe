//! One glob as a small automaton over characters; two of them are compared by walking both at once.

use super::braces::{alternatives, class_end};
use super::class::CharClass;
use crate::text::GLOB_MAX;

/// How many states the patterns of one glob may have together.
const STATES_MAX: usize = 1_024;

/// A path glob, relative to the repository's root.
///
/// It stands for a set of paths: names apart by single slashes, none of them empty, `.` or `..`.
#[derive(Debug, Clone)]
pub struct Glob {
    /// The patterns that its braces stand for, one chain after the other.
    states: Vec<State>,
    starts: Vec<usize>,
}

#[derive(Debug, Clone)]
enum State {
    /// One character of the class leads to the next state.
    Step(CharClass),
    /// Any number of them leads to the next state.
    Loop(CharClass),
    /// The next `n` states may be left out.
    Optional(usize),
    /// The path may end here.
    End,
}

impl Glob {
    /// The reason of a refusal reads on after the glob: "… must be a path inside the repository".
    pub fn parse(text: &str) -> Result<Glob, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("is empty".into());
        }
        if text.len() > GLOB_MAX {
            return Err(format!("has {} bytes; the limit is {GLOB_MAX}", text.len()));
        }
        let mut glob = Glob { states: Vec::new(), starts: Vec::new() };
        for pattern in alternatives(text)? {
            glob.starts.push(glob.states.len());
            glob.states.extend(chain(&pattern)?);
            if glob.states.len() > STATES_MAX {
                return Err("stands for too many long patterns; split it into several".into());
            }
        }
        Ok(glob)
    }

    /// What a comparison with this glob costs.
    pub(super) fn size(&self) -> usize {
        self.states.len()
    }

    /// Whether the path is one of its paths. What is no path at all is matched by nothing.
    pub fn matches(&self, path: &str) -> bool {
        let mut shape = Shape::Begin;
        let mut here = self.closure(self.starts.clone());
        for c in path.chars() {
            let Some(next) = shape.then(c) else { return false };
            shape = next;
            here = self.closure(here.into_iter().filter_map(|at| self.step(at, c)).collect());
        }
        shape == Shape::Name && here.iter().any(|at| matches!(self.states[*at], State::End))
    }

    /// A path that both match, if there is one.
    pub fn intersects(&self, other: &Glob) -> Option<String> {
        let mut walk = Walk::new(self, other);
        for own in &self.starts {
            for theirs in &other.starts {
                walk.visit(Pair { own: *own, theirs: *theirs, shape: Shape::Begin }, None);
            }
        }
        let mut at = 0;
        while let Some(visit) = walk.visits.get(at) {
            let pair = visit.pair;
            if pair.shape == Shape::Name && self.ends(pair.own) && other.ends(pair.theirs) {
                return Some(walk.path_to(at));
            }
            walk.go_on(at, pair);
            at += 1;
        }
        None
    }

    fn ends(&self, at: usize) -> bool {
        matches!(self.states[at], State::End)
    }

    /// Where a state leads without a character.
    fn free(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let (next, skip) = match self.states[at] {
            State::Step(_) | State::End => (None, None),
            State::Loop(_) => (Some(at + 1), None),
            State::Optional(n) => (Some(at + 1), Some(at + 1 + n)),
        };
        next.into_iter().chain(skip)
    }

    /// Which characters lead on from a state, and where to.
    fn edge(&self, at: usize) -> Option<(&CharClass, usize)> {
        match &self.states[at] {
            State::Step(class) => Some((class, at + 1)),
            State::Loop(class) => Some((class, at)),
            State::Optional(_) | State::End => None,
        }
    }

    fn step(&self, at: usize, c: char) -> Option<usize> {
        self.edge(at).filter(|(class, _)| class.has(c)).map(|(_, to)| to)
    }

    fn closure(&self, mut reached: Vec<usize>) -> Vec<usize> {
        let mut seen = vec![false; self.states.len()];
        reached.retain(|at| !std::mem::replace(&mut seen[*at], true));
        let mut next = 0;
        while let Some(at) = reached.get(next).copied() {
            reached.extend(self.free(at).filter(|to| !std::mem::replace(&mut seen[*to], true)));
            next += 1;
        }
        reached
    }
}

/// The automaton of one pattern without braces.
fn chain(pattern: &[char]) -> Result<Vec<State>, String> {
    let (pattern, slash) = match pattern {
        [names @ .., '/'] if !names.is_empty() => (names, true),
        _ => (pattern, false),
    };
    inside(pattern)?;
    let mut states = Vec::new();
    let mut wild = false;
    let mut at = 0;
    while let Some(c) = pattern.get(at) {
        wild |= matches!(c, '*' | '?' | '[');
        match c {
            '*' if pattern.get(at + 1) == Some(&'*') => {
                at += everything(pattern, at, &mut states)?;
                continue;
            }
            '*' => states.push(State::Loop(CharClass::in_name())),
            '?' => states.push(State::Step(CharClass::in_name())),
            '[' => {
                let end = class_end(pattern, at)?;
                states.push(State::Step(class(&pattern[at + 1..end])?));
                at = end;
            }
            ']' => return Err("has a `]` without its `[`".into()),
            c => states.push(State::Step(CharClass::one(*c))),
        }
        at += 1;
    }
    if slash || !wild {
        // A directory is itself and everything below it.
        states.extend([State::Optional(2), State::Step(CharClass::one('/')), State::Loop(CharClass::any())]);
    }
    states.push(State::End);
    Ok(states)
}

/// A scope names paths inside the repository, never outside it, and only as git would write them.
fn inside(pattern: &[char]) -> Result<(), String> {
    if pattern.first() == Some(&'/') || pattern.contains(&'\\') {
        return Err("must be a path inside the repository".into());
    }
    for name in pattern.split(|c| *c == '/') {
        match name {
            [] => return Err("has an empty name between its slashes".into()),
            ['.'] => return Err("has a `.` for a name; leave it out, or write `**` for everything".into()),
            ['.', '.'] => return Err("must be a path inside the repository".into()),
            _ => {}
        }
    }
    Ok(())
}

/// `**`: any number of directories before a slash, everything at the end. Returns how much of the text it took.
fn everything(pattern: &[char], at: usize, states: &mut Vec<State>) -> Result<usize, String> {
    let begins = at == 0 || pattern[at - 1] == '/';
    match pattern.get(at + 2) {
        None if begins => {
            states.push(State::Loop(CharClass::any()));
            Ok(2)
        }
        Some('/') if begins => {
            states.extend([
                State::Optional(2),
                State::Loop(CharClass::any()),
                State::Step(CharClass::one('/')),
            ]);
            Ok(3)
        }
        _ => Err("has `**` beside other letters; it stands alone between slashes".into()),
    }
}

/// The inside of a pair of brackets.
fn class(inner: &[char]) -> Result<CharClass, String> {
    let (negated, mut rest) = match inner {
        ['!' | '^', rest @ ..] => (true, rest),
        _ => (false, inner),
    };
    let mut ranges = Vec::new();
    while let [lo, after @ ..] = rest {
        let (hi, after) = match after {
            ['-', hi, after @ ..] => (hi, after),
            _ => (lo, after),
        };
        if lo > hi {
            return Err(format!("has the range `{lo}-{hi}`, which runs backwards"));
        }
        ranges.push((*lo, *hi));
        rest = after;
    }
    Ok(if negated { CharClass::not_listed(&ranges) } else { CharClass::listed(&ranges) })
}

/// How far a text is a path: an automaton that is walked beside the globs, so that every witness is a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A name must begin.
    Begin,
    /// The name is `.` so far.
    Dot,
    /// The name is `..` so far.
    Dots,
    Name,
}

impl Shape {
    const COUNT: usize = 4;

    fn then(self, c: char) -> Option<Shape> {
        match (self, c) {
            (Shape::Name, '/') => Some(Shape::Begin),
            (_, '/') => None,
            (Shape::Begin, '.') => Some(Shape::Dot),
            (Shape::Dot, '.') => Some(Shape::Dots),
            _ => Some(Shape::Name),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Pair {
    own: usize,
    theirs: usize,
    shape: Shape,
}

/// How a pair was reached: from which visit, by which character if any.
#[derive(Debug, Clone, Copy)]
struct Visit {
    pair: Pair,
    from: Option<(usize, Option<char>)>,
}

/// A search through the pairs of states that one text can lead two globs into. Each pair is visited once.
struct Walk<'a> {
    own: &'a Glob,
    theirs: &'a Glob,
    seen: Vec<bool>,
    visits: Vec<Visit>,
}

impl<'a> Walk<'a> {
    fn new(own: &'a Glob, theirs: &'a Glob) -> Walk<'a> {
        let pairs = own.states.len() * theirs.states.len() * Shape::COUNT;
        Walk { own, theirs, seen: vec![false; pairs], visits: Vec::new() }
    }

    fn visit(&mut self, pair: Pair, from: Option<(usize, Option<char>)>) {
        let place = (pair.own * self.theirs.states.len() + pair.theirs) * Shape::COUNT + pair.shape as usize;
        if !std::mem::replace(&mut self.seen[place], true) {
            self.visits.push(Visit { pair, from });
        }
    }

    fn go_on(&mut self, at: usize, pair: Pair) {
        let (mine, other) = (self.own, self.theirs);
        for own in mine.free(pair.own) {
            self.visit(Pair { own, ..pair }, Some((at, None)));
        }
        for theirs in other.free(pair.theirs) {
            self.visit(Pair { theirs, ..pair }, Some((at, None)));
        }
        let (Some((a, own)), Some((b, theirs))) = (mine.edge(pair.own), other.edge(pair.theirs)) else {
            return;
        };
        // To the shape of a path all letters but these two are the same.
        let special = ['/', '.'].into_iter().filter(|c| a.has(*c) && b.has(*c));
        for c in a.shared_letter(b).into_iter().chain(special) {
            if let Some(shape) = pair.shape.then(c) {
                self.visit(Pair { own, theirs, shape }, Some((at, Some(c))));
            }
        }
    }

    fn path_to(&self, mut at: usize) -> String {
        let mut letters = Vec::new();
        while let Some((before, letter)) = self.visits[at].from {
            letters.extend(letter);
            at = before;
        }
        letters.iter().rev().collect()
    }
}
