//! Tells the time in any zone and converts between zones. The zone data is built in, so it needs no file and no grant:
//! clocks are open to every plugin.

use jiff::{Timestamp, Zoned, civil::Time, tz::TimeZone};
use wharf_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct CurrentTime {
    /// An IANA zone such as `Europe/Lisbon`; UTC if left out.
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
        let zone = zone(args.timezone.as_deref().unwrap_or("UTC"))?;
        Ok(Json(moment(&Timestamp::now().to_zoned(zone))))
    }

    /// Converts a time of day from one zone to another, for today.
    #[tool(title = "Convert time", read_only, open_world = false)]
    fn convert_time(args: ConvertTime) -> Result<Json<Conversion>> {
        let (source, target) = (zone(&args.source_timezone)?, zone(&args.target_timezone)?);
        let time: Time = Time::strptime("%H:%M", &args.time)
            .map_err(|_| Error::failed(format!("`{}` is not a time of day such as 16:30", args.time)))?;
        let here = Timestamp::now().to_zoned(source).with().time(time).build()?;
        let there = here.with_time_zone(target);
        let seconds = there.offset().seconds() - here.offset().seconds();
        let difference = format!("{:+}h", f64::from(seconds) / 3600.0);
        Ok(Json(Conversion { source: moment(&here), target: moment(&there), time_difference: difference }))
    }
}

fn zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|_| Error::failed(format!("`{name}` is no IANA time zone, such as America/New_York")))
}

fn moment(time: &Zoned) -> Moment {
    Moment {
        timezone: time.time_zone().iana_name().unwrap_or("UTC").to_owned(),
        datetime: time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        day_of_week: time.strftime("%A").to_string(),
        is_dst: time.time_zone().to_offset_info(time.timestamp()).dst().is_dst(),
    }
}
