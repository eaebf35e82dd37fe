//! The Model Context Protocol (mission E2): what an agent does all day, as tools.
//!
//! [`tool`] is the table of tools, static and small; [`act`] carries a call out through a [`Desk`]; [`server`] speaks the
//! protocol, in both of its eras. The state between calls is the lease token, which the claim gives and the holder shows.

mod act;
mod card;
pub mod desk;
mod resource;
pub mod server;
pub mod tool;

pub use desk::{Desk, Site, Who};
pub use server::{Server, http, stdio};
pub use tool::Tools;
