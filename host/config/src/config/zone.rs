//! The time zone of this machine: the variable `TZ`, otherwise the zone that the system is set to, otherwise UTC.
//!
//! The result is the name of a zone, or a rule such as `CET-1CEST,M3.5.0,M10.5.0/3`. It is not checked here: the plugin has the list.

use std::path::Path;

/// The file that makes a machine be in a zone. Without it, a machine that names no zone is in UTC.
const LOCALTIME: &str = "/etc/localtime";

/// Returns the time zone. The error says what is not understood.
pub fn of_machine() -> Result<String, String> {
    match std::env::var("TZ") {
        Ok(tz) => of_variable(&tz).map_or_else(of_system, Ok),
        Err(std::env::VarError::NotUnicode(_)) => Err("the variable TZ is not UTF-8".into()),
        Err(std::env::VarError::NotPresent) => of_system(),
    }
}

/// The zone that the variable names; `None`: that of the system.
fn of_variable(tz: &str) -> Option<String> {
    match tz.strip_prefix(':').unwrap_or(tz) {
        "" => Some("UTC".into()),
        LOCALTIME => None,
        // A file of the list of zones has the name of its zone.
        file if file.starts_with('/') => Some(file.split_once("/zoneinfo/").map_or(file, |(_, zone)| zone).to_owned()),
        zone => Some(zone.to_owned()),
    }
}

fn of_system() -> Result<String, String> {
    match iana_time_zone::get_timezone() {
        Ok(zone) if !zone.is_empty() => Ok(zone),
        _ if !Path::new(LOCALTIME).exists() => Ok("UTC".into()),
        // Files that were copied do not say which zone they are.
        _ => Err(format!("{LOCALTIME} is not a link to a zone, and /etc/timezone names none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_name_or_a_rule() {
        for (tz, zone) in [
            ("Europe/Paris", "Europe/Paris"),
            (":Europe/Paris", "Europe/Paris"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"),
            ("", "UTC"),
            (":", "UTC"),
            (":/usr/share/zoneinfo/Europe/Paris", "Europe/Paris"),
        ] {
            assert_eq!(of_variable(tz).as_deref(), Some(zone), "{tz}");
        }
        assert_eq!(of_variable(":/etc/localtime"), None);
    }

    #[test]
    fn the_system_is_in_a_zone() {
        assert!(!of_system().unwrap().is_empty());
    }
}
