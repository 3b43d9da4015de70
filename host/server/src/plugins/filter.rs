//! Which part of the catalog a client gets: the part that it came for, as far as its roles let it.

use std::sync::Arc;

use crate::{
    profiles::{Profile, Style},
    roles::{Denied, Entry, Rights},
};

#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// None: the client may use everything.
    pub rights: Option<Rights>,
    /// None: it came for everything.
    pub profile: Option<Arc<Profile>>,
}

/// Filters with the same key let the same through.
pub type Key = (Option<(u64, u64)>, Option<u64>);

impl Filter {
    /// Whether it lets everything through, as it is.
    pub fn is_open(&self) -> bool {
        self.rights.is_none() && self.profile.is_none()
    }

    /// Whether it lets everything through, however it is listed.
    pub fn hides_nothing(&self) -> bool {
        self.rights.is_none() && self.profile.as_ref().is_none_or(|profile| profile.selection.is_none())
    }

    pub fn key(&self) -> Key {
        (self.rights.as_ref().map(Rights::key), self.profile.as_ref().map(|profile| profile.key()))
    }

    pub fn style(&self) -> Style {
        self.profile.as_ref().map_or(Style::Full, |profile| profile.style)
    }

    fn has(&self, entry: &Entry<'_>) -> bool {
        self.profile.as_ref().is_none_or(|profile| profile.has(entry))
    }

    /// Whether it stands in the client's lists.
    pub fn sees(&self, entry: &Entry<'_>) -> bool {
        self.has(entry) && self.rights.as_ref().is_none_or(|rights| rights.sees(entry))
    }

    /// Whether the client may use it.
    pub fn check(&self, entry: &Entry<'_>) -> Result<(), Denied> {
        if !self.has(entry) {
            return Err(Denied::Hidden);
        }
        self.rights.as_ref().map_or(Ok(()), |rights| rights.check(entry))
    }
}
