//! A person's approval of calls: what is asked, what an approval is good for, and which are remembered. `methods::call` asks.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::{kept::Kept, remembered::Remembered, subject::Kind, ticket::Tickets};
use crate::{
    base::{principal::Principal, program},
    config::approvals::Remember,
};

pub mod answer;
pub mod kept;
pub mod remembered;
pub mod subject;
pub mod ticket;

/// How long the operator's program may take, since a person may have to answer it.
const COMMAND: Duration = Duration::from_secs(120);
/// How many of these programs run at once. Other calls wait for their turn, within the time that a program may take.
const COMMANDS_AT_ONCE: usize = 8;
/// The most that such a program may print.
const MAX_PRINTED_BYTES: usize = 1024;
/// For how many principals approvals are remembered until wharf ends.
const MAX_PRINCIPALS: usize = 1024;

/// What is known of approvals, for as long as wharf runs.
pub struct Approvals {
    pub tickets: Tickets,
    /// Approvals that are good until they are revoked. None: there is no place to keep them.
    pub kept: Option<Kept>,
    /// Approvals of clients without sessions that are good until wharf ends.
    principals: Mutex<HashMap<Principal, Remembered>>,
    commands: Semaphore,
}

impl Approvals {
    /// `file`: where approvals are kept that are good until they are revoked.
    pub fn new(file: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            tickets: Tickets::new()?,
            kept: file.map(Kept::new),
            principals: Mutex::default(),
            commands: Semaphore::new(COMMANDS_AT_ONCE),
        })
    }

    /// Whether such calls of a client without a session were approved of.
    pub fn has(&self, principal: &Principal, kind: &Kind) -> bool {
        self.principals.lock().get(principal).is_some_and(|remembered| remembered.has(kind))
    }

    /// Remembers an approval for a client without a session. False: too much is remembered already.
    pub fn remember(&self, principal: &Principal, kind: Kind) -> bool {
        let mut principals = self.principals.lock();
        let room = principals.contains_key(principal) || principals.len() < MAX_PRINCIPALS;
        room && principals.entry(principal.clone()).or_default().add(kind, None)
    }

    /// Asks the operator's program. It is told of the call in JSON on stdin, and answers with one word: `yes`, `session` or
    /// `always`. Anything else is a no; the error says what went wrong, if it did.
    pub async fn ask_program(&self, command: &[String], told: &str, longest: Remember) -> Result<Option<Remember>> {
        let asked = async {
            // The semaphore is never closed, so this cannot fail.
            let _turn = self.commands.acquire().await;
            program::run(command, told.as_bytes(), MAX_PRINTED_BYTES, COMMAND).await
        };
        let printed = tokio::time::timeout(COMMAND, asked).await.context("too many calls wait for it")??;
        Ok(match printed.trim() {
            "yes" => Some(Remember::Never),
            "session" => Some(Remember::Session.min(longest)),
            "always" => Some(Remember::Always.min(longest)),
            _ => None,
        })
    }
}
