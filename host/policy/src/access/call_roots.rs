//! The roots of a call: the folders that its client, or the program that embeds wharf, has opened.

use std::{path::PathBuf, sync::Arc};

use super::{
    capability::Access,
    closed::Closed,
    open::{Now, OpenRoot},
    within::{Within, narrowed},
};

/// The roots of a call: the client's, the operator's, both, or no roots if the plugin was granted none.
#[derive(Clone, Default)]
pub struct CallRoots {
    pub all: Vec<Arc<OpenRoot>>,
    /// The folders to which the roots are narrowed by the caller's roles. `None`: the roots are not narrowed.
    pub within: Option<Arc<[Within]>>,
    /// Why `all` is empty, if it is.
    pub closed: Closed,
}

impl CallRoots {
    pub fn of(all: Vec<Arc<OpenRoot>>) -> Self {
        Self { all, ..Self::default() }
    }

    /// Tells a client why no folder is open to a call with these roots, and what opens one. Contains no path but the client's own.
    pub fn explained(&self) -> String {
        if !self.all.is_empty() {
            return match &self.within {
                Some(_) => "your roles open no folder in the roots of this call".into(),
                None => "the folders that were opened do not exist any more".into(),
            };
        }
        self.closed.explained()
    }

    /// Returns the current directories of the roots, with at most this access.
    pub fn directories(&self, access: Access) -> impl Iterator<Item = (Now, Access)> {
        self.all.iter().flat_map(move |root| match &self.within {
            None => vec![(root.now(), access)],
            Some(within) => narrowed(root.now(), access, within),
        })
    }

    /// Whether any of the roots may be writable with this access, if it exists when the call runs.
    pub fn may_write(&self, access: Access) -> bool {
        let narrowed = |within: &Arc<[Within]>| within.iter().any(|one| one.access == Access::ReadWrite);
        access == Access::ReadWrite && !self.all.is_empty() && self.within.as_ref().is_none_or(narrowed)
    }

    /// Returns the paths of the directories, each with its access.
    pub fn shown(&self, access: Access) -> Vec<(String, Access)> {
        let plain = || self.all.iter().map(|root| (root.shown.clone(), access)).collect();
        let Some(_) = self.within else { return plain() };
        let there = |(now, access)| match now {
            Now::There(directory) => Some((directory.shown, access)),
            Now::Elsewhere(_) | Now::Gone => None,
        };
        self.directories(access).filter_map(there).collect()
    }
}

/// A folder that an embedding program opens for a client.
#[derive(Debug, Clone)]
pub struct Folder {
    pub path: PathBuf,
    /// The absolute path at which plugins see it, if it differs from `path`.
    pub shown: Option<String>,
}
