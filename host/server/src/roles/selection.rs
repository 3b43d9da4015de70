//! A part of all that plugins offer, by names: what a role gives, and what a profile has.

use super::{Entry, Kind};
use crate::base::pattern::Pattern;

#[derive(Debug, Default)]
pub struct Selection {
    /// Of these plugins. None: of every plugin, but only what the lists below name.
    pub plugins: Option<Vec<Pattern>>,
    /// By the names that clients see. None: all of the plugins that are named.
    pub tools: Option<Vec<Pattern>>,
    pub prompts: Option<Vec<Pattern>>,
    pub resources: Option<Vec<Pattern>>,
}

impl Selection {
    /// Whether no key was written.
    pub fn is_empty(&self) -> bool {
        self.plugins.is_none() && self.tools.is_none() && self.prompts.is_none() && self.resources.is_none()
    }

    pub fn has(&self, entry: &Entry<'_>) -> bool {
        let list = match entry.kind {
            Kind::Tool => &self.tools,
            Kind::Prompt => &self.prompts,
            Kind::Resource => &self.resources,
        };
        let any = |patterns: &[Pattern], text: &str| patterns.iter().any(|pattern| pattern.matches(text));
        let of_plugin = self.plugins.as_ref().is_none_or(|plugins| any(plugins, entry.plugin));
        of_plugin && list.as_ref().map_or(self.plugins.is_some(), |list| list.iter().any(|pattern| entry.fits(pattern)))
    }
}
