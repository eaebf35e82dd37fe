//! `/errors/<code>`: the page that a refusal's `type` names. Whoever was refused may read it, also without a token.

use crate::problem::Problem;
use crate::serve::text;
use axum::body::Body;
use axum::http::Response;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use std::fmt::Write as _;

pub(crate) async fn page(code: String) -> Response<Body> {
    match Code::parse(&code) {
        Some(code) => text("text/plain; charset=utf-8", code.page().to_owned()).await,
        None => {
            let detail = format!("there is no code {}", onus_core::id::shown(&code));
            Problem::from(Refusal::new(Code::UnknownName, detail).hint("GET /errors lists them")).response()
        }
    }
}

pub(crate) fn index() -> String {
    let mut page = String::from("# Error codes\n\n");
    for code in Code::ALL {
        let _ = writeln!(page, "- /errors/{code}: {}", code.title());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_names_every_code() {
        let index = index();
        for code in Code::ALL {
            assert!(index.contains(&format!("/errors/{code}: ")), "{code}");
        }
    }
}
