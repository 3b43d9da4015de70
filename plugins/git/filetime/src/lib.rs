//! A replacement for the crate filetime, for gix: that crate panics in WASI, although std supports file times there.

use std::{
    fs::Metadata,
    time::{SystemTime, UNIX_EPOCH},
};

/// A time since 1970. Earlier times count as 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime {
    seconds: i64,
    nanoseconds: u32,
}

impl FileTime {
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    pub fn from_unix_time(seconds: i64, nanoseconds: u32) -> Self {
        Self { seconds, nanoseconds }
    }

    pub fn from_last_modification_time(file: &Metadata) -> Self {
        file.modified().unwrap_or(UNIX_EPOCH).into()
    }

    pub fn unix_seconds(&self) -> i64 {
        self.seconds
    }

    pub fn nanoseconds(&self) -> u32 {
        self.nanoseconds
    }
}

impl From<SystemTime> for FileTime {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since.as_secs().try_into().unwrap_or(i64::MAX), nanoseconds: since.subsec_nanos() }
    }
}
