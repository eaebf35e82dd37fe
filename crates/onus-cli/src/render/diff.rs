//! `diff` for people.

use super::{BLUE, BOLD, DIM, GREEN, RED, YELLOW, paint};
use onus_app::diff::{DiffFileView, DiffView, LineCommentView};
use onus_core::text::counted;
use std::fmt::Write as _;

pub(crate) fn diff(view: &DiffView) -> String {
    let mut text = String::new();
    let count = counted(view.files.len() + view.left_out, "file");
    let _ = writeln!(
        text,
        "{} {}..{}: {count}, {} {}",
        paint(BOLD, &view.task),
        short(view.base.as_str()),
        short(view.head.as_str()),
        paint(GREEN, format!("+{}", view.added)),
        paint(RED, format!("-{}", view.deleted)),
    );
    for one in &view.files {
        file(&mut text, one, &view.comments);
    }
    if view.left_out > 0 {
        let _ = writeln!(text, "and {}", counted(view.left_out, "more file"));
    }
    if view.comments_left_out > 0 {
        let _ = writeln!(text, "{} left out", counted(view.comments_left_out, "earlier comment"));
    }
    let outdated = view.comments.iter().filter(|comment| comment.outdated);
    for comment in outdated {
        let place = format!("{}:{}", comment.path, comment.line);
        let _ = writeln!(
            text,
            "{}",
            paint(DIM, format!("outdated {place} {}: {}", comment.by, plain(&comment.text)))
        );
    }
    text
}

fn file(text: &mut String, file: &DiffFileView, comments: &[LineCommentView]) {
    let moved = file.old_path.as_ref().map(|old| format!("{old} -> ")).unwrap_or_default();
    let much = match (file.binary, file.folded) {
        (true, _) => "binary".to_owned(),
        (false, true) => format!("+{} -{}, folded: name the file to see it", file.added, file.deleted),
        (false, false) => format!("+{} -{}", file.added, file.deleted),
    };
    let _ = writeln!(text, "{} {}", paint(BOLD, format!("{moved}{}", file.path)), paint(DIM, much));
    for hunk in &file.hunks {
        let _ = writeln!(text, "{}", paint(BLUE, format!("@@ {}", hunk.heading)));
        for line in &hunk.lines {
            let number = line.new.or(line.old).unwrap_or(0);
            let whole = format!("{number:>6} {}{}", line.sign, line.text);
            let _ = match line.sign {
                '+' => writeln!(text, "{}", paint(GREEN, whole)),
                '-' => writeln!(text, "{}", paint(RED, whole)),
                _ => writeln!(text, "{whole}"),
            };
            let here = comments.iter().filter(|comment| {
                !comment.outdated && comment.path == file.path && Some(comment.line) == line.new
            });
            for comment in here {
                let words = format!("       > {}: {}", comment.by, plain(&comment.text));
                let _ = writeln!(text, "{}", paint(YELLOW, words));
            }
        }
    }
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Others' words on one line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if onus_core::text::is_unprintable(c) { ' ' } else { c }).collect()
}
