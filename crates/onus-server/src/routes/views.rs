//! Saved views of the board, for everybody.

use super::body::Nothing;
use crate::route::{Asked, Rendered, Route, administration, get};
use crate::store::Store;
use onus_app::remote::CallName;
use onus_app::saved_view::ViewsView;
use onus_core::event::ViewSaved;
use onus_core::refusal::Refusal;
use onus_core::saved_view::ViewQuery;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/views", "views", "The board's filters that the team keeps under a name", views),
        administration(
            "/v1/views",
            CallName::SaveView,
            "Keep filters of the board under a name; without a query there is no such view any more: people only",
            save,
        ),
    ]
}

fn views(store: &mut Store, _: &Asked, _: Nothing) -> Result<ViewsView, Refusal> {
    store.views()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewBody {
    name: String,
    /// Words of the board's address, such as {"sprint": "s12", "view": "list"}
    query: Option<ViewQuery>,
}

fn save(store: &mut Store, asked: &Asked, ViewBody { name, query }: ViewBody) -> Result<ViewsView, Refusal> {
    store.save_view(asked.asker(), &ViewSaved { name, query })
}

impl Rendered for ViewsView {}
