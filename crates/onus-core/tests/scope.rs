//! Globs: what they match, and what two of them share, against brute force and against another implementation.

mod globs {
    use globset::GlobBuilder;
    use onus_core::scope::Glob;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap_or_else(|reason| panic!("`{text}` {reason}"))
    }

    /// Every path of up to six letters over a small alphabet: names apart by slashes, none `.` or `..`.
    static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut texts = vec![String::new()];
        let mut paths = Vec::new();
        for _ in 0..6 {
            texts =
                texts.iter().flat_map(|text| ['a', 'b', '.', '/'].map(|c| format!("{text}{c}"))).collect();
            let is_path = |text: &&String| text.split('/').all(|name| !matches!(name, "" | "." | ".."));
            paths.extend(texts.iter().filter(is_path).cloned());
        }
        paths
    });

    /// One name of a pattern. The second text says the same to `globset`, whose classes may cross a slash.
    fn name() -> impl Strategy<Value = (String, String)> {
        let piece = prop_oneof![
            4 => "[ab]".prop_map(|c| (c.clone(), c)),
            2 => Just(("*".to_owned(), "*".to_owned())),
            1 => Just(("?".to_owned(), "?".to_owned())),
            1 => Just((".".to_owned(), ".".to_owned())),
            1 => Just(("[a-b]".to_owned(), "[a-b]".to_owned())),
            1 => Just(("[!a]".to_owned(), "[!a/]".to_owned())),
            1 => Just(("[^.b]".to_owned(), "[^.b/]".to_owned())),
            1 => Just(("{a,b.}".to_owned(), "{a,b.}".to_owned())),
            1 => Just(("{b*,a}".to_owned(), "{b*,a}".to_owned())),
        ];
        prop::collection::vec(piece, 1..4).prop_map(|pieces| {
            let (own, theirs): (Vec<String>, Vec<String>) = pieces.into_iter().unzip();
            (own.concat(), theirs.concat())
        })
    }

    fn pattern() -> impl Strategy<Value = (String, String)> {
        let everything = Just(("**".to_owned(), "**".to_owned()));
        let part = prop_oneof![4 => name(), 1 => everything];
        let parts = prop::collection::vec(part, 1..4).prop_map(|parts| {
            let (own, theirs): (Vec<String>, Vec<String>) = parts.into_iter().unzip();
            (own.join("/"), theirs.join("/"))
        });
        parts.prop_filter("a glob", |(own, _)| Glob::parse(own).is_ok())
    }

    fn any_glob() -> impl Strategy<Value = String> {
        (pattern(), prop_oneof![4 => Just(""), 1 => Just("/")]).prop_map(|((own, _), end)| own + end)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

        #[test]
        fn what_two_globs_share_is_what_brute_force_finds(a in any_glob(), b in any_glob()) {
            let (one, two) = (glob(&a), glob(&b));
            let witness = one.intersects(&two);
            prop_assert_eq!(witness.is_some(), two.intersects(&one).is_some(), "{} {}", a, b);
            match witness {
                Some(path) => prop_assert!(one.matches(&path) && two.matches(&path), "{a} {b}: {path}"),
                None => {
                    let shared = PATHS.iter().find(|path| one.matches(path) && two.matches(path));
                    prop_assert_eq!(shared, None, "{} {}", a, b);
                }
            }
        }

        #[test]
        fn a_glob_shares_its_paths_with_itself(a in any_glob()) {
            let one = glob(&a);
            let any = PATHS.iter().any(|path| one.matches(path));
            prop_assert!(!any || one.intersects(&one).is_some(), "{a}");
            prop_assert_eq!(one.intersects(&one).is_some(), one.intersects(&glob("**")).is_some(), "{}", a);
        }

        #[test]
        fn globset_agrees_on_what_matches((own, theirs) in pattern()) {
            // What holds no wildcard is a directory here; braces may hide one such pattern.
            prop_assume!(own.contains(['*', '?', '[']) && !own.contains('{'));
            let reference = GlobBuilder::new(&theirs).literal_separator(true).build().unwrap().compile_matcher();
            let one = glob(&own);
            for path in &*PATHS {
                prop_assert_eq!(one.matches(path), reference.is_match(path), "{} {}", own, path);
            }
        }

        #[test]
        fn globset_agrees_on_braces((own, theirs) in pattern()) {
            prop_assume!(own.contains('{'));
            // A class of one keeps every alternative from being a plain directory.
            let (own, theirs) = (format!("[a]/{own}"), format!("[a]/{theirs}"));
            let reference = GlobBuilder::new(&theirs).literal_separator(true).build().unwrap().compile_matcher();
            let one = glob(&own);
            for path in &*PATHS {
                prop_assert_eq!(one.matches(path), reference.is_match(path), "{} {}", own, path);
            }
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(a in "[ab/*?\\[\\]{},!^.\\\\é-]{0,40}", b in "\\PC{0,40}") {
            for text in [&a, &b] {
                if let Ok(one) = Glob::parse(text) {
                    let shared = one.intersects(&glob("**"));
                    prop_assert!(shared.is_none_or(|path| one.matches(&path)), "{text}");
                }
            }
        }
    }

    #[test]
    fn globs_match_paths() {
        for (text, inside, outside) in [
            ("src/login", "src/login src/login/a src/login/a/b", "src src/login2 src/log lib/src/login"),
            ("src/login/", "src/login src/login/a", "src/loginx"),
            ("src/*", "src/a src/.a", "src src/a/b"),
            ("src/*/", "src/a src/a/b src/a/b/c", "src"),
            ("src/**", "src/a src/a/b", "src srca"),
            ("**/b", "b a/b a/a/b", "ab a/bb b/a"),
            ("a/**/b", "a/b a/c/b a/c/d/b", "ab a/cb a/b/c"),
            ("**", "a a/b .a", ". .. a/../b /a a/ a//b"),
            ("*", "a ... .a", ". .. a/b"),
            ("?", "a é", "ab . /"),
            ("*.{rs,toml}", "a.rs .toml b.toml", "a.md a/b.rs"),
            ("src/{a,b/{c,d}}", "src/a src/a/x src/b/c src/b/d/x", "src/b src/c"),
            ("[a-cx]", "a b c x", "d y -"),
            ("[!a-c]", "d é", "a b / ab"),
            ("[]a]", "] a", "b"),
            ("[a-]", "a -", "b"),
            ("[{,}]x", "{x ,x }x", "x"),
            ("[+-9]", "0 + -", "/ ."),
            ("Ä/ö", "Ä/ö", "ä/ö"),
        ] {
            for path in inside.split(' ') {
                assert!(glob(text).matches(path), "{text} {path}");
            }
            for path in outside.split(' ') {
                assert!(!glob(text).matches(path), "{text} {path}");
            }
        }
    }

    #[test]
    fn a_witness_is_a_path_that_people_can_read() {
        for (a, b, witness) in [
            ("src/**", "src/login/**", Some("src/login/a")),
            ("src/login", "src", Some("src/login")),
            ("**/*.rs", "src/lib.*", Some("src/lib.rs")),
            ("**/test", "src/api", Some("src/api/test")),
            ("*.rs", "*.py", None),
            ("src/*", "src/*/*", None),
            ("[a-m]*", "[n-z]*", None),
            ("[a-n]*", "[n-z]*", Some("n")),
            ("[!a]", "[!b-z]", Some("A")),
            ("[\u{d7ff}\u{e000}]", "[!\u{d7ff}\u{e000}]", None),
            ("a*b*c", "*x*y*", Some("abxyc")),
            ("{a,b}/x", "{b,c}/x", Some("b/x")),
            ("{a,b}/x", "{c,d}/x", None),
            // Only `.` would match, which is no name.
            ("[.]", "[.]", None),
            ("[.]?", "?[.]", None),
        ] {
            assert_eq!(glob(a).intersects(&glob(b)).as_deref(), witness, "{a} {b}");
        }
    }

    #[test]
    fn bad_globs_are_refused_with_a_reason() {
        for (text, reason) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("/etc", "inside the repository"),
            ("/", "inside the repository"),
            ("a/../b", "inside the repository"),
            ("{a,..}/b", "inside the repository"),
            ("a\\b", "inside the repository"),
            ("a//b", "empty name"),
            ("a/{b,}/c", "empty name"),
            ("./a", "has a `.`"),
            ("a**", "beside other letters"),
            ("**a", "beside other letters"),
            ("a/***", "beside other letters"),
            ("[a", "`[` without"),
            ("[]", "`[` without"),
            ("[/]", "`[` without"),
            ("[a/b]", "`[` without"),
            ("a]", "`]` without"),
            ("{a", "`{` without"),
            ("a}", "`}` without"),
            ("{{a}", "`{` without"),
            ("[z-a]", "backwards"),
            (&"{a,b}".repeat(7), "more than 64"),
            (&"{".repeat(500), "`{` without"),
            (&"a".repeat(513), "the limit is 512"),
            (&format!("{{{},{}}}{}", "a", "b".repeat(20), "{c,d,e}".repeat(3)), ""),
            (&format!("{{a,b,c,d}}{}", "x".repeat(490)), "too many long"),
        ] {
            let refused = Glob::parse(text).err();
            match reason {
                "" => assert_eq!(refused, None, "{text}"),
                reason => {
                    assert!(refused.as_ref().is_some_and(|r| r.contains(reason)), "{text}: {refused:?}");
                }
            }
        }
    }

    /// On these patterns backtracking would outlast the test run.
    #[test]
    fn hostile_patterns_come_to_an_end() {
        let (a, b) = ("a*".repeat(255), "*a".repeat(255));
        assert!(glob(&(a.clone() + "b")).intersects(&glob(&(b.clone() + "c"))).is_none());
        assert!(glob(&a).intersects(&glob(&b)).is_some());
        assert!(!glob(&a).matches(&("a".repeat(4_000) + "/")));
        let deep = "**/a/".repeat(100);
        assert!(glob(&(deep.clone() + "b")).intersects(&glob(&(deep + "c"))).is_none());
    }
}
