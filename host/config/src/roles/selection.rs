//! A selection of what plugins offer, by names: what a role gives, what a limit applies to, or what a profile contains.

use std::fmt;

use super::entry::{Entry, EntryKind};
use wharf_base::pattern::Pattern;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The plugins to select from. None: every plugin, but only what the lists below name.
    pub plugins: Option<Vec<Pattern>>,
    /// Tools, by the names that clients see. None: all tools of the plugins that are named. The same goes for the lists below.
    pub tools: Option<Vec<Pattern>>,
    pub prompts: Option<Vec<Pattern>>,
    pub resources: Option<Vec<Pattern>>,
}

impl Selection {
    /// Whether no key was written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it selects everything that all plugins offer.
    pub fn is_everything(&self) -> bool {
        let Self { plugins, tools, prompts, resources } = self;
        plugins.as_ref().is_some_and(|plugins| plugins.iter().any(Pattern::is_everything))
            && [tools, prompts, resources].into_iter().all(Option::is_none)
    }

    /// Whether it may select something that this plugin offers.
    pub fn could_have(&self, plugin: &str) -> bool {
        let lists = [&self.tools, &self.prompts, &self.resources];
        let any = lists.into_iter().any(|list| list.as_ref().map_or(self.plugins.is_some(), |list| !list.is_empty()));
        let of_plugin = |plugins: &Vec<Pattern>| plugins.iter().any(|pattern| pattern.matches(plugin));
        any && self.plugins.as_ref().is_none_or(of_plugin)
    }

    /// Whether it may select something that this plugin offers, and names the plugin itself.
    pub fn names(&self, plugin: &str) -> bool {
        self.plugins.is_some() && self.could_have(plugin)
    }

    pub fn has(&self, entry: &Entry<'_>) -> bool {
        let list = match entry.kind {
            EntryKind::Tool => &self.tools,
            EntryKind::Prompt => &self.prompts,
            EntryKind::Resource => &self.resources,
        };
        let any = |patterns: &[Pattern], text: &str| patterns.iter().any(|pattern| pattern.matches(text));
        let of_plugin = self.plugins.as_ref().is_none_or(|plugins| any(plugins, entry.plugin));
        of_plugin && list.as_ref().map_or(self.plugins.is_some(), |list| list.iter().any(|pattern| entry.fits(pattern)))
    }
}

/// Writes the selection as in the config. Equal selections have equal texts.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugins, tools, prompts, resources } = self;
        let lists = [("plugins", plugins), ("tools", tools), ("prompts", prompts), ("resources", resources)];
        let named = lists.into_iter().filter_map(|(key, list)| Some((key, list.as_ref()?)));
        for (at, (key, list)) in named.enumerate() {
            let patterns: Vec<String> = list.iter().map(Pattern::to_string).collect();
            write!(f, "{}{key} {patterns:?}", if at > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}
