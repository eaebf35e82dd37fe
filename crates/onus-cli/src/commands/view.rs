//! `onus view`

use super::list::WantedArgs;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_core::event::ViewSaved;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Filters that the whole team keeps under a name: onus list --view NAME, and on the board
#[derive(Debug, Args)]
pub(crate) struct View {
    #[command(subcommand)]
    verb: ViewVerb,
}

#[derive(Debug, Subcommand)]
enum ViewVerb {
    /// Every saved view, by its name
    List,
    /// Keep filters under a name, in place of what was there: people only
    Save(ViewSave),
    /// Keep it no longer: people only
    Remove(ViewName),
}

#[derive(Debug, Args)]
struct ViewSave {
    #[command(flatten)]
    name: ViewName,

    #[command(flatten)]
    wanted: WantedArgs,
}

#[derive(Debug, Args)]
struct ViewName {
    /// What the view is called
    #[arg(value_name = "NAME")]
    name: String,
}

impl View {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let wanted = match &self.verb {
            ViewVerb::List => return out.show_list(&store.views()?, |view| &view.views, render::views),
            ViewVerb::Save(ViewSave { name, wanted }) => {
                ViewSaved { name: name.name.clone(), query: Some(wanted.query()) }
            }
            ViewVerb::Remove(name) => ViewSaved { name: name.name.clone(), query: None },
        };
        let views = store.save_view(world.asker(&world.request()?), &wanted)?;
        let code = out.show_list(&views, |view| &view.views, render::views)?;
        if wanted.query.is_some() {
            out.hint(&format!("onus list --view \"{}\", and on the board", wanted.name.trim()));
        }
        Ok(code)
    }
}
