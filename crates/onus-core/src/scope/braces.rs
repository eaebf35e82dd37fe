//! From the text of a glob to the plain patterns it stands for, without braces.

/// How many patterns the braces of one glob may stand for.
const ALTERNATIVES_MAX: usize = 64;

/// Spells the braces out as a shell would: `a/{b,c}` is `a/b` and `a/c`. Refuses what would explode.
pub(super) fn alternatives(glob: &str) -> Result<Vec<Vec<char>>, String> {
    let mut plain = Vec::new();
    let mut waiting: Vec<Vec<char>> = vec![glob.chars().collect()];
    while let Some(pattern) = waiting.pop() {
        match first_brace(&pattern)? {
            None => plain.push(pattern),
            Some(Brace { open, commas, close }) => {
                let cuts: Vec<usize> = [open].into_iter().chain(commas).chain([close]).collect();
                // Popped from the end, so the last is put in first: the order of the text is kept.
                for cut in cuts.windows(2).rev() {
                    waiting.push(
                        [&pattern[..open], &pattern[cut[0] + 1..cut[1]], &pattern[close + 1..]].concat(),
                    );
                }
            }
        }
        if plain.len() + waiting.len() > ALTERNATIVES_MAX {
            return Err(format!("stands for more than {ALTERNATIVES_MAX} patterns; split it into several"));
        }
    }
    Ok(plain)
}

struct Brace {
    open: usize,
    /// The commas that belong to this brace, not to one inside it.
    commas: Vec<usize>,
    close: usize,
}

fn first_brace(pattern: &[char]) -> Result<Option<Brace>, String> {
    let mut open = None;
    let mut commas = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = pattern.get(at) {
        match c {
            '[' => at = class_end(pattern, at)?,
            '{' => {
                depth += 1;
                open = open.or(Some(at));
            }
            ',' if depth == 1 => commas.push(at),
            '}' if depth == 0 => return Err("has a `}` without its `{`".into()),
            '}' => {
                depth -= 1;
                if let Some(open) = open.filter(|_| depth == 0) {
                    return Ok(Some(Brace { open, commas, close: at }));
                }
            }
            _ => {}
        }
        at += 1;
    }
    if depth > 0 { Err("has a `{` without its `}`".into()) } else { Ok(None) }
}

/// Where the class that begins at `open` ends. A `]` that comes first is one of its letters.
pub(super) fn class_end(pattern: &[char], open: usize) -> Result<usize, String> {
    let negated = matches!(pattern.get(open + 1), Some('!' | '^'));
    let first = open + 1 + usize::from(negated);
    let body = pattern.iter().enumerate().skip(first).take_while(|(_, c)| **c != '/');
    let mut ends = body.filter(|(at, c)| *at > first && **c == ']');
    ends.next().map(|(at, _)| at).ok_or_else(|| "has a `[` without its `]`, or a `/` between them".into())
}
