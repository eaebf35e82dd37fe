//! A store that is damaged, old, too new, read-only or out of space: refused in plain words, never replaced in
//! silence, never a crash (rules: ledger and anchor; reading rejects what writing cannot produce).

use crate::support::{Agent, Answer, ONUS, Site, finish, start, text};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A store with one task open, one held and one complete, wholly in its main file.
fn lived_in() -> (Site, Agent) {
    let site = Site::new();
    let agent = site.agents(1).remove(0);
    let work = ["--as", &agent.handle, "--workstation", &agent.workstation];
    for title in ["done", "held", "open"] {
        site.add(title);
    }
    site.ok(&[&["claim", "T-1"], &work[..]].concat());
    site.ok(&["complete", "T-1", "--as", &agent.handle, "--resolution", "done"]);
    site.ok(&[&["claim", "T-2"], &work[..]].concat());
    settle(&site);
    (site, agent)
}

/// Moves everything from the WAL into the main file.
fn settle(site: &Site) {
    let store = Connection::open(site.store()).unwrap();
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(store);
    assert!(!beside(site, "-wal").exists(), "the last connection takes the WAL with it");
}

fn beside(site: &Site, suffix: &str) -> PathBuf {
    let mut name = site.store().into_os_string();
    name.push(suffix);
    name.into()
}

/// Calls that read and calls that write.
fn calls<'a>(person: &'a str, agent: &'a Agent) -> Vec<Vec<&'a str>> {
    let holder = agent.handle.as_str();
    vec![
        vec!["list"],
        vec!["ready"],
        vec!["show", "T-1"],
        vec!["export"],
        vec!["ledger", "log"],
        vec!["ledger", "verify"],
        vec!["doctor"],
        vec!["add", "one more", "--as", person],
        vec!["note", "T-2", "a note", "--as", holder],
        vec!["complete", "T-2", "--as", holder, "--resolution", "done"],
        vec!["claim", "T-3", "--as", holder, "--workstation", "ws-1"],
        vec!["init", "--project", "T"],
    ]
}

fn refused(answer: &Answer) -> bool {
    if answer.is_ok() {
        return false;
    }
    let code = answer.code();
    let known = ["store_unavailable", "store_busy", "ledger_broken", "store_behind_anchor", "queue_invalid"];
    assert!(known.contains(&code.as_str()), "{answer:#?}");
    true
}

type Damage = (&'static str, fn(&Path));

/// Damage that nobody can overlook.
const FATAL: &[Damage] = &[
    ("a zeroed header", |path| overwrite(path, 0, &[0; 100])),
    ("a zeroed first page", |path| overwrite(path, 0, &[0; 4096])),
    ("cut to one byte", |path| cut(path, 1)),
    ("cut to half", |path| cut(path, fs::metadata(path).unwrap().len() / 2)),
    ("an empty file", |path| cut(path, 0)),
    ("a directory", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    ("a text file", |path| fs::write(path, "not a database\n".repeat(1_000)).unwrap()),
    ("a database of something else", |path| {
        fs::remove_file(path).unwrap();
        Connection::open(path).unwrap().execute_batch("CREATE TABLE task (id INTEGER PRIMARY KEY)").unwrap();
    }),
];

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

fn cut(path: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn a_ruined_store_is_refused_and_left_as_it_is() {
    for (name, damage) in FATAL {
        let (site, agent) = lived_in();
        damage(&site.store());
        let ruin = fs::read(site.store()).unwrap_or_default();
        for args in calls(&site.person, &agent) {
            // Nothing can be lost by making a store out of what has no content.
            if args[0] == "init" && ruin.len() <= 1 {
                continue;
            }
            let answer = site.run(&[&args[..], &["--json"]].concat());
            // A store cut to half may still hold the pages that a reader wants.
            let may_read =
                *name == "cut to half" && matches!(args[0], "list" | "ready" | "show" | "export" | "ledger");
            assert!(refused(&answer) || may_read, "{name}: onus {args:?}: {answer:#?}");
            assert_eq!(
                fs::read(site.store()).unwrap_or_default(),
                ruin,
                "{name}: {args:?} wrote to the ruin"
            );
        }
    }
}

#[test]
fn damage_in_the_middle_is_found_wherever_it_is() {
    let (site, agent) = lived_in();
    let whole = fs::read(site.store()).unwrap();
    let pages = whole.len() / 4096;
    let mut rng = crate::support::Rng::seeded(17);
    let mut silent = Vec::new();
    for page in 1..pages {
        fs::write(site.store(), &whole).unwrap();
        for suffix in ["-wal", "-shm"] {
            drop(fs::remove_file(beside(&site, suffix)));
        }
        let noise: Vec<u8> = (0..4096).map(|_| u8::try_from(rng.below(256)).unwrap()).collect();
        overwrite(&site.store(), page as u64 * 4096, &noise);
        for args in calls(&site.person, &agent)
            .into_iter()
            .filter(|args| !matches!(args[0], "init" | "add" | "note" | "complete" | "claim"))
        {
            let answer = site.run(&[&args[..], &["--json"]].concat());
            if !answer.is_ok() {
                answer.error();
            }
            if args[0] == "doctor" && answer.is_ok() {
                silent.push(page);
            }
        }
    }
    assert!(silent.is_empty(), "doctor said nothing about noise in pages {silent:?} of {pages}");
}

#[test]
fn a_store_of_a_newer_schema_is_left_alone() {
    let (site, agent) = lived_in();
    Connection::open(site.store()).unwrap().pragma_update(None, "user_version", 9_999).unwrap();
    settle(&site);
    let before = fs::read(site.store()).unwrap();
    for args in calls(&site.person, &agent) {
        let answer = site.run(&[&args[..], &["--json"]].concat());
        let error = answer.error();
        assert_eq!(error["code"], "store_unavailable", "{args:?}: {answer:#?}");
        assert!(text(&error["detail"]).contains("schema 9999"), "{args:?}: {answer:#?}");
        assert!(text(&error["hint"]).contains("newer onus"), "{args:?}: {answer:#?}");
    }
    assert_eq!(fs::read(site.store()).unwrap(), before);
}

#[test]
fn a_store_behind_its_anchor_grants_nothing() {
    let (site, agent) = lived_in();
    site.add("only in the WAL");
    site.by_person(&["ledger", "checkpoint"]);
    for suffix in ["-wal", "-shm"] {
        drop(fs::remove_file(beside(&site, suffix)));
    }

    let verify = site.run(&["ledger", "verify", "--json"]);
    assert!(refused(&verify), "a lost tail must show: {verify:#?}");
    let claim = site.run(&["claim", "T-3", "--as", &agent.handle, "--workstation", "ws-1", "--json"]);
    assert_eq!(claim.code(), "store_behind_anchor");
    assert_eq!(site.task("T-3")["assignment"], serde_json::Value::Null);
}

/// A backup is put back: what it forgot is noticed, and no token of before is good once a person has said so.
#[test]
fn a_restored_backup_is_noticed_and_its_tokens_die_with_the_generation() {
    let (site, agent) = lived_in();
    site.by_person(&["worker", "add", "@a2", "--kind", "agent"]);
    site.by_person(&["workstation", "add", "ws-2", "--kind", "logical"]);
    settle(&site);
    let backup = fs::read(site.store()).unwrap();
    let holder = agent.handle.as_str();
    let claimed = site.ok(&["claim", "T-3", "--as", "@a2", "--workstation", "ws-2"]);
    let forgotten = text(&claimed["lease"]["token"]).to_owned();
    site.by_person(&["ledger", "checkpoint"]);
    settle(&site);
    fs::write(site.store(), backup).unwrap();

    let again = ["claim", "T-3", "--as", "@a2", "--workstation", "ws-2", "--json"];
    assert_eq!(site.run(&again).code(), "store_behind_anchor");
    let late = ["note", "T-3", "mine", "--as", "@a2", "--lease", &forgotten, "--json"];
    assert_eq!(site.run(&late).code(), "fenced", "a grant that the backup has never heard of");
    site.ok(&["note", "T-2", "still mine", "--as", holder]);
    let raise = |words: &[&str]| site.run(&[&["ledger", "raise-generation", "--json"], words].concat());
    assert_eq!(raise(&["--reason", "let me", "--as", holder]).code(), "human_required");
    assert_eq!(raise(&["--as", &site.person]).code(), "reason_required");
    assert!(raise(&["--reason", "put Monday's backup back", "--as", &site.person]).is_ok());

    let stale = site.run(&["note", "T-2", "still mine", "--as", holder, "--json"]);
    assert_eq!(stale.code(), "fenced", "{stale:#?}");
    assert!(site.run(&again).is_ok());
    assert_eq!(site.run(&late).code(), "fenced", "the new holder has another token");
    site.assert_sound();
}

#[test]
fn a_lost_wal_of_an_unanchored_store_is_no_crash() {
    let (site, agent) = lived_in();
    site.add("only in the WAL");
    for suffix in ["-wal", "-shm"] {
        drop(fs::remove_file(beside(&site, suffix)));
    }
    for args in calls(&site.person, &agent) {
        let answer = site.run(&[&args[..], &["--json"]].concat());
        assert!(answer.is_ok() || refused(&answer), "{args:?}: {answer:#?}");
    }
}

#[test]
fn keys_that_cannot_be_kept_stop_init_before_it_writes() {
    let site = Site::empty();
    fs::remove_dir(site.root().join("keys")).unwrap();
    fs::write(site.root().join("keys"), "a file where a directory belongs").unwrap();
    let answer = site.run(&["init", "--project", "T", "--json"]);
    answer.error();
    assert!(matches!(answer.exit, Some(1 | 2 | 69)), "{answer:#?}");
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Gives the whole site to `nobody`, because permissions do not bind root.
fn give_to_nobody(site: &Site) {
    let done = Command::new("chown").args(["-R", "nobody:nogroup"]).arg(site.root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_read_only_store_refuses_writes() {
    let (site, agent) = lived_in();
    let onus = site.root().join("onus");
    fs::copy(ONUS, &onus).unwrap();
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    chmod(site.root(), 0o755);
    let root = is_root();
    if root {
        give_to_nobody(&site);
    }
    let dir = site.store().parent().unwrap().to_owned();
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        chmod(&path, if path.is_dir() { 0o555 } else { 0o444 });
    }
    chmod(&dir, 0o555);

    for args in calls(&site.person, &agent) {
        let mut command = if root { Command::new("setpriv") } else { Command::new(&onus) };
        site.surroundings(&mut command);
        if root {
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(&onus);
        }
        let answer = finish(start(command.args(&args).arg("--json")));
        let reads = matches!(args[0], "list" | "ready" | "show" | "export" | "ledger" | "doctor");
        if answer.is_ok() {
            assert!(reads || args[0] == "init", "{args:?} wrote to a read-only store: {answer:#?}");
        } else {
            assert_eq!(answer.code(), "store_unavailable", "{args:?}: {answer:#?}");
        }
    }
    chmod(&dir, 0o755);
}

/// A file system of its own, gone when dropped.
struct Mount(PathBuf);

impl Mount {
    fn new(at: PathBuf, size: &str) -> Option<Mount> {
        fs::create_dir(&at).unwrap();
        let options = format!("size={size},mode=755");
        let made = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output();
        made.is_ok_and(|output| output.status.success()).then_some(Mount(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).output());
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let site = Site::empty();
    let Some(disk) = Mount::new(site.root().join("disk"), "1m") else {
        eprintln!("skipped: a file system of 1 MiB cannot be mounted here");
        return;
    };
    let store = format!("sqlite:{}", disk.0.join("onus.db").display());
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, vec![0; 128 * 1024]).unwrap();
    let on_disk = |args: &[&str]| site.run(&[args, &["--store", &store, "--json"]].concat());
    let made = on_disk(&["init", "--project", "T"]);
    assert!(made.is_ok(), "{made:#?}");
    let person = text(&made.json()["worker"]).to_owned();

    let body = "x".repeat(20_000);
    let mut acknowledged = Vec::new();
    let full = loop {
        let title = format!("task {}", acknowledged.len());
        let answer = on_disk(&[
            "add",
            &title,
            "--body",
            &body,
            "--request-id",
            &title.replace(' ', "-"),
            "--as",
            &person,
        ]);
        if !answer.is_ok() {
            break answer;
        }
        acknowledged.push(text(&answer.json()["task"]["id"]).to_owned());
        assert!(acknowledged.len() < 200, "a disk of 1 MiB must fill up");
    };
    assert_eq!(full.code(), "store_unavailable", "{full:#?}");
    assert!(!acknowledged.is_empty());
    for id in &acknowledged {
        assert!(on_disk(&["show", id]).is_ok(), "{id} on a full disk");
    }

    fs::remove_file(&ballast).unwrap();
    let title = format!("task {}", acknowledged.len());
    let again =
        on_disk(&["add", &title, "--body", &body, "--request-id", &title.replace(' ', "-"), "--as", &person]);
    assert!(again.is_ok(), "with room again the same request succeeds: {again:#?}");
    let listed = on_disk(&["list", "--limit", "500"]);
    assert_eq!(listed.json()["tasks"].as_array().unwrap().len(), acknowledged.len() + 1);
    for args in [&["ledger", "verify"][..], &["doctor"]] {
        assert!(on_disk(args).is_ok(), "{args:?}");
    }
}
