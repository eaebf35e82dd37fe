//! Notifications and commands after a change: from the outbox, to servers that fail, by a sender that is killed.

use crate::support::clock::Clock;
use crate::support::receiver::{BROKEN, LOST, REFUSED, Receiver, TAKEN, desktop};
use crate::support::{Site, finish, start, text};
use onus_core::notify::signature::signature;
use onus_testkit::OutsideKit;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(240);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn settings(site: &Site, text: &str) {
    std::fs::write(site.repo().join("secret"), SECRET).unwrap();
    std::fs::write(site.repo().join("onus.yaml"), text).unwrap();
}

/// Everybody who is told begins with what happens from now on.
fn begin(site: &Site) {
    site.ok(&["mirror", "sync"]);
}

fn complete(site: &Site, task: &str) {
    site.by_person(&["complete", task, "--force", "--reason", "by hand", "--resolution", "done"]);
}

fn stand(site: &Site, name: &str) -> Value {
    let mirrors = site.ok(&["mirror", "status"])["mirrors"].take();
    let found = mirrors.as_array().unwrap().iter().find(|one| one["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no {name} in {mirrors:#}"))
}

struct SenderProcess(Child);

impl SenderProcess {
    fn start(site: &Site) -> SenderProcess {
        let mut command = site.command(&["mirror", "run"]);
        SenderProcess(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for SenderProcess {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A person lets it be tried at once: pauses are minutes long.
fn until(site: &Site, name: &str, what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never {what}: {:#}", stand(site, name));
        site.by_person(&["mirror", "retry", name]);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_receiver_that_fails_half_of_the_time_gets_every_event_once_by_its_id_in_order() {
    // Refused twice, then taken twice, of which nobody hears once.
    let receiver = Receiver::start(|number| [BROKEN, TAKEN, BROKEN, LOST][number % 4]);
    let site = Site::new();
    settings(
        &site,
        &format!(
            "channels:\n  team: {{kind: webhook, url: \"{}\", secret_file: secret}}\nnotify:\n  - {{when: completed, to: team}}\n  \
             - {{when: lease_lost, to: team}}\n",
            receiver.url()
        ),
    );
    let before = site.add("Long ago");
    complete(&site, &before);
    begin(&site);
    let sender = SenderProcess::start(&site);
    let tasks: Vec<String> = (0..3).map(|n| site.add(&format!("Work {n}"))).collect();
    let act = || {
        for task in &tasks {
            site.by_person(&["claim", task, "--force", "--reason", "mine now"]);
            site.by_person(&["release", task, "--force", "--reason", "not mine"]);
        }
    };
    act();
    until(&site, "team", "the first were told", || receiver.taken().len() >= 2);
    // In the middle of it, whatever it is at.
    drop(sender);
    let _sender = SenderProcess::start(&site);
    site.by_person(&["reopen", &before, "--reason", "not quite"]);
    for task in tasks.iter().chain([&before]) {
        complete(&site, task);
    }
    until(&site, "team", "all was told", || stand(&site, "team")["pending"] == 0);

    let mut seen: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut ids: Vec<String> = Vec::new();
    for heard in receiver.taken() {
        let (id, seconds) = (heard.header("webhook-id").to_owned(), heard.header("webhook-timestamp"));
        let signed =
            signature(SECRET.as_bytes(), &id, seconds.parse().unwrap(), heard.body.as_bytes()).unwrap();
        assert_eq!(heard.header("webhook-signature"), signed, "anybody could have sent it");
        let body: Value = serde_json::from_str(&heard.body).unwrap();
        assert_eq!(body["data"]["id"], id.as_str());
        // A repeat is known by its id.
        if !ids.contains(&id) {
            seen.entry(text(&body["data"]["task"]["id"]).to_owned())
                .or_default()
                .push(body["data"]["seq"].as_i64().unwrap());
            ids.push(id);
        }
    }
    let told = ["claimed", "released", "completed"];
    for task in &tasks {
        let ledger = site.ledger();
        let of_task = ledger.iter().filter(|entry| entry["task"] == task.as_str());
        let wanted: Vec<i64> = of_task
            .filter(|entry| told.contains(&text(&entry["verb"])))
            .map(|entry| entry["seq"].as_i64().unwrap())
            .collect();
        assert_eq!(seen.get(task), Some(&wanted), "{task}: each once, in its order");
    }
    assert_eq!(seen.get(&before).map(Vec::len), Some(1), "what happened before is nobody's news");
}

#[test]
fn commands_run_after_a_change_in_order_and_those_that_ended_well_once() {
    let site = Site::new();
    settings(
        &site,
        "on:\n  completed:\n    - 'echo \"first $ONUS_TASK $ONUS_VERB ${SECRET_OF_SERVER-none}\" >> ran'\n    \
         - 'test -e ready && printf \"second %s\\n\" \"$ONUS_EVENT\" >> ran'\n",
    );
    begin(&site);
    let task = site.add("Tell a program");
    complete(&site, &task);
    let ran = || std::fs::read_to_string(site.repo().join("ran")).unwrap_or_default();
    assert_eq!(ran(), "", "nothing runs within the change itself");
    let mut sync = site.command(&["mirror", "sync", "on", "--json"]);
    assert!(sync.env("SECRET_OF_SERVER", "hush").output().unwrap().status.success());
    assert_eq!(ran(), format!("first {task} completed none\n"));
    let failed = stand(&site, "on");
    assert_eq!(failed["pending"], 1, "{failed:#}");
    std::fs::write(site.repo().join("ready"), "").unwrap();
    site.by_person(&["mirror", "retry", "on"]);
    begin(&site);
    let lines: Vec<String> = ran().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "the first ended well, and is not run again: {lines:#?}");
    let event: Value = serde_json::from_str(lines[1].strip_prefix("second ").unwrap()).unwrap();
    assert_eq!((text(&event["task"]["id"]), text(&event["verb"])), (task.as_str(), "completed"));
    begin(&site);
    assert_eq!(ran().lines().count(), 2, "and nothing is run again afterwards");
}

#[test]
fn what_is_refused_is_stuck_and_another_channel_tells_so() {
    let (bad, good) = (Receiver::start(|_| REFUSED), Receiver::start(|_| TAKEN));
    let site = Site::new();
    settings(
        &site,
        &format!(
            "channels:\n  chat: {{kind: slack, url_file: address}}\n  phone: {{kind: ntfy, url: \"{}\", to: alarms, \
             secret_file: secret}}\nnotify:\n  - {{when: completed, to: chat}}\n  - {{when: stuck, to: phone}}\n",
            good.url()
        ),
    );
    std::fs::write(site.repo().join("address"), bad.url()).unwrap();
    begin(&site);
    let task = site.add("Nobody hears <!channel>");
    complete(&site, &task);
    begin(&site);
    let told = stand(&site, "chat");
    assert_eq!(
        (told["stuck"].as_i64(), told["stuck_tasks"][0]["task"].as_str()),
        (Some(1), Some(task.as_str()))
    );
    assert!(!format!("{told}").contains("hook"), "the address is the secret: {told:#}");
    begin(&site);
    begin(&site);
    let heard = good.taken();
    assert_eq!(heard.len(), 1, "told once: {heard:#?}");
    let body: Value = serde_json::from_str(&heard[0].body).unwrap();
    assert_eq!(text(&body["topic"]), "alarms");
    assert!(text(&body["message"]).contains("the delivery to chat"), "{body:#}");
    assert_eq!(heard[0].header("authorization"), format!("Bearer {SECRET}"));
}

#[test]
fn a_person_is_told_what_waits_for_them_outside_their_quiet_hours_and_at_once_in_a_digest() {
    let receiver = Receiver::start(|_| TAKEN);
    let site = Site::new();
    // The clock of a database is its own, and cannot be set from here.
    let Some(clock) = Clock::at(&site.root().join("clock")).filter(|_| site.database.is_none()) else {
        return;
    };
    let agents = site.agents(2);
    site.by_person(&["worker", "add", "@grace", "--kind", "human", "--tz", "Asia/Tokyo"]);
    let told = |more: &str| {
        settings(
            &site,
            &format!(
                "channels:\n  team: {{kind: webhook, url: \"{}\", secret_file: secret}}\npeople:\n  \"@grace\": {{channel: team, \
                 {more}}}\nnotify:\n  - {{when: blocked_on_me, to: \"@grace\"}}\n",
                receiver.url()
            ),
        );
    };
    told("quiet: \"00:00-23:59\"");
    begin(&site);
    let tasks: Vec<String> = ["One", "Two"].iter().map(|title| site.add(title)).collect();
    for (task, agent) in tasks.iter().zip(&agents) {
        let claimed = site.ok(&["claim", task, "--as", &agent.handle, "--workstation", &agent.workstation]);
        let lease = text(&claimed["lease"]["token"]);
        for whom in ["person:@grace", &format!("person:{}", site.person)] {
            let by = ["--as", agent.handle.as_str(), "--lease", lease];
            site.ok(&[&["block", task, "--on", whom][..], &by].concat());
            site.ok(&[&["unblock", task][..], &by].concat());
        }
    }
    begin(&site);
    assert!(receiver.taken().is_empty(), "nobody wakes her");
    assert_eq!(stand(&site, "@grace")["pending"], 2);
    // A day later at the latest, the time of the digest has come; the quiet hour is another one.
    told("quiet: \"03:00-03:01\", digest: [\"02:00\", \"14:00\"]");
    for hours in [13, 25] {
        clock.set(hours * 3_600);
        let mut sync = site.command(&["mirror", "sync", "@grace", "--json"]);
        assert!(sync.envs(clock.environment()).output().unwrap().status.success());
    }
    let heard = receiver.taken();
    assert_eq!(heard.len(), 1, "one message: {heard:#?}");
    let body: Value = serde_json::from_str(&heard[0].body).unwrap();
    let news = body["data"]["news"].as_array().unwrap();
    let of: Vec<&str> = news.iter().map(|one| text(&one["task"]["id"])).collect();
    assert_eq!(of, tasks, "what waits for her, and not what waits for others: {body:#}");
    assert_eq!(text(&body["type"]), "digest");
}

/// A mail server that knows one user and one password, and hands on what it is given.
fn mail_server() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (give, given) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut answer = stream.try_clone().unwrap();
            let mut say = move |line: &str| drop(answer.write_all(format!("{line}\r\n").as_bytes()));
            let (mut is_known, mut mail, mut is_data) = (false, String::new(), false);
            say("220 mail.example");
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let verb = line.split([' ', ':']).next().unwrap_or_default().to_uppercase();
                match verb.as_str() {
                    _ if is_data && line == "." => {
                        is_data = false;
                        drop(give.send(std::mem::take(&mut mail)));
                        say("250 taken");
                    }
                    _ if is_data => mail.push_str(&format!("{line}\n")),
                    "EHLO" => say("250-mail.example\r\n250 AUTH PLAIN"),
                    // \0onus\0password
                    "AUTH" if line.ends_with(" AG9udXMAcGFzc3dvcmQ=") => {
                        is_known = true;
                        say("235 welcome");
                    }
                    "AUTH" => say("535 who are you"),
                    "MAIL" if !is_known => say("530 who are you"),
                    "RCPT" if line.contains("gone@") => say("550 no such user"),
                    "MAIL" | "RCPT" => say("250 fine"),
                    "DATA" => {
                        is_data = true;
                        say("354 go on");
                    }
                    "QUIT" => say("221 bye"),
                    _ => say("502 what"),
                }
            }
        }
    });
    (port, given)
}

#[test]
fn mail_has_an_id_of_its_own_and_check_sends_a_test_by_every_channel() {
    let (port, given) = mail_server();
    let site = Site::new();
    site.by_person(&["worker", "add", "@grace", "--kind", "human"]);
    settings(
        &site,
        &format!(
            "channels:\n  mail: {{kind: smtp, url: \"smtp://127.0.0.1:{port}\", user: onus, secret_file: password, from: \
             onus@example.org}}\n  bell: {{kind: command, command: 'echo \"$ONUS_TO $ONUS_TITLE\" >> rung'}}\npeople:\n  \
             \"@grace\": {{channel: mail, address: grace@example.org}}\n  \"{}\": {{channel: mail, address: gone@example.org}}\n\
             notify:\n  - {{when: completed, to: \"@grace\"}}\n  - {{when: completed, to: \"{}\"}}\n",
            site.person, site.person
        ),
    );
    std::fs::write(site.repo().join("password"), "wrong\n").unwrap();
    let refused = site.run(&["mirror", "check", "@grace", "--json"]);
    assert_eq!((refused.exit, refused.code().as_str()), (Some(5), "mirror_stuck"), "{refused:#?}");
    assert!(refused.stderr.contains("who are you") && !refused.stderr.contains("wrong"), "{refused:#?}");
    std::fs::write(site.repo().join("password"), "password\n").unwrap();
    site.ok(&["mirror", "check", "@grace"]);
    assert!(given.recv_timeout(PATIENCE).unwrap().contains("A test from Onus"));
    site.ok(&["mirror", "check", "bell"]);
    let rung = std::fs::read_to_string(site.repo().join("rung")).unwrap();
    assert_eq!(rung, "bell A test from Onus\n");

    begin(&site);
    let task = site.add("Grüße");
    complete(&site, &task);
    begin(&site);
    let mail = given.recv_timeout(PATIENCE).unwrap();
    for header in ["To: grace@example.org", "Message-ID: <", "Auto-Submitted: auto-generated", "Subject: "] {
        assert!(mail.contains(header), "{header}: {mail}");
    }
    assert!(given.try_recv().is_err(), "the person did it, and is told of others' deeds only");
}

#[test]
fn mail_goes_by_tls_to_a_server_that_is_who_it_says() {
    let Some(kit) = OutsideKit::get() else { return };
    let site = Site::new();
    let Some((certificate, key)) = site.certificate() else { return };
    std::fs::write(site.repo().join("password"), "password\n").unwrap();
    for (mode, scheme) in [("starttls", "smtp"), ("tls", "smtps")] {
        let maildir = site.root().join(mode);
        let server = kit.mail(&maildir, &certificate, &key, mode);
        let told = |address: &str| {
            settings(
                &site,
                &format!(
                    "channels:\n  mail: {{kind: smtp, url: \"{scheme}://127.0.0.1:{}\", user: onus, secret_file: password, from: \
                     onus@example.org, to: {address}}}\nnotify:\n  - {{when: completed, to: mail}}\n",
                    server.port
                ),
            );
        };
        let check = |trusted: Option<&str>| {
            let mut command = site.command(&["mirror", "check", "mail", "--json"]);
            trusted.map(|file| command.env("SSL_CERT_FILE", file));
            finish(start(&mut command))
        };
        told("grace@example.org");
        // Nobody has signed it: neither the password nor the mail is shown to it.
        let doubted = check(None);
        assert_eq!(
            (doubted.exit, doubted.code().as_str()),
            (Some(5), "mirror_stuck"),
            "{mode}: {doubted:#?}"
        );
        let mails = || std::fs::read_dir(maildir.join("new")).map_or(0, Iterator::count);
        assert_eq!(mails(), 0);
        assert_eq!(check(Some(&certificate)).exit, Some(0), "{mode}");
        assert_eq!(mails(), 1, "{mode}");
        // One that is not there is a person's affair; a server that has no time is tried again.
        for (address, stuck) in [("bounce@example.org", 1), ("slow@example.org", 0)] {
            told(address);
            begin(&site);
            let task = site.add("Nobody reads this");
            complete(&site, &task);
            let mut sync = site.command(&["mirror", "sync", "mail", "--json"]);
            let synced = finish(start(sync.env("SSL_CERT_FILE", &certificate))).json();
            let stand = &synced["mirrors"][0];
            assert_eq!(
                (&stand["stuck"], &stand["pending"]),
                (&json!(stuck), &json!(1)),
                "{address}: {stand:#}"
            );
            site.by_person(&["mirror", "skip", "mail", &task, "--reason", "only tried"]);
            site.by_person(&["mirror", "retry", "mail"]);
        }
        assert_eq!(mails(), 1, "{mode}");
    }
}

#[test]
fn the_reference_library_takes_our_webhooks_and_teams_and_desktops_get_their_shapes() {
    let (hook, teams) = (Receiver::start(|_| TAKEN), Receiver::start(|_| TAKEN));
    let site = Site::new();
    settings(
        &site,
        &format!(
            "channels:\n  audit: {{kind: webhook, url: \"{}\", secret_file: secret}}\n  room: {{kind: teams, url: \"{}\"}}\n  desk: \
             {{kind: desktop}}\nnotify:\n  - {{when: completed, to: audit}}\n  - {{when: completed, to: room}}\n  - {{when: completed, \
             to: desk}}\n",
            hook.url(),
            teams.url()
        ),
    );
    let (bin, said) = desktop(&site);
    begin(&site);
    let task = site.add("Tell <all> & \"sundry\"");
    complete(&site, &task);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut sync = site.command(&["mirror", "sync", "--json"]);
    assert!(sync.env("PATH", path).output().unwrap().status.success());

    let [heard] = &hook.taken()[..] else { panic!("{:#?}", hook.taken()) };
    let header = |name: &str| heard.header(name).to_owned();
    let headers =
        json!({ "webhook-id": header("webhook-id"), "webhook-timestamp": header("webhook-timestamp"),
        "webhook-signature": header("webhook-signature") })
        .to_string();
    if let Some(kit) = OutsideKit::get() {
        assert!(kit.webhook_verifies(SECRET, &headers, &heard.body), "{heard:#?}");
        assert!(!kit.webhook_verifies(SECRET, &headers, &heard.body.replace("sundry", "none")));
    }
    let card: Value = serde_json::from_str(&teams.taken()[0].body).unwrap();
    let content = &card["attachments"][0]["content"];
    assert_eq!((text(&card["type"]), text(&content["type"])), ("message", "AdaptiveCard"));
    assert_eq!(text(&card["attachments"][0]["contentType"]), "application/vnd.microsoft.card.adaptive");
    assert!(text(&content["body"][0]["text"]).contains(&task), "{card:#}");
    let said = std::fs::read_to_string(said).unwrap();
    let words: Vec<&str> = said.lines().collect();
    assert_eq!(&words[..2], ["--app-name=Onus", "--"], "{said}");
    assert!(words[2].contains(&task), "{said}");
    assert!(!words[3..].join("").contains("<all>"), "the body is markup there: {said}");
}

#[test]
fn settings_that_do_not_fit_together_are_all_told_at_once() {
    let site = Site::new();
    settings(
        &site,
        "channels:\n  a: {kind: webhook, url: \"https://example.org\"}\n  b: {kind: smtp}\nnotify:\n  - {when: completed, to: \
         nowhere}\n  - {when: completed, to: \"@grace\"}\npeople:\n  \"@ada\": {channel: gone}\n",
    );
    let refused = site.run(&["mirror", "status", "--json"]);
    assert_eq!((refused.exit, refused.code().as_str()), (Some(2), "invalid_input"), "{refused:#?}");
    let findings = refused.error()["findings"].as_array().unwrap().len();
    assert_eq!(findings, 6, "{refused:#?}");
    for wrong in ["quiet: 25:00-07:00", "quiet: sometimes", "digest: [\"9\"]", "snooze: 1h"] {
        settings(
            &site,
            &format!("channels:\n  a: {{kind: desktop}}\npeople:\n  \"@ada\": {{channel: a, {wrong}}}\n"),
        );
        assert_eq!(site.run(&["mirror", "status", "--json"]).exit, Some(2), "{wrong}");
    }
    settings(&site, "on: {finished: [\"true\"]}\n");
    assert_eq!(site.run(&["mirror", "status", "--json"]).exit, Some(2));
    settings(&site, "channels:\n  far: {kind: slack, url: \"http://example.org/x\"}\n");
    let refused = site.run(&["mirror", "check", "far", "--json"]);
    assert!(refused.stderr.contains("would travel"), "{refused:#?}");
    settings(
        &site,
        "channels:\n  far: {kind: slack, url: \"http://169.254.169.254/latest\", insecure: true}\n",
    );
    let refused = site.run(&["mirror", "check", "far", "--json"]);
    assert!(refused.stderr.contains("link-local"), "{refused:#?}");
}

#[test]
fn who_wants_to_hear_of_limits_hears_of_stops_and_of_refusals() {
    let site = Site::new();
    settings(
        &site,
        "limits: {task: {tokens: 1000}}\nchannels:\n  told: {kind: command, command: 'printf \"%s\\n\" \"$ONUS_EVENT\" >> told'}\n\
         notify:\n  - {when: budget, to: told}\n",
    );
    let task = site.add("work");
    site.by_person(&["worker", "add", "@bot", "--kind", "agent"]);
    site.by_person(&["workstation", "add", "ws-bot", "--kind", "logical"]);
    begin(&site);
    let claim = ["claim", &task, "--as", "@bot", "--workstation", "ws-bot"];
    let lease = text(&site.ok(&claim)["lease"]["token"]).to_owned();
    site.ok(&["session", "usage", &task, "--input-tokens", "1200", "--as", "@bot"]);
    let ask = ["block", &task, "--on", &format!("person:{}", site.person), "--release-lease"];
    site.ok(&[&ask[..], &["--as", "@bot", "--lease", &lease]].concat());
    site.by_person(&["release", &task, "--force", "--reason", "not an answer"]);
    assert_eq!(site.run(&[&claim[..], &["--json"]].concat()).code(), "budget_exceeded");
    site.ok(&["mirror", "sync"]);
    let told = std::fs::read_to_string(site.repo().join("told")).unwrap();
    let events: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verbs: Vec<&str> = events.iter().map(|event| text(&event["data"]["verb"])).collect();
    assert_eq!(verbs, ["blocked", "refused"], "{told}");
    assert!(told.contains("T-1 has used 1200 of 1000 tokens"), "{told}");
}
