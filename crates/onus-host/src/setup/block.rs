//! A block between two marks, in a file that belongs to somebody else.

pub(super) type Marks = (&'static str, &'static str);

pub(super) const MARKDOWN: Marks = ("<!-- onus:begin -->", "<!-- onus:end -->");
pub(super) const TOML: Marks = ("# onus:begin", "# onus:end");

/// The file with `inside` as its block, or without one; none where nothing is left.
pub(super) fn edited(
    text: Option<&str>,
    (begin, end): Marks,
    inside: Option<&str>,
) -> Result<Option<String>, String> {
    let text = text.unwrap_or_default();
    let block = inside.map(|inside| format!("{begin}\n{inside}{end}\n"));
    let (from, to) = match (text.find(begin), text.find(end)) {
        (Some(from), Some(to)) if from < to => (from, to + end.len()),
        (None, None) => {
            let Some(block) = block else {
                return Ok((!text.is_empty()).then(|| text.to_owned()));
            };
            let gap = if text.is_empty() {
                ""
            } else if text.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            return Ok(Some(format!("{text}{gap}{block}")));
        }
        _ => return Err(format!("`{begin}` and `{end}` do not belong together")),
    };
    let to = if text[to..].starts_with('\n') { to + 1 } else { to };
    match block {
        Some(block) => Ok(Some(format!("{}{block}{}", &text[..from], &text[to..]))),
        None => {
            // The empty line before the block is ours, too.
            let before =
                text[..from].strip_suffix('\n').filter(|rest| rest.ends_with('\n')).unwrap_or(&text[..from]);
            let left = format!("{before}{}", &text[to..]);
            Ok((!left.is_empty()).then_some(left))
        }
    }
}
