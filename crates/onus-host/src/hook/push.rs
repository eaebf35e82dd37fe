//! What git tells a hook: on its standard input, and in its push options.

use onus_core::id::{CommitId, shown};
use onus_core::refusal::Refusal;

/// One line of `reference-transaction` or `pre-receive`. An absent side is zeros in git's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub refname: String,
    /// None when it is made, or when the caller did not say where it was.
    pub old: Option<String>,
    /// None when it is deleted.
    pub new: Option<String>,
}

/// One line of `pre-push`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    pub from: String,
    pub to: Update,
}

/// Reads `OLD NEW REF` lines. A symbolic reference's side (`ref:…`) is no commit and counts as absent.
pub fn updates(text: &str) -> Result<Vec<Update>, Refusal> {
    lines(text).map(|line| fields(line, |[old, new, refname]| update(old, new, refname))).collect()
}

/// Reads `LOCAL_REF LOCAL_ID REMOTE_REF REMOTE_ID` lines.
pub fn pushed(text: &str) -> Result<Vec<Pushed>, Refusal> {
    let read = |[from, new, to, old]: [&str; 4]| Pushed { from: from.to_owned(), to: update(old, new, to) };
    lines(text).map(|line| fields(line, read)).collect()
}

/// The token that was pushed along as `-o onus=TOKEN`; `variable` reads the environment. A lease's counts more than the
/// person's token that lies in the same clone.
pub fn pushed_token(variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, Refusal> {
    let mut tokens = options(&variable, "onus=");
    if tokens.iter().any(|token| !is_persons(token)) {
        tokens.retain(|token| !is_persons(token));
    }
    tokens.dedup();
    match tokens.len() {
        0 | 1 => Ok(tokens.pop()),
        n => Err(Refusal::invalid(format!("{n} lease tokens were pushed; one push has one holder"))
            .hint("git push -o onus=TOKEN, once")),
    }
}

/// The commits of others that the holder answers for, pushed along as `-o onus-adopt=COMMIT`.
pub fn pushed_adopted(variable: impl Fn(&str) -> Option<String>) -> Result<Vec<CommitId>, Refusal> {
    options(&variable, "onus-adopt=").iter().map(|id| id.parse().map_err(Refusal::invalid)).collect()
}

fn options(variable: &impl Fn(&str) -> Option<String>, name: &str) -> Vec<String> {
    let count = variable("GIT_PUSH_OPTION_COUNT").and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    let all = (0..count).filter_map(|n| variable(&format!("GIT_PUSH_OPTION_{n}")));
    all.filter_map(|option| option.strip_prefix(name).map(str::to_owned)).collect()
}

/// Whether a token is a person's own, and no lease's.
pub fn is_persons(token: &str) -> bool {
    token.starts_with("onus_")
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty())
}

fn fields<const N: usize, T>(line: &str, read: impl Fn([&str; N]) -> T) -> Result<T, Refusal> {
    let parts: Vec<&str> = line.split(' ').collect();
    <[&str; N]>::try_from(parts)
        .map(read)
        .map_err(|_| Refusal::invalid(format!("git told a hook {}, which is not {N} words", shown(line))))
}

fn update(old: &str, new: &str, refname: &str) -> Update {
    let side = |text: &str| Some(text.to_owned()).filter(|id| !is_absent(id));
    Update { refname: refname.to_owned(), old: side(old), new: side(new) }
}

fn is_absent(side: &str) -> bool {
    side.starts_with("ref:") || side.bytes().all(|b| b == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_git_are_read() {
        let (a, zeros) = ("a".repeat(40), "0".repeat(40));
        let text = format!(
            "{zeros} {a} refs/heads/x\n{a} {zeros} refs/tags/t\nref:refs/heads/a ref:refs/heads/b HEAD\n\n"
        );
        let read = updates(&text).unwrap();
        let sides: Vec<_> =
            read.iter().map(|u| (u.refname.as_str(), u.old.is_some(), u.new.is_some())).collect();
        assert_eq!(
            sides,
            [("refs/heads/x", false, true), ("refs/tags/t", true, false), ("HEAD", false, false)]
        );
        let read = pushed(&format!("(delete) {zeros} refs/heads/x {a}\n")).unwrap();
        assert_eq!((read[0].to.old.as_ref(), read[0].to.new.as_ref()), (Some(&a), None));
        for bad in ["x", "a b", "a b c d"] {
            assert!(updates(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_token_is_taken_from_the_push_options() {
        let token = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
            pushed_token(|name| match name {
                "GIT_PUSH_OPTION_COUNT" => Some(options.len().to_string()),
                _ => options.get(name.rsplit('_').next()?.parse::<usize>().ok()?).cloned(),
            })
        };
        assert_eq!(token(&[]), Ok(None));
        assert_eq!(token(&["ci.skip", "onus=1.2.ab"]), Ok(Some("1.2.ab".into())));
        assert_eq!(token(&["onus=a", "onus=a"]), Ok(Some("a".into())));
        assert!(token(&["onus=a", "onus=b"]).is_err());
        assert_eq!(token(&["onus=onus_p1", "onus=1.2.ab"]), Ok(Some("1.2.ab".into())));
        assert_eq!(token(&["onus=onus_p1"]), Ok(Some("onus_p1".into())));
        assert_eq!(pushed_token(|_| None), Ok(None));
    }
}
