//! The severities of log messages, with the names of RFC 5424.

/// How severe a log message is. Levels are ordered by severity, so a message passes a threshold if its level is greater or equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Normal, but worth attention.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A component no longer works.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl Level {
    const ALL: [Level; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the name of the level in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Returns the level with this name, in lower case as MCP writes it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}
