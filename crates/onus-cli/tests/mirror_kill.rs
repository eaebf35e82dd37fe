//! A sender that is killed after a far end has taken what it was sent and before anybody here wrote that down. The far end's
//! answer waits until the sender is dead, so that no kill comes too early or too late.

use crate::support::forge::{Forge, KEY};
use crate::support::tracker::{Tracker, field, notes};
use crate::support::{HANG, Site, text};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// More changes than any of these stories makes: a change that is made again and again ends here.
const CHANGES_MAX: usize = 40;

/// A far end that has taken a change and does not say so before it is let go.
struct Taken {
    what: String,
    go_on: Sender<()>,
}

/// A line to a far end on which every answer to a change waits for the test.
struct HeldLine {
    port: u16,
    taken: Receiver<Taken>,
}

/// When the test is asked: before the far end carries a change out, or once it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    AtWork,
    Done,
}

impl HeldLine {
    /// To a server of HTTP at this port, or, without one, to a receiver that takes everything.
    fn to(server: Option<u16>) -> HeldLine {
        HeldLine::holding(server, Held::Done)
    }

    fn holding(server: Option<u16>, held: Held) -> HeldLine {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, taken) = channel();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let tell = tell.clone();
                // Whoever asked is dead in most cases, and hears nothing.
                std::thread::spawn(move || drop(pass(client, server, &tell, held)));
            }
        });
        HeldLine { port, taken }
    }
}

fn pass(mut client: TcpStream, server: Option<u16>, tell: &Sender<Taken>, held: Held) -> std::io::Result<()> {
    let heard = crate::support::receiver::read_request(&mut client)?;
    let is_held = |when: Held| held == when && !heard.head.starts_with("GET ");
    if is_held(Held::AtWork) {
        hold(tell, format!("{}\n\n{}", heard.head, heard.body));
    }
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    if let Some(server) = server {
        let kept = heard.head.lines().filter(|line| !line.to_lowercase().starts_with("connection:"));
        let mut request: String = kept.map(|line| format!("{line}\r\n")).collect();
        request.push_str(&format!("connection: close\r\n\r\n{}", heard.body));
        let mut upstream = TcpStream::connect(("127.0.0.1", server))?;
        upstream.write_all(request.as_bytes())?;
        answer.clear();
        upstream.read_to_end(&mut answer)?;
    }
    if is_held(Held::Done) {
        hold(tell, format!("{}\n\n{}", heard.head, heard.body));
    }
    client.write_all(&answer)
}

/// Tells the test that something was taken, and waits for its word.
fn hold(tell: &Sender<Taken>, what: String) {
    let (go_on, word) = channel();
    if tell.send(Taken { what, go_on }).is_ok() {
        let _ = word.recv();
    }
}

/// A mail server on which the answer to every mail waits for the test.
fn mail_server() -> HeldLine {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, taken) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tell = tell.clone();
            std::thread::spawn(move || drop(take_mail(&stream, &tell)));
        }
    });
    HeldLine { port, taken }
}

fn take_mail(stream: &TcpStream, tell: &Sender<Taken>) -> std::io::Result<()> {
    let say = |line: &str| (&*stream).write_all(format!("{line}\r\n").as_bytes());
    let (mut mail, mut is_data) = (String::new(), false);
    say("220 mail.example")?;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_uppercase();
        match verb.as_str() {
            _ if is_data && line == "." => {
                is_data = false;
                hold(tell, std::mem::take(&mut mail));
                say("250 taken")?;
            }
            _ if is_data => mail.push_str(&format!("{line}\n")),
            "EHLO" => say("250 mail.example")?,
            "DATA" => {
                is_data = true;
                say("354 go on")?;
            }
            "QUIT" => {
                say("221 bye")?;
                return stream.shutdown(Shutdown::Both);
            }
            _ => say("250 fine")?,
        }
    }
    Ok(())
}

/// `onus mirror run`; dropped, it is killed, also by a test that fails.
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

fn pending(site: &Site) -> i64 {
    let mirrors = site.ok(&["mirror", "status"])["mirrors"].take();
    let mirrors = mirrors.as_array().unwrap();
    for mirror in mirrors {
        assert_eq!(mirror["stuck"], 0, "{mirror:#}");
    }
    mirrors.iter().map(|mirror| mirror["pending"].as_i64().unwrap()).sum()
}

/// Kills the sender after every change that the far end has taken and `is_fatal` says so of, and starts another. What was taken.
fn kill_at_every_change(site: &Site, line: &HeldLine, mut is_fatal: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut running = SenderProcess::start(site);
    let end = Instant::now() + 2 * HANG;
    loop {
        match line.taken.recv_timeout(Duration::from_millis(200)) {
            Ok(taken) => {
                if is_fatal(&taken.what) {
                    drop(running);
                    drop(taken.go_on);
                    running = SenderProcess::start(site);
                } else {
                    taken.go_on.send(()).unwrap();
                }
                all.push(taken.what);
                assert!(all.len() <= CHANGES_MAX, "made again and again: {all:#?}");
            }
            Err(RecvTimeoutError::Timeout) if pending(site) == 0 => break,
            Err(RecvTimeoutError::Timeout) => assert!(Instant::now() < end, "never told: {all:#?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("nobody listens"),
        }
    }
    drop(running);
    all
}

/// A task that is held for a while, said something about, given back and ended.
fn a_story(site: &Site) -> String {
    let agents = site.agents(1);
    let task = site.add("Mend the gate");
    let claimed = site.ok(&["claim", &task, "--as", "@a1", "--workstation", &agents[0].workstation]);
    let by = ["--as", "@a1", "--lease", text(&claimed["lease"]["token"])];
    site.ok(&[&["note", &task, "the post is rotten"][..], &by].concat());
    site.ok(&[&["block", &task, "--on", "external:rain"][..], &by].concat());
    site.by_person(&["complete", &task, "--force", "--reason", "by hand", "--resolution", "it stands"]);
    task
}

/// How often each entry of a task's story was told, by its sign.
fn assert_each_once(site: &Site, task: &str, told: &[&str]) {
    let verbs = ["added", "claimed", "noted", "blocked", "completed"];
    for entry in site.ledger().iter().filter(|entry| entry["task"] == task) {
        if verbs.contains(&text(&entry["verb"])) {
            let sign = format!("[onus {task} #{} ", entry["seq"]);
            let count = told.iter().filter(|note| note.contains(&sign)).count();
            assert_eq!(count, 1, "{} was told {count} times: {told:#?}", entry["verb"]);
        }
    }
}

fn mirror_to_forge(site: &Site, kind: &str, port: u16, silence: &str) {
    std::fs::write(site.repo().join("key"), KEY).unwrap();
    let settings = format!(
        "mirrors:\n  {kind}:\n    url: http://127.0.0.1:{port}\n    key_file: key\n    project: acme/api\n    create: always\n    \
         fields: {{agent: \"agent:\", task: \"onus:\"}}\n    statuses: {{in_progress: doing, blocked: waiting}}\n{silence}",
    );
    std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
}

/// Kills the sender while the far end still works on each of these changes, and lets it finish once another sender runs.
fn kill_while_at_work(site: &Site, line: &HeldLine, fatal: &[&str]) -> Vec<String> {
    let mut left: Vec<&str> = fatal.to_vec();
    let mut all = Vec::new();
    let mut running = SenderProcess::start(site);
    let end = Instant::now() + 2 * HANG;
    loop {
        match line.taken.recv_timeout(Duration::from_millis(200)) {
            Ok(taken) => {
                if let Some(at) = left.iter().position(|words| taken.what.contains(words)) {
                    left.remove(at);
                    drop(running);
                    running = SenderProcess::start(site);
                    // Long enough for it to ask the far end, and to do it again.
                    std::thread::sleep(Duration::from_millis(1_500));
                }
                let _ = taken.go_on.send(());
                all.push(taken.what);
                assert!(all.len() <= CHANGES_MAX, "made again and again: {all:#?}");
            }
            Err(RecvTimeoutError::Timeout) if pending(site) == 0 => break,
            Err(RecvTimeoutError::Timeout) => assert!(Instant::now() < end, "never told: {all:#?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("nobody listens"),
        }
    }
    assert!(left.is_empty(), "never asked for: {left:?} in {all:#?}");
    drop(running);
    all
}

fn killed_while_a_forge_is_at_work(is_gitlab: bool, fatal: &[&str]) {
    let forge = Forge::start(is_gitlab);
    let line = HeldLine::holding(Some(forge.port), Held::AtWork);
    let site = Site::new();
    mirror_to_forge(&site, if is_gitlab { "gitlab" } else { "github" }, line.port, "    silence: 8s\n");
    let task = a_story(&site);
    kill_while_at_work(&site, &line, fatal);
    assert_eq!(forge.issues().len(), 1, "{:#?}", forge.issues());
    let comments = forge.comments(1);
    assert_each_once(&site, &task, &comments.iter().map(String::as_str).collect::<Vec<_>>());
    site.assert_sound();
}

#[test]
fn a_sender_that_dies_while_github_is_at_work_writes_nothing_twice() {
    killed_while_a_forge_is_at_work(false, &["POST /repos/acme/api/issues HTTP", "the post is rotten"]);
}

#[test]
fn a_sender_that_dies_while_gitlab_is_at_work_writes_nothing_twice() {
    let makes = "POST /api/v4/projects/acme%2Fapi/issues HTTP";
    killed_while_a_forge_is_at_work(true, &[makes, "the post is rotten"]);
}

#[test]
fn a_sender_that_dies_while_redmine_is_at_work_writes_nothing_twice() {
    let Some(tracker) = Tracker::shared() else { return };
    let line = HeldLine::holding(Some(tracker.port), Held::AtWork);
    let site = Site::new();
    tracker.set_up(&site, line.port, "    create: always\n    silence: 15s\n");
    let task = a_story(&site);
    kill_while_at_work(&site, &line, &["the post is rotten"]);
    let [issue] = &tracker.issues()[..] else { panic!("one task, one issue: {:?}", tracker.issues()) };
    let issue = tracker.read(&issue["id"].to_string());
    assert_each_once(&site, &task, &notes(&issue));
    site.assert_sound();
}

/// Where the far end has done what it was asked before the sender dies.
const NO_SILENCE: &str = "    silence: 0s\n";

fn killed_beside_a_forge(is_gitlab: bool) {
    let forge = Forge::start(is_gitlab);
    let line = HeldLine::to(Some(forge.port));
    let site = Site::new();
    let kind = if is_gitlab { "gitlab" } else { "github" };
    mirror_to_forge(&site, kind, line.port, NO_SILENCE);
    let task = a_story(&site);
    let changes = kill_at_every_change(&site, &line, |_| true);
    assert!(changes.len() > 6, "an issue, its labels and state, its comments: {changes:#?}");
    let issues = forge.issues();
    assert_eq!(issues.len(), 1, "{issues:#?}");
    assert_eq!(issues[0]["state"], "closed");
    assert!(forge.labels(1).contains(&"agent:@a1".to_owned()), "{issues:#?}");
    let comments = forge.comments(1);
    assert_each_once(&site, &task, &comments.iter().map(String::as_str).collect::<Vec<_>>());
    site.assert_sound();
}

#[test]
fn github_has_everything_once_from_a_sender_that_dies_after_every_change() {
    killed_beside_a_forge(false);
}

#[test]
fn gitlab_has_everything_once_from_a_sender_that_dies_after_every_change() {
    killed_beside_a_forge(true);
}

#[test]
fn redmine_has_everything_once_from_a_sender_that_dies_after_every_change() {
    let Some(tracker) = Tracker::shared() else { return };
    let line = HeldLine::to(Some(tracker.port));
    let site = Site::new();
    tracker.set_up(&site, line.port, &format!("    create: always\n{NO_SILENCE}"));
    let agents = site.agents(1);
    let task = site.add("Mend the gate");
    let claimed = site.ok(&["claim", &task, "--as", "@a1", "--workstation", &agents[0].workstation]);
    let by = ["--as", "@a1", "--lease", text(&claimed["lease"]["token"])];
    site.ok(&[&["note", &task, "the post is rotten"][..], &by].concat());
    site.ok(&[&["release", &task, "--note", "for another"][..], &by].concat());
    // An hour of work, whatever the clock says: two people say so.
    let number = site.ok(&["session", "list", "--task", &task])["sessions"][0]["id"].to_string();
    site.by_person(&["worker", "add", "@grace", "--kind", "human"]);
    for person in [site.person.as_str(), "@grace"] {
        let hour = ["--start", "2026-01-01T09:00:00Z", "--end", "2026-01-01T10:00:00Z"];
        let why = ["--reason", "by hand", "--as", person];
        site.ok(&[&["session", "correct", &number][..], &hour, &why].concat());
    }
    let changes = kill_at_every_change(&site, &line, |_| true);
    let made = |what: &str| changes.iter().filter(|change| change.starts_with(what)).count();
    assert_eq!((made("POST /issues.json"), made("POST /time_entries.json")), (1, 1), "{changes:#?}");
    assert!(made("PUT /issues/") >= 3, "fields, status and notes: {changes:#?}");
    let [issue] = &tracker.issues()[..] else { panic!("one task, one issue: {:?}", tracker.issues()) };
    let issue = tracker.read(&issue["id"].to_string());
    assert_eq!((field(&issue, "Onus Task"), text(&issue["status"]["name"])), (task.as_str(), "New"));
    assert_each_once(&site, &task, &notes(&issue));
    assert_eq!(issue["spent_hours"].as_f64(), Some(1.0), "{issue:#}");
    site.assert_sound();
}

/// A channel cannot be asked what it has. It is told a second time, and whoever knows ids knows that.
fn told_again(settings: &str, line: &HeldLine, id_of: impl Fn(&str) -> String) {
    let site = Site::new();
    std::fs::write(site.repo().join("secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let notify = "notify:\n  - {when: completed, to: team}\n";
    std::fs::write(site.repo().join("onus.yaml"), format!("channels:\n  team: {settings}\n{notify}"))
        .unwrap();
    site.ok(&["mirror", "sync"]);
    let tasks = [site.add("One"), site.add("Two")];
    for task in &tasks {
        site.by_person(&["complete", task, "--force", "--reason", "by hand", "--resolution", "done"]);
    }
    // The first of each dies; the second of each is heard.
    let mut seen = Vec::new();
    let heard = kill_at_every_change(&site, line, |what| {
        let is_first = !seen.contains(&id_of(what));
        seen.push(id_of(what));
        is_first
    });
    assert_eq!(heard.len(), 4, "each twice, and nothing is lost: {heard:#?}");
    seen.dedup();
    assert_eq!(seen.len(), 2, "a repeat has the id of the first: {seen:#?}");
    site.assert_sound();
}

fn header(request: &str, name: &str) -> String {
    let found = request.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then(|| value.to_owned())
    });
    found.unwrap_or_else(|| panic!("no {name}: {request}"))
}

#[test]
fn a_webhook_is_sent_again_under_the_id_of_the_first() {
    let line = HeldLine::to(None);
    let settings =
        format!("{{kind: webhook, url: \"http://127.0.0.1:{}/hook\", secret_file: secret}}", line.port);
    told_again(&settings, &line, |request| header(request, "webhook-id"));
}

#[test]
fn chats_and_phones_are_told_again_in_the_same_words() {
    for kind in ["slack", "teams", "ntfy"] {
        let line = HeldLine::to(None);
        let to = if kind == "ntfy" { ", to: alarms" } else { "" };
        let settings = format!("{{kind: {kind}, url: \"http://127.0.0.1:{}/hook\"{to}}}", line.port);
        told_again(&settings, &line, |request| request.split_once("\n\n").unwrap().1.to_owned());
    }
}

#[test]
fn a_mail_is_sent_again_under_the_id_of_the_first() {
    let line = mail_server();
    let settings = format!(
        "{{kind: smtp, url: \"smtp://127.0.0.1:{}\", from: onus@example.org, to: team@example.org}}",
        line.port
    );
    told_again(&settings, &line, |mail| header(mail, "Message-ID"));
}

/// The command itself is the far end: it says what it did, and ends only when the test lets it.
#[test]
fn commands_are_run_again_under_the_id_of_the_first() {
    for settings in ["on:\n  completed: [\"exec ./told\"]\n", BELL] {
        let line = HeldLine::to(None);
        let site = Site::new();
        let program = format!(
            "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{}\nprintf 'POST / HTTP/1.1\\r\\nevent: %s\\r\\n\\r\\n' \"$ONUS_EVENT_ID\" >&3\n\
             read -r answer <&3\n",
            line.port
        );
        let path = site.repo().join("told");
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(site.repo().join("onus.yaml"), settings).unwrap();
        site.ok(&["mirror", "sync"]);
        let task = site.add("One");
        site.by_person(&["complete", &task, "--force", "--reason", "by hand", "--resolution", "done"]);
        let mut is_first = true;
        let heard = kill_at_every_change(&site, &line, |_| std::mem::take(&mut is_first));
        let ids: Vec<String> = heard.iter().map(|request| header(request, "event")).collect();
        assert_eq!(ids.len(), 2, "run again, and not lost: {ids:#?}");
        assert_eq!(ids[0], ids[1]);
        site.assert_sound();
    }
}

const BELL: &str = "channels:\n  bell: {kind: command, command: \"exec ./told\"}\nnotify:\n  - {when: completed, to: bell}\n";
