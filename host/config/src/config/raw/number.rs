//! Numbers that check themselves: the type of a key says its unit, its default and its bounds.

use std::{fmt, marker::PhantomData, num::NonZeroU32, time::Duration};

use serde::{Deserialize, Deserializer, de};
use wharf_base::explain::THIS_KEY;

/// A number from `LEAST` to `MOST` in the unit `U`. If its key is left out, it is `DEFAULT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<U, const DEFAULT: u64, const LEAST: u64, const MOST: u64> {
    written: u64,
    unit: PhantomData<U>,
}

/// The default of a number that is `None` if its key is left out.
pub const NONE: u64 = 0;

/// How many of something.
pub type Count<const DEFAULT: u64, const MOST: u64> = Number<Ones, DEFAULT, 1, MOST>;
/// How many calls in some time, or at once.
pub type Calls = Number<NotZero, NONE, 1, 1_000_000>;
pub type Kib<const DEFAULT: u64> = Number<Kibibytes, DEFAULT, 1, { 1 << 20 }>;
pub type Mib<const DEFAULT: u64> = Number<Mebibytes, DEFAULT, 1, { 1 << 20 }>;
/// Milliseconds, up to a day.
pub type Millis<const DEFAULT: u64, const LEAST: u64 = 1> = Number<Milliseconds, DEFAULT, LEAST, 86_400_000>;
pub type Seconds<const DEFAULT: u64, const MOST: u64> = Number<WholeSeconds, DEFAULT, 0, MOST>;

/// What a written number stands for.
pub trait Unit {
    type Value;
    fn value(written: u64) -> Self::Value;
}

macro_rules! units {
    ($($unit:ident: $value:ty = $of:expr;)*) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $unit;
        impl Unit for $unit {
            type Value = $value;
            fn value(written: u64) -> $value {
                $of(written)
            }
        }
    )*};
}

units! {
    Ones: usize = bytes::<1>;
    NotZero: NonZeroU32 = |written| u32::try_from(written).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
    Kibibytes: usize = bytes::<1024>;
    Mebibytes: usize = bytes::<{ 1 << 20 }>;
    Milliseconds: Duration = Duration::from_millis;
    WholeSeconds: Duration = Duration::from_secs;
}

fn bytes<const EACH: usize>(written: u64) -> usize {
    usize::try_from(written).unwrap_or(usize::MAX).saturating_mul(EACH)
}

impl<U: Unit, const DEFAULT: u64, const LEAST: u64, const MOST: u64> Number<U, DEFAULT, LEAST, MOST> {
    /// Checks a number. The error does not know the name of its key.
    pub fn new(written: u64) -> Result<Self, String> {
        let number = Self { written, unit: PhantomData };
        (LEAST..=MOST).contains(&written).then_some(number).ok_or_else(|| Self::wrong(&written))
    }

    pub fn get(self) -> U::Value {
        U::value(self.written)
    }

    /// The value, or `None` for a number that means "never" if it is 0.
    pub fn unless_zero(self) -> Option<U::Value> {
        (self.written > 0).then(|| self.get())
    }

    fn wrong(written: &dyn fmt::Display) -> String {
        format!("{THIS_KEY} is from {LEAST} to {MOST}, not {written}")
    }
}

impl<U, const DEFAULT: u64, const LEAST: u64, const MOST: u64> Default for Number<U, DEFAULT, LEAST, MOST> {
    fn default() -> Self {
        Self { written: DEFAULT, unit: PhantomData }
    }
}

impl<'de, U: Unit, const DEFAULT: u64, const LEAST: u64, const MOST: u64> Deserialize<'de>
    for Number<U, DEFAULT, LEAST, MOST>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written<N>(PhantomData<N>);
        impl<U: Unit, const DEFAULT: u64, const LEAST: u64, const MOST: u64> de::Visitor<'_>
            for Written<Number<U, DEFAULT, LEAST, MOST>>
        {
            type Value = Number<U, DEFAULT, LEAST, MOST>;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                write!(formatter, "a whole number from {LEAST} to {MOST}")
            }

            fn visit_u64<E: de::Error>(self, written: u64) -> Result<Self::Value, E> {
                Number::new(written).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, written: i64) -> Result<Self::Value, E> {
                let wrong = |_| Self::Value::wrong(&written);
                u64::try_from(written).map_err(wrong).and_then(Number::new).map_err(E::custom)
            }
        }
        deserializer.deserialize_u64(Written(PhantomData::<Self>))
    }
}

#[cfg(test)]
impl<U, const DEFAULT: u64, const LEAST: u64, const MOST: u64> schemars::JsonSchema
    for Number<U, DEFAULT, LEAST, MOST>
{
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{DEFAULT}, from {LEAST} to {MOST}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = schemars::json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST });
        if (LEAST..=MOST).contains(&DEFAULT) {
            schema.insert("default".into(), DEFAULT.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Table {
        of_ms: Millis<30>,
        often_ms: Millis<0, 0>,
        size_mib: Mib<2>,
        calls: Option<Calls>,
    }

    #[test]
    fn a_number_checks_itself_and_knows_its_default() {
        let read = |text: &str| wharf_base::explain::toml::<Table>(text);
        let table = read("").unwrap();
        assert_eq!(table, Table::default());
        assert_eq!((table.of_ms.get(), table.often_ms.unless_zero()), (Duration::from_millis(30), None));
        assert_eq!((table.size_mib.get(), table.calls.map(Number::get)), (2 << 20, None));
        let table = read("of_ms = 86400000\noften_ms = 1\nsize_mib = 1048576\ncalls = 7").unwrap();
        assert_eq!(table.of_ms.get(), Duration::from_hours(24));
        assert_eq!(table.often_ms.unless_zero(), Some(Duration::from_millis(1)));
        assert_eq!((table.size_mib.get(), table.calls.map(Number::get)), (1 << 40, NonZeroU32::new(7)));
        for (text, expected) in [
            ("\nof_ms = 0", "2: `of_ms` is from 1 to 86400000, not 0"),
            ("of_ms = 86400001", "1: `of_ms` is from 1 to 86400000, not 86400001"),
            ("often_ms = -1", "1: `often_ms` is from 0 to 86400000, not -1"),
            ("size_mib = 'hunter2'", "1: expected a whole number from 1 to 1048576"),
            ("calls = 0", "1: `calls` is from 1 to 1000000, not 0"),
            ("calls = 1.5", "1: expected a whole number from 1 to 1000000"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text}");
        }
    }
}
