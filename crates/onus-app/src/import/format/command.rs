//! What of a list of checks is a command, and what is prose.

use onus_core::check::{cannot_fail, looks_like_prose};

/// Whether an entry of a list of checks is a command. Prose never becomes one; what is neither for certain is prose.
pub(super) fn is_command(text: &str) -> bool {
    let text = text.trim();
    if text.contains('\n') || looks_like_prose(text) || cannot_fail(text) {
        return false;
    }
    let words = text.split_whitespace().skip_while(|word| word.contains('=') || *word == "!");
    let first = words.clone().next().unwrap_or_default();
    let is_file = first.contains('/') || [".sh", ".py", ".js", ".ts"].iter().any(|end| first.ends_with(end));
    let is_only_path = is_file && words.count() == 1 && !first.starts_with("./") && !first.contains(".sh");
    (is_file && !is_only_path) || PROGRAMS.contains(&first)
}

const PROGRAMS: &[&str] = &[
    "ansible",
    "bash",
    "bazel",
    "buf",
    "bun",
    "bundle",
    "bunx",
    "cargo",
    "cmake",
    "composer",
    "ctest",
    "curl",
    "deno",
    "docker",
    "dotnet",
    "eslint",
    "flake8",
    "git",
    "go",
    "gradle",
    "grep",
    "helm",
    "jest",
    "jq",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "mypy",
    "ninja",
    "node",
    "npm",
    "npx",
    "php",
    "phpunit",
    "pip",
    "playwright",
    "pnpm",
    "podman",
    "poetry",
    "psql",
    "pytest",
    "python",
    "python3",
    "rake",
    "rg",
    "rspec",
    "ruby",
    "ruff",
    "sbt",
    "sh",
    "shellcheck",
    "swift",
    "terraform",
    "tox",
    "tsc",
    "uv",
    "vitest",
    "yarn",
];
