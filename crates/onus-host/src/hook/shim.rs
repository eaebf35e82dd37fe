//! The texts of our hooks.
//!
//! Git runs them for every commit and every step of a rebase, so they decide with the shell's own words (no fork, no
//! other program) whether Onus has anything to say. Without the program they refuse.

use super::Site;
use std::io;

const MARK: &str = "# onus hook ";
const VERSION: u32 = 4;

pub(super) fn is_ours(text: &[u8]) -> bool {
    text.split(|b| *b == b'\n').nth(1).is_some_and(|line| line.starts_with(MARK.as_bytes()))
}

pub(super) fn text(name: &str, site: Site, onus: &str) -> io::Result<String> {
    if onus.contains(['\n', '\r']) {
        return Err(io::Error::from(io::ErrorKind::InvalidFilename));
    }
    let body = match (name, site) {
        ("reference-transaction", Site::Work) => {
            TRANSACTION.replace("GUARDED", "*' refs/heads/'* | *' refs/onus/'* | *' HEAD'")
        }
        ("reference-transaction", Site::Shared) => {
            TRANSACTION.replace("GUARDED", "*' refs/heads/'* | *' refs/tags/'*")
        }
        ("prepare-commit-msg", _) => MESSAGE.to_owned(),
        _ => LINES.to_owned(),
    };
    let text = format!("#!/bin/sh\n{MARK}{VERSION}{HEAD}{body}").replace("NAME", name);
    // Last, because a path may hold the words that stand for something.
    Ok(text.replacen("PROGRAM", &onus.replace('\'', r"'\''"), 1))
}

const HEAD: &str = r#", written by `onus hook install`; `onus hook uninstall` puts back what was here before.
# That hook runs first, as NAME.before-onus, and its refusal stands.

onus='PROGRAM'
need_onus() {
    [ -x "$onus" ] || onus=onus
    command -v "$onus" >/dev/null 2>&1 && return
    echo "onus: the program is not where this hook was installed from, nor on PATH: refused" >&2
    echo "hint: install onus, then: onus hook install" >&2
    exit 1
}

"#;

/// One line for each reference: old, new, name. Only `prepared` can refuse. Which branch `HEAD` stands for is nobody's
/// business (`ref:`); that it moves without one is.
const TRANSACTION: &str = r#"lines=
keep() {
    case $1 in
    *' ref:'*' HEAD') ;;
    GUARDED) lines="$lines$1
" ;;
    esac
}
if [ -x "$0.before-onus" ]; then
    lines=$(cat)
    { [ -z "$lines" ] || printf '%s\n' "$lines"; } 2>/dev/null | "$0.before-onus" "$@" || exit
    [ "$1" = prepared ] || exit 0
    all=$lines lines=
    while read -r line; do
        keep "$line"
    done <<END
$all
END
else
    [ "$1" = prepared ] || exit 0
    while read -r line; do
        keep "$line"
    done
fi
[ -n "$lines" ] || exit 0
need_onus
exec "$onus" hook run NAME "$@" <<END
$lines
END
"#;

/// Where no claim has left a lease there is nothing to write. A rebase writes every message anew; those that name their
/// assignment keep it, because it is how the work was done.
///
/// A message of one line cannot hold a trailer yet: they become its second paragraph, which is what git would make of it,
/// without starting git for it.
const MESSAGE: &str = r#"is_one_line() {
    { IFS= read -r first && ! IFS= read -r rest && [ -z "$rest" ]; } <"$1" || return
    case $first in
    '---'*) return 1 ;;
    *[![:space:]]*) return 0 ;;
    esac
    return 1
}
if [ -x "$0.before-onus" ]; then
    "$0.before-onus" "$@" || exit
fi
case $1 in
*/*) git=${1%/*} ;;
*) git=. ;;
esac
held=$ONUS_LEASE
for file in "$git"/onus/lease/*; do
    [ ! -e "$file" ] || held=$file
done
[ -n "$held" ] || exit 0
if [ -d "$git/rebase-merge" ] || [ -d "$git/rebase-apply" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        'Onus-Task: '*) exit 0 ;;
        esac
    done <"$1"
fi
case $git in
*/worktrees/*)
    # What a claim left there; whether it still holds is asked when the branch moves.
    file=$1 trailers=
    set --
    while IFS= read -r line; do
        trailers="$trailers
$line"
        set -- "$@" --trailer "$line"
    done 2>/dev/null <"$git/onus/trailers" || set --
    if [ $# -gt 0 ]; then
        if is_one_line "$file"; then
            printf '%s\n' "$trailers" >>"$file"
            exit
        fi
        exec git interpret-trailers --in-place --where=end --if-exists=replace --if-missing=add "$@" "$file"
    fi
    set -- "$file"
    ;;
esac
need_onus
exec "$onus" hook run NAME "$@"
"#;

const LINES: &str = r#"need_onus
if [ -x "$0.before-onus" ]; then
    lines=$(cat)
    { [ -z "$lines" ] || printf '%s\n' "$lines"; } 2>/dev/null | "$0.before-onus" "$@" || exit
    exec "$onus" hook run NAME "$@" <<END
$lines
END
fi
exec "$onus" hook run NAME "$@"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_break_out_of_its_quotes() {
        let text = text("pre-push", Site::Work, "/NAME/PROGRAM'; rm -rf /; '/onus").unwrap();
        assert!(text.contains(r"onus='/NAME/PROGRAM'\''; rm -rf /; '\''/onus'"), "{text}");
        assert!(super::text("pre-push", Site::Work, "/a\nb").is_err());
    }

    #[test]
    fn ours_is_told_by_its_second_line() {
        for site in [Site::Work, Site::Shared] {
            for name in site.names() {
                assert!(is_ours(text(name, site, "/onus").unwrap().as_bytes()), "{name}");
            }
        }
        assert!(!is_ours(b"#!/bin/sh\necho '# onus hook 1'\n"));
        assert!(!is_ours(b""));
    }
}
