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

    /// Whether it selects nothing, whatever plugins offer.
    pub(super) fn is_nothing(&self) -> bool {
        let Self { plugins, tools, prompts, resources } = self;
        let is_empty = |list: &Option<Vec<Pattern>>| list.as_ref().is_some_and(Vec::is_empty);
        let mut lists = [tools, prompts, resources].into_iter();
        is_empty(plugins) || lists.all(|list| is_empty(list) || (list.is_none() && plugins.is_none()))
    }

    /// Whether a list that narrowed what `before` had of certain plugins now has the same of every plugin, since `plugins` is gone. A list
    /// that was not there before has been written since, and is all that is given; so is one whose names were all given before.
    pub(super) fn has_lost_its_plugins_since(&self, before: &Self) -> bool {
        self.lists().into_iter().zip(before.lists()).any(|lists| match lists {
            (Some(now), Some(then)) => !now.iter().all(|name| !then.contains(name) && is_covered(name, then)),
            (Some(now), None) => now.iter().any(Pattern::is_everything),
            (None, _) => false,
        })
    }

    /// Whether it is another selection, which gives nothing that `before` did not give.
    pub(super) fn is_narrower_than(&self, before: &Self) -> bool {
        let of_plugins = match (&self.plugins, &before.plugins) {
            (Some(now), Some(then)) => now.iter().all(|name| is_covered(name, then)),
            (None, Some(_)) => !self.has_lost_its_plugins_since(before),
            (_, None) => true,
        };
        let of_lists = self.lists().into_iter().zip(before.lists()).all(|lists| match lists {
            (Some(now), Some(then)) => now.iter().all(|name| is_covered(name, then)),
            (Some(now), None) => now.is_empty() || before.plugins.is_some(),
            (None, Some(then)) => self.plugins.is_none() || then.iter().any(Pattern::is_everything),
            // A list that is left out gives everything of the plugins that are named.
            (None, None) => self.plugins.is_none() || before.plugins.is_some(),
        });
        self != before && of_plugins && of_lists
    }

    fn lists(&self) -> [Option<&[Pattern]>; 3] {
        [&self.tools, &self.prompts, &self.resources].map(Option::as_deref)
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

/// Whether one of these patterns matches everything that this one matches.
fn is_covered(pattern: &Pattern, by: &[Pattern]) -> bool {
    by.iter().any(|wider| wider.matches(&pattern.to_string()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_plugins_a_selection_may_give_more() {
        let list = |names: &[&str]| Some(names.iter().map(|name| Pattern::new((*name).into())).collect());
        let select = |plugins, tools, prompts| Selection { plugins, tools, prompts, resources: None };
        for (then, now, expected) in [
            (select(list(&["red"]), None, None), select(None, list(&["red_say"]), None), false),
            (select(list(&["red"]), None, None), select(None, list(&["*"]), None), true),
            (select(list(&["red"]), list(&["*"]), None), select(None, list(&["*"]), None), true),
            (select(list(&["red"]), list(&["red_*"]), None), select(None, list(&["red_*"]), None), true),
            (select(list(&["red"]), list(&["red_*"]), None), select(None, list(&["red_say"]), None), false),
            (select(list(&["red"]), list(&["say"]), None), select(None, list(&["say"]), None), true),
            (select(list(&["red"]), list(&["red_*"]), None), select(None, list(&["blue_say"]), None), true),
            (select(list(&["red"]), None, list(&["p"])), select(None, list(&["red_say"]), list(&["p"])), true),
        ] {
            assert_eq!(now.has_lost_its_plugins_since(&then), expected, "{then}; {now}");
        }
        for (then, now, expected) in [
            (select(list(&["red"]), None, None), select(None, list(&["red_say"]), None), true),
            (select(list(&["red"]), None, None), select(None, list(&["*"]), None), false),
            (select(list(&["red", "blue"]), None, None), select(list(&["red"]), None, None), true),
            (select(list(&["*"]), None, None), select(list(&["red"]), list(&["red_say"]), None), true),
            (select(list(&["red"]), None, None), select(list(&["red"]), None, None), false),
            (select(list(&["red"]), None, None), select(list(&["red", "blue"]), list(&["red_say"]), None), false),
            (select(list(&["red"]), list(&["red_*"]), None), select(list(&["red"]), list(&["red_s*"]), None), true),
            (select(list(&["red"]), list(&["red_say"]), None), select(list(&["red"]), list(&["red_*"]), None), false),
            (select(list(&["red"]), list(&["red_say"]), None), select(list(&["red"]), None, list(&[])), false),
            (select(list(&["red"]), list(&["red_*"]), None), select(None, list(&["red_s*"]), None), true),
            (select(list(&["red"]), list(&["red_*"]), None), select(None, list(&["red_*"]), None), false),
            (select(None, list(&["red_say"]), None), select(list(&["red"]), None, None), false),
            (select(None, list(&["red_say"]), None), select(list(&["red"]), list(&["red_say"]), list(&[])), false),
            (select(None, list(&["red_say", "red_do"]), None), select(None, list(&["red_do"]), None), true),
            (select(None, list(&["red_say"]), None), select(None, list(&["red_say"]), list(&["p"])), false),
        ] {
            assert_eq!(now.is_narrower_than(&then), expected, "{then}; {now}");
        }
        for (selection, expected) in [
            (select(None, None, None), true),
            (select(list(&[]), None, None), true),
            (select(list(&["a"]), None, None), false),
            (select(None, list(&[]), None), true),
            (select(None, list(&["a"]), None), false),
        ] {
            assert_eq!(selection.is_nothing(), expected, "{selection}");
        }
    }
}
