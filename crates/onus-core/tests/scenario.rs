//! The rules as scenarios of one line each: what was done, and what each step gave.

#[cfg(test)]
mod dispatch;
mod edit;
mod evidence;
mod lease;
mod limits;
mod milestone;
mod moves;
mod say;
mod scope;
mod session;
mod story;
mod transition;
