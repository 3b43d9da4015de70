//! Filters the catalog for one client: by the profile that it requested, and by what its roles allow.

use std::sync::Arc;

use wharf_policy::{
    profiles::{Profile, Style},
    roles::{Entry, Rights, RoleDenied, Selection},
};

#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The client's rights from its roles; `None` if it may use everything.
    pub rights: Option<Rights>,
    /// The profile that the client requested; `None` if it requested the whole catalog.
    pub profile: Option<Arc<Profile>>,
}

/// A cache key. Filters with the same key let the same entries through.
pub type Key = (Option<(u64, u64)>, Option<u64>);

impl Filter {
    /// Whether the filter neither hides entries nor changes how they are listed.
    pub fn is_open(&self) -> bool {
        self.rights.is_none() && self.profile.is_none()
    }

    /// Whether the filter hides no entry. It may still change how entries are listed.
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

    /// Whether the client's lists contain the entry.
    pub fn sees(&self, entry: &Entry<'_>) -> bool {
        self.has(entry) && self.rights.as_ref().is_none_or(|rights| rights.sees(entry))
    }

    /// Whether the client could see something of this plugin, if the plugin offered it.
    pub fn could_see(&self, plugin: &str) -> bool {
        self.selected(|selection| selection.could_have(plugin))
    }

    /// Whether the client may know of this plugin, whatever it offers, because the client's profile and roles name it.
    pub fn names(&self, plugin: &str) -> bool {
        self.selected(|selection| selection.names(plugin))
    }

    fn selected(&self, fits: impl Fn(&Selection) -> bool) -> bool {
        let profile = self.profile.as_ref().and_then(|profile| profile.selection.as_ref());
        profile.is_none_or(&fits) && self.rights.as_ref().is_none_or(|rights| rights.sees_any(&fits))
    }

    /// Checks that the client may use the entry.
    pub fn check(&self, entry: &Entry<'_>) -> Result<(), RoleDenied> {
        if !self.has(entry) {
            return Err(RoleDenied::Hidden);
        }
        self.rights.as_ref().map_or(Ok(()), |rights| rights.check(entry))
    }
}
