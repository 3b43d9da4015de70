//! The catalog as one client sees it: complete, or filtered by the client's profile and roles.

use std::sync::Arc;

use wharf_protocol::{RpcError, Shown, encode::Encoder, error::clip, message::SharedResult};

use super::{
    catalog::{Catalog, ResourceEntry},
    filter::Filter,
    lists::{List, Listed},
    published::Failure,
    served::{Digests, Generations, Served},
};
use crate::bridge::{OfferedPrompt, OfferedTool};
use wharf_base::{reading::doubt_of_uri, session_id::ListDigests};
use wharf_policy::roles::{Entry, EntryKind, RoleDenied};

/// A catalog with the filter of one caller.
pub struct View {
    pub catalog: Arc<Catalog>,
    pub filter: Filter,
}

/// The versions of the lists at one moment. A listener keeps the versions of its last notification to find out which lists changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListVersions {
    /// The change counters of the unfiltered lists.
    pub all: Generations,
    /// The digests of the lists as the caller sees them; `None` if the caller has no filter.
    pub own: Option<Digests>,
}

impl View {
    fn check(&self, entry: &Entry<'_>, unknown: impl FnOnce() -> RpcError) -> Result<(), RpcError> {
        self.filter.check(entry).map_err(|denied| match denied {
            RoleDenied::Hidden => unknown(),
            RoleDenied::Scopes(scopes) => RpcError::insufficient_scope(&scopes),
        })
    }

    /// Returns the tool with this name and its plugin. `by_model`: whether a model chose the name; tools that only a plugin's page may call
    /// are then unknown.
    pub fn tool(&self, name: &str, by_model: bool) -> Result<(&Arc<Served>, &Arc<OfferedTool>), RpcError> {
        let unknown = || RpcError::invalid_params(format!("unknown tool: {}", clip(name)));
        let found = self.catalog.tool(name).or_else(|| self.catalog.tool(self.with_one_prefix(name)?));
        let (served, tool) = found.filter(|(_, tool)| tool.for_models || !by_model).ok_or_else(unknown)?;
        self.check(&Entry::new(EntryKind::Tool, &served.config.id, &tool.published.name), unknown)?;
        Ok((served, tool))
    }

    /// Returns the name without the prefix that precedes the plugin's own name for a tool, if that name begins with the prefix itself: the
    /// permissions of a client may name `git_git_status`, and the tool is published as `git_status`.
    fn with_one_prefix<'n>(&self, name: &'n str) -> Option<&'n str> {
        let prefixes = self.catalog.served().iter().map(|served| served.config.prefix.as_str());
        prefixes
            .filter(|prefix| !prefix.is_empty())
            .find_map(|prefix| name.strip_prefix(prefix).filter(|rest| rest.starts_with(prefix)))
    }

    pub fn prompt(&self, name: &str) -> Result<(&Served, &OfferedPrompt), RpcError> {
        let unknown = || RpcError::invalid_params(format!("unknown prompt: {}", clip(name)));
        let (served, prompt) = self.catalog.prompt(name).ok_or_else(unknown)?;
        self.check(&Entry::new(EntryKind::Prompt, &served.config.id, name), unknown)?;
        Ok((served, prompt))
    }

    /// Returns the plugin that serves a URI, and the resource or template that matches the URI.
    pub fn resource(&self, uri: &str) -> Result<(&Served, ResourceEntry<'_>), RpcError> {
        // The error is the same for a URI that does not exist and one that the caller may not see, so it reveals nothing.
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

    /// Returns the plugin that offers the template with this text.
    pub fn template(&self, text: &str) -> Option<&Served> {
        let served = self.catalog.template(text)?;
        let entry = Entry::new(EntryKind::Resource, &served.config.id, text);
        self.check(&entry, || RpcError::resource_not_found(text)).is_ok().then_some(served)
    }

    /// Whether the caller may be notified of changes of this resource.
    pub fn sees_resource(&self, uri: &str) -> bool {
        self.filter.hides_nothing() || self.resource(uri).is_ok()
    }

    /// Whether the caller sees at least one entry of this plugin.
    pub fn sees_plugin(&self, id: &str) -> bool {
        self.filter.hides_nothing()
            || self.catalog.served().iter().any(|served| served.config.id == id && sees_any(&self.filter, served))
    }

    /// Whether the caller may know that a plugin is being loaded or does not load. A caller with a filter may know of plugins of which it
    /// sees an entry, and of those that its profile and roles name.
    pub fn may_know(&self, id: &str) -> bool {
        self.filter.names(id) || self.sees_plugin(id)
    }

    /// Whether the caller may be notified that a plugin does not load.
    pub fn sees_failure(&self, failure: &Failure) -> bool {
        self.may_know(&failure.subject)
    }

    /// Returns the encoded result of a list request.
    pub fn page(&self, list: List, cursor: Option<&str>, encoder: &Encoder) -> Result<SharedResult, RpcError> {
        self.catalog.lists.page(list, cursor, encoder, &self.filter)
    }

    /// Returns the entries of a list.
    pub fn entries(&self, list: List) -> Box<dyn Iterator<Item = Listed<'_>> + '_> {
        self.catalog.lists.entries(list, &self.filter)
    }

    /// Returns the number of tools that the caller may use, even if `tools/list` shows the three search tools instead.
    pub fn count_tools(&self) -> usize {
        self.catalog.lists.all_tools(&self.filter).count()
    }

    /// Returns the number of those tools that a search can find.
    pub fn count_findable(&self) -> usize {
        self.catalog.lists.all_tools(&self.filter).filter(|(_, tool)| tool.for_models).count()
    }

    /// Whether the search index exists.
    pub fn is_indexed(&self) -> bool {
        self.catalog.lists.is_indexed()
    }

    /// Builds the search index unless it exists. A search does the same.
    pub fn build_index(&self) {
        self.catalog.lists.finder();
    }

    /// Returns the tools that match at least one word of the query and that the caller sees, best match first.
    pub fn find(&self, query: &str) -> Vec<(&Arc<Served>, &Arc<OfferedTool>)> {
        let sees = |name: &str| {
            let served = self.catalog.tool(name).map(|(served, _)| served);
            served.is_some_and(|served| self.filter.sees(&Entry::new(EntryKind::Tool, &served.config.id, name)))
        };
        let found = self.catalog.lists.finder().find(query, sees);
        found.into_iter().filter_map(|name| self.catalog.tool(name)).collect()
    }

    /// Returns the instructions for models about the tools that the caller sees. `own`: the server's own instructions.
    pub fn instructions(&self, own: Option<&str>) -> Option<Shown> {
        let sees = |served: &Served| self.filter.hides_nothing() || sees_any(&self.filter, served);
        self.catalog.instructions(own, sees).0.map(Shown::from)
    }

    /// Returns a short digest of each list as the caller sees it. It is the same in every process of this version of wharf.
    pub fn list_digests(&self) -> ListDigests {
        self.catalog.lists.digests(&self.filter).short()
    }

    /// Returns the current versions of the lists.
    pub fn list_versions(&self) -> ListVersions {
        let own = (!self.filter.is_open()).then(|| self.catalog.lists.digests(&self.filter));
        ListVersions { all: self.catalog.generations, own }
    }
}

fn sees_any(filter: &Filter, served: &Served) -> bool {
    let (id, offer) = (served.config.id.as_str(), &served.offer);
    let sees = |kind, name: &str| filter.sees(&Entry::new(kind, id, name));
    offer
        .tools
        .iter()
        .any(|tool| served.config.allows_tool(&tool.own_name) && sees(EntryKind::Tool, &tool.published.name))
        || offer
            .prompts
            .iter()
            .any(|one| served.config.allows_prompt(&one.own_name) && sees(EntryKind::Prompt, &one.published.name))
        || offer.resources.iter().any(|resource| filter.sees(&Entry::read(id, &resource.uri, None)))
        || offer.templates.iter().any(|one| sees(EntryKind::Resource, &one.published.uri_template))
}
