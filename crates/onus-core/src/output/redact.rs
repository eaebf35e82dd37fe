//! Takes secrets out of a stream of text: values that are known, and words that look like keys.

/// What stands in a secret's place.
const MARK: &str = "[redacted]";

/// A shorter value is no secret, and taking it out would garble everything.
const VALUE_MIN: usize = 6;

/// The beginning of a key, and how many characters of a key must follow it.
const KEYS: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 8),
    ("rk_live_", 8),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 12),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxa-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("AKIA", 16),
    ("AIza", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("onus_", 24),
];

/// Whether a variable of this name holds something that nobody else may see.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name == "ONUS_LEASE"
        || ["_KEY", "_TOKEN", "_PAT", "_CREDENTIALS"].iter().any(|end| name.ends_with(end))
        || ["SECRET", "PASSWORD", "PASSWD", "APIKEY"].iter().any(|part| name.contains(part))
        || matches!(name.as_str(), "TOKEN" | "KEY" | "PAT")
}

/// A whole text without the words in it that look like keys.
pub fn redacted(text: &str) -> String {
    let mut redactor = Redactor::default();
    let mut shown = redactor.push(text);
    shown.push_str(&redactor.finish());
    shown
}

/// Replaces secrets by [`MARK`], wherever the stream is cut.
#[derive(Default)]
pub struct Redactor {
    /// The longest first: one may begin with another.
    values: Vec<String>,
    /// What may be the beginning of a secret.
    held: String,
    /// A key was replaced, and its end has not come yet.
    in_key: bool,
    /// What came just before.
    before: Option<char>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.values.len())
    }
}

impl Redactor {
    /// One that knows these values, as they are and as JSON writes them.
    pub fn new(values: impl IntoIterator<Item = String>) -> Redactor {
        let mut all = Vec::new();
        for value in values.into_iter().filter(|value| value.trim().len() >= VALUE_MIN) {
            let quoted = serde_json::to_string(&value).unwrap_or_default();
            let inner = quoted.trim_matches('"');
            if inner != value && !inner.is_empty() {
                all.push(inner.to_owned());
            }
            all.push(value);
        }
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        Redactor { values: all, ..Redactor::default() }
    }

    /// What may be shown of the text so far; the rest is told with what follows.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let whole = std::mem::take(&mut self.held);
        self.scan(whole, StreamEnd::Open)
    }

    /// Whether something is held back that may be the beginning of a secret.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// What is left when nothing more comes.
    pub fn finish(&mut self) -> String {
        let whole = std::mem::take(&mut self.held);
        self.scan(whole, StreamEnd::Closed)
    }

    fn scan(&mut self, whole: String, ending: StreamEnd) -> String {
        let mut shown = String::with_capacity(whole.len());
        let mut at = 0;
        while let Some(c) = whole[at..].chars().next() {
            if self.in_key && is_key_character(c) {
                at += c.len_utf8();
                continue;
            }
            self.in_key = false;
            match self.found(&whole[at..], ending) {
                Match::Value(length) => {
                    shown.push_str(MARK);
                    at += length;
                    self.before = None;
                }
                Match::Key(length) => {
                    shown.push_str(MARK);
                    at += length;
                    self.in_key = true;
                    self.before = None;
                }
                Match::Perhaps => {
                    self.held = whole[at..].to_owned();
                    return shown;
                }
                Match::Nothing => {
                    shown.push(c);
                    at += c.len_utf8();
                    self.before = Some(c);
                }
            }
        }
        if ending == StreamEnd::Closed {
            self.in_key = false;
        }
        shown
    }

    /// What begins with `rest`.
    fn found(&self, rest: &str, ending: StreamEnd) -> Match {
        if ending == StreamEnd::Open && self.values.iter().any(|value| is_begun(value, rest)) {
            return Match::Perhaps;
        }
        if let Some(value) = self.values.iter().find(|value| rest.starts_with(value.as_str())) {
            return Match::Value(value.len());
        }
        // In the middle of a word nothing begins.
        if self.before.is_some_and(|before| before.is_ascii_alphanumeric()) {
            return Match::Nothing;
        }
        if let Some(found) = lease(rest, ending) {
            return found;
        }
        for (begin, least) in KEYS {
            if let Some(word) = rest.strip_prefix(begin) {
                let length = word.find(|c| !is_key_character(c)).unwrap_or(word.len());
                match length >= *least {
                    true => return Match::Key(begin.len() + length),
                    false if length == word.len() && ending == StreamEnd::Open => return Match::Perhaps,
                    false => {}
                }
            } else if ending == StreamEnd::Open && is_begun(begin, rest) {
                return Match::Perhaps;
            }
        }
        Match::Nothing
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// More may come.
    Open,
    Closed,
}

enum Match {
    Value(usize),
    Key(usize),
    /// What comes next decides.
    Perhaps,
    Nothing,
}

/// Whether `rest` is the beginning of `secret`, and not all of it.
fn is_begun(secret: &str, rest: &str) -> bool {
    rest.len() < secret.len() && secret.starts_with(rest)
}

fn is_key_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// `generation.epoch.` and 32 hexadecimal digits: somebody's lease.
fn lease(rest: &str, ending: StreamEnd) -> Option<Match> {
    let mut at = 0;
    for _ in 0..2 {
        let digits = rest[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at);
        if digits == 0 || digits > 19 {
            return None;
        }
        at += digits;
        match rest[at..].chars().next() {
            Some('.') => at += 1,
            None if ending == StreamEnd::Open => return Some(Match::Perhaps),
            _ => return None,
        }
        if at == rest.len() && ending == StreamEnd::Open {
            return Some(Match::Perhaps);
        }
    }
    let word = &rest[at..];
    let digits = word.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(word.len());
    match digits {
        32.. => Some(Match::Key(at + digits)),
        _ if digits == word.len() && ending == StreamEnd::Open => Some(Match::Perhaps),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEASE: &str = "1.42.0123456789abcdef0123456789abcdef";

    fn values() -> Vec<String> {
        ["hunter22", "hunter2223", "pass word\nwith \"two\" lines", "short"].map(str::to_owned).to_vec()
    }

    fn cut(text: &str, cuts: &[usize]) -> String {
        let mut redactor = Redactor::new(values());
        let (mut shown, mut from) = (String::new(), 0);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(*cut)).collect();
        cuts.sort_unstable();
        for to in cuts {
            shown.push_str(&redactor.push(&text[from..to]));
            from = to;
        }
        shown.push_str(&redactor.push(&text[from..]));
        shown.push_str(&redactor.finish());
        shown
    }

    #[test]
    fn known_values_and_keys_go_and_nothing_else() {
        for (given, wanted) in [
            (
                "no secret here: sk- and 1.2.3, task-sk-is-fine, short",
                "no secret here: sk- and 1.2.3, task-sk-is-fine, short",
            ),
            ("a hunter22 b", "a [redacted] b"),
            ("hunter2223!", "[redacted]!"),
            ("hunter22", "[redacted]"),
            ("x=pass word\nwith \"two\" lines.", "x=[redacted]."),
            (r#"{"p":"pass word\nwith \"two\" lines"}"#, r#"{"p":"[redacted]"}"#),
            ("key sk-ant-api03-abcdefghijklmnop, done", "key [redacted], done"),
            ("ghp_0123456789abcdefABCDEF end", "[redacted] end"),
            ("xoxb-12345678-abc", "[redacted]"),
            ("onus_a01234567_0123456789abcdefghjkmnpqrstvwxyz0123456", "[redacted]"),
            (&format!("ONUS_LEASE={LEASE}\n"), "ONUS_LEASE=[redacted]\n"),
            ("version 1.22.333 of 0123456789abcdef", "version 1.22.333 of 0123456789abcdef"),
        ] {
            assert_eq!(cut(given, &[]), wanted, "{given}");
        }
    }

    #[test]
    fn every_cut_gives_the_same() {
        let text = format!(
            "a {LEASE} sk-ant-abcdefghijklmnopq hunter22 hunter2223 pass word\nwith \"two\" lines 1.2"
        );
        let whole = cut(&text, &[]);
        assert_eq!(whole.matches(MARK).count(), 5, "{whole}");
        for one in 0..text.len() {
            for two in (one..text.len()).step_by(7) {
                assert_eq!(cut(&text, &[one, two]), whole, "{one} {two}");
            }
        }
        let bytes: Vec<usize> = (0..text.len()).collect();
        assert_eq!(cut(&text, &bytes), whole);
    }

    proptest! {
        /// However it is cut, and whatever stands around it, no planted secret is seen.
        #[test]
        fn no_planted_secret_is_seen(around in "[ a-z0-9._\n-]{0,20}", cuts in prop::collection::vec(0usize..120, 0..8)) {
            let text = format!("{around} {LEASE} {around} hunter2223 {around} sk-proj-abcdefghijklmnop0123");
            let shown = cut(&text, &cuts);
            prop_assert!(!shown.contains("abcdef"), "{}", shown);
            prop_assert!(!shown.contains("hunter"), "{}", shown);
            prop_assert_eq!(shown, cut(&text, &[]));
        }
    }

    #[test]
    fn names_that_hold_secrets_are_known() {
        for name in [
            "ANTHROPIC_API_KEY",
            "ONUS_TOKEN",
            "ONUS_LEASE",
            "my_secret_thing",
            "DB_PASSWORD",
            "GITHUB_TOKEN",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "ONUS_KEY_DIR", "HOME", "MAX_TOKENS", "KEYBOARD", "ONUS_TASK", "SSH_AUTH_SOCK"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
