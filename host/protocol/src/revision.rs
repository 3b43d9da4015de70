//! The revisions of the protocol, and the two eras to which they belong.
//!
//! Revisions are compared by their order in [`Revision`], never by the text of their dates, so that an unknown date is never mistaken for a
//! newer revision.

/// A published revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first revision.
    V2024_11_05,
    /// Added Streamable HTTP, batches, audio and completions as a capability.
    V2025_03_26,
    /// Added elicitation, structured content and links; removed batches.
    V2025_06_18,
    /// Added tasks and pages for people to open. The last revision with a handshake.
    V2025_11_25,
    /// The first revision without a handshake: each request contains its revision and its client's capabilities.
    V2026_07_28,
}

/// How a revision treats the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake, then a session; the server may send requests.
    Legacy,
    /// Every request is self-contained; the server only answers.
    Modern,
}

/// A feature that some revisions have and others do not, and that is not a method of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// A frame may contain several messages.
    Batches,
    /// Reports of progress may have a message in addition to their numbers.
    ProgressMessages,
    /// Server-Sent Events have ids, with which a client can resume their stream.
    EventIds,
    /// Streams of Server-Sent Events begin with an empty event that has an id. The server may close a stream before it has answered, and
    /// the client resumes it with the last id that it got.
    PrimedStreams,
    /// A question that asks a person to open a page has an id of its own.
    PageIds,
    /// The client decides whether a call becomes a task, and gets notifications about the task in its session.
    ClientTasks,
    /// The server decides whether a call becomes a task.
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

    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The revision with which `initialize` answers an unknown one.
    pub const NEWEST_LEGACY: Revision = Self::V2025_11_25;
    /// The newest revision.
    pub const NEWEST: Revision = Self::V2026_07_28;
    /// The revisions that modern requests may use.
    pub const MODERN: [Revision; 1] = [Self::V2026_07_28];

    /// Returns the date that identifies the revision in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision of this date; `None` if wharf does not know it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the era of the revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Returns the revision of a legacy session: the one that the client offers if it is a legacy revision, otherwise
    /// [`NEWEST_LEGACY`](Self::NEWEST_LEGACY).
    pub fn negotiate(offered: &str) -> Self {
        match Self::parse(offered) {
            Some(revision) if revision.era() == Era::Legacy => revision,
            _ => Self::NEWEST_LEGACY,
        }
    }

    /// Whether the value of an `MCP-Protocol-Version` header belongs to the modern era: a date that is not older than the first modern
    /// revision. The revision may be one that is not served.
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
