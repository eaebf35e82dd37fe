//! The documentation's page: each part between its own marks, so that one part can be measured anew without the others.

use crate::machine;
use crate::measure::Outcome;
use crate::plot;
use crate::table::Table;
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/benchmarks.md";

/// Where the plots are, beside the page.
const PLOTS: &str = "docs/benchmarks";

fn marks(part: &str) -> (String, String) {
    (format!("<!-- part {part} -->"), format!("<!-- end of {part} -->"))
}

/// The page with one part's text in place of the earlier one. A part that the page does not know is an error: nobody
/// would find its place.
fn replaced(page: &str, part: &str, text: &str) -> Option<String> {
    let (from, to) = marks(part);
    let (before, rest) = page.split_once(&from)?;
    let (_, after) = rest.split_once(&to)?;
    Some(format!("{before}{from}\n{}\n{to}{after}", text.trim_end()))
}

/// Writes what was measured into the page; the rest of it stays.
pub(crate) fn write(command: &str, parts: &[(String, Vec<Table>)]) -> Outcome<()> {
    let mut page = fs::read_to_string(PAGE)?;
    fs::create_dir_all(PLOTS)?;
    for (part, tables) in parts {
        let mut text = format!(
            "Measured by `{command}` on {}; {}; load {:.1} at the end.\n\n![goals and figures]({}/{part}.svg)\n",
            jiff::Timestamp::now().strftime("%F"),
            machine::describe(&std::env::temp_dir()),
            machine::load(),
            Path::new(PLOTS).file_name().unwrap_or_default().display(),
        );
        for table in tables {
            text.push('\n');
            text.push_str(&table.to_string());
        }
        fs::write(Path::new(PLOTS).join(format!("{part}.svg")), plot::bars(tables))?;
        page = replaced(&page, part, &text).ok_or_else(|| format!("{PAGE} has no place for {part}"))?;
    }
    Ok(fs::write(PAGE, page)?)
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_part_takes_only_its_own_place() {
        let page = "# x\n<!-- part a -->\nold\n<!-- end of a -->\n## y\n<!-- part b -->\nb\n<!-- end of b -->\nend\n";
        let wanted = page.replace("old", "new");
        assert_eq!(replaced(page, "a", "new\n").unwrap(), wanted);
        assert_eq!(replaced(page, "c", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_every_part() {
        let page = include_str!("../../../docs/benchmarks.md");
        for part in crate::PARTS {
            assert!(replaced(page, part, "").is_some(), "{part}");
        }
    }
}
