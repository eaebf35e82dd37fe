//! Which paths a task may touch.

use super::{details, in_role, policy, task};
use onus_core::boundary::{path_findings, scope_findings};
use onus_core::code::Code;
use onus_core::identity_map::Policy;
use onus_core::task::Spec;

const MAP: &str = "
roles:
  backend: {owns: ['cmd/**', 'pkg/**']}
  ui: {owns: ['web/**', 'pkg/ui/**']}
  architecture: {}
  free: {}
co_edited:
  - {paths: ['docs/api/**', 'pkg/ui/**'], primary: backend, with: [ui]}
contracts:
  - {paths: ['api/*.yaml', 'pkg/contract'], owner: architecture}
  - {paths: ['docs/api/v1.yaml'], owner: backend}
";

/// `expected` are the reasons, one per path in the order of the paths; `-` where the path is fine.
#[track_caller]
fn check(spec: &Spec, paths: &[(&str, &str)]) {
    for (path, expected) in paths {
        let findings = path_findings(&policy(MAP), spec, &[], &[(*path).to_owned()]);
        assert!(findings.iter().all(|f| f.code == Code::ScopeViolation && f.hint.is_some()));
        let found: Vec<&str> =
            findings.iter().filter_map(|f| f.detail.strip_prefix(&format!("`{path}` is "))).collect();
        let expected: Vec<&str> = Some(*expected).into_iter().filter(|text| *text != "-").collect();
        assert_eq!(found, expected, "{path}");
        assert_eq!(found.len(), findings.len());
    }
}

#[test]
fn a_role_changes_what_it_owns_and_co_edits() {
    check(
        &in_role("backend"),
        &[
            ("cmd/main.go", "-"),
            ("pkg/a/b.go", "-"),
            ("docs/api/index.md", "-"),
            ("docs/api/v1.yaml", "-"),
            ("pkg/ui/x.go", "-"),
            ("README.md", "outside what backend owns"),
            ("web/app.ts", "owned by ui"),
            ("api/v1.yaml", "a contract that only architecture changes"),
            ("pkg/contract/x.go", "a contract that only architecture changes"),
        ],
    );
    check(
        &in_role("ui"),
        &[
            ("docs/api/index.md", "-"),
            ("docs/api/v1.yaml", "a contract that only backend changes"),
            ("cmd/main.go", "owned by backend"),
            ("pkg/ui/x.go", "-"),
        ],
    );
}

#[test]
fn a_role_that_owns_nothing_changes_what_nobody_owns() {
    for role in ["free", "unlisted"] {
        check(
            &in_role(role),
            &[
                ("README.md", "-"),
                ("web/app.ts", "owned by ui"),
                ("api/v1.yaml", "a contract that only architecture changes"),
            ],
        );
    }
    check(&in_role("architecture"), &[("api/v1.yaml", "-"), ("README.md", "-")]);
    // What is co-edited, and owned, by others stays closed.
    check(&in_role("free"), &[("pkg/ui/x.go", "owned by backend")]);
}

#[test]
fn scope_and_boundary_bind_together() {
    let scoped = Spec { scope: vec!["cmd".to_owned(), "web".to_owned()], ..in_role("backend") };
    check(
        &scoped,
        &[
            ("cmd/main.go", "-"),
            ("pkg/a.go", "outside the task's scope"),
            ("web/app.ts", "owned by ui"),
            ("README.md", "outside the task's scope, and outside what backend owns"),
        ],
    );
    let without_role = Spec { scope: vec!["cmd".to_owned()], ..task("-") };
    check(&without_role, &[("cmd/a", "-"), ("web/app.ts", "outside the task's scope")]);
    check(&task("-"), &[("web/app.ts", "-"), ("api/v1.yaml", "-")]);
    let absent = path_findings(&Policy::Absent, &in_role("backend"), &[], &["web/app.ts".to_owned()]);
    assert_eq!(absent, []);
}

#[test]
fn many_paths_are_named_once_and_then_counted() {
    let mut paths: Vec<String> = (0..25).map(|n| format!("web/{n}")).collect();
    paths.extend(paths.clone());
    paths.push("cmd/fine".to_owned());
    let findings = path_findings(&policy(MAP), &in_role("backend"), &[], &paths);
    assert_eq!(findings.len(), 21);
    assert_eq!(findings[20].detail, "and 5 more");
    let exact = path_findings(&policy(MAP), &in_role("backend"), &[], &paths[..20]);
    assert_eq!(exact.len(), 20);
}

#[test]
fn a_path_in_a_message_cannot_steer_a_terminal() {
    let findings = path_findings(&policy(MAP), &in_role("backend"), &[], &["a\u{1b}[2J".to_owned()]);
    assert_eq!(details(&findings), ["`a\\u{1b}[2J` is outside what backend owns"]);
}

#[test]
fn a_scope_that_the_role_can_never_touch_is_found_at_the_claim() {
    let globs = ["cmd/x", "web/**", "docs/api", "**/*.go", "elsewhere"].map(str::to_owned).to_vec();
    let spec = |role: &str| Spec { scope: globs.clone(), ..in_role(role) };
    let findings = scope_findings(&policy(MAP), &spec("backend"));
    assert!(findings.iter().all(|f| f.code == Code::ScopeViolation && f.hint.is_some()));
    assert_eq!(
        details(&findings),
        [
            "the scope `web/**` lies outside what backend owns",
            "the scope `elsewhere` lies outside what backend owns"
        ]
    );
    assert_eq!(scope_findings(&policy(MAP), &spec("free")), []);
    assert_eq!(scope_findings(&policy(MAP), &Spec { scope: globs.clone(), ..task("-") }), []);
    assert_eq!(scope_findings(&Policy::Absent, &spec("backend")), []);
}
