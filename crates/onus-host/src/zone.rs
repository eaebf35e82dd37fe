//! Time zones by their IANA names, from a database that comes with the program: days must not depend on the machine.

use jiff::tz::TimeZone;
use onus_core::id::shown;
use onus_core::notify::TimeOfDay;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::Days;

/// The most days that one question may be about: ten years.
pub const DAYS_MAX: usize = 3_660;

/// The name as the database spells it; refused when there is no such zone.
pub fn known(name: &str) -> Result<String, String> {
    let zone = jiff::tz::TimeZone::get(name);
    let canonical = zone.as_ref().ok().and_then(|zone| zone.iana_name()).map(str::to_owned);
    canonical.ok_or_else(|| format!("{} is not a time zone such as Europe/Berlin", shown(name)))
}

fn get(zone: &str) -> Result<TimeZone, String> {
    TimeZone::get(zone).map_err(|_| format!("{} is not a time zone such as Europe/Berlin", shown(zone)))
}

/// The days of a zone from one date to another, both included. A day of 23 or 25 hours is as long as it was.
pub fn days(zone: &str, from: Date, to: Date) -> Result<Days, String> {
    if to < from {
        return Err(format!("{to} is before {from}"));
    }
    let zone = get(zone)?;
    let mut starts = Vec::new();
    let mut date = from.0;
    loop {
        // Where midnight is skipped, the day begins with its first moment; where it comes twice, with the first.
        let start = date.to_zoned(zone.clone()).map_err(|error| error.to_string())?;
        starts.push(Timestamp(start.timestamp().as_second().saturating_mul(1_000)));
        if date > to.0 {
            break;
        }
        if starts.len() > DAYS_MAX {
            return Err(format!("from {from} to {to} are more than {DAYS_MAX} days"));
        }
        date = date.tomorrow().map_err(|error| error.to_string())?;
    }
    Days::new(from, starts).ok_or_else(|| format!("the days from {from} to {to} are not in order"))
}

/// The date of a moment in a zone.
pub fn date(zone: &str, at: Timestamp) -> Result<Date, String> {
    Ok(Date(zoned(zone, at)?.date()))
}

/// The time of day of a moment in a zone: `14:05`.
pub fn time_of_day(zone: &str, at: Timestamp) -> Result<String, String> {
    Ok(zoned(zone, at)?.strftime("%H:%M").to_string())
}

/// The last moment, up to now, that was one of these times of a day in the zone.
pub fn last_of(zone: &str, times: &[TimeOfDay], now: Timestamp) -> Result<Option<Timestamp>, String> {
    let today = zoned(zone, now)?;
    let mut found = None;
    for back in 0..3_i64 {
        let date =
            today.date().checked_sub(jiff::Span::new().days(back)).map_err(|error| error.to_string())?;
        for time in times {
            let at = date.at(time.hour(), time.minute(), 0, 0).to_zoned(get(zone)?);
            let at = Timestamp(at.map_err(|error| error.to_string())?.timestamp().as_millisecond());
            found = found.max(Some(at).filter(|at| *at <= now));
        }
    }
    Ok(found)
}

fn zoned(zone: &str, at: Timestamp) -> Result<jiff::Zoned, String> {
    let at = jiff::Timestamp::from_millisecond(at.0).map_err(|error| error.to_string())?;
    Ok(at.to_zoned(get(zone)?))
}

/// The day that it is on this machine's wall.
pub fn today(now: Timestamp) -> Option<Date> {
    let now = jiff::Timestamp::from_millisecond(now.0).ok()?;
    Some(Date(now.to_zoned(TimeZone::system()).date()))
}

/// A moment on this machine's own wall clock: `14:05` today, `2026-11-16 14:05` on another day.
pub fn local(at: Timestamp, now: Timestamp) -> Option<String> {
    let zone = TimeZone::system();
    let on =
        |moment: Timestamp| Some(jiff::Timestamp::from_millisecond(moment.0).ok()?.to_zoned(zone.clone()));
    let (at, now) = (on(at)?, on(now)?);
    let format = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    Some(at.strftime(format).to_string())
}

/// A moment as people write it: with an offset (`2026-11-16T14:05:00Z`), or in the zone (`2026-11-16 14:05`).
pub fn moment(zone: &str, text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(at.as_millisecond()));
    }
    let bad = |_| format!("{} is not a time such as 2026-11-16T14:05 or 2026-11-16T14:05:00Z", shown(text));
    let local: jiff::civil::DateTime = text.parse().map_err(bad)?;
    let at = local.to_zoned(get(zone)?).map_err(bad)?;
    Ok(Timestamp(at.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(zone: &str, from: &str, to: &str) -> Vec<i64> {
        let days = days(zone, from.parse().unwrap(), to.parse().unwrap()).unwrap();
        let starts: Vec<Timestamp> = days.dates().map(|date| days_begin(zone, date)).collect();
        let ends = starts.iter().skip(1).copied().chain([days.end()]);
        starts.iter().zip(ends).map(|(start, end)| end.since(*start).0 / 3_600_000).collect()
    }

    fn days_begin(zone: &str, date: Date) -> Timestamp {
        days(zone, date, date).unwrap().begin()
    }

    #[test]
    fn days_are_as_long_as_the_zone_makes_them() {
        assert_eq!(hours("UTC", "2026-03-28", "2026-03-30"), [24, 24, 24]);
        assert_eq!(hours("Europe/Berlin", "2026-03-28", "2026-03-30"), [24, 23, 24]);
        assert_eq!(hours("Europe/Berlin", "2026-10-24", "2026-10-26"), [24, 25, 24]);
        assert_eq!(hours("America/New_York", "2026-03-07", "2026-03-09"), [24, 23, 24]);
        assert_eq!(hours("America/New_York", "2026-10-31", "2026-11-02"), [24, 25, 24]);
        // Midnight is skipped in Havana in spring and comes twice in autumn; Apia had no 30 December 2011.
        assert_eq!(hours("America/Havana", "2026-03-07", "2026-03-09"), [24, 23, 24]);
        assert_eq!(hours("America/Havana", "2026-10-31", "2026-11-02"), [24, 25, 24]);
        assert_eq!(hours("Pacific/Apia", "2011-12-29", "2011-12-31"), [24, 0, 24]);
    }

    #[test]
    fn moments_with_and_without_an_offset() {
        let at = |text: &str| moment("Europe/Berlin", text).unwrap().to_string();
        assert_eq!(at("2026-11-16T14:05:00Z"), "2026-11-16T14:05:00.000Z");
        assert_eq!(at("2026-11-16T14:05"), "2026-11-16T13:05:00.000Z");
        assert_eq!(at("2026-07-16 14:05:30"), "2026-07-16T12:05:30.000Z");
        assert!(moment("UTC", "noon").is_err());
        assert_eq!(time_of_day("Asia/Tokyo", Timestamp(0)).unwrap(), "09:00");
        assert_eq!(date("America/New_York", Timestamp(0)).unwrap().to_string(), "1969-12-31");
    }

    #[test]
    fn the_last_time_of_a_day_is_the_zones_own() {
        let last = |times: &[&str], now: &str| {
            let times: Vec<TimeOfDay> = times.iter().map(|time| time.parse().unwrap()).collect();
            let now = moment("UTC", now).unwrap();
            last_of("Europe/Berlin", &times, now).unwrap().map(|at| at.to_string())
        };
        assert_eq!(last(&["09:00"], "2026-11-16T08:30:00Z").unwrap(), "2026-11-16T08:00:00.000Z");
        assert_eq!(last(&["09:00"], "2026-11-16T07:30:00Z").unwrap(), "2026-11-15T08:00:00.000Z");
        assert_eq!(last(&["09:00", "17:00"], "2026-11-16T16:30:00Z").unwrap(), "2026-11-16T16:00:00.000Z");
        assert_eq!(last(&[], "2026-11-16T16:30:00Z"), None);
        // The day that the clock goes back has 02:30 twice: the first counts.
        assert_eq!(last(&["02:30"], "2026-10-25T06:00:00Z").unwrap(), "2026-10-25T00:30:00.000Z");
    }

    #[test]
    fn a_question_about_too_many_days_is_refused() {
        let (from, to) = ("1990-01-01".parse().unwrap(), "2026-01-01".parse().unwrap());
        assert!(days("UTC", from, to).is_err() && days("UTC", to, from).is_err());
    }

    #[test]
    fn zones_of_the_world_and_nothing_else() {
        assert_eq!(known("Europe/Berlin").unwrap(), "Europe/Berlin");
        assert_eq!(known("utc").unwrap(), "UTC");
        for bad in ["", "Nowhere/Land", "../etc/passwd", "Europe/Berlin\n", "\u{1b}[0m"] {
            assert!(known(bad).is_err(), "{bad:?}");
        }
    }
}
