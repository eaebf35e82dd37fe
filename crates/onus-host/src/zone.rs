//! Time zones by their IANA names, from a database that comes with the program: days must not depend on the machine.

use onus_core::id::shown;

/// The name as the database spells it; refused when there is no such zone.
pub fn known(name: &str) -> Result<String, String> {
    let zone = jiff::tz::TimeZone::get(name);
    let canonical = zone.as_ref().ok().and_then(|zone| zone.iana_name()).map(str::to_owned);
    canonical.ok_or_else(|| format!("{} is not a time zone such as Europe/Berlin", shown(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_the_world_and_nothing_else() {
        assert_eq!(known("Europe/Berlin").unwrap(), "Europe/Berlin");
        assert_eq!(known("utc").unwrap(), "UTC");
        for bad in ["", "Nowhere/Land", "../etc/passwd", "Europe/Berlin\n", "\u{1b}[0m"] {
            assert!(known(bad).is_err(), "{bad:?}");
        }
    }
}
