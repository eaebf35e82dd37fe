//! The rules as scenarios of one line each: what was done, and what each step gave.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod dispatch;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod milestone;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod scope;
#[cfg(test)]
mod session;
#[cfg(test)]
mod story;
#[cfg(test)]
mod transition;
