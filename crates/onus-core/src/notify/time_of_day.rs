//! Times of a person's day, without a date and without a zone.

use crate::id::shown;
use schemars::JsonSchema;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// `09:30`, as minutes since midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    pub fn hour(self) -> i8 {
        i8::try_from(self.0 / 60).unwrap_or(0)
    }

    pub fn minute(self) -> i8 {
        i8::try_from(self.0 % 60).unwrap_or(0)
    }

    pub fn of(hour: i8, minute: i8) -> TimeOfDay {
        TimeOfDay(u16::try_from(i16::from(hour) * 60 + i16::from(minute)).unwrap_or(0))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeOfDay, String> {
        let bad = || format!("{} is not a time of day such as 09:30", shown(text));
        let (hour, minute) = text.split_once(':').ok_or_else(bad)?;
        let number = |digits: &str, below: u16| {
            let is_two = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<u16>().ok().filter(|number| is_two && *number < below)
        };
        match (number(hour, 24), number(minute, 60)) {
            (Some(hour), Some(minute)) => Ok(TimeOfDay(hour * 60 + minute)),
            _ => Err(bad()),
        }
    }
}

crate::serde_by_display!(TimeOfDay);

/// `22:00-07:00`: from the first on, until the second; over midnight where that is the earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    pub from: TimeOfDay,
    pub until: TimeOfDay,
}

impl QuietHours {
    pub fn covers(&self, now: TimeOfDay) -> bool {
        match self.from <= self.until {
            true => (self.from..self.until).contains(&now),
            false => now >= self.from || now < self.until,
        }
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.until)
    }
}

impl FromStr for QuietHours {
    type Err = String;

    fn from_str(text: &str) -> Result<QuietHours, String> {
        let (from, until) = text
            .split_once('-')
            .ok_or_else(|| format!("{} is not FROM-UNTIL such as 22:00-07:00", shown(text)))?;
        let (from, until): (TimeOfDay, TimeOfDay) = (from.trim().parse()?, until.trim().parse()?);
        match from == until {
            true => Err(format!("{from} to {until} would be the whole day")),
            false => Ok(QuietHours { from, until }),
        }
    }
}

crate::serde_by_display!(QuietHours);

impl JsonSchema for TimeOfDay {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"})
    }
}

impl JsonSchema for QuietHours {
    fn schema_name() -> Cow<'static, str> {
        "QuietHours".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9] *- *[0-2][0-9]:[0-5][0-9]$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_go_over_midnight() {
        let at = |text: &str| text.parse::<TimeOfDay>().unwrap();
        let night: QuietHours = "22:00-07:00".parse().unwrap();
        let noon: QuietHours = "12:00-13:00".parse().unwrap();
        for (time, is_night, is_noon) in [
            ("21:59", false, false),
            ("22:00", true, false),
            ("00:00", true, false),
            ("06:59", true, false),
            ("07:00", false, false),
            ("12:30", false, true),
            ("13:00", false, false),
        ] {
            assert_eq!((night.covers(at(time)), noon.covers(at(time))), (is_night, is_noon), "{time}");
        }
        for bad in ["", "24:00", "9:00", "09:60", "09.00", "+9:00"] {
            assert!(bad.parse::<TimeOfDay>().is_err(), "{bad}");
        }
        assert!("07:00-07:00".parse::<QuietHours>().is_err());
    }
}
