//! Months and weeks as people name them.

use crate::id::shown;
use crate::time::Date;
use jiff::civil::{self, ISOWeekDate, Weekday};

/// The first and the last day of `2026-11`.
pub fn month(text: &str) -> Result<(Date, Date), String> {
    let bad = || format!("{} is not a month such as 2026-11", shown(text));
    let first: Date = format!("{text}-01").parse().map_err(|_| bad())?;
    Ok(month_of(first))
}

/// The first and the last day of the month in which a day lies.
pub fn month_of(day: Date) -> (Date, Date) {
    (Date(day.0.first_of_month()), Date(day.0.last_of_month()))
}

/// Monday and Sunday of the ISO week `2026-W46`.
pub fn week(text: &str) -> Result<(Date, Date), String> {
    let bad = || format!("{} is not an ISO week such as 2026-W46", shown(text));
    let (year, week) = text.split_once("-W").ok_or_else(bad)?;
    let is_plain =
        |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
    if !is_plain(year, 4) || !is_plain(week, 2) {
        return Err(bad());
    }
    let (year, week): (i16, i8) = (year.parse().map_err(|_| bad())?, week.parse().map_err(|_| bad())?);
    let day = |weekday| ISOWeekDate::new(year, week, weekday).map(civil::Date::from).map_err(|_| bad());
    let days = (Date(day(Weekday::Monday)?), Date(day(Weekday::Sunday)?));
    if (1970..=9998).contains(&year) { Ok(days) } else { Err(bad()) }
}

/// A day, an ISO week or a month by its name.
pub fn period(text: &str) -> Result<(Date, Date), String> {
    if let Ok(day) = text.parse::<Date>() {
        return Ok((day, day));
    }
    let named = week(text).or_else(|_| month(text));
    named.map_err(|_| {
        format!("{} is not a day, a week or a month: 2026-11-16, 2026-W46, 2026-11", shown(text))
    })
}

/// The names of the periods before and after one, of the same kind.
pub fn neighbours((from, to): (Date, Date)) -> (String, String) {
    let after = Date(to.0.tomorrow().unwrap_or(to.0));
    let before = days_before(from, 1);
    let name = |day: Date| {
        if from == to {
            day.to_string()
        } else if (from, to) == month_of(from) {
            day.to_string().chars().take("2026-11".len()).collect()
        } else {
            week_name(day)
        }
    };
    (name(before), name(after))
}

/// The ISO week in which a day lies: `2026-W46`.
pub fn week_name(day: Date) -> String {
    let week = day.0.iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

/// So many days before a day.
pub fn days_before(day: Date, days: u16) -> Date {
    let span = jiff::Span::new().try_days(i64::from(days)).unwrap_or_default();
    Date(day.0.saturating_sub(span))
}

/// Monday and Sunday of the week before the one in which a day lies.
pub fn week_before(day: Date) -> (Date, Date) {
    let since_monday = u16::from(day.0.weekday().to_monday_zero_offset().unsigned_abs());
    (days_before(day, since_monday + 7), days_before(day, since_monday + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: Result<(Date, Date), String>) -> String {
        found.map_or_else(|_| "refused".into(), |(from, to)| format!("{from}..{to}"))
    }

    #[test]
    fn months_and_weeks() {
        for (text, days) in [
            ("2026-11", "2026-11-01..2026-11-30"),
            ("2024-02", "2024-02-01..2024-02-29"),
            ("2026-13", "refused"),
            ("2026-1", "refused"),
            ("November", "refused"),
        ] {
            assert_eq!(shown(month(text)), days, "{text}");
        }
        for (text, days) in [
            ("2026-W46", "2026-11-09..2026-11-15"),
            ("2026-W01", "2025-12-29..2026-01-04"),
            ("2020-W53", "2020-12-28..2021-01-03"),
            ("2021-W01", "2021-01-04..2021-01-10"),
            ("2021-W53", "refused"),
            ("2026-W1", "refused"),
            ("2026W46", "refused"),
        ] {
            assert_eq!(shown(week(text)), days, "{text}");
        }
    }
    #[test]
    fn the_week_before_a_day() {
        for (day, week) in [
            ("2026-11-16", "2026-11-09..2026-11-15"),
            ("2026-11-22", "2026-11-09..2026-11-15"),
            ("2026-01-01", "2025-12-22..2025-12-28"),
        ] {
            assert_eq!(shown(Ok(week_before(day.parse().unwrap()))), week, "{day}");
        }
    }

    #[test]
    fn periods_have_neighbours_of_their_kind() {
        for (text, days, around) in [
            ("2026-11-16", "2026-11-16..2026-11-16", "2026-11-15 2026-11-17"),
            ("2026-W01", "2025-12-29..2026-01-04", "2025-W52 2026-W02"),
            ("2026-12", "2026-12-01..2026-12-31", "2026-11 2027-01"),
        ] {
            let found = period(text).unwrap();
            assert_eq!(shown(Ok(found)), days);
            let (before, after) = neighbours(found);
            assert_eq!(format!("{before} {after}"), around);
        }
        assert!(period("yesterday").is_err());
    }
}
