//! The ids by which plugins know callers.
//!
//! An id is a keyed digest of the plugin's id and the principal. So a plugin cannot learn from it who the caller is, and two plugins cannot
//! find out from their ids that they serve the same one.

use std::fmt::{self, Write};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac, digest::InvalidLength};
use sha2::Sha256;

use super::principal::Principal;

/// The length of an id before it is encoded. Ids with this length do not collide by chance.
const ID_BYTES: usize = 16;

/// Makes the ids of callers.
pub struct CallerIds {
    keyed: Hmac<Sha256>,
}

impl CallerIds {
    /// Processes with the same key give the same ids.
    pub fn with_key(key: &[u8; 32]) -> Result<Self, InvalidLength> {
        let mut keyed = Hmac::new_from_slice(key)?;
        // The same key seals the state of requests.
        keyed.update(b"wharf caller id 1");
        Ok(Self { keyed })
    }

    /// Returns the id of a caller for a plugin. `None` if callers of this kind cannot be told apart.
    pub fn of(&self, plugin: &str, principal: &Principal) -> Option<String> {
        match principal {
            Principal::Process | Principal::Anonymous => return None,
            Principal::Named(_)
            | Principal::Token(_)
            | Principal::User(_)
            | Principal::Key(_)
            | Principal::Certificate(_)
            | Principal::Local(_) => {}
        }
        let mut digest = Digesting(self.keyed.clone());
        digest.0.update(&(plugin.len() as u64).to_be_bytes());
        digest.0.update(plugin.as_bytes());
        // Writing into a digest never fails.
        write!(digest, "{principal}").ok();
        digest.0.finalize().into_bytes().get(..ID_BYTES).map(|id| URL_SAFE_NO_PAD.encode(id))
    }
}

/// Digests a text without building it.
struct Digesting(Hmac<Sha256>);

impl Write for Digesting {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use super::*;
    use crate::principal::User;

    fn user(issuer: &str, subject: &str) -> Principal {
        Principal::User(Arc::new(User { issuer: issuer.into(), subject: subject.into() }))
    }

    #[test]
    fn every_caller_has_one_id_for_each_plugin_and_key() {
        let callers = [
            Principal::Named("ada".into()),
            Principal::Token("ada".into()),
            Principal::Key("ada".into()),
            Principal::Certificate("ada".into()),
            Principal::Local(1000),
            user("https://a.example", "ada"),
            user("https://b.example", "ada"),
            user("https://a.example", "bob"),
        ];
        let mut ids = HashSet::new();
        for key in [[1; 32], [2; 32]] {
            for plugin in ["notes", "note", "files"] {
                for caller in &callers {
                    let id = CallerIds::with_key(&key).unwrap().of(plugin, caller).unwrap();
                    let again = CallerIds::with_key(&key).unwrap().of(plugin, caller);
                    assert_eq!(again.as_ref(), Some(&id), "it is the same after a restart");
                    assert_eq!(id.len(), 22, "{id}");
                    assert!(ids.insert(id), "{plugin} {caller}");
                }
            }
        }
    }

    #[test]
    fn callers_that_cannot_be_told_apart_have_none() {
        let ids = CallerIds::with_key(&[1; 32]).unwrap();
        for principal in [Principal::Process, Principal::Anonymous] {
            assert_eq!(ids.of("notes", &principal), None);
        }
    }
}
