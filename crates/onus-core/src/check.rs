//! Acceptance checks are commands that can fail (mission D7): a sentence proves nothing, and neither does a command
//! that always succeeds. These are readings of a command line, not a shell: where they are unsure, they let it pass.

mod cannot_fail;
mod prose;

pub use cannot_fail::cannot_fail;
pub use prose::looks_like_prose;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[&str] = &[
        "make test",
        "make",
        "cargo test -p x",
        "cargo test --workspace --all-features",
        "rg -q \"a\" file",
        "test -f x",
        "[ -f x ]",
        "! grep -q x y",
        "! rg 'the old name is used' src",
        "cd a && npm test",
        "npm test",
        "npm run test:unit",
        "go test ./...",
        "go vet .",
        "python3 -m pytest -x tests/test_login.py",
        "pytest tests",
        "./scripts/check.sh",
        "scripts/Check",
        "FOO=1 BAR='x y' make check",
        "bash -c 'cargo test'",
        "sh -c 'true && make test'",
        "curl -fsS http://localhost:8080/healthz",
        "$CARGO test",
        "~/bin/check all",
        "Rscript tests.R",
        "git diff --exit-code",
        "( cd web && npm ci )",
        "set -e; make test; true",
        "make test > log 2>&1",
        "true && make test",
        "echo checking; make test",
        "make test || exit 1",
        "false",
        "exit 1",
        "timeout 60 make it",
        "grep -q 'echo; true' file",
        "psql -c 'select 1 from users where the is not null'",
    ];

    #[test]
    fn commands_pass() {
        for command in GOOD {
            assert!(!looks_like_prose(command), "prose? {command}");
            assert!(!cannot_fail(command), "cannot fail? {command}");
        }
    }

    #[test]
    fn sentences_are_no_commands() {
        for prose in [
            "API route uses facade without moving unrelated service code",
            "All tests pass",
            "all tests pass",
            "tests pass",
            "The user can log in.",
            "users can log in",
            "Works on mobile",
            "works on mobile",
            "no regressions in the login flow",
            "manual test",
            "verify the UI by hand",
            "returns 404 when the user is unknown",
            "login works without a page reload",
            "check that the page loads",
            "make sure that the page loads",
            "dashboard shows totals per sprint.",
            "Endpoint: returns 200",
            "die Seite lädt ohne Fehler in the browser",
            "画面が表示される",
            "- [ ] write tests",
            "— nothing",
            "README mentions the flag",
            "! The flag is gone",
        ] {
            assert!(looks_like_prose(prose), "{prose}");
        }
    }
}
