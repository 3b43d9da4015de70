//! Counts how much of the catalog each profile and role of the config has, for `wharf check`.

use std::{path::PathBuf, sync::Arc};

use wharf_base::principal::Principal;
use wharf_plugins::plugins::{filter::Filter, lists::List, view::View};
use wharf_policy::{
    auth::Caller,
    profiles::{Profile, SEARCH, Style},
};
use wharf_serve::client::server::Server;

/// The numbers of tools, of prompts, and of resources including templates.
pub type Counts = [usize; 3];

/// A role as it is shown to the operator.
#[derive(Debug)]
pub struct ShownRole {
    pub name: String,
    /// To whom the role applies.
    pub when: String,
    pub gives: Counts,
    /// The folder that the role opens, if the folder does not exist.
    pub missing: Option<PathBuf>,
}

/// Returns the profiles of the config, with the counts of what they select.
pub fn profiles(server: &Server) -> Vec<(String, Counts)> {
    let profiles = Arc::clone(&server.config.borrow().profiles);
    let owner = Caller::Owner(Principal::Process);
    let counted = profiles
        .names()
        .filter(|name| *name != SEARCH)
        .map(|name| (name.to_owned(), counts(&server.view(&owner, Some(name)))));
    counted.collect()
}

/// Returns the roles of the config.
pub fn roles(server: &Server) -> Vec<ShownRole> {
    let roles = Arc::clone(&server.config.borrow().roles);
    let counted = roles.iter().map(|role| {
        let catalog = Arc::clone(&server.published.catalog.borrow());
        let all_of_role = Profile::new(Some(role.selection.clone()), Style::Full);
        let view = View { catalog, filter: Filter { rights: None, profile: Some(all_of_role) } };
        let when: Vec<String> = role.when.iter().map(ToString::to_string).collect();
        let missing = roles.missing_folders().find(|(of, _)| *of == role.name).map(|(_, folder)| folder);
        ShownRole { name: role.name.clone(), when: when.join("; or "), gives: counts(&view), missing }
    });
    counted.collect()
}

fn counts(view: &View) -> Counts {
    let resources = view.entries(List::Resources).count() + view.entries(List::Templates).count();
    [view.count_tools(), view.entries(List::Prompts).count(), resources]
}
