//! A session as the windows of the user show it.

use wharf_base::{principal::Principal, session_id::ClientInfo};
use wharf_plugins::observe::observers::Observers;
use wharf_policy::access::call_roots::CallRoots;
use wharf_protocol::Revision;
use wharf_window::{
    board::OpenSession,
    state::{self, SeenSession},
};

/// The most roots of a session that are shown.
const MAX_SHOWN_ROOTS: usize = 8;

/// Shows a session for as long as it exists, if there is a board.
pub struct ShownSession(Option<OpenSession>);

impl ShownSession {
    /// `digest`: returns the name of the session in records.
    pub fn new(
        observers: &Observers,
        digest: impl FnOnce() -> String,
        (client, revision): (Option<&ClientInfo>, Revision),
        principal: &Principal,
    ) -> Self {
        let named = |client: &ClientInfo| state::shown(&format!("{} {}", client.name, client.version));
        Self(observers.board().map(|board| {
            board.open(SeenSession {
                id: digest(),
                client: client.map(named).unwrap_or_default(),
                revision: revision.as_str().to_owned(),
                principal: state::shown(&principal.short()),
                ..SeenSession::default()
            })
        }))
    }

    /// Shows the roots of a call, or those that the client has listed.
    pub fn set_roots(&self, roots: &CallRoots) {
        if let Some(open) = &self.0 {
            open.set_folders(roots.all.iter().take(MAX_SHOWN_ROOTS).map(|root| state::shown(&root.shown)).collect());
        }
    }
}
