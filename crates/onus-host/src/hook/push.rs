//! What git tells a hook: on its standard input, and in its push options.

use onus_core::guard::Naming;
use onus_core::id::{CommitId, Handle, shown};
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

/// What a push shows of who makes it, by its options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushOptions {
    /// A lease's token.
    pub lease: Option<String>,
    /// A person's own token.
    pub person: Option<String>,
    /// Who pushes, as the option says.
    pub name: Option<Handle>,
    pub naming: Naming,
}

impl PushOptions {
    /// What was pushed along: `-o onus=TOKEN` once for a lease and once for a person, and `-o onus-as=NAME`. Without a name
    /// behind it the environment must say who it is: so it lies in a holder's own working tree. `variable` reads the
    /// environment.
    pub fn of_push(variable: impl Fn(&str) -> Option<String>) -> Result<PushOptions, Refusal> {
        PushOptions::read(&options(&variable, ""))
    }

    /// The same, as [`PushOptions::text`] has written it.
    pub fn of_text(text: &str) -> Result<PushOptions, Refusal> {
        PushOptions::read(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    fn read(options: &[String]) -> Result<PushOptions, Refusal> {
        let of =
            |name: &str| options.iter().filter_map(|option| option.strip_prefix(name)).collect::<Vec<_>>();
        let (persons, leases): (Vec<&str>, Vec<&str>) =
            of("onus=").into_iter().partition(|token| is_persons(token));
        let names = of("onus-as=");
        let name = only(names.iter().copied().filter(|name| !name.is_empty()), "names")?;
        Ok(PushOptions {
            lease: only(leases.into_iter(), "lease tokens")?,
            person: only(persons.into_iter(), "tokens of people")?,
            name: name.map(|name| name.parse().map_err(Refusal::invalid)).transpose()?,
            naming: if names.contains(&"") { Naming::Required } else { Naming::Free },
        })
    }

    /// Whether a token was shown at all.
    pub fn has_token(&self) -> bool {
        self.lease.is_some() || self.person.is_some()
    }

    /// As options again, one in a line.
    pub fn text(&self) -> String {
        let tokens = self.lease.iter().chain(&self.person).map(|token| format!("onus={token}\n"));
        let name = self.name.iter().map(|name| format!("onus-as={name}\n"));
        let naming = (self.naming == Naming::Required).then(|| "onus-as=\n".to_owned());
        tokens.chain(name).chain(naming).collect()
    }
}

fn only<'a>(mut all: impl Iterator<Item = &'a str>, what: &str) -> Result<Option<String>, Refusal> {
    let first = all.next();
    match all.any(|other| Some(other) != first) {
        false => Ok(first.map(str::to_owned)),
        true => Err(Refusal::invalid(format!("several {what} were pushed; one push has one holder"))
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
fn is_persons(token: &str) -> bool {
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
    fn a_push_shows_one_holder() {
        let shown = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
            let read = PushOptions::of_push(|name| match name {
                "GIT_PUSH_OPTION_COUNT" => Some(options.len().to_string()),
                _ => options.get(name.rsplit('_').next()?.parse::<usize>().ok()?).cloned(),
            })?;
            assert_eq!(PushOptions::of_text(&read.text()), Ok(read.clone()), "what the ticket carries");
            let PushOptions { lease, person, name, naming } = read;
            Ok::<_, Refusal>((lease, person, name.map(|name| name.to_string()), naming == Naming::Required))
        };
        let word = |text: &str| Some(text.to_owned());
        assert_eq!(shown(&[]), Ok((None, None, None, false)));
        assert_eq!(shown(&["ci.skip", "onus=1.2.ab"]), Ok((word("1.2.ab"), None, None, false)));
        assert_eq!(shown(&["onus=a", "onus=a"]), Ok((word("a"), None, None, false)));
        assert!(shown(&["onus=a", "onus=b"]).is_err());
        assert_eq!(shown(&["onus=onus_p1", "onus=a"]), Ok((word("a"), word("onus_p1"), None, false)));
        assert_eq!(shown(&["onus=a", "onus-as=@x"]), Ok((word("a"), None, word("@x"), false)));
        assert_eq!(shown(&["onus=a", "onus-as="]), Ok((word("a"), None, None, true)));
        assert!(shown(&["onus=a", "onus-as=@x", "onus-as=@y"]).is_err());
        assert!(shown(&["onus=a", "onus-as=no name"]).is_err());
    }
}
