//! Returns the time in any zone and converts between zones. The zone data is built in and every plugin may read the clock, so the plugin
//! needs no file and no grant. The zone of the machine is a setting.
//!
//! Answers are JSON as text, like those of the reference time server. There is no structured content, since it would say the same again.

use jiff::{
    Timestamp, Zoned,
    civil::{DateTime, Time},
    tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase},
};
use wharf_sdk::prelude::*;

wants! {
    settings = [{ key = "timezone", type = "string", why = "the zone of a call that names none; UTC if not set" }],
}

wharf_sdk::instructions!("The tools of `time` know the zone of this machine: leave `timezone` out for the local time.");

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct CurrentTime {
    /// An IANA zone such as `Europe/Lisbon`; this server's own if left out.
    timezone: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct ConvertTime {
    /// The IANA zone the time is given in.
    source_timezone: String,
    /// The time of day there, today, as HH:MM.
    time: String,
    /// The IANA zone to convert to.
    target_timezone: String,
}

#[derive(Serialize)]
#[serde(crate = "wharf_sdk::serde")]
struct Moment {
    timezone: String,
    /// ISO 8601, with the offset from UTC.
    datetime: String,
    day_of_week: String,
    is_dst: bool,
}

#[derive(Serialize)]
#[serde(crate = "wharf_sdk::serde")]
struct Conversion {
    source: Moment,
    target: Moment,
    /// Target minus source, in hours.
    time_difference: String,
}

struct Plugin;

#[tools]
impl Plugin {
    /// Tells the current time in a zone.
    #[tool(title = "Current time", read_only, open_world = false)]
    fn get_current_time(args: CurrentTime) -> Result<String> {
        let zone = match args.timezone {
            Some(name) => zone(&name)?,
            None => local(&wharf_sdk::serde_json::from_str(&host::config())?)?,
        };
        told(&moment(&Timestamp::now().to_zoned(zone)))
    }

    /// Converts a time of day from one zone to another, for today.
    #[tool(title = "Convert time", read_only, open_world = false)]
    fn convert_time(args: ConvertTime) -> Result<String> {
        let (source, target) = (zone(&args.source_timezone)?, zone(&args.target_timezone)?);
        let time: Time = Time::strptime("%H:%M", &args.time)
            .map_err(|_| Error::failed(format!("`{}` is not a time of day such as 16:30", args.time)))?;
        let here = at(&source, Timestamp::now().to_zoned(source.clone()).date().to_datetime(time))?;
        let there = here.with_time_zone(target);
        let difference = hours(there.offset().seconds() - here.offset().seconds());
        told(&Conversion { source: moment(&here), target: moment(&there), time_difference: difference })
    }
}

/// The plugin's settings. wharf adds the zone of its machine for the built-in plugin, or why it does not know that zone.
#[derive(Deserialize, Default)]
#[serde(crate = "wharf_sdk::serde", default)]
struct Config {
    timezone: Option<String>,
    timezone_problem: Option<String>,
}

/// Returns the zone of a call that names none: `timezone` in the plugin's config, otherwise UTC.
fn local(config: &Config) -> Result<TimeZone> {
    let unknown = |problem: &str| {
        Error::failed(format!(
            "The time zone of this server is not known: {problem}. Pass `timezone`; the operator can set the variable TZ, or `timezone` in \
             the config of the plugin, to a name such as Europe/Berlin."
        ))
    };
    match config {
        Config { timezone: Some(name), .. } => of_machine(name)
            .ok_or_else(|| unknown(&format!("it is set to `{name}`, which is neither the name of a zone nor a rule"))),
        Config { timezone_problem: Some(problem), .. } => Err(unknown(problem)),
        Config { timezone: None, timezone_problem: None } => Ok(TimeZone::UTC),
    }
}

/// The days of the change if a rule names none, as in the C library.
const USUAL_CHANGE: &str = ",M3.2.0,M11.1.0";

/// Returns the zone of a name or a rule, such as `CET-1CEST,M3.5.0,M10.5.0/3`, as the variable `TZ` has it.
fn of_machine(written: &str) -> Option<TimeZone> {
    let written = written.strip_prefix(':').unwrap_or(written);
    let rule = || TimeZone::posix(written).or_else(|_| TimeZone::posix(&format!("{written}{USUAL_CHANGE}")));
    by_name(written).or_else(|_| rule()).ok()
}

/// Looks a name up in the data of the plugin alone: a look into folders of the machine would be refused, and reported as such.
fn by_name(name: &str) -> Result<TimeZone, jiff::Error> {
    TimeZoneDatabase::bundled().get(name)
}

fn told(answer: &impl Serialize) -> Result<String> {
    Ok(wharf_sdk::serde_json::to_string_pretty(answer)?)
}

/// Returns the moment when clocks in a zone show this time: the first of two if they show it twice, and an error if they skip it.
fn at(zone: &TimeZone, shown: DateTime) -> Result<Zoned> {
    let moment = zone.to_ambiguous_zoned(shown);
    if let AmbiguousOffset::Gap { .. } = moment.offset() {
        let name = name(zone);
        return Err(Error::failed(format!(
            "Invalid time: clocks in {name} skip {} on that day",
            shown.strftime("%H:%M")
        )));
    }
    Ok(moment.earlier()?)
}

/// Formats a difference in hours like the reference server, with one or two digits after the point.
fn hours(seconds: i32) -> String {
    let hours = f64::from(seconds) / 3600.0;
    if hours.fract() == 0.0 {
        return format!("{hours:+.1}h");
    }
    format!("{}h", format!("{hours:+.2}").trim_end_matches('0'))
}

fn zone(name: &str) -> Result<TimeZone> {
    by_name(name).map_err(|_| Error::failed(format!("`{name}` is not an IANA time zone such as America/New_York")))
}

/// Returns the name of a zone, or the offset or rule of one that has no name.
fn name(zone: &TimeZone) -> String {
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None => jiff::fmt::temporal::DateTimePrinter::new().time_zone_to_string(zone).unwrap_or_else(|_| "UTC".into()),
    }
}

fn moment(time: &Zoned) -> Moment {
    Moment {
        timezone: name(time.time_zone()),
        datetime: time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        day_of_week: time.strftime("%A").to_string(),
        is_dst: time.time_zone().to_offset_info(time.timestamp()).dst().is_dst(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn times_that_do_not_exist_are_refused_and_those_that_exist_twice_are_the_first() {
        let zone = zone("America/New_York").unwrap();
        let skipped = at(&zone, date(2027, 3, 14).at(2, 30, 0, 0));
        assert!(matches!(skipped, Err(Error::Failed(problem)) if problem.contains("skip 02:30")));
        let twice = at(&zone, date(2026, 11, 1).at(1, 30, 0, 0)).unwrap();
        assert_eq!(moment(&twice).datetime, "2026-11-01T01:30:00-04:00");
    }

    #[test]
    fn the_zone_of_the_machine_has_a_name_or_a_rule() {
        let winter = date(2026, 1, 15).at(12, 0, 0, 0);
        let summer = date(2026, 7, 15).at(12, 0, 0, 0);
        for (written, expected) in [
            ("Europe/Berlin", Some(("Europe/Berlin", 1.0, 2.0))),
            (":Europe/Berlin", Some(("Europe/Berlin", 1.0, 2.0))),
            ("UTC", Some(("UTC", 0.0, 0.0))),
            ("EST5EDT", Some(("EST5EDT", -5.0, -4.0))),
            ("CET-1CEST,M3.5.0,M10.5.0/3", Some(("CET-1CEST,M3.5.0,M10.5.0/3", 1.0, 2.0))),
            ("XYZ3ABC", Some(("XYZ3ABC,M3.2.0,M11.1.0", -3.0, -2.0))),
            ("<+0330>-3:30", Some(("<+0330>-3:30", 3.5, 3.5))),
            ("JST-9", Some(("JST-9", 9.0, 9.0))),
            ("Nowhere/Else", None),
            ("nonsense", None),
            ("", None),
        ] {
            let zone = of_machine(written);
            let offset = |zone: &TimeZone, at| f64::from(zone.to_zoned(at).unwrap().offset().seconds()) / 3600.0;
            let found = zone.as_ref().map(|zone| (name(zone), offset(zone, winter), offset(zone, summer)));
            let expected = expected.map(|(name, winter, summer)| (name.to_owned(), winter, summer));
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn a_zone_that_is_not_known_is_said() {
        let config = |timezone: Option<&str>, problem: Option<&str>| Config {
            timezone: timezone.map(str::to_owned),
            timezone_problem: problem.map(str::to_owned),
        };
        assert_eq!(local(&config(None, None)).unwrap(), TimeZone::UTC);
        for (config, expected) in [
            (config(Some("Nowhere/Else"), None), "it is set to `Nowhere/Else`"),
            (config(None, Some("the variable TZ is not UTF-8")), "the variable TZ is not UTF-8. Pass `timezone`"),
        ] {
            let Err(Error::Failed(problem)) = local(&config) else { panic!("a zone") };
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn differences_are_written_as_the_reference_server_does() {
        for (seconds, expected) in
            [(9 * 3600, "+9.0h"), (-5 * 3600, "-5.0h"), (20_700, "+5.75h"), (-12_600, "-3.5h"), (0, "+0.0h")]
        {
            assert_eq!(hours(seconds), expected);
        }
    }
}
