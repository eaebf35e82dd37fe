//! Tokens: their text, who may issue them, and what each kind can carry.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod permits;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod text;
