//! Returns the time in any zone and converts between zones. The zone data is built in and every plugin may read the clock, so the plugin
//! needs no file and no grant.

use jiff::{
    Timestamp, Zoned,
    civil::{DateTime, Time},
    tz::{AmbiguousOffset, TimeZone},
};
use wharf_sdk::prelude::*;

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

#[derive(Serialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Moment {
    timezone: String,
    /// ISO 8601, with the offset from UTC.
    datetime: String,
    day_of_week: String,
    is_dst: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
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
    fn get_current_time(args: CurrentTime) -> Result<Json<Moment>> {
        let zone = match args.timezone {
            Some(name) => zone(&name)?,
            None => local()?,
        };
        Ok(Json(moment(&Timestamp::now().to_zoned(zone))))
    }

    /// Converts a time of day from one zone to another, for today.
    #[tool(title = "Convert time", read_only, open_world = false)]
    fn convert_time(args: ConvertTime) -> Result<Json<Conversion>> {
        let (source, target) = (zone(&args.source_timezone)?, zone(&args.target_timezone)?);
        let time: Time = Time::strptime("%H:%M", &args.time)
            .map_err(|_| Error::failed(format!("`{}` is not a time of day such as 16:30", args.time)))?;
        let here = at(&source, Timestamp::now().to_zoned(source.clone()).date().to_datetime(time))?;
        let there = here.with_time_zone(target);
        let difference = hours(there.offset().seconds() - here.offset().seconds());
        Ok(Json(Conversion { source: moment(&here), target: moment(&there), time_difference: difference }))
    }
}

/// The plugin's table in the operator's config file.
#[derive(Deserialize)]
#[serde(crate = "wharf_sdk::serde")]
struct Config {
    timezone: Option<String>,
}

/// Returns the server's own zone: `timezone` in the plugin's config, otherwise the variable `TZ` if it is granted, otherwise UTC. A plugin
/// cannot read the machine's zone.
fn local() -> Result<TimeZone> {
    let config: Config = wharf_sdk::serde_json::from_str(&host::config())?;
    let name = config.timezone.or_else(|| std::env::var("TZ").ok().filter(|name| !name.is_empty()));
    zone(name.as_deref().unwrap_or("UTC"))
}

/// Returns the moment when clocks in a zone show this time: the first of two if they show it twice, and an error if they skip it.
fn at(zone: &TimeZone, shown: DateTime) -> Result<Zoned> {
    let moment = zone.to_ambiguous_zoned(shown);
    if let AmbiguousOffset::Gap { .. } = moment.offset() {
        let name = zone.iana_name().unwrap_or_default();
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
    TimeZone::get(name)
        .map_err(|_| Error::failed(format!("`{name}` is not an IANA time zone such as America/New_York")))
}

fn moment(time: &Zoned) -> Moment {
    Moment {
        timezone: time.time_zone().iana_name().unwrap_or("UTC").to_owned(),
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
    fn differences_are_written_as_the_reference_server_does() {
        for (seconds, expected) in
            [(9 * 3600, "+9.0h"), (-5 * 3600, "-5.0h"), (20_700, "+5.75h"), (-12_600, "-3.5h"), (0, "+0.0h")]
        {
            assert_eq!(hours(seconds), expected);
        }
    }
}
