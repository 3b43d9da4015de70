//! Everything that is served at one moment. A catalog never changes: each change makes a new one.
//!
//! The order is always the same: plugins by precedence (configured before dropped in, then file order, then id), and entries as
//! their plugin lists them. Each kind of list has a generation that grows when the list changes. Clients are told when a
//! generation has changed, so a burst of changes is told once.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    ops::Bound,
    sync::{Arc, OnceLock},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{Revision, RpcError, encode::Encoder, model as mcp};
use wharf_sandbox::Plugin;

use crate::{
    access::wants::want::Wants,
    base::text::clean,
    bridge::{MAX_URI_BYTES, Offer, OfferedPrompt, OfferedTool, template::Template},
    config::{MAX_INSTRUCTIONS_BYTES, PluginConfig},
    roles::{Entry, Kind, Rights},
};

/// A plugin as it is served: its code, its config and what it offers.
#[derive(Clone)]
pub struct Served {
    pub plugin: Plugin,
    pub config: Arc<PluginConfig>,
    /// The config that the offer was made for. `config` may have been narrowed since, which the offer does not show yet.
    pub listed_for: Arc<PluginConfig>,
    pub offer: Arc<Offer>,
    /// What the plugin says that it wants; `None` if it says nothing.
    pub wants: Option<Arc<Wants>>,
    /// Held during a long check against a schema of the plugin, so that there is one at a time.
    pub checks: Arc<Semaphore>,
    /// Held while a large result of the plugin is checked and written, so that there is one at a time.
    pub results: Arc<Semaphore>,
    /// Held by each of the plugin's calls that runs as a task.
    pub tasks: Arc<Semaphore>,
    /// Cancelled when the plugin is removed or one of its grants is narrowed, which stops its calls. Not cancelled when the
    /// plugin is replaced.
    pub revoked: CancellationToken,
}

impl Served {
    /// What the model is told about all tools of the plugin: by the operator or, if the operator says nothing, by the plugin.
    fn instructions(&self) -> Option<String> {
        let own = || self.plugin.code().sections().instructions.as_deref();
        let text = self.config.instructions.as_deref().or_else(own)?;
        Some(clean(text).trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// How often each list has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generations {
    pub tools: u64,
    pub resources: u64,
    pub prompts: u64,
}

/// The lists a client can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl List {
    const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// A place in the catalog: the index of the plugin, and that of the entry in the plugin's list.
type Place = (usize, usize);

#[derive(Default)]
pub struct Catalog {
    served: Vec<Arc<Served>>,
    tools: HashMap<String, Place>,
    prompts: HashMap<String, Place>,
    resources: HashMap<String, Place>,
    templates: Templates,
    pub generations: Generations,
    pub page_items: usize,
    /// What is made of it when it is first asked for: for those who see everything, and for those whose roles are the same.
    whole: Pages,
    narrowed: Mutex<HashMap<(u64, u64), Arc<Narrowed>>>,
}

/// For each revision and list, the results for its pages.
type PerList<T> = [T; List::ALL.len()];
type Pages = [PerList<OnceLock<Vec<Arc<str>>>>; Revision::ALL.len()];

/// What those see whose roles are the same.
#[derive(Default)]
struct Narrowed {
    pages: Pages,
    digests: OnceLock<Generations>,
}

/// How many sets of roles have lists that are kept.
const MAX_NARROWED: usize = 64;

/// The entry that serves a URI.
pub struct ResourceEntry<'a> {
    pub mime_type: Option<&'a str>,
    /// The text of the template, if it is one.
    pub template: Option<&'a str>,
}

/// A plugin cannot be served together with the others, because a name of its own is taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Clash {
    pub loser: String,
    pub problem: String,
}

impl Catalog {
    /// Builds a catalog of plugins in order of precedence. Fails for the first one with a name that an earlier one has.
    pub fn build(served: Vec<Served>, generations: Generations, page_items: usize) -> Result<Self, Clash> {
        let served: Vec<Arc<Served>> = served.into_iter().map(Arc::new).collect();
        let mut catalog = Self { generations, page_items, ..Self::default() };
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
                if let Some((with, _)) = catalog.resources.insert(resource.uri.clone(), (at, entry)) {
                    return Err(clash("resource", &resource.uri, with));
                }
                // A URI that matches an earlier plugin's template belongs to that plugin, even if a later one lists this very
                // URI.
                if let Some((with, _)) = catalog.templates.find(&served, &resource.uri).filter(|(with, _)| *with < at) {
                    return Err(clash("resource", &resource.uri, with));
                }
            }
            for (entry, template) in one.offer.templates.iter().enumerate() {
                catalog.templates.add(&template.template, (at, entry));
                if let Some(with) = templates.insert(template.published.uri_template.clone(), at) {
                    return Err(clash("template", &template.published.uri_template, with));
                }
            }
        }
        catalog.served = served;
        Ok(catalog)
    }

    pub fn served(&self) -> &[Arc<Served>] {
        &self.served
    }

    pub fn tool(&self, name: &str) -> Option<(&Arc<Served>, &Arc<OfferedTool>)> {
        let (plugin, entry) = *self.tools.get(name)?;
        let served = self.served.get(plugin)?;
        Some((served, served.offer.tools.get(entry)?))
    }

    pub fn prompt(&self, name: &str) -> Option<(&Served, &OfferedPrompt)> {
        let (plugin, entry) = *self.prompts.get(name)?;
        let served = self.served.get(plugin)?;
        Some((served, served.offer.prompts.get(entry)?))
    }

    /// The plugin that serves a URI, with the MIME type that it listed. That is the plugin that lists the URI, else the first
    /// one, in order of precedence, with a template that matches. Of several templates that match, the one with the longest
    /// literal prefix is used.
    pub fn resource(&self, uri: &str) -> Option<(&Served, ResourceEntry<'_>)> {
        if let Some((plugin, entry)) = self.resources.get(uri) {
            let served = self.served.get(*plugin)?;
            let mime_type = served.offer.resources.get(*entry)?.mime_type.as_deref();
            return Some((served, ResourceEntry { mime_type, template: None }));
        }
        let (plugin, entry) = self.templates.find(&self.served, uri)?;
        let served = self.served.get(plugin)?;
        let template = &served.offer.templates.get(entry)?.published;
        let entry = ResourceEntry { mime_type: template.mime_type.as_deref(), template: Some(&template.uri_template) };
        Some((served, entry))
    }

    /// The plugin that offers the template with this text.
    pub fn template(&self, text: &str) -> Option<&Served> {
        self.served
            .iter()
            .find(|served| served.offer.templates.iter().any(|one| one.published.uri_template == text))
            .map(|served| &**served)
    }

    /// Whether a plugin serves this URI, and so may announce changes of it.
    pub fn owns(&self, plugin: &str, uri: &str) -> bool {
        self.resource(uri).is_some_and(|(served, _)| served.config.id == plugin)
    }

    /// What models are told about all tools together: the operator's text, then those of the plugins, in their order. Second, the
    /// ids of the plugins whose text no longer fits. `of`: which plugins' texts count.
    pub fn instructions(&self, own: Option<&str>, of: impl Fn(&Served) -> bool) -> (Option<String>, Vec<&str>) {
        let mut all = own.unwrap_or_default().to_owned();
        let mut left_out = Vec::new();
        for served in self.served.iter().filter(|served| of(served)) {
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

    /// The result of a list request, with what these rights let through.
    pub fn page(
        &self,
        list: List,
        cursor: Option<&str>,
        encoder: &Encoder,
        rights: Option<&Rights>,
    ) -> Result<Arc<str>, RpcError> {
        let number = match cursor {
            None => 0,
            Some(cursor) => page_number(list, cursor).ok_or_else(|| RpcError::invalid_params("unknown cursor"))?,
        };
        let narrowed = rights.map(|rights| self.narrowed(rights));
        let all = narrowed.as_ref().map_or(&self.whole, |narrowed| &narrowed.pages);
        let by_list = all.get(encoder.revision as usize).and_then(|lists| lists.get(list as usize));
        let pages = match by_list {
            Some(cell) => cell.get_or_init(|| self.encode(list, encoder, rights)),
            None => return Err(RpcError::internal("no such list")),
        };
        // The list may have shrunk since the cursor was given.
        match pages.get(number) {
            Some(page) => Ok(Arc::clone(page)),
            None => Ok(encoder.page(list.key(), Vec::new(), None).into()),
        }
    }

    fn narrowed(&self, rights: &Rights) -> Arc<Narrowed> {
        let (mut narrowed, key) = (self.narrowed.lock(), rights.key());
        if narrowed.len() >= MAX_NARROWED && !narrowed.contains_key(&key) {
            // Those of roles that the config no longer has go first, else any one.
            narrowed.retain(|(number, _), _| *number == key.0);
            if let Some(other) = narrowed.keys().next().copied().filter(|_| narrowed.len() >= MAX_NARROWED) {
                narrowed.remove(&other);
            }
        }
        Arc::clone(narrowed.entry(key).or_default())
    }

    /// What the lists are like that these rights let through: as long as nothing in a list changes, its number stays.
    pub fn digests(&self, rights: &Rights) -> Generations {
        *self.narrowed(rights).digests.get_or_init(|| self.digest(rights))
    }

    fn digest(&self, rights: &Rights) -> Generations {
        let digest = |lists: &[List]| {
            let mut hasher = DefaultHasher::new();
            for list in lists {
                for entry in self.entries(*list, Some(rights)) {
                    entry.digest(&mut hasher);
                }
            }
            hasher.finish()
        };
        Generations {
            tools: digest(&[List::Tools]),
            resources: digest(&[List::Resources, List::Templates]),
            prompts: digest(&[List::Prompts]),
        }
    }

    /// The entries of a list that these rights let through.
    fn entries<'a>(&'a self, list: List, rights: Option<&'a Rights>) -> impl Iterator<Item = Listed<'a>> {
        let sees = move |kind, served: &Served, name: &str| {
            rights.is_none_or(|rights| rights.sees(&Entry::new(kind, &served.config.id, name)))
        };
        self.served.iter().flat_map(move |served| {
            let (config, offer) = (&served.config, &served.offer);
            let entries: Box<dyn Iterator<Item = Listed<'a>>> = match list {
                List::Tools => Box::new(
                    offer
                        .tools
                        .iter()
                        .filter(|one| config.allows_tool(&one.own_name))
                        .filter(move |one| sees(Kind::Tool, served, &one.published.name))
                        .map(|one| Listed::Tool(&one.published)),
                ),
                List::Prompts => Box::new(
                    offer
                        .prompts
                        .iter()
                        .filter(|one| config.allows_prompt(&one.own_name))
                        .filter(move |one| sees(Kind::Prompt, served, &one.published.name))
                        .map(|one| Listed::Prompt(&one.published)),
                ),
                List::Resources => Box::new(
                    offer
                        .resources
                        .iter()
                        .filter(move |one| sees(Kind::Resource, served, &one.uri))
                        .map(Listed::Resource),
                ),
                List::Templates => Box::new(
                    offer
                        .templates
                        .iter()
                        .map(|one| &one.published)
                        .filter(move |one| sees(Kind::Resource, served, &one.uri_template))
                        .map(Listed::Template),
                ),
            };
            entries
        })
    }

    fn encode(&self, list: List, encoder: &Encoder, rights: Option<&Rights>) -> Vec<Arc<str>> {
        let entries: Vec<Value> = self.entries(list, rights).map(|one| one.encode(encoder)).collect();
        if entries.is_empty() {
            return vec![encoder.page(list.key(), entries, None).into()];
        }
        let size = self.page_items.max(1);
        let count = entries.len().div_ceil(size);
        let mut pages = Vec::with_capacity(count);
        let mut entries = entries.into_iter();
        for number in 0..count {
            let next = (number + 1 < count).then(|| cursor(list, number + 1));
            pages.push(encoder.page(list.key(), entries.by_ref().take(size).collect(), next.as_deref()).into());
        }
        pages
    }
}

/// An entry of a list.
enum Listed<'a> {
    Tool(&'a mcp::Tool),
    Prompt(&'a mcp::Prompt),
    Resource(&'a mcp::Resource),
    Template(&'a mcp::ResourceTemplate),
}

impl Listed<'_> {
    fn encode(&self, encoder: &Encoder) -> Value {
        match self {
            Self::Tool(one) => encoder.tool(one),
            Self::Prompt(one) => encoder.prompt(one),
            Self::Resource(one) => encoder.resource(one),
            Self::Template(one) => encoder.template(one),
        }
    }

    /// Adds all of it that clients see.
    fn digest(&self, hasher: &mut DefaultHasher) {
        match self {
            Self::Tool(one) => format!("{one:?}"),
            Self::Prompt(one) => format!("{one:?}"),
            Self::Resource(one) => format!("{one:?}"),
            Self::Template(one) => format!("{one:?}"),
        }
        .hash(hasher);
    }
}

/// Templates by their literal prefixes, so that a URI is matched only against those that could match.
#[derive(Default)]
struct Templates(BTreeMap<String, Vec<Place>>);

impl Templates {
    fn add(&mut self, template: &Template, place: Place) {
        self.0.entry(template.prefix.clone()).or_default().push(place);
    }

    fn find(&self, served: &[Arc<Served>], uri: &str) -> Option<Place> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let mut best: Option<(Place, usize)> = None;
        for (prefix, places) in self.beginnings(uri) {
            for place in places {
                let (plugin, entry) = *place;
                let better =
                    best.is_none_or(|((other, _), length)| plugin < other || (plugin == other && prefix > length));
                let template = served.get(plugin).and_then(|served| served.offer.templates.get(entry));
                if better && template.is_some_and(|one| one.template.matches(uri)) {
                    best = Some((*place, prefix));
                }
            }
        }
        best.map(|(place, _)| place)
    }

    /// The templates whose literal prefix the URI begins with, and the length of that prefix; the longest first.
    fn beginnings<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = (usize, &'a Vec<Place>)> {
        let mut end = uri;
        std::iter::from_fn(move || {
            loop {
                // The largest key that does not sort after `end`. If `end` does not begin with it, any shorter prefix must be
                // one of the part that the two have in common, so `end` is cut down to that.
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

fn common_prefix(one: &str, other: &str) -> usize {
    let bytes = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(bytes)
}

/// A text without its last character; none if the text is empty.
fn shorter(text: &str) -> Option<&str> {
    text.char_indices().next_back().and_then(|(at, _)| text.get(..at))
}

/// A cursor contains only a list and a page number: the server need not remember it, and a client that changes it does no harm.
fn cursor(list: List, page: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{page}", list.key()))
}

fn page_number(list: List, cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (key, page) = text.split_once(':')?;
    (key == list.key()).then(|| page.parse().ok()).flatten()
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

    #[test]
    fn cursors_belong_to_their_list() {
        let one = cursor(List::Tools, 3);
        assert_eq!(page_number(List::Tools, &one), Some(3));
        assert_eq!(page_number(List::Prompts, &one), None);
        for bad in ["", "x", "dG9vbHM", "dG9vbHM6LTE"] {
            assert_eq!(page_number(List::Tools, bad), None, "{bad}");
        }
    }
}
