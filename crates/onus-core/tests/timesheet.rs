//! Every grouping adds up to the sessions, to the second, whatever zones and clocks do.

mod sums {
    use onus_core::session::Counts;
    use onus_core::settings::{BillableRule, EffortSettings};
    use onus_core::time::{Date, Millis, Timestamp};
    use onus_core::timesheet::{About, Days, Difference, Dimension, Person, Row, Sheet, Times, differences};
    use onus_core::worker::Kind;
    use proptest::prelude::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn days(zone: &str, from: &str, to: &str) -> Days {
        let zone = jiff::tz::TimeZone::get(zone).unwrap();
        let (mut day, last) = (date(from).0, date(to).0);
        let mut starts = Vec::new();
        while day <= last.tomorrow().unwrap() {
            let start = day.to_zoned(zone.clone()).unwrap();
            starts.push(Timestamp(start.timestamp().as_millisecond()));
            day = day.tomorrow().unwrap();
        }
        Days::new(date(from), starts).unwrap()
    }

    fn person(handle: &str, kind: Kind, zone: &str, from: &str, to: &str) -> Person {
        Person { handle: handle.parse().unwrap(), kind, days: days(zone, from, to) }
    }

    /// `worker task from to; ...` in one zone, as `day seconds sessions; ...`.
    fn check(
        zone: &str,
        (from, to): (&str, &str),
        sessions: &[(&str, &str)],
        by: &[Dimension],
        expected: &str,
    ) {
        let mut sheet = Sheet::new(vec![person("@a", Kind::Agent, zone, from, to)]);
        for (begin, end) in sessions {
            sheet.session("@a", "T-1", at(begin), at(end), Times::Recorded).unwrap();
        }
        let rows = sheet.rows(by, &[], &EffortSettings::default());
        let shown: Vec<String> = rows
            .iter()
            .map(|row| {
                let key = row.day.map(|day| day.to_string()).or(row.week.clone()).unwrap_or("all".into());
                format!("{key} {} {}", row.seconds, row.sessions)
            })
            .collect();
        assert_eq!(shown.join("; "), expected, "{zone} {sessions:?}");
    }

    const HOUR: i64 = 3_600;

    #[test]
    fn a_session_across_midnight_belongs_to_both_days() {
        let night = [("2026-11-16T22:30:00Z", "2026-11-17T00:15:00Z")];
        let two = ("2026-11-16", "2026-11-17");
        check("UTC", two, &night, &[Dimension::Day], "2026-11-16 5400 1; 2026-11-17 900 1");
        // In Berlin it is past 23 already, in New York still afternoon.
        check("Europe/Berlin", two, &night, &[Dimension::Day], "2026-11-16 1800 1; 2026-11-17 4500 1");
        check("America/New_York", two, &night, &[Dimension::Day], "2026-11-16 6300 1");
        check("UTC", two, &night, &[], "all 6300 1");
        // What lies outside the asked days is not in the sheet.
        check("UTC", ("2026-11-17", "2026-11-17"), &night, &[Dimension::Day], "2026-11-17 900 1");
        check("UTC", ("2026-11-18", "2026-11-18"), &night, &[Dimension::Day], "");
    }

    #[test]
    fn a_day_of_23_or_25_hours_has_as_many() {
        for (zone, day, next, hours) in [
            ("Europe/Berlin", "2026-03-29", "2026-03-30", 23),
            ("Europe/Berlin", "2026-10-25", "2026-10-26", 25),
            ("America/New_York", "2026-03-08", "2026-03-09", 23),
            ("America/New_York", "2026-11-01", "2026-11-02", 25),
            ("UTC", "2026-03-29", "2026-03-30", 24),
        ] {
            let whole = [("2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z")];
            let expected = format!("{day} {} 1; {next} {} 1", hours * HOUR, 24 * HOUR);
            check(zone, (day, next), &whole, &[Dimension::Day], &expected);
        }
        // The hour that comes twice: 02:30 to 02:30 is an hour of work.
        let twice = [("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z")];
        check("Europe/Berlin", ("2026-10-25", "2026-10-25"), &twice, &[Dimension::Day], "2026-10-25 3600 1");
    }

    #[test]
    fn weeks_are_iso_weeks_around_new_year() {
        let through = [("2025-12-27T12:00:00Z", "2026-01-06T12:00:00Z")];
        let days = ("2025-12-01", "2026-01-31");
        let expected =
            format!("2025-W52 {} 1; 2026-W01 {} 1; 2026-W02 {} 1", 36 * HOUR, 7 * 24 * HOUR, 36 * HOUR);
        check("UTC", days, &through, &[Dimension::Week], &expected);
        check("UTC", days, &through, &[], &format!("all {} 1", 240 * HOUR));
        // The first days of 2021 belong to the 53rd week of 2020.
        let first = [("2021-01-01T00:00:00Z", "2021-01-01T01:00:00Z")];
        check("UTC", ("2020-12-01", "2021-01-31"), &first, &[Dimension::Week], "2020-W53 3600 1");
    }

    #[test]
    fn a_session_without_length_is_one_and_ends_touch_nothing() {
        let points = [("2026-11-16T10:00:00Z", "2026-11-16T10:00:00Z")];
        check("UTC", ("2026-11-16", "2026-11-16"), &points, &[Dimension::Day], "2026-11-16 0 1");
        let before = [("2026-11-15T23:00:00Z", "2026-11-16T00:00:00Z")];
        check("UTC", ("2026-11-16", "2026-11-16"), &before, &[Dimension::Day], "");
        let after = [("2026-11-17T00:00:00Z", "2026-11-17T00:00:00Z")];
        check("UTC", ("2026-11-16", "2026-11-16"), &after, &[Dimension::Day], "");
    }

    fn rule(billable: bool) -> BillableRule {
        BillableRule {
            billable,
            kind: None,
            task_type: None,
            sprint: None,
            project: None,
            worker_kind: None,
            worker: None,
        }
    }

    #[test]
    fn the_first_billable_rule_that_fits_decides() {
        let day = ("2026-11-16", "2026-11-16");
        let people = || {
            vec![
                person("@ann", Kind::Human, "UTC", day.0, day.1),
                person("@bot", Kind::Agent, "UTC", day.0, day.1),
            ]
        };
        let about = [
            About { task_type: Some("backend".into()), kind: "feature".into(), sprint: Some("s1".into()) },
            About { task_type: None, kind: "chore".into(), sprint: None },
        ];
        let billed = |rules: Vec<BillableRule>, round: Option<Millis>| -> i64 {
            let mut sheet = Sheet::new(people());
            for (worker, task, minutes) in [("@ann", "T-1", 1), ("@ann", "T-2", 10), ("@bot", "T-1", 100)] {
                let from = at("2026-11-16T09:00:00Z");
                sheet
                    .session(worker, task, from, from.plus(Millis::minutes(minutes)), Times::Recorded)
                    .unwrap();
            }
            let effort = EffortSettings { billable: rules, round_up_to: round, ..EffortSettings::default() };
            sheet.rows(&[], &about, &effort)[0].billable_seconds / 60
        };
        assert_eq!(billed(vec![], None), 111);
        assert_eq!(billed(vec![rule(false)], None), 0);
        let chores = BillableRule { kind: Some("chore".into()), ..rule(false) };
        assert_eq!(billed(vec![chores.clone()], None), 101);
        let agents = BillableRule { worker_kind: Some(Kind::Agent), ..rule(false) };
        assert_eq!(billed(vec![agents, chores], None), 1);
        let sprint =
            BillableRule { sprint: Some("s1".into()), task_type: Some("backend".into()), ..rule(true) };
        assert_eq!(billed(vec![sprint, rule(false)], None), 101);
        let ann = BillableRule { worker: Some("@ann".parse().unwrap()), ..rule(true) };
        assert_eq!(billed(vec![ann, rule(false)], None), 11);
        let other = BillableRule { project: Some("API".parse().unwrap()), ..rule(false) };
        assert_eq!(billed(vec![other], None), 111);
        assert_eq!(billed(vec![], Some(Millis::minutes(15))), 15 + 15 + 105);
    }

    #[test]
    fn what_differs_from_what_was_approved_is_told_by_task_and_day() {
        let row = |task: &str, day: &str, seconds: i64, tokens: i64| Row {
            task: Some(task.parse().unwrap()),
            day: Some(date(day)),
            seconds,
            counts: Counts { input_tokens: tokens, ..Counts::default() },
            ..Row::default()
        };
        let approved = [row("T-1", "2026-11-16", 60, 5), row("T-2", "2026-11-16", 60, 0)];
        let now = [row("T-1", "2026-11-16", 60, 5), row("T-2", "2026-11-17", 60, 7)];
        let told = |day: &str, was: i64, is: i64, tokens: i64| Difference {
            task: Some("T-2".parse().unwrap()),
            day: Some(date(day)),
            approved_seconds: was,
            seconds: is,
            approved_tokens: 0,
            tokens,
        };
        assert_eq!(
            differences(&approved, &now),
            [told("2026-11-16", 60, 0, 0), told("2026-11-17", 0, 60, 7)]
        );
        assert_eq!(differences(&now, &now), []);
    }

    const ZONES: [&str; 5] =
        ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe"];

    fn groupings() -> Vec<Vec<Dimension>> {
        (0..1_usize << Dimension::ALL.len())
            .map(|bits| {
                let chosen = Dimension::ALL.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
                chosen.map(|(_, dimension)| *dimension).collect()
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_grouping_has_the_same_sum(
            sessions in prop::collection::vec((0..5_usize, 1..4_i64, 0..5_000_000_i64, 0..400_000_i64, 0..99_i64), 0..40),
        ) {
            // March and October of a year with both changes, for every zone.
            let (from, to) = ("2026-03-01", "2026-04-20");
            let people: Vec<Person> = ZONES
                .iter()
                .enumerate()
                .map(|(n, zone)| person(&format!("@w{n}"), Kind::Agent, zone, from, to))
                .collect();
            let zero = people.iter().map(|person| person.days.begin()).max().unwrap();
            let mut sheet = Sheet::new(people);
            let (mut seconds, mut tokens) = (0, 0);
            for (who, task, start, length, used) in &sessions {
                // Whole seconds that lie inside everybody's days.
                let begin = Timestamp(zero.0 + (start % 4_000_000) * 1_000);
                let end = Timestamp(begin.0 + (length % 200_000) * 1_000);
                sheet.session(&format!("@w{who}"), &format!("T-{task}"), begin, end, Times::Recorded).unwrap();
                let counts = Counts { output_tokens: *used, ..Counts::default() };
                sheet.usage(&format!("@w{who}"), &format!("T-{task}"), begin, &counts).unwrap();
                seconds += length % 200_000;
                tokens += used;
            }
            let about: Vec<About> = sheet
                .tasks()
                .iter()
                .map(|task| About {
                    sprint: (task.number > 1).then(|| format!("s{}", task.number % 2)),
                    ..About::default()
                })
                .collect();
            for by in groupings() {
                let rows = sheet.rows(&by, &about, &EffortSettings::default());
                prop_assert_eq!(rows.iter().map(|row| row.seconds).sum::<i64>(), seconds, "{:?}", &by);
                prop_assert_eq!(rows.iter().map(|row| row.billable_seconds).sum::<i64>(), seconds);
                prop_assert_eq!(rows.iter().map(|row| row.counts.tokens()).sum::<i64>(), tokens);
                if !by.contains(&Dimension::Day) && !by.contains(&Dimension::Week) {
                    prop_assert_eq!(rows.iter().map(|row| row.sessions).sum::<i64>(), sessions.len() as i64);
                }
            }
        }
    }
}
