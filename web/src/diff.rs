//! What a task's work changes, line by line, with what was said about it and what a reviewer can do.

mod colour;
mod language;

use crate::html::{Html, when};
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use colour::{Hue, Painter};
use onus_app::Onus;
use onus_app::diff::{DiffFileView, DiffLineView, DiffPart, DiffView, LineCommentView};
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::task::StateName;
use std::ops::Range;

pub(crate) fn page() -> Page {
    Page { path: "/tasks/{id}/diff", name: "Diff", key: None, ask }
}

#[derive(Debug, Template)]
#[template(path = "diff.html")]
struct DiffPage {
    view: DiffView,
    title: String,
    state: StateName,
    files: Vec<FileBlock>,
    outdated: Vec<LineRemark>,
    /// The address of the whole, where one file is looked at.
    whole: Option<String>,
}

#[derive(Debug)]
struct FileBlock {
    file: DiffFileView,
    /// Names the part of the page.
    anchor: String,
    rows: Vec<DiffRow>,
    /// Shown at once; large ones wait for a click.
    open: bool,
    alone: String,
}

#[derive(Debug)]
enum DiffRow {
    Hunk(String),
    Line { class: &'static str, old: String, new: String, number: Option<i64>, text: Vec<Piece> },
    Comment(LineRemark),
}

/// A part of a line.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    /// It differs from the line that stood there, or that stands there now.
    mark: bool,
    hue: Option<&'static str>,
    text: String,
}

#[derive(Debug)]
struct LineRemark {
    by: String,
    at: Html,
    place: String,
    text: String,
}

/// A page shows this many lines at once; the files after that are closed, and without colours.
const OPEN_LINES: usize = 4_000;

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let id: TaskId = seen.param("id")?;
    let part = seen.word("path").map_or(DiffPart::Lines, |path| DiffPart::File(path.to_owned()));
    let task = onus.task(&id)?;
    let mut view = onus.diff(&id, &part)?;
    let mut lines = 0;
    let files = std::mem::take(&mut view.files);
    let files = files.into_iter().enumerate().map(|(n, file)| {
        lines += file.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
        FileBlock {
            anchor: format!("file-{n}"),
            rows: rows(&file, &view.comments, seen, lines <= OPEN_LINES),
            open: lines <= OPEN_LINES,
            alone: seen.with("path", Some(&file.path)),
            file,
        }
    });
    let files: Vec<FileBlock> = files.collect();
    let outdated =
        view.comments.iter().filter(|comment| comment.outdated).map(|one| said(one, seen)).collect();
    let whole = matches!(part, DiffPart::File(_)).then(|| seen.with("path", None));
    let page =
        DiffPage { title: task.spec.title.clone(), state: task.state.name(), files, outdated, whole, view };
    Ok(Drawn { title: format!("{id} diff"), main: rendered(&page)? })
}

fn said(comment: &LineCommentView, seen: &PageRequest) -> LineRemark {
    LineRemark {
        by: comment.by.to_string(),
        at: when(comment.at, seen.now),
        place: format!("{}:{}", comment.path, comment.line),
        text: comment.text.clone(),
    }
}

fn rows(
    file: &DiffFileView,
    comments: &[LineCommentView],
    seen: &PageRequest,
    is_coloured: bool,
) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    for hunk in &file.hunks {
        rows.push(DiffRow::Hunk(hunk.heading.clone()));
        let marks = marks(&hunk.lines);
        let painter = Painter::of(if is_coloured { &file.path } else { "" });
        let (mut before, mut after) = (painter, painter);
        for (line, parts) in hunk.lines.iter().zip(marks) {
            let hues = match line.sign {
                '-' => before.line(&line.text),
                '+' => after.line(&line.text),
                _ => {
                    before.line(&line.text);
                    after.line(&line.text)
                }
            };
            let text = pieces(&line.text, &hues, &parts);
            let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
            rows.push(DiffRow::Line {
                class: match line.sign {
                    '+' => "new",
                    '-' => "old",
                    _ => "both",
                },
                old: number(line.old),
                new: number(line.new),
                number: line.new,
                text,
            });
            let here = comments.iter().filter(|comment| {
                !comment.outdated && comment.path == file.path && Some(comment.line) == line.new
            });
            rows.extend(here.map(|comment| DiffRow::Comment(said(comment, seen))));
        }
    }
    rows
}

/// A line cut where its colour changes and where what is marked begins and ends.
fn pieces(line: &str, hues: &[(Hue, Range<usize>)], parts: &[(bool, String)]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut hues = hues.iter().peekable();
    let mut at = 0;
    for (mark, part) in parts {
        let end = at + part.len();
        while at < end {
            while hues.next_if(|(_, range)| range.end <= at).is_some() {}
            let (hue, stop) =
                hues.peek().map_or((Hue::Plain, end), |(hue, range)| (*hue, range.end.min(end)));
            pieces.push(Piece { mark: *mark, hue: hue.class(), text: line[at..stop].to_owned() });
            at = stop;
        }
    }
    pieces
}

/// Each line in parts, those that differ from its counterpart marked: as many lines gone as came in their place.
fn marks(lines: &[DiffLineView]) -> Vec<Vec<(bool, String)>> {
    let mut marked: Vec<Vec<(bool, String)>> =
        lines.iter().map(|line| vec![(false, line.text.clone())]).collect();
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, sign: char| lines[from..].iter().take_while(|line| line.sign == sign).count();
        let gone = run(at, '-');
        let came = run(at + gone, '+');
        if gone > 0 && gone == came {
            for n in at..at + gone {
                let (old, new) = differing(&lines[n].text, &lines[n + gone].text);
                (marked[n], marked[n + gone]) = (old, new);
            }
        }
        at += (gone + came).max(1);
    }
    marked
}

type Parts = Vec<(bool, String)>;

/// What two lines have in common at both ends, and what is between.
fn differing(old: &str, new: &str) -> (Parts, Parts) {
    let same = |(a, b): &(char, char)| a == b;
    let head: usize = old.chars().zip(new.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let both = old_rest.chars().rev().zip(new_rest.chars().rev());
    let tail: usize = both.take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let parts = |text: &str| -> Parts {
        let (first, last) = (&text[..head], &text[text.len() - tail..]);
        let middle = &text[head..text.len() - tail];
        let parts = [(false, first), (true, middle), (false, last)];
        parts
            .into_iter()
            .filter(|(_, part)| !part.is_empty())
            .map(|(mark, part)| (mark, part.to_owned()))
            .collect()
    };
    // Lines that have nothing in common say nothing by being marked all over.
    match head + tail {
        0 => (vec![(false, old.to_owned())], vec![(false, new.to_owned())]),
        _ => (parts(old), parts(new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_its_colours_and_by_what_is_marked() {
        let line = "let a = 22; // b";
        let cut = |parts: &[(bool, &str)]| {
            let parts: Vec<(bool, String)> =
                parts.iter().map(|(mark, part)| (*mark, (*part).to_owned())).collect();
            let pieces = pieces(line, &Painter::of("a.rs").line(line), &parts);
            assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), line);
            let shown = |piece: &Piece| {
                format!("{}{}:{}", if piece.mark { "!" } else { "" }, piece.hue.unwrap_or("-"), piece.text)
            };
            pieces.iter().map(shown).collect::<Vec<_>>().join("|")
        };
        assert_eq!(cut(&[(false, line)]), "hw:let|-: a = |hn:22|-:; |hc:// b");
        let parts = [(false, "let a = 2"), (true, "2; /"), (false, "/ b")];
        assert_eq!(cut(&parts), "hw:let|-: a = |hn:2|!hn:2|!-:; |!hc:/|hc:/ b");
    }

    #[test]
    fn what_differs_within_a_line_is_marked() {
        let (old, new) = differing("let a = 1;", "let a = 22;");
        assert_eq!(old, [(false, "let a = ".into()), (true, "1".into()), (false, ";".into())]);
        assert_eq!(new, [(false, "let a = ".into()), (true, "22".into()), (false, ";".into())]);
        let (old, _) = differing("äx", "äy");
        assert_eq!(old, [(false, "ä".into()), (true, "x".into())]);
        let (old, new) = differing("aa", "aaa");
        assert_eq!((old.len(), new.len()), (1, 2));
        assert_eq!(differing("x", "y").0, [(false, "x".to_owned())]);
    }
}
