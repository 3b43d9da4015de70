//! Profiles: named parts of the catalog. A client that connects to `/mcp/NAME`, or was started with `--profile NAME`, gets this part
//! and no other. A profile is not a permission: it narrows what its clients see, while roles say who may use what.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::Deserialize;

use crate::roles::{Entry, Selection};

/// The built-in profile: the whole catalog behind a few search tools, for clients that work better with few tools.
pub const SEARCH: &str = "search";

/// How tools are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Each tool by itself.
    #[default]
    Full,
    /// Tools that find the others, call them, and read resources. This list never changes.
    Search,
}

/// A part of the catalog, and how its tools are listed.
#[derive(Debug)]
pub struct Profile {
    /// None: all of it.
    pub selection: Option<Selection>,
    pub style: Style,
    /// No other profile has the same number.
    number: u64,
}

/// Two profiles are equal if the config says the same about both.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.selection == other.selection && self.style == other.style
    }
}

/// How many profiles have been created.
static PROFILE_COUNT: AtomicU64 = AtomicU64::new(0);

impl Profile {
    pub fn new(selection: Option<Selection>, style: Style) -> Arc<Self> {
        let number = PROFILE_COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Self { selection, style, number })
    }

    pub fn has(&self, entry: &Entry<'_>) -> bool {
        self.selection.as_ref().is_none_or(|selection| selection.has(entry))
    }

    /// Returns a key for caches, which is the same for all clients that see the catalog through this profile.
    pub fn key(&self) -> u64 {
        self.number
    }
}

/// All profiles of a config.
#[derive(Debug, PartialEq)]
pub struct Profiles {
    /// The profile of clients that name no profile. None: the whole catalog, each tool listed by itself.
    unnamed: Option<Arc<Profile>>,
    named: BTreeMap<String, Arc<Profile>>,
    /// The profile of clients whose profile was removed.
    nothing: Arc<Profile>,
}

impl Profiles {
    /// `style`: how tools are listed for clients that name no profile.
    pub fn new(style: Style, mut named: BTreeMap<String, Arc<Profile>>) -> Self {
        let unnamed = (style == Style::Search).then(|| Profile::new(None, style));
        named.insert(SEARCH.into(), Profile::new(None, Style::Search));
        Self { unnamed, named, nothing: Profile::new(Some(Selection::default()), Style::Full) }
    }

    pub fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the profile that a client asked for. None: the client gets the whole catalog, each tool listed by itself.
    pub fn find(&self, name: Option<&str>) -> Option<Arc<Profile>> {
        match name {
            None => self.unnamed.clone(),
            Some(name) => Some(Arc::clone(self.named.get(name).unwrap_or(&self.nothing))),
        }
    }
}
