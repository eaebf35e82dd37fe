//! Channels: what is believed, what is read, and what a delivery can never become.

mod channel {
    use onus_core::code::Code;
    use onus_core::intake::channel::{Channel, Delivery, Reading, authentic, read, request};
    use onus_core::refusal::Refusal;
    use onus_core::task::{CheckState, Priority, Spec};
    use onus_core::worker::{Kind, Worker, WorkerState};
    use serde_json::{Value, json};

    fn channel(settings: Value) -> Channel {
        serde_json::from_value(settings).unwrap()
    }

    fn delivery(body: &[u8]) -> Delivery<'_> {
        Delivery { signature: None, id: None, event: None, body }
    }

    fn asked(settings: Value, document: Value) -> Result<Spec, Refusal> {
        let body = document.to_string();
        match read(&"tracker".parse().unwrap(), &channel(settings), &delivery(body.as_bytes()))? {
            Reading::Ask(spec) => Ok(*spec),
            Reading::Nothing(why) => panic!("{why}"),
        }
    }

    /// Two readers of one document must not see two asks.
    #[test]
    fn a_key_comes_once() {
        for body in [
            r#"{"key": "A", "title": "one", "title": "two"}"#,
            r#"{"key": "A", "title": "one", "more": {"a": 1, "a": 2}}"#,
            r#"{"key": "A", "title": "one", "more": [{"b": [], "b": []}]}"#,
        ] {
            let refused = read(&"tracker".parse().unwrap(), &channel(json!({})), &delivery(body.as_bytes()));
            let refusal = refused.unwrap_err();
            assert_eq!(refusal.code, Code::InvalidInput);
            assert!(refusal.detail.contains("comes twice"), "{refusal}");
        }
    }

    /// RFC 4231, test case 2, and everything that is not it.
    #[test]
    fn only_the_secret_signs() {
        let good = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let body: &[u8] = b"what do ya want for nothing?";
        let check = |secret: &[u8], signature: Option<&str>, body| {
            authentic(secret, &Delivery { signature, ..delivery(body) }).map_err(|refusal| refusal.code)
        };
        assert_eq!(check(b"Jefe", Some(good), body), Ok(()));
        let bare = good.strip_prefix("sha256=").unwrap();
        let other = good.replace("5b", "5c");
        let upper = good.to_uppercase();
        for bad in
            [None, Some(""), Some("sha256="), Some(bare), Some(&other), Some(&upper), Some(&good[..70])]
        {
            assert_eq!(check(b"Jefe", bad, body), Err(Code::Unauthenticated), "{bad:?}");
        }
        assert_eq!(check(b"jefe", Some(good), body), Err(Code::Unauthenticated));
        assert_eq!(check(b"Jefe", Some(good), b"what do ya want for nothing? "), Err(Code::Unauthenticated));
    }

    #[test]
    fn a_delivery_is_known_by_its_name_or_by_what_it_says() {
        let name = "tracker".parse().unwrap();
        let key =
            |id, body: &'static str| request(&name, &Delivery { id, ..delivery(body.as_bytes()) }).unwrap();
        assert_eq!(key(Some("1"), "a"), key(Some("1"), "b"));
        assert_ne!(key(Some("1"), "a"), key(Some("2"), "a"));
        assert_eq!(key(None, "a"), key(None, "a"));
        assert_ne!(key(None, "a"), key(None, "b"));
        let other =
            request(&"other".parse().unwrap(), &Delivery { id: Some("1"), ..delivery(b"a") }).unwrap();
        assert_ne!(key(Some("1"), "a"), other, "channels share no names");
    }

    #[test]
    fn title_key_type_and_priority_are_read_and_nothing_else() {
        let document = json!({
            "title": "Broken", "key": 12, "type": "bugfix", "priority": "P1",
            "role": "A-backend", "scope": ["**"], "body": "words", "checks": ["make test"],
        });
        let spec = asked(json!({}), document).unwrap();
        let origin = spec.origin.as_ref().map(ToString::to_string);
        assert_eq!((spec.title.as_str(), origin.as_deref()), ("Broken", Some("tracker:12")));
        assert_eq!((spec.task_type.unwrap().as_str(), spec.priority), ("bugfix", Priority::P1));
        assert_eq!((spec.role, spec.scope, spec.body), (None, vec![], None));
        assert_eq!(spec.checks[0].state, CheckState::Proposed);
    }

    #[test]
    fn a_channel_says_where_things_are_and_what_is_left_out() {
        let settings = json!({
            "fields": { "title": "[{list.1.name}] {deep.title}", "key": "{deep.id}" },
            "type": "support", "priority": "P3", "kind": "chore",
        });
        let document = json!({ "deep": { "title": "Help", "id": "a/7" }, "list": [{}, { "name": "web" }] });
        let spec = asked(settings, document).unwrap();
        assert_eq!((spec.title.as_str(), spec.kind.as_str()), ("[web] Help", "chore"));
        assert_eq!(spec.origin.unwrap().to_string(), "tracker:a/7");
        assert_eq!((spec.task_type.unwrap().as_str(), spec.priority), ("support", Priority::P3));
    }

    #[test]
    fn what_is_missing_or_makes_no_sense_is_refused() {
        let whole = json!({ "title": "a", "key": "b" });
        assert!(asked(json!({}), whole).is_ok());
        for bad in [
            json!({ "key": "b" }),
            json!({ "title": "a" }),
            json!({ "title": " ", "key": "b" }),
            json!({ "title": ["a"], "key": "b" }),
            json!({ "title": "a", "key": "b c" }),
            json!({ "title": "a", "key": "b", "type": "No Type" }),
            json!({ "title": "a", "key": "b", "priority": "urgent" }),
            json!({ "title": "a", "key": "b", "checks": "make test" }),
            json!([]),
            json!(null),
        ] {
            assert_eq!(asked(json!({}), bad.clone()).unwrap_err().code, Code::InvalidInput, "{bad}");
        }
        let not_json = read(&"x".parse().unwrap(), &channel(json!({})), &delivery(b"{"));
        assert_eq!(not_json.unwrap_err().code, Code::InvalidInput);
    }

    #[test]
    fn a_title_is_one_line_of_some_length() {
        let title = format!("a\u{1b}[31m\n{}", "ü".repeat(1_000));
        let spec = asked(json!({}), json!({ "title": title, "key": 1 })).unwrap();
        assert!(
            spec.title.len() <= 500 && spec.title.ends_with('…') && spec.title.starts_with("a [31m "),
            "{}",
            spec.title
        );
    }

    #[test]
    fn an_issue_on_github_is_asked_for_and_the_rest_is_not() {
        let settings = channel(json!({ "preset": "github" }));
        let document = json!({
            "action": "opened", "issue": { "title": "Broken", "number": 12, "body": "words" },
            "repository": { "full_name": "acme/api" },
        });
        let told = |event: Option<&'static str>, document: &Value| {
            let body = document.to_string();
            let delivery = Delivery { event, ..delivery(body.as_bytes()) };
            match read(&"github".parse().unwrap(), &settings, &delivery).unwrap() {
                Reading::Ask(spec) => spec.origin.unwrap().to_string(),
                Reading::Nothing(_) => "nothing".to_owned(),
            }
        };
        assert_eq!(told(Some("issues"), &document), "github:acme/api#12");
        assert_eq!(told(Some("ping"), &json!({ "zen": "…" })), "nothing");
        assert_eq!(told(None, &document), "nothing");
        for action in ["closed", "deleted", "transferred"] {
            let mut other = document.clone();
            other["action"] = action.into();
            assert_eq!(told(Some("issues"), &other), "nothing");
        }
    }

    #[test]
    fn a_channel_speaks_for_an_agent_and_for_nobody_else() {
        let speaks = |settings: Value, found: Option<Kind>| {
            let found = found.map(|kind| Worker {
                handle: "@herald".parse().unwrap(),
                kind,
                tier: None,
                role: None,
                state: WorkerState::Active,
                tz: "UTC".into(),
            });
            channel(settings).spokesman(&"tracker".parse().unwrap(), found).map_err(|refusal| refusal.code)
        };
        let named = || json!({ "worker": "@herald" });
        assert_eq!(speaks(named(), Some(Kind::Agent)).unwrap().as_str(), "@herald");
        assert_eq!(speaks(named(), Some(Kind::Human)), Err(Code::NotPermitted));
        assert_eq!(speaks(named(), None), Err(Code::UnknownWorker));
        assert_eq!(speaks(json!({}), None), Err(Code::NotPermitted), "a channel that names nobody");
    }

    #[test]
    fn a_link_leads_to_the_web_and_brings_no_markup() {
        let link = |url: &str, key: &str| channel(json!({ "url": url })).link(key);
        assert_eq!(link("https://t.example/{key}", "acme/api#12").unwrap(), "https://t.example/acme/api#12");
        assert_eq!(
            link("https://t.example/?q={key}", "a\"<b>&c").unwrap(),
            "https://t.example/?q=a%22%3Cb%3E%26c"
        );
        assert_eq!(link("javascript:{key}", "alert(1)"), None);
        assert_eq!(channel(json!({})).link("a"), None);
        assert!(
            serde_json::from_value::<Channel>(json!({ "secret": "in the open" })).is_err(),
            "no secret in a file that is committed"
        );
    }
}
