//! A clock that the test sets: months of work in a moment, across midnight and the change to winter time; approvals and
//! what changes after them; exports read back.

use super::shop::{Shop, at, set, worker};
use onus_app::progress::Silent;
use onus_app::timesheet::{Ask, TimesheetView, csv, ics, xlsx};
use onus_app::usage::{Reporter, Sample};
use onus_core::code::Code;
use onus_core::command::{Command, Warrant};
use onus_core::id::{Handle, Seq};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::session::Counts;
use onus_core::time::Date;
use onus_core::timesheet::Dimension;
use onus_core::worker::Kind;
use std::io::Read as _;

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

impl Shop {
    /// @ada in New York, @bot in Berlin, the tasks T-1 and T-2.
    fn in_two_zones() -> Shop {
        let mut shop = Shop::open("2026-10-01T00:00", "America/New_York", &["ws-1", "ws-2"], None);
        shop.hire("@bot", "Europe/Berlin");
        shop.add("first, \"quoted\"", None, Some("=s1"));
        shop.add("second", None, None);
        shop
    }

    /// Somebody works on a task from one moment to another, and gives it back. Gives the session's number.
    fn work(&mut self, who: &str, task: &str, from: &str, to: &str) -> Seq {
        set(from);
        let token = self.take(who, task);
        set(to);
        self.release(who, task, token);
        self.onus.sessions(Some(&task.parse().unwrap()), None, 1).unwrap().sessions[0].id
    }

    /// Everybody has a workstation of their own.
    fn take(&mut self, who: &str, task: &str) -> Token {
        self.claim(who, task, if who == "@ada" { "ws-1" } else { "ws-2" }).unwrap()
    }

    fn correct(&mut self, task: &str, session: Seq, from: &str, to: &str) {
        let command = Command::CorrectSession {
            session,
            started_at: at(from),
            ended_at: at(to),
            reason: Some("misremembered".into()),
        };
        // Where it goes beyond the assignment another person must agree; inside it the first word was enough.
        self.submit("@ada", Some(task), None, command.clone()).unwrap();
        let other = worker("@other", Kind::Human, "UTC");
        self.onus.add_worker(Some(&"@ada".parse().unwrap()), &other).unwrap();
        self.submit("@other", Some(task), None, command).unwrap();
    }

    fn sheet(&mut self, worker: Option<&str>, (from, to): (&str, &str), by: &[Dimension]) -> TimesheetView {
        self.onus.timesheet(&ask(worker, (from, to), by)).unwrap()
    }

    fn approve(&mut self, actor: &str, worker: &str, days: (&str, &str)) -> Result<String, Refusal> {
        let actor: Handle = actor.parse().unwrap();
        let days = (date(days.0), date(days.1));
        let view = self.onus.approve_timesheet(Some(&actor), &worker.parse().unwrap(), days)?;
        let changed: Vec<String> = view
            .differences
            .iter()
            .map(|one| {
                format!(
                    "{} {}: {} -> {}",
                    one.task.as_ref().unwrap(),
                    one.day.unwrap(),
                    one.approved_seconds,
                    one.seconds
                )
            })
            .collect();
        Ok(format!("{} {} [{}]", view.outcome, view.total_seconds, changed.join(", ")))
    }

    fn assert_sound(&mut self) {
        let view = self.onus.verify(&mut Silent).unwrap();
        assert_eq!(view.findings, [], "{view:#?}");
    }
}

fn ask(worker: Option<&str>, (from, to): (&str, &str), by: &[Dimension]) -> Ask {
    let worker = worker.map(|worker| worker.parse().unwrap());
    Ask { from: date(from), to: date(to), worker, by: by.to_vec() }
}

fn lines(view: &TimesheetView) -> Vec<String> {
    let keys = |row| view.by.iter().map(|by| csv::key(row, by)).collect::<Vec<_>>().join(" ");
    view.rows.iter().map(|row| format!("{} {}", keys(row), row.seconds)).collect()
}

const OCTOBER: (&str, &str) = ("2026-10-01", "2026-10-31");
const HOUR: i64 = 3_600;

#[test]
fn each_worker_has_its_own_days_even_where_clocks_are_changed() {
    let mut shop = Shop::in_two_zones();
    // The night in which Berlin goes back to winter time: 23:00 on the 24th to 05:00 on the 25th are seven hours.
    shop.work("@bot", "T-1", "2026-10-24T21:00", "2026-10-25T04:00");
    shop.work("@ada", "T-2", "2026-10-25T03:30", "2026-10-25T04:30");
    let by = [Dimension::Worker, Dimension::Day];
    let view = shop.sheet(None, OCTOBER, &by);
    assert_eq!(
        lines(&view),
        [
            "@ada 2026-10-24 1800".to_owned(),
            "@ada 2026-10-25 1800".to_owned(),
            format!("@bot 2026-10-24 {HOUR}"),
            format!("@bot 2026-10-25 {}", 6 * HOUR),
        ]
    );
    assert_eq!(view.total_seconds, 8 * HOUR);
    let day = shop.onus.day(&"@bot".parse().unwrap(), date("2026-10-25")).unwrap();
    assert_eq!((day.sessions.len(), day.total_seconds, day.tz.as_str()), (1, 6 * HOUR, "Europe/Berlin"));
    assert_eq!(day.tasks[0].acts.last().unwrap().text.as_deref(), Some("see above"));
    // Every grouping has the same sum.
    for bits in 0..1 << Dimension::ALL.len() {
        let chosen = Dimension::ALL.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1);
        let by: Vec<Dimension> = chosen.map(|(_, dimension)| *dimension).collect();
        let view = shop.sheet(None, OCTOBER, &by);
        assert_eq!((view.total_seconds, view.total_billable_seconds), (8 * HOUR, 8 * HOUR), "{by:?}");
    }
    shop.assert_sound();
}

#[test]
fn a_running_session_counts_up_to_its_last_sign_of_life() {
    let mut shop = Shop::in_two_zones();
    set("2026-10-05T08:00");
    let token = shop.take("@bot", "T-1");
    set("2026-10-05T08:10");
    shop.submit("@bot", Some("T-1"), Some(token), Command::Renew { ttl: None, process: None }).unwrap();
    set("2026-10-05T12:00");
    let view = shop.sheet(None, OCTOBER, &[]);
    assert_eq!((view.total_seconds, view.running), (600, 1));
    let listed = shop.onus.sessions(None, None, 10).unwrap().sessions.remove(0);
    assert_eq!((listed.seconds, listed.running, listed.ended_at), (600, true, None));
    // It died. Whoever takes over does not lengthen it.
    let takeover = Command::Takeover {
        workstation: Some("ws-1".parse().unwrap()),
        here: None,
        ttl: None,
        reason: Some("it is silent".into()),
        warrant: Warrant::Ordinary,
    };
    shop.submit("@ada", Some("T-1"), None, takeover).unwrap();
    assert_eq!(shop.sheet(Some("@bot"), OCTOBER, &[]).total_seconds, 600);
}

#[test]
fn an_approval_freezes_by_fingerprint_and_a_correction_shows() {
    let mut shop = Shop::in_two_zones();
    shop.work("@bot", "T-1", "2026-10-05T08:00", "2026-10-05T09:00");
    let second = shop.work("@bot", "T-2", "2026-10-06T08:00", "2026-10-06T10:00");
    let refused = |answer: Result<String, Refusal>| answer.unwrap_err().code;
    assert_eq!(refused(shop.approve("@ada", "@bot", OCTOBER)), Code::InvalidInput, "October is not over");
    set("2026-11-02T00:00");
    assert_eq!(refused(shop.approve("@bot", "@bot", OCTOBER)), Code::HumanRequired);
    assert_eq!(refused(shop.approve("@ada", "@nobody", OCTOBER)), Code::UnknownName);
    assert_eq!(shop.approve("@ada", "@bot", OCTOBER).unwrap(), format!("created {} []", 3 * HOUR));
    assert_eq!(shop.approve("@ada", "@bot", OCTOBER).unwrap(), format!("existing {} []", 3 * HOUR));
    let approved = shop.sheet(Some("@bot"), OCTOBER, &[]).approvals.remove(0);
    assert!(approved.intact && approved.differences.is_empty(), "{approved:#?}");

    shop.correct("T-2", second, "2026-10-06T08:00", "2026-10-06T08:30");
    let changed = shop.sheet(Some("@bot"), OCTOBER, &[]).approvals.remove(0);
    assert!(changed.intact, "what was approved is still on record");
    assert_eq!((changed.differences.len(), changed.differences[0].seconds), (1, 1_800));
    // A week of the month shows it, too; another month does not.
    assert_eq!(shop.sheet(Some("@bot"), ("2026-10-05", "2026-10-06"), &[]).approvals.len(), 1);
    assert_eq!(shop.sheet(Some("@bot"), ("2026-11-01", "2026-11-30"), &[]).approvals.len(), 0);
    let again = shop.approve("@ada", "@bot", OCTOBER).unwrap();
    assert_eq!(again, format!("created {} [T-2 2026-10-06: 7200 -> 1800]", HOUR + 1_800));
    let accepted = shop.sheet(Some("@bot"), OCTOBER, &[]).approvals;
    assert_eq!((accepted.len(), accepted[0].differences.len()), (1, 0));
    shop.assert_sound();
}

#[test]
fn nothing_that_still_runs_is_approved() {
    let mut shop = Shop::in_two_zones();
    set("2026-10-31T08:00");
    shop.take("@bot", "T-1");
    set("2026-11-05T00:00");
    assert_eq!(shop.approve("@ada", "@bot", OCTOBER).unwrap_err().code, Code::WrongState);
    assert_eq!(shop.approve("@ada", "@bot", ("2026-10-01", "2026-10-30")).unwrap(), "created 0 []");
}

#[test]
fn samples_go_to_the_session_in_which_they_were_taken() {
    let mut shop = Shop::in_two_zones();
    let first = shop.work("@bot", "T-1", "2026-10-05T08:00", "2026-10-05T09:00");
    let second = shop.work("@bot", "T-1", "2026-10-06T08:00", "2026-10-06T09:00");
    let sample = |moment: &str, tokens: i64| Sample {
        at: Some(at(moment)),
        record: "s".into(),
        model: Some("m".into()),
        counts: Counts { input_tokens: tokens, ..Counts::default() },
    };
    let mut samples = vec![
        sample("2026-10-05T07:59:59.900", 1),
        sample("2026-10-05T08:00:00", 10),
        sample("2026-10-05T09:00:00.900", 100),
        sample("2026-10-05T12:00:00", 1_000),
        sample("2026-10-06T08:30:00", 10_000),
    ];
    let (bot, task): (Handle, _) = ("@bot".parse().unwrap(), "T-1".parse().unwrap());
    let import = |shop: &mut Shop, request: &str, samples: &[Sample]| {
        let request = request.parse().unwrap();
        let reporter = Reporter { request: &request, actor: Some(&bot), task: &task, worker: None };
        let view = shop.onus.import_usage(&reporter, "otel", samples).unwrap();
        let told: Vec<_> =
            view.recorded.iter().map(|one| (one.session, one.outcome.clone(), one.tokens)).collect();
        (told, view.outside)
    };
    let both =
        |one: &str, other: &str| vec![(first, one.to_owned(), 110), (second, other.to_owned(), 10_000)];
    assert_eq!(import(&mut shop, "i1", &samples), (both("created", "created"), 2));
    assert_eq!(import(&mut shop, "i2", &samples), (both("existing", "existing"), 2));
    // The record has grown: what it says replaces what it said.
    samples.push(sample("2026-10-06T08:40:00", 5));
    let grown = vec![(first, "existing".to_owned(), 110), (second, "created".to_owned(), 10_005)];
    assert_eq!(import(&mut shop, "i3", &samples), (grown, 2));
    let by = [Dimension::Day];
    let view = shop.sheet(None, OCTOBER, &by);
    let tokens: Vec<i64> = view.rows.iter().map(|row| row.tokens).collect();
    assert_eq!((tokens, view.total_tokens), (vec![110, 10_005], 10_115));
    shop.assert_sound();
}

#[test]
fn exports_read_back() {
    let mut shop = Shop::in_two_zones();
    let session = shop.work("@bot", "T-1", "2026-10-05T22:30", "2026-10-05T23:30");
    shop.work("@ada", "T-2", "2026-10-06T08:00", "2026-10-06T10:00");
    let by = [Dimension::Worker, Dimension::Sprint, Dimension::Day];
    let view = shop.sheet(None, OCTOBER, &by);

    let bytes = csv::write(&view).unwrap();
    let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(header[..3], ["worker", "sprint", "day"]);
    let rows: Vec<Vec<String>> =
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    let seconds = header.iter().position(|name| name == "seconds").unwrap();
    let sum: i64 = rows.iter().map(|row| row[seconds].parse::<i64>().unwrap()).sum();
    assert_eq!(sum, view.total_seconds);
    assert_eq!(rows.iter().find(|row| row[0] == "@bot").unwrap()[1], "'=s1", "a name is no formula");

    let book = xlsx::write(&view).unwrap();
    assert_eq!(book, xlsx::write(&view).unwrap(), "the same question gives the same bytes");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(book)).unwrap();
    let mut sheet = String::new();
    archive.by_name("xl/worksheets/sheet1.xml").unwrap().read_to_string(&mut sheet).unwrap();
    assert_eq!(sheet.matches("<row ").count(), view.rows.len() + 1, "{sheet}");
    // Two hours are a twelfth of a day.
    assert!(sheet.contains("<v>0.0833333"), "{sheet}");
    assert!(!sheet.contains("<f>"), "{sheet}");

    let calendar = shop.onus.calendar(&ask(Some("@bot"), ("2026-10-06", "2026-10-06"), &by)).unwrap();
    let text = ics::write(&calendar);
    assert_eq!(text.lines().filter(|line| *line == "BEGIN:VEVENT").count(), 1, "{text}");
    for line in [
        "DTSTART:20261005T223000Z",
        "DTEND:20261005T233000Z",
        "SUMMARY:T-1 first\\, \"quoted\"",
        &format!("UID:session-{session}@{}", calendar.uid),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}

#[test]
fn a_clock_set_back_between_two_tasks_makes_no_sessions_overlap() {
    let mut shop = Shop::in_two_zones();
    shop.work("@bot", "T-1", "2026-10-05T08:00", "2026-10-05T09:00");
    // The other workstation is another place: there it may be earlier.
    shop.work("@ada", "T-1", "2026-10-05T09:10", "2026-10-05T09:20");
    shop.work("@bot", "T-2", "2026-10-05T08:30", "2026-10-05T09:30");
    let mut own = shop.onus.sessions(None, Some(&"@bot".parse().unwrap()), 10).unwrap().sessions;
    own.reverse();
    let times: Vec<_> = own.iter().map(|one| (one.started_at, one.ended_at.unwrap())).collect();
    let nine = at("2026-10-05T09:00");
    assert_eq!(times, [(at("2026-10-05T08:00"), nine), (nine, at("2026-10-05T09:30"))]);
    // A person who corrects the first one sets the place free again.
    shop.correct("T-1", own[0].id, "2026-10-05T08:00", "2026-10-05T08:10");
    assert_eq!(shop.sheet(Some("@bot"), OCTOBER, &[]).total_seconds, 10 * 60 + 30 * 60);
    shop.assert_sound();
}
