//! How many calls a role allows one caller, over time and at once. Each caller has the whole allowance for itself.

use super::{entry::Entry, selection::Selection};
use wharf_base::quota::Quota;

#[derive(Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// The quota for everything that the role gives.
    pub whole: Quota,
    /// Further quotas for parts of it.
    pub of: Vec<(Selection, Quota)>,
}

impl RateLimits {
    pub fn is_unlimited(&self) -> bool {
        !self.whole.limits.is_limited() && self.of.is_empty()
    }

    /// Returns the quotas towards which a call counts.
    pub fn quotas(&self, entry: &Entry<'_>) -> impl Iterator<Item = &Quota> {
        let of = self.of.iter().filter(|(selection, _)| selection.has(entry)).map(|(_, quota)| quota);
        std::iter::once(&self.whole).chain(of)
    }

    /// Whether a quota is only for a part of what the role gives.
    pub fn is_of(&self, quota: &Quota) -> bool {
        self.of.iter().any(|(_, one)| one == quota)
    }
}
