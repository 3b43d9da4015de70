//! The catalog: everything that is served at one moment. It is immutable; each change builds a new one.
//!
//! The order is fixed: plugins by precedence (those of the config before those of the plugin folder, then by order in the file, then by
//! id), and entries in the order in which their plugin lists them. Each kind of list has a generation that grows when the list changes.
//! Clients are notified when a generation has changed, so a burst of changes causes one notification.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use super::{
    lists::Lists,
    served::{Generations, Served},
};
use crate::bridge::{
    MAX_URI_BYTES, OfferedPrompt, OfferedTool,
    template::{Template, is_file},
};
use wharf_config::config::MAX_INSTRUCTIONS_BYTES;

/// The position of an entry in the catalog: the index of the plugin, and the index of the entry in the plugin's list.
type Position = (usize, usize);

#[derive(Default)]
pub struct Catalog {
    pub lists: Lists,
    tools: HashMap<String, Position>,
    prompts: HashMap<String, Position>,
    resources: HashMap<String, Position>,
    templates: Templates,
    pub generations: Generations,
}

/// The entry that serves a URI.
pub struct ResourceEntry<'a> {
    pub mime_type: Option<&'a str>,
    /// The text of the template, if the entry is a template.
    pub template: Option<&'a str>,
}

/// A name conflict: a plugin cannot be served because another plugin has one of its names.
#[derive(Debug, PartialEq, Eq)]
pub struct Clash {
    pub loser: String,
    pub problem: String,
}

impl Catalog {
    /// Returns a catalog without any plugin.
    pub fn empty(page_items: usize) -> Self {
        Self { lists: Lists::new(Vec::new(), page_items), ..Self::default() }
    }

    /// Builds a catalog of plugins, given in order of precedence. Fails if a plugin has a name that an earlier one has.
    pub fn build(served: Vec<Served>, generations: Generations, page_items: usize) -> Result<Self, Clash> {
        let served: Vec<Arc<Served>> = served.into_iter().map(Arc::new).collect();
        let mut catalog = Self { generations, ..Self::default() };
        let mut templates: HashMap<String, usize> = HashMap::new();
        for (at, one) in served.iter().enumerate() {
            let clash = |kind: &str, name: &str, with: usize| Clash {
                loser: one.config.id.clone(),
                problem: format!(
                    "its {kind} `{name}` is already taken by the plugin `{}`; give one of them another `prefix`, or leave the \
                     entry out with `tools` or `prompts`",
                    served.get(with).map_or("", |other| other.config.id.as_str()),
                ),
            };
            for (entry, tool) in one.offer.tools.iter().enumerate() {
                // The operator may have excluded the tool since the plugin listed it.
                if !one.config.allows_tool(&tool.own_name) {
                    continue;
                }
                if let Some((with, _)) = catalog.tools.insert(tool.published.name.clone(), (at, entry)) {
                    return Err(clash("tool", &tool.published.name, with));
                }
            }
            for (entry, prompt) in one.offer.prompts.iter().enumerate() {
                if !one.config.allows_prompt(&prompt.own_name) {
                    continue;
                }
                if let Some((with, _)) = catalog.prompts.insert(prompt.published.name.clone(), (at, entry)) {
                    return Err(clash("prompt", &prompt.published.name, with));
                }
            }
            for (entry, resource) in one.offer.resources.iter().enumerate() {
                if let Some((with, _)) = catalog.resources.insert(resource.uri.to_string(), (at, entry)) {
                    return Err(clash("resource", &resource.uri, with));
                }
                // A URI that matches an earlier plugin's template belongs to that plugin, even if a later plugin lists exactly this URI.
                let found = catalog.templates.find(&served, &resource.uri);
                let earlier = found.filter(|(with, _)| *with < at && !only_named(&served, *with, &resource.uri));
                if let Some((with, _)) = earlier {
                    return Err(clash("resource", &resource.uri, with));
                }
            }
            for (entry, template) in one.offer.templates.iter().enumerate() {
                catalog.templates.add(&template.template, (at, entry));
                if let Some(with) = templates.insert(template.published.uri_template.to_string(), at) {
                    return Err(clash("template", &template.published.uri_template, with));
                }
            }
        }
        catalog.lists = Lists::new(served, page_items);
        Ok(catalog)
    }

    pub fn served(&self) -> &[Arc<Served>] {
        &self.lists.served
    }

    pub fn tool(&self, name: &str) -> Option<(&Arc<Served>, &Arc<OfferedTool>)> {
        let (plugin, entry) = *self.tools.get(name)?;
        let served = self.lists.served.get(plugin)?;
        Some((served, served.offer.tools.get(entry)?))
    }

    pub fn prompt(&self, name: &str) -> Option<(&Served, &OfferedPrompt)> {
        let (plugin, entry) = *self.prompts.get(name)?;
        let served = self.lists.served.get(plugin)?;
        Some((served, served.offer.prompts.get(entry)?))
    }

    /// Returns the plugin that serves a URI, and the matching entry. The plugin that lists the URI comes first, then the first one, in
    /// order of precedence, with a template that matches. If several of its templates match, the one with the longest literal prefix is
    /// used.
    pub fn resource(&self, uri: &str) -> Option<(&Served, ResourceEntry<'_>)> {
        if let Some((plugin, entry)) = self.resources.get(uri) {
            let served = self.lists.served.get(*plugin)?;
            let mime_type = served.offer.resources.get(*entry)?.mime_type.as_deref();
            return Some((served, ResourceEntry { mime_type: mime_type.map(String::as_str), template: None }));
        }
        let (plugin, entry) = self.templates.find(&self.lists.served, uri)?;
        let served = self.lists.served.get(plugin)?;
        let template = &served.offer.templates.get(entry)?.published;
        let entry = ResourceEntry {
            mime_type: template.mime_type.as_deref().map(String::as_str),
            template: Some(&template.uri_template),
        };
        Some((served, entry))
    }

    /// Returns the plugin that offers the template with this text.
    pub fn template(&self, text: &str) -> Option<&Served> {
        self.lists
            .served
            .iter()
            .find(|served| served.offer.templates.iter().any(|one| one.published.uri_template.as_str() == text))
            .map(|served| &**served)
    }

    /// Whether the plugin serves this URI, and so may announce changes of it.
    pub fn owns(&self, plugin: &str, uri: &str) -> bool {
        self.resource(uri).is_some_and(|(served, _)| served.config.id == plugin)
    }

    /// Returns the instructions for models, and the ids of the plugins whose text did not fit into them. They consist of the operator's
    /// text `own`, followed by the texts of the plugins for which `of` returns true, in order of precedence.
    pub fn instructions(&self, own: Option<&str>, of: impl Fn(&Served) -> bool) -> (Option<String>, Vec<&str>) {
        let mut all = own.unwrap_or_default().to_owned();
        let mut left_out = Vec::new();
        for served in self.lists.served.iter().filter(|served| of(served)) {
            let Some(text) = served.instructions() else { continue };
            let id = &served.config.id;
            let paragraph = format!("{}{id}: {text}", if all.is_empty() { "" } else { "\n\n" });
            if all.len() + paragraph.len() > MAX_INSTRUCTIONS_BYTES {
                left_out.push(id.as_str());
            } else {
                all.push_str(&paragraph);
            }
        }
        (Some(all).filter(|all| !all.is_empty()), left_out)
    }
}

/// Whether a URI of a file is only a name to the plugin, because it can have no directory. Plugins that can have one come first.
fn only_named(served: &[Arc<Served>], plugin: usize, uri: &str) -> bool {
    is_file(uri) && served.get(plugin).is_some_and(|served| !served.config.grants.any_directory())
}

/// The templates by literal prefix, so that a URI is matched only against templates with a prefix of the URI.
#[derive(Default)]
struct Templates(BTreeMap<String, Vec<Position>>);

impl Templates {
    fn add(&mut self, template: &Template, place: Position) {
        self.0.entry(template.prefix.clone()).or_default().push(place);
    }

    fn find(&self, served: &[Arc<Served>], uri: &str) -> Option<Position> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let mut best: Option<(Position, usize)> = None;
        for (prefix, places) in self.beginnings(uri) {
            for place in places {
                let (plugin, entry) = *place;
                let rank = |plugin| (only_named(served, plugin, uri), plugin);
                let better = best.is_none_or(|((other, _), length)| {
                    rank(plugin) < rank(other) || (plugin == other && prefix > length)
                });
                let template = served.get(plugin).and_then(|served| served.offer.templates.get(entry));
                if better && template.is_some_and(|one| one.template.matches(uri)) {
                    best = Some((*place, prefix));
                }
            }
        }
        best.map(|(place, _)| place)
    }

    /// Returns the templates whose literal prefix the URI begins with, each group with the length of its prefix, longest first.
    fn beginnings<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = (usize, &'a Vec<Position>)> {
        let mut end = uri;
        std::iter::from_fn(move || {
            loop {
                // Take the largest key that does not sort after `end`. If `end` does not begin with that key, all remaining prefixes of
                // the URI are prefixes of what the key and `end` have in common, so `end` is cut down to that.
                let (key, places) = self.0.range::<str, _>((Bound::Unbounded, Bound::Included(end))).next_back()?;
                let common = common_prefix(key, end);
                if common == key.len() {
                    end = shorter(key)?;
                    return Some((key.len(), places));
                }
                end = end.get(..common)?;
            }
        })
    }
}

/// Returns the length in bytes of the longest common prefix.
fn common_prefix(one: &str, other: &str) -> usize {
    let bytes = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(bytes)
}

/// Returns a text without its last character, or `None` if the text is empty.
fn shorter(text: &str) -> Option<&str> {
    text.char_indices().next_back().and_then(|(at, _)| text.get(..at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_templates_that_could_match_are_tried() {
        let mut templates = Templates::default();
        for (at, text) in
            ["a://{x}", "a://b/{x}", "a://b/c/{x}", "a://bc/{x}", "b://{x}", "a://bü/{x}"].iter().enumerate()
        {
            templates.add(&Template::compile(text).unwrap(), (at, 0));
        }
        let tried = |uri: &str| -> Vec<usize> {
            templates.beginnings(uri).flat_map(|(_, places)| places.iter().map(|(at, _)| *at)).collect()
        };
        assert_eq!(tried("a://b/c/d"), [2, 1, 0]);
        assert_eq!(tried("a://b/d"), [1, 0]);
        assert_eq!(tried("a://bd"), [0]);
        assert_eq!(tried("a://bü/x"), [5, 0]);
        assert_eq!(tried("a://bö/x"), [0]);
        assert_eq!(tried("b://"), [4]);
        assert_eq!(tried("a:"), [0; 0]);
        assert_eq!(tried(""), [0; 0]);
    }
}
