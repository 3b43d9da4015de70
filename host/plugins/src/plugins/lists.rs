//! The lists that clients request (`tools/list` and others): filters the catalog for each client, and splits the result into pages with
//! cursors.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, OnceLock},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde_json::Value;
use wharf_protocol::{Revision, RpcError, encode::Encoder, message::SharedResult, model as mcp};

use super::{
    filter::{self, Filter},
    finder::{self, Finder},
    served::{Digests, Served},
};
use crate::bridge::OfferedTool;
use wharf_policy::{
    profiles::Style,
    roles::{Entry, EntryKind},
};

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

/// One value per list.
type PerList<T> = [T; List::ALL.len()];
/// The encoded pages of each list, by protocol revision. Encoded on first use.
type Pages = [PerList<OnceLock<Vec<SharedResult>>>; Revision::ALL.len()];

/// The lists of a catalog.
#[derive(Default)]
pub struct Lists {
    /// The plugins of the catalog, in its order.
    pub served: Vec<Arc<Served>>,
    /// The maximum number of entries in a page.
    pub page_items: usize,
    /// The pages for clients without a filter.
    unfiltered: Pages,
    /// A cache of the pages for clients with a filter. Clients with equal filters share an entry.
    filtered: Mutex<HashMap<filter::Key, Arc<Filtered>>>,
    finder: OnceLock<Finder>,
}

/// The lists as one filter leaves them.
#[derive(Default)]
struct Filtered {
    pages: Pages,
    digests: OnceLock<Digests>,
}

/// The maximum number of filters whose pages are cached.
const MAX_CACHED_FILTERS: usize = 64;

impl Lists {
    pub fn new(served: Vec<Arc<Served>>, page_items: usize) -> Self {
        Self { served, page_items, ..Self::default() }
    }

    /// Returns the encoded result of a list request, with the entries that `filter` lets through.
    pub fn page(
        &self,
        list: List,
        cursor: Option<&str>,
        encoder: &Encoder,
        filter: &Filter,
    ) -> Result<SharedResult, RpcError> {
        let number = match cursor {
            None => 0,
            Some(cursor) => page_number(list, cursor).ok_or_else(|| RpcError::invalid_params("unknown cursor"))?,
        };
        let filtered = (!filter.is_open()).then(|| self.filtered(filter));
        let all = filtered.as_ref().map_or(&self.unfiltered, |filtered| &filtered.pages);
        let by_list = all.get(encoder.revision as usize).and_then(|lists| lists.get(list as usize));
        let pages = match by_list {
            Some(cell) => cell.get_or_init(|| self.encode(list, encoder, filter)),
            None => return Err(RpcError::internal("no such list")),
        };
        // The list may have become shorter since the client got the cursor.
        match pages.get(number) {
            Some(page) => Ok(page.clone()),
            None => Ok(SharedResult::new(encoder.page(list.key(), Vec::new(), None))),
        }
    }

    fn filtered(&self, filter: &Filter) -> Arc<Filtered> {
        let (mut all, key) = (self.filtered.lock(), filter.key());
        if all.len() >= MAX_CACHED_FILTERS && !all.contains_key(&key) {
            let other = all.keys().next().copied();
            other.and_then(|other| all.remove(&other));
        }
        Arc::clone(all.entry(key).or_default())
    }

    /// Returns the search index of all tools that models may call. All clients share it because it may be large, so the caller of
    /// [`Finder::find`] must exclude the tools that its client may not see.
    pub fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| {
            let all = Filter::default();
            let tools = self.all_tools(&all).filter(|(_, tool)| tool.for_models);
            Finder::new(tools.map(|(served, tool)| (served.config.id.as_str(), &tool.published)))
        })
    }

    /// Whether the search index exists. [`Self::finder`] builds it if not, and blocks the thread of each caller until then.
    pub fn is_indexed(&self) -> bool {
        self.finder.get().is_some()
    }

    /// Returns a digest of each list as `filter` leaves it. The digest of a list stays the same as long as its entries do.
    pub fn digests(&self, filter: &Filter) -> Digests {
        *self.filtered(filter).digests.get_or_init(|| self.digest(filter))
    }

    fn digest(&self, filter: &Filter) -> Digests {
        let digest = |lists: &[List]| {
            let mut hasher = DefaultHasher::new();
            for list in lists {
                for entry in self.entries(*list, filter) {
                    entry.digest(&mut hasher);
                }
            }
            hasher.finish()
        };
        Digests {
            tools: digest(&[List::Tools]),
            resources: digest(&[List::Resources, List::Templates]),
            prompts: digest(&[List::Prompts]),
        }
    }

    /// Returns all tools that `filter` lets through, even if `tools/list` shows the three search tools instead.
    pub fn all_tools<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> impl Iterator<Item = (&'a Arc<Served>, &'a Arc<OfferedTool>)> {
        self.served.iter().flat_map(move |served| {
            let tools = served.offer.tools.iter().filter(|one| served.config.allows_tool(&one.own_name));
            let sees = |name: &str| filter.sees(&Entry::new(EntryKind::Tool, &served.config.id, name));
            tools.filter(move |one| sees(&one.published.name)).map(move |one| (served, one))
        })
    }

    /// Returns the entries of a list that `filter` lets through.
    pub fn entries<'a>(&'a self, list: List, filter: &'a Filter) -> Box<dyn Iterator<Item = Listed<'a>> + 'a> {
        let sees = |kind, served: &Served, name: &str| filter.sees(&Entry::new(kind, &served.config.id, name));
        // A client sees a resource in the list if it may read the resource.
        let reads = |served: &Served, uri: &str| filter.sees(&Entry::read(&served.config.id, uri, None));
        let served = self.served.iter();
        match list {
            List::Tools if filter.style() == Style::Search => Box::new(finder::tools().iter().map(Listed::Tool)),
            List::Tools => Box::new(self.all_tools(filter).map(|(_, one)| Listed::Tool(&one.published))),
            List::Prompts => Box::new(served.flat_map(move |served| {
                let prompts = served.offer.prompts.iter().filter(|one| served.config.allows_prompt(&one.own_name));
                let seen = prompts.filter(move |one| sees(EntryKind::Prompt, served, &one.published.name));
                seen.map(|one| Listed::Prompt(&one.published))
            })),
            List::Resources => Box::new(served.flat_map(move |served| {
                let resources = served.offer.resources.iter();
                resources.filter(move |one| reads(served, &one.uri)).map(Listed::Resource)
            })),
            List::Templates => Box::new(served.flat_map(move |served| {
                let templates = served.offer.templates.iter().map(|one| &one.published);
                let seen = templates.filter(move |one| sees(EntryKind::Resource, served, &one.uri_template));
                seen.map(Listed::Template)
            })),
        }
    }

    fn encode(&self, list: List, encoder: &Encoder, filter: &Filter) -> Vec<SharedResult> {
        let entries: Vec<Value> = self.entries(list, filter).map(|one| one.encode(encoder)).collect();
        if entries.is_empty() {
            return vec![SharedResult::new(encoder.page(list.key(), entries, None))];
        }
        let size = self.page_items.max(1);
        let count = entries.len().div_ceil(size);
        let mut pages = Vec::with_capacity(count);
        let mut entries = entries.into_iter();
        for number in 0..count {
            let next = (number + 1 < count).then(|| cursor(list, number + 1));
            let page = encoder.page(list.key(), entries.by_ref().take(size).collect(), next.as_deref());
            pages.push(SharedResult::new(page));
        }
        pages
    }
}

/// An entry of a list.
pub enum Listed<'a> {
    Tool(&'a mcp::Tool),
    Prompt(&'a mcp::Prompt),
    Resource(&'a mcp::Resource),
    Template(&'a mcp::ResourceTemplate),
}

impl Listed<'_> {
    /// Encodes the entry for clients of the encoder's protocol revision.
    pub fn encode(&self, encoder: &Encoder) -> Value {
        match self {
            Self::Tool(one) => encoder.tool(one),
            Self::Prompt(one) => encoder.prompt(one),
            Self::Resource(one) => encoder.resource(one),
            Self::Template(one) => encoder.template(one),
        }
    }

    /// Hashes everything that clients see of the entry.
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

/// Returns the cursor of a page. It contains only the list and the page number, so the server stores nothing, and a client that forges a
/// cursor can do no harm.
fn cursor(list: List, page: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{page}", list.key()))
}

/// Returns the page number in a cursor, or `None` if it is not a cursor of this list.
fn page_number(list: List, cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (key, page) = text.split_once(':')?;
    (key == list.key()).then(|| page.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

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
