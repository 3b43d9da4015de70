//! The requests under way on one connection or session, by id, so that they can be cancelled.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Id, RpcError,
    params::{self, Params},
};

use super::outbox::Voice;

/// The maximum number of requests at once, so that a client that never reads answers cannot fill memory.
const MAX_IN_FLIGHT: usize = 1024;

type Requests = Mutex<HashMap<Id, (CancellationToken, Voice)>>;

#[derive(Default)]
pub struct InFlight(Arc<Requests>);

/// RAII guard of a request under way. The id of the request is free again when this is dropped.
pub struct Entered {
    requests: Arc<Requests>,
    id: Id,
    pub cancelled: CancellationToken,
}

impl InFlight {
    /// Registers a request as under way. `voice`: is muted when the request is cancelled.
    pub fn enter(&self, id: &Id, voice: &Voice) -> Result<Entered, RpcError> {
        let mut requests = self.0.lock();
        if requests.contains_key(id) {
            return Err(RpcError::invalid_request("a request with this id is already under way"));
        }
        if requests.len() >= MAX_IN_FLIGHT {
            return Err(RpcError::internal(format!(
                "more than {MAX_IN_FLIGHT} requests are under way; wait for some of them"
            )));
        }
        let cancelled = CancellationToken::new();
        requests.insert(id.clone(), (cancelled.clone(), voice.clone()));
        Ok(Entered { requests: Arc::clone(&self.0), id: id.clone(), cancelled })
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Handles `notifications/cancelled`. Unknown ids and malformed parameters are ignored.
    pub fn cancel(&self, params: Option<&Params>) {
        let id =
            params::read::<params::Cancelled>(params).ok().and_then(|params| Id::from_raw(params.request_id.get()));
        if let Some(id) = id {
            self.cancel_id(&id);
        }
    }

    /// Cancels a request, if there is one with this id.
    pub fn cancel_id(&self, id: &Id) {
        let found = self.0.lock().get(id).cloned();
        if let Some((token, voice)) = found {
            voice.mute();
            token.cancel();
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.id);
    }
}
