//! What one client sees of the catalog: all of it, or what it came for and its roles let through.

use std::sync::Arc;

use wharf_protocol::{RpcError, Shown, encode::Encoder, error::clip};

use super::{
    catalog::{Catalog, ResourceEntry},
    filter::Filter,
    lists::{List, Listed},
    published::Failure,
    served::{Generations, Served},
};
use crate::{
    base::reading::doubt_of_uri,
    bridge::{OfferedPrompt, OfferedTool},
    roles::{Denied, Entry, Kind},
};

/// A catalog, as one caller sees it.
pub struct View {
    pub catalog: Arc<Catalog>,
    pub filter: Filter,
}

/// The lists as a listener was told of them last: how often each changed, and what the caller's own lists were like then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub all: Generations,
    /// Those of a caller that does not see all there is.
    pub own: Option<Generations>,
}

impl View {
    fn check(&self, entry: &Entry<'_>, unknown: impl FnOnce() -> RpcError) -> Result<(), RpcError> {
        self.filter.check(entry).map_err(|denied| match denied {
            Denied::Hidden => unknown(),
            Denied::Scopes(scopes) => RpcError::insufficient_scope(&scopes),
        })
    }

    /// `by_model`: whether a model chose it, so that a tool for a page alone is not there.
    pub fn tool(&self, name: &str, by_model: bool) -> Result<(&Arc<Served>, &Arc<OfferedTool>), RpcError> {
        let unknown = || RpcError::invalid_params(format!("unknown tool: {}", clip(name)));
        let found = self.catalog.tool(name).filter(|(_, tool)| tool.for_models || !by_model);
        let (served, tool) = found.ok_or_else(unknown)?;
        self.check(&Entry::new(Kind::Tool, &served.config.id, name), unknown)?;
        Ok((served, tool))
    }

    pub fn prompt(&self, name: &str) -> Result<(&Served, &OfferedPrompt), RpcError> {
        let unknown = || RpcError::invalid_params(format!("unknown prompt: {}", clip(name)));
        let (served, prompt) = self.catalog.prompt(name).ok_or_else(unknown)?;
        self.check(&Entry::new(Kind::Prompt, &served.config.id, name), unknown)?;
        Ok((served, prompt))
    }

    /// The plugin that serves a URI, and the entry of its lists that does.
    pub fn resource(&self, uri: &str) -> Result<(&Served, ResourceEntry<'_>), RpcError> {
        // It says the same of a URI that is not there, so nobody learns from it what is.
        let unknown = || {
            let mut error = RpcError::resource_not_found(uri);
            if let Some(doubt) = doubt_of_uri(uri).filter(|_| !self.filter.hides_nothing()) {
                error.message += &format!(" (its path {doubt}, so what is allowed below a prefix does not include it)");
            }
            error
        };
        let (served, entry) = self.catalog.resource(uri).ok_or_else(unknown)?;
        self.check(&Entry::read(&served.config.id, uri, entry.template), unknown)?;
        Ok((served, entry))
    }

    /// The plugin that offers the template with this text.
    pub fn template(&self, text: &str) -> Option<&Served> {
        let served = self.catalog.template(text)?;
        let entry = Entry::new(Kind::Resource, &served.config.id, text);
        self.check(&entry, || RpcError::resource_not_found(text)).is_ok().then_some(served)
    }

    /// Whether the caller may know that something about this resource changed.
    pub fn sees_resource(&self, uri: &str) -> bool {
        self.filter.hides_nothing() || self.resource(uri).is_ok()
    }

    /// Whether the caller sees anything of this plugin.
    pub fn sees_plugin(&self, id: &str) -> bool {
        self.filter.hides_nothing()
            || self.catalog.served().iter().any(|served| served.config.id == id && sees_any(&self.filter, served))
    }

    /// Whether the caller may know that a plugin does not load. One that was never served is nobody's yet.
    pub fn sees_failure(&self, failure: &Failure) -> bool {
        self.filter.hides_nothing() || self.sees_plugin(&failure.subject)
    }

    /// The result of a list request.
    pub fn page(&self, list: List, cursor: Option<&str>, encoder: &Encoder) -> Result<Arc<str>, RpcError> {
        self.catalog.lists.page(list, cursor, encoder, &self.filter)
    }

    /// The entries of a list.
    pub fn entries(&self, list: List) -> Box<dyn Iterator<Item = Listed<'_>> + '_> {
        self.catalog.lists.entries(list, &self.filter)
    }

    /// How many tools there are for the caller, however they are listed.
    pub fn count_tools(&self) -> usize {
        self.catalog.lists.all_tools(&self.filter).count()
    }

    /// How many of them a search can find.
    pub fn count_findable(&self) -> usize {
        self.catalog.lists.all_tools(&self.filter).filter(|(_, tool)| tool.for_models).count()
    }

    /// The tools that have something of the query and that the caller sees, best first.
    pub fn find(&self, query: &str) -> Vec<(&Arc<Served>, &Arc<OfferedTool>)> {
        let sees = |name: &str| {
            let served = self.catalog.tool(name).map(|(served, _)| served);
            served.is_some_and(|served| self.filter.sees(&Entry::new(Kind::Tool, &served.config.id, name)))
        };
        let found = self.catalog.lists.finder().find(query, sees);
        found.into_iter().filter_map(|name| self.catalog.tool(name)).collect()
    }

    /// What models are told about the tools that the caller sees.
    pub fn instructions(&self, own: Option<&str>) -> Option<Shown> {
        let sees = |served: &Served| self.filter.hides_nothing() || sees_any(&self.filter, served);
        self.catalog.instructions(own, sees).0.map(Shown::from)
    }

    /// The lists as they are now.
    pub fn told(&self) -> Told {
        let own = (!self.filter.is_open()).then(|| self.catalog.lists.digests(&self.filter));
        Told { all: self.catalog.generations, own }
    }
}

fn sees_any(filter: &Filter, served: &Served) -> bool {
    let (id, offer) = (served.config.id.as_str(), &served.offer);
    let sees = |kind, name: &str| filter.sees(&Entry::new(kind, id, name));
    offer.tools.iter().any(|tool| served.config.allows_tool(&tool.own_name) && sees(Kind::Tool, &tool.published.name))
        || offer
            .prompts
            .iter()
            .any(|one| served.config.allows_prompt(&one.own_name) && sees(Kind::Prompt, &one.published.name))
        || offer.resources.iter().any(|resource| filter.sees(&Entry::read(id, &resource.uri, None)))
        || offer.templates.iter().any(|one| sees(Kind::Resource, &one.published.uri_template))
}
