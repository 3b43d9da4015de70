//! How often, and how often at once, one caller may use what a role gives. Each caller has the whole allowance for itself.

use super::{entry::Entry, selection::Selection};
use crate::base::quota::Quota;

#[derive(Debug, PartialEq, Eq)]
pub struct Allowance {
    /// For all that the role gives.
    pub whole: Quota,
    /// For some of it, besides.
    pub of: Vec<(Selection, Quota)>,
}

impl Allowance {
    pub fn is_unlimited(&self) -> bool {
        !self.whole.limits.are_there() && self.of.is_empty()
    }

    /// The quotas towards which a call counts.
    pub fn quotas(&self, entry: &Entry<'_>) -> impl Iterator<Item = &Quota> {
        let of = self.of.iter().filter(|(selection, _)| selection.has(entry)).map(|(_, quota)| quota);
        std::iter::once(&self.whole).chain(of)
    }

    /// Whether a quota is only for some of what the role gives.
    pub fn is_of(&self, quota: &Quota) -> bool {
        self.of.iter().any(|(_, one)| one == quota)
    }
}
