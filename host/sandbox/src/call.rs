//! One call: one instance, one deadline. Runs one operation in a fresh instance and drops it, or, where the operator chose
//! so, in one that this client used before and may use again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use crate::{
    instance::{Instance, Operation, TRANSFER_SLACK_BYTES},
    limits::Refused,
    load::Plugin,
    operation::CallError,
    runtime::Stopped,
    sandbox::Sandbox,
    scope::{Denial, Events, Limits, Scope},
    store::{CallState, State, Traces},
    warm::Key,
};

/// An outcome, and what else there is to know of the call.
#[derive(Debug)]
pub struct Report<T> {
    pub result: Result<T, CallError>,
    pub denials: Vec<Denial>,
    /// The last of what the guest printed, unescaped.
    pub printed: String,
    pub took: Duration,
    /// What the outcome takes of the limit on output, about, in bytes. None: there is none, or it asks.
    pub bytes: Option<usize>,
}

/// What a plugin is to do, for whom, and within what.
pub struct Call<O> {
    pub operation: O,
    pub scope: Scope,
    pub events: Arc<dyn Events>,
    /// How long it may take, if not as long as the plugin's limit says.
    pub timeout: Option<Duration>,
    /// For whom the instance is kept, and who may have left one. None: it gets a fresh one, which is dropped.
    pub client: Option<Arc<str>>,
}

impl Plugin {
    /// Runs a call. Dropping the future stops it.
    pub async fn call<O: Operation>(&self, call: Call<O>) -> Report<O::Outcome> {
        let Call { operation, scope, events, timeout, client } = call;
        let limits = &self.0.spec.limits;
        let timeout = timeout.or(O::TIMEOUT).unwrap_or(limits.timeout);
        let started = Instant::now();
        let (traces, overran) = (Traces::default(), Arc::new(AtomicBool::new(false)));
        let state = CallState::new(events, traces.clone(), Arc::clone(&overran));
        let sandbox = &self.0.code.0.sandbox;
        let run = sandbox.runtime.run(self.clone().run(operation, scope, state, client), &self.0.turns, overran);
        let result = match tokio::time::timeout(timeout, run).await {
            Ok(Ok(result)) => result,
            Ok(Err(Stopped(error))) if error.is_panic() => {
                Err(CallError::Trap { message: "a defect of wharf itself".into(), detail: error.to_string() })
            }
            Ok(Err(Stopped(_))) => Err(CallError::Stopped),
            Err(_) => Err(CallError::Timeout(timeout)),
        };
        let result = result.map_err(|error| explain(error, &traces, limits));
        let bytes = result.as_ref().ok().and_then(O::bytes);
        Report { bytes, result, denials: traces.denials(), printed: traces.printed(), took: started.elapsed() }
    }

    /// A place to run in. A plugin's first call may have one that is kept for such.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let sandbox = &self.0.code.0.sandbox;
        let slot = Arc::clone(&sandbox.slots).acquire_owned();
        if self.0.running.load(Ordering::Relaxed) > 1 {
            return slot.await;
        }
        tokio::select! {
            biased;
            slot = slot => slot,
            slot = Arc::clone(&sandbox.first_slots).acquire_owned() => slot,
        }
    }

    /// The call itself, from admission to outcome. Owns all it needs, so that it can move to another thread.
    async fn run<O: Operation>(
        self,
        operation: O,
        scope: Scope,
        call: CallState,
        client: Option<Arc<str>>,
    ) -> Result<O::Outcome, CallError> {
        let code = &self.0.code.0;
        // Never closed, so waiting ends with a permit or with the deadline. The store is dropped before them.
        let _turn = loop {
            let turn = Arc::clone(&self.0.admission).acquire_owned().await;
            let Some(hold) = call.hold() else { break turn };
            drop(turn);
            hold.await;
        };
        let _running = Running::new(&self.0.running);
        let _slot = self.slot().await;
        let Sandbox { warm, total_memory, handles, .. } = &*code.sandbox;
        let key = client.zip(scope.reach()).map(|(client, reach)| Key { plugin: self.0.number, client, reach });
        let part = handles.take();
        let kept = key.as_ref().and_then(|key| warm.take(key)).filter(|kept| part.covers(kept.handles_limit()));
        // What crosses from the guest to the host exists twice for a while.
        let transfer = self.0.spec.limits.output_bytes.saturating_add(TRANSFER_SLACK_BYTES);
        let needed = if kept.is_some() { transfer } else { transfer.saturating_add(self.0.spec.limits.memory_bytes) };
        // What is only kept makes room for what runs.
        if total_memory.left() < needed {
            warm.clear();
        }
        let _transfer = total_memory.charge(transfer).map_err(|_| CallError::TotalMemory)?;
        let mut instance = match kept {
            Some(mut instance) => {
                instance.renew(|state| state.renew(part, call));
                instance
            }
            None => {
                let state = State::new(scope, &self.0.spec, total_memory, part, call);
                Instance::start(&code.linked, &self.0.spec.limits, state).await?
            }
        };
        let result = operation.perform(&mut instance, &code.linked).await;
        // After anything but its own answer it is not used again.
        let limit = self.0.spec.limits.output_bytes;
        let result = match result {
            Ok(outcome) if O::bytes(&outcome).is_some_and(|bytes| bytes > limit) => {
                return Err(CallError::Output(limit));
            }
            Ok(_) | Err(CallError::Failed(_)) => result,
            Err(_) => return result,
        };
        if let Some(key) = key
            && let Some(bytes) = instance.rest()
        {
            warm.put(key, bytes, instance);
        }
        result
    }
}

/// Counts a call among those of its plugin.
struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the call's traces add: a crash after a refused growth is a memory error.
fn explain(error: CallError, traces: &Traces, limits: &Limits) -> CallError {
    match (error, traces.refused()) {
        (CallError::Output(_), _) => CallError::Output(limits.output_bytes),
        (CallError::Trap { .. } | CallError::Exit(_), Some(Refused::Own)) => CallError::Memory(limits.memory_bytes),
        (CallError::Trap { .. } | CallError::Exit(_), Some(Refused::Total)) => CallError::TotalMemory,
        (error, _) => error,
    }
}
