//! Tokens: their text, who may issue them, and what each kind can carry.

#[cfg(test)]
mod permits;
mod registry;
mod text;
