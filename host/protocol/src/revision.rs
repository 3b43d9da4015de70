//! The revisions of the protocol, and the two eras they fall into.
//!
//! Revisions are compared by their order in [`Revision`], never by the text of their dates, so that wharf never mistakes an
//! unknown date for a newer revision.

/// A published revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first revision.
    V2024_11_05,
    /// Brought Streamable HTTP, batches, audio and completions as a capability.
    V2025_03_26,
    /// Brought elicitation, structured content and links; took batches away.
    V2025_06_18,
    /// Brought tasks and pages for people to open; the last with a handshake.
    V2025_11_25,
    /// The first without a handshake: each request says its revision and what its client can do.
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
    /// A frame may hold several messages.
    Batches,
    /// Reports of progress may have a message beside their numbers.
    ProgressMessages,
    /// Events have ids, with which a client can come back to their stream.
    EventIds,
    /// Streams begin with an empty event that has an id. The server may close a stream before it has answered, and the client
    /// comes back with the last id that it got.
    PrimedStreams,
    /// A question that asks a person to open a page has an id of its own.
    PageIds,
    /// The client says whether a call becomes a task, and is told of the task in its session.
    ClientTasks,
    /// The server says whether a call becomes a task.
    ServerTasks,
}

impl Revision {
    /// Whether this revision has the feature.
    pub const fn has(self, feature: Feature) -> bool {
        match feature {
            Feature::Batches => matches!(self, Self::V2025_03_26),
            Feature::ProgressMessages | Feature::EventIds => !matches!(self, Self::V2024_11_05),
            Feature::PrimedStreams => matches!(self, Self::V2025_11_25 | Self::V2026_07_28),
            Feature::PageIds | Feature::ClientTasks => matches!(self, Self::V2025_11_25),
            Feature::ServerTasks => matches!(self, Self::V2026_07_28),
        }
    }

    /// Oldest first.
    pub const ALL: [Revision; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The revision with which `initialize` answers an offer that it does not know.
    pub const NEWEST_LEGACY: Revision = Self::V2025_11_25;
    /// The newest of all.
    pub const NEWEST: Revision = Self::V2026_07_28;
    /// The revisions that modern requests may be of.
    pub const MODERN: [Revision; 1] = [Self::V2026_07_28];

    /// The date by which messages name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this date; `None` if wharf does not know it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// How it treats the connection.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// The revision that a legacy handshake settles on: the one that the client offers if it is a legacy one, otherwise
    /// [`NEWEST_LEGACY`](Self::NEWEST_LEGACY).
    pub fn negotiate(offered: &str) -> Self {
        match Self::parse(offered) {
            Some(revision) if revision.era() == Era::Legacy => revision,
            _ => Self::NEWEST_LEGACY,
        }
    }

    /// Whether the value of an `MCP-Protocol-Version` header is of the modern era: a date that is not older than the first
    /// modern revision. It may name a revision that is not served.
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
