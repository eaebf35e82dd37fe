//! The one-line form of a probe.
//!
//! ```text
//! command:TEXT        tcp:HOST:PORT        http:URL[#status=N][,pointer=/a/b][,equals=TEXT]
//! localstack:URL[#services=s3+sqs]         git[:clean][,branch=NAME][,behind=N][,at=COMMIT]        disk:500MB
//! ```
//!
//! Each may end in `;timeout=5s`. The last `;timeout=` of a line is the probe's, whatever stands before it.

use super::{Answer, Cleanness, Expected, Probe, ProbeKind, SPEC_MAX, Tree, Url};
use crate::id::shown;
use crate::text;
use crate::time::Millis;
use std::fmt;
use std::str::FromStr;

const TIMEOUT: &str = ";timeout=";
const SERVICES_MAX: usize = 64;
const BRANCH_MAX: usize = 255;

/// From the largest: a size is written in the largest unit that divides it.
const UNITS: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

impl FromStr for Probe {
    type Err = String;

    fn from_str(text: &str) -> Result<Probe, String> {
        let spec = text::line("probe", text, SPEC_MAX)?;
        let (kind, timeout) = match spec.rsplit_once(TIMEOUT) {
            Some((kind, timeout)) => (kind, read_timeout(timeout)?),
            None => (spec.as_str(), Probe::TIMEOUT_DEFAULT),
        };
        Ok(Probe { kind: read_kind(kind.trim_end())?, timeout })
    }
}

fn read_timeout(text: &str) -> Result<Millis, String> {
    let timeout = Millis::parse(text).map_err(|why| format!("timeout: {why}"))?;
    if (Probe::TIMEOUT_MIN..=Probe::TIMEOUT_MAX).contains(&timeout) {
        return Ok(timeout);
    }
    Err(format!("timeout {} is not between {} and 60s", shown(text), Probe::TIMEOUT_MIN))
}

fn read_kind(text: &str) -> Result<ProbeKind, String> {
    if let Some(options) = text.strip_prefix("git") {
        return read_tree(options).map(ProbeKind::Git);
    }
    let unknown =
        || format!("{} is not a probe; write command:, tcp:, http:, localstack:, git or disk:", shown(text));
    let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
    match kind {
        "command" => Ok(ProbeKind::Command { line: text::line("command", rest, SPEC_MAX)? }),
        "tcp" => rest.parse().map(ProbeKind::Tcp),
        // A bare URL is its own spec.
        "http" | "https" if rest.starts_with("//") => read_http(text),
        "http" | "https" => read_http(rest),
        "localstack" => read_localstack(rest),
        "disk" => read_size(rest).map(|bytes| ProbeKind::Disk { bytes }),
        _ => Err(unknown()),
    }
}

fn read_http(text: &str) -> Result<ProbeKind, String> {
    let (url, options) = split_options(text);
    let mut expect = Answer::default();
    let Some(options) = options else { return Ok(ProbeKind::Http { url: url.parse()?, expect }) };
    // `equals` is the last and takes the rest of the line; so does `pointer` when nothing is to be equal.
    let (options, equals) = match options.split_once(",equals=") {
        Some((options, equals)) => (options, Some(equals.to_owned())),
        None => (options, None),
    };
    let (status, pointer) = match options.split_once(",pointer=") {
        Some((status, pointer)) => (Some(status), Some(pointer)),
        None => match options.strip_prefix("pointer=") {
            Some(pointer) => (None, Some(pointer)),
            None => (Some(options), None),
        },
    };
    if let Some(status) = status {
        let number = status.strip_prefix("status=").and_then(|digits| digits.parse().ok());
        let known = number.filter(|number| (100..=599).contains(number));
        let bad = || format!("{} is not status=N, pointer=/A/B or equals=TEXT, in this order", shown(status));
        expect.status = Some(known.ok_or_else(bad)?);
    }
    expect.body = match (pointer, equals) {
        (Some(pointer), equals) => Some(Expected { pointer: read_pointer(pointer)?, equals }),
        (None, None) => None,
        (None, Some(_)) => return Err("equals=TEXT needs a pointer=/A/B to look at".into()),
    };
    Ok(ProbeKind::Http { url: url.parse()?, expect })
}

fn read_pointer(text: &str) -> Result<String, String> {
    let escapes_end = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if text.starts_with('/') && escapes_end {
        return Ok(text.to_owned());
    }
    Err(format!("{} is not a JSON pointer such as /status/ready", shown(text)))
}

fn read_localstack(text: &str) -> Result<ProbeKind, String> {
    let (url, options) = split_options(text);
    let url: Url = url.trim_end_matches('/').parse()?;
    if url.has_query() {
        return Err(format!(
            "{} has a query; LocalStack's health is at URL/_localstack/health",
            shown(url.as_str())
        ));
    }
    let Some(options) = options else { return Ok(ProbeKind::LocalStack { url, services: Vec::new() }) };
    let listed = options
        .strip_prefix("services=")
        .ok_or_else(|| format!("{} is not services=NAME+NAME", shown(options)))?;
    let services: Vec<String> = listed.split('+').map(str::to_owned).collect();
    let is_name = |name: &String| {
        (1..=text::LABEL_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if services.len() > SERVICES_MAX || !services.iter().all(is_name) {
        return Err(format!("{} is not a list of services such as s3+sqs", shown(listed)));
    }
    Ok(ProbeKind::LocalStack { url, services })
}

fn split_options(text: &str) -> (&str, Option<&str>) {
    match text.split_once('#') {
        Some((url, options)) => (url, Some(options)),
        None => (text, None),
    }
}

fn read_tree(options: &str) -> Result<Tree, String> {
    let mut tree = Tree::default();
    if options.is_empty() {
        return Ok(tree);
    }
    let bad = |what: &str| format!("{} is not clean, branch=NAME, behind=N or at=COMMIT", shown(what));
    let options = options.strip_prefix([':', ',']).ok_or_else(|| bad(options))?;
    for option in options.split(',') {
        let is_new = match option.split_once('=') {
            None if option == "clean" => {
                std::mem::replace(&mut tree.cleanness, Cleanness::Clean) == Cleanness::Any
            }
            Some(("branch", name)) if is_branch(name) => tree.branch.replace(name.to_owned()).is_none(),
            Some(("behind", count)) => {
                tree.behind.replace(read_number(count).ok_or_else(|| bad(option))?).is_none()
            }
            Some(("at", commit)) if is_commit(commit) => tree.at.replace(commit.to_owned()).is_none(),
            _ => return Err(bad(option)),
        };
        if !is_new {
            return Err(format!("{} is said twice", shown(option)));
        }
    }
    Ok(tree)
}

/// What `git check-ref-format --branch` takes, but for a comma, which ends an option here.
fn is_branch(name: &str) -> bool {
    (1..=BRANCH_MAX).contains(&name.len())
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && name.chars().all(|c| !c.is_whitespace() && !"~^:?*[\\".contains(c))
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Digits only: `+1` would read as 1 and be written otherwise than it was.
fn read_number<N: FromStr>(digits: &str) -> Option<N> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn read_size(text: &str) -> Result<u64, String> {
    let bad = || format!("{} is not a size such as 500MB, 2GB or 10GiB", shown(text));
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let number: u64 = read_number(digits).filter(|number| *number > 0).ok_or_else(bad)?;
    number.checked_mul(*factor).ok_or_else(bad)
}

/// A size as a spec writes it: exact, in the largest unit that allows it.
fn size(bytes: u64) -> String {
    let (name, factor) =
        UNITS.iter().find(|(_, factor)| bytes.is_multiple_of(*factor)).copied().unwrap_or(("B", 1));
    format!("{}{name}", bytes / factor)
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.to_string();
        f.write_str(&kind)?;
        let Millis(ms) = self.timeout;
        // What stands in the text itself must not be taken for the probe's own.
        if self.timeout == Probe::TIMEOUT_DEFAULT && !kind.contains(TIMEOUT) {
            return Ok(());
        }
        match ms % 1_000 {
            0 => write!(f, "{TIMEOUT}{}s", ms / 1_000),
            _ => write!(f, "{TIMEOUT}{ms}ms"),
        }
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeKind::Command { line } => write!(f, "command:{line}"),
            ProbeKind::Tcp(endpoint) => write!(f, "tcp:{endpoint}"),
            ProbeKind::Http { url, expect } => write!(f, "http:{url}{expect}"),
            ProbeKind::LocalStack { url, services } if services.is_empty() => write!(f, "localstack:{url}"),
            ProbeKind::LocalStack { url, services } => {
                write!(f, "localstack:{url}#services={}", services.join("+"))
            }
            ProbeKind::Git(tree) => write!(f, "git{tree}"),
            ProbeKind::Disk { bytes } => write!(f, "disk:{}", size(*bytes)),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map(|status| format!("status={status}"));
        let pointer = self.body.as_ref().map(|body| format!("pointer={}", body.pointer));
        let equals = self.body.as_ref().and_then(|body| body.equals.as_ref());
        write_options(f, '#', [status, pointer, equals.map(|text| format!("equals={text}"))])
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clean = (self.cleanness == Cleanness::Clean).then(|| "clean".to_owned());
        let branch = self.branch.as_ref().map(|name| format!("branch={name}"));
        let behind = self.behind.map(|count| format!("behind={count}"));
        let at = self.at.as_ref().map(|commit| format!("at={commit}"));
        write_options(f, ':', [clean, branch, behind, at])
    }
}

fn write_options<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    first: char,
    options: [Option<String>; N],
) -> fmt::Result {
    for (position, option) in options.into_iter().flatten().enumerate() {
        write!(f, "{}{option}", if position == 0 { first } else { ',' })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
