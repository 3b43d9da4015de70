//! The revisions of the protocol, and the two eras they fall into.
//!
//! Revisions are compared by their place in this list, never by their text: an unknown date is unknown, not "newer".

/// A published revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How a revision treats the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake, then a session; the server may send requests.
    Legacy,
    /// Every request describes itself; the server only answers.
    Modern,
}

/// What some revisions have and others do not, where it is not a method of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Several messages in one frame.
    Batches,
    /// Words beside the numbers of progress.
    ProgressMessages,
    /// Events that say how to come back to their stream.
    EventIds,
    /// Streams whose first event is empty and says where to begin, and which the server may close meanwhile.
    PrimedStreams,
    /// Pages that a person is to open have an id.
    PageIds,
    /// The client says whether a call goes on in the background, and hears of it in its session.
    ClientTasks,
    /// The server says whether a call goes on in the background.
    ServerTasks,
}

impl Revision {
    /// Whether this revision has it.
    pub const fn has(self, feature: Feature) -> bool {
        match feature {
            Feature::Batches => matches!(self, Self::V2025_03_26),
            Feature::ProgressMessages | Feature::EventIds => !matches!(self, Self::V2024_11_05),
            Feature::PrimedStreams => matches!(self, Self::V2025_11_25 | Self::V2026_07_28),
            Feature::PageIds | Feature::ClientTasks => matches!(self, Self::V2025_11_25),
            Feature::ServerTasks => matches!(self, Self::V2026_07_28),
        }
    }

    pub const ALL: [Revision; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// What `initialize` answers to an offer it does not know.
    pub const NEWEST_LEGACY: Revision = Self::V2025_11_25;
    /// The newest of all.
    pub const NEWEST: Revision = Self::V2026_07_28;
    /// What modern requests may claim.
    pub const MODERN: [Revision; 1] = [Self::V2026_07_28];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// The revision a legacy handshake settles on.
    pub fn negotiate(offered: &str) -> Self {
        match Self::parse(offered) {
            Some(revision) if revision.era() == Era::Legacy => revision,
            _ => Self::NEWEST_LEGACY,
        }
    }

    /// Whether a protocol version header names the modern era: a date no older than its first revision.
    pub fn header_is_modern(value: &str) -> bool {
        let date_like = value.len() == 10
            && value
                .bytes()
                .enumerate()
                .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
        date_like && value >= Self::V2026_07_28.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_never_leaves_the_legacy_era() {
        for (offered, expected) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2024-10-07", "2025-11-25"),
            ("9999-01-01", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(Revision::negotiate(offered).as_str(), expected, "offered {offered:?}");
        }
    }

    #[test]
    fn only_dates_count_as_modern_headers() {
        for (value, modern) in [
            ("2026-07-28", true),
            ("2031-01-01", true),
            ("2025-11-25", false),
            ("v999.0.0", false),
            ("9999", false),
            ("", false),
        ] {
            assert_eq!(Revision::header_is_modern(value), modern, "{value:?}");
        }
    }
}
