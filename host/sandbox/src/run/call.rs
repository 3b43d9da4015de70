//! Runs one operation of a plugin within one deadline. The operation runs in a fresh instance that is dropped afterwards or, if the
//! operator enabled that or the plugin keeps state, in one that the same client has used before and may use again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::OwnedMutexGuard;

use crate::{
    bounds::{
        limits::{Refused, TRANSFER_SLACK_BYTES},
        runtime::{Pace, Stopped},
    },
    contract::{
        operation::{CallError, failure_bytes},
        told::told,
    },
    run::{
        instance::{About, Instance, Operation},
        load::LoadedPlugin,
        sandbox::Sandbox,
        stays::{Client, Lost, Stay, Staying},
        warm::{Key, Owner},
    },
    wasi::{
        masked::Masked,
        reach::{Events, Reach},
        store::{CallState, State},
        told,
        traces::Traces,
        traffic::Traffic,
    },
};
use wharf_base::{
    accounts::{Account, Charge},
    heavy::LARGE_TEXT_BYTES,
    in_place::boxed,
    places::{Party, Place},
};
use wharf_scope::{
    Denial, Scope,
    adapter::ServedAs,
    network::{HttpUse, Network},
};

/// The largest outcome that is searched for secrets on an I/O worker. The search takes about a millisecond.
const MAX_INLINE_MASK_BYTES: usize = 64 << 10;

/// The data of a failure with which a plugin says that what it runs has ended itself, so that its instance cannot be used again.
const ENDED: &str = r#"{"dev.wharf/ended":true}"#;

/// The report on a finished call: its outcome, and what was recorded about it.
#[derive(Debug)]
pub struct Report<T> {
    /// The outcome, or the error that took its place.
    pub result: Result<T, CallError>,
    /// The attempts of the guest that were refused, without duplicates: the first 16, and any further ones with a secret's placeholder.
    pub denials: Vec<Denial>,
    /// The last 16 KiB of what the guest printed. It may contain control characters, which the caller has to escape.
    pub printed: String,
    /// The time since the call was made, including the wait for its turn.
    pub took: Duration,
    /// How long of that the call waited for its turn. `None`: its turn did not come.
    pub waited: Option<Duration>,
    /// The approximate number of bytes that the outcome counts towards the output limit. `None` if there is no outcome, or if it consists
    /// of questions, which have limits of their own.
    pub bytes: Option<usize>,
    /// The first 128 HTTP requests, including refused ones.
    pub requests: Vec<HttpUse>,
    /// Whether the plugin answered that the operation failed.
    pub says_failed: bool,
    /// The memory of a large outcome, which may wait before it is looked at. It is charged like that of guests until this is dropped.
    pub held: Option<Box<Charge>>,
}

/// An operation for a plugin to perform, with its client and its limits.
pub struct PluginCall<O> {
    /// The operation.
    pub operation: O,
    /// What the call may access.
    pub scope: Scope,
    /// Receives the guest's log records, progress reports and notifications.
    pub events: Arc<dyn Events>,
    /// How long the call may take in all. `None`: the operation's own timeout or, if it has none, the one in the plugin's limits.
    pub timeout: Option<Duration>,
    /// The client for whom the instance is retained afterwards, and who may get one from an earlier call. `None`: the call gets a fresh
    /// instance, which is dropped afterwards. Boxed, so that the futures of other calls stay small.
    pub client: Option<Box<Client>>,
    /// The party to which the call's places and memory are counted.
    pub party: Party,
    /// Where is recorded what the call tries. It can be read while the call runs, and when it was stopped.
    pub traces: Traces,
}

impl LoadedPlugin {
    /// Runs a call. It may wait for a place first, within its deadline; before that, for as long at most, for earlier calls in its instance.
    /// Dropping the future stops the call after at most 5 ms of computing.
    pub async fn call<O: Operation>(&self, call: PluginCall<O>) -> Report<O::Outcome> {
        let PluginCall { operation, scope, events, timeout, client, party, traces } = call;
        let limits = &self.0.spec.limits;
        let timeout = timeout.or(O::TIMEOUT).unwrap_or(limits.timeout);
        let started = Instant::now();
        let sandbox = &self.0.code.0.sandbox;
        let pace = Arc::new(Pace::new(&sandbox.ticks));
        let network = scope.network.clone();
        network.iter().for_each(|network| traces.reach(network));
        let memory = sandbox.memory.of(party);
        let traffic = network
            .as_ref()
            .map(|network| Traffic::new(Arc::clone(network), limits.http, memory.clone(), traces.clone()));
        let state = CallState::new(events, traces.clone(), Arc::clone(&pace), traffic);
        // A command runs once and exits, so its instance cannot be used again.
        let client = client.filter(|_| self.0.served != ServedAs::Command);
        let stay = client.as_ref().filter(|client| client.in_one);
        let stay = stay.map(|client| self.0.stays.lock().of(&self.0.spec.id, client));
        // On the heap, so that the future stays small while it waits.
        let begin = Box::new((operation, scope, state, client, (party, memory)));
        // Calls that use the same instance wait for one another before their own time begins: one that runs out of time ends what is kept.
        let turn = match &stay {
            Some(stay) => Some(Box::pin(stay.turn(timeout)).await),
            None => None,
        };
        let held = match turn {
            Some(None) => Err(CallError::Busy(timeout)),
            turn => {
                let run = {
                    let (plugin, network, pace) = (self.clone(), network.clone(), Arc::clone(&pace));
                    let deadline = Instant::now() + timeout;
                    // The future owns everything it needs, so that it can move to another thread while it runs.
                    boxed(|| async move {
                        let (operation, scope, state, client, (party, memory)) = *begin;
                        let keeper =
                            client.map(|client| Box::new(Keeper { client, stay, _turn: turn.flatten(), deadline }));
                        let mut result = plugin.run(operation, scope, state, keeper, (party, memory.clone())).await;
                        if let Some(network) = network.filter(|network| network.hides()) {
                            mask::<O>(&mut result, &*network, &pace).await;
                        }
                        held(result, &memory, O::takes)
                    })
                };
                let run = sandbox.runtime.run(run, &self.0.turns, pace);
                match tokio::time::timeout(timeout, run).await {
                    Ok(Ok(held)) => held,
                    Ok(Err(Stopped(error))) if error.is_panic() => Err(CallError::Trap {
                        message: "a defect of wharf itself".into(),
                        detail: told(format_args!("{error}")),
                    }),
                    Ok(Err(Stopped(_))) => Err(CallError::Stopped),
                    Err(_) => Err(CallError::Timeout(timeout)),
                }
            }
        };
        let (result, held) = held.unwrap_or_else(|error| (Err(error), None));
        let result = result.map_err(|error| explain(error, &traces, &self.0.about()));
        let bytes = result.as_ref().ok().and_then(O::bytes);
        let says_failed = result.as_ref().is_ok_and(O::says_failed);
        let (denials, requests, printed) = (traces.denials(), traces.requests(), traces.printed());
        let waited = traces.began().map(|began| began.saturating_duration_since(started));
        Report { bytes, says_failed, held, result, denials, requests, printed, waited, took: started.elapsed() }
    }

    /// Waits for a slot to run in. If the plugin has no other call running, the call may also take one of the slots that are
    /// reserved for this case.
    async fn slot(&self, party: Party) -> Place {
        let sandbox = &self.0.code.0.sandbox;
        let slot = sandbox.slots.wait(party);
        if self.0.running.load(Ordering::Relaxed) > 1 {
            return slot.await;
        }
        tokio::select! {
            biased;
            slot = slot => slot,
            slot = sandbox.first_slots.wait(party) => slot,
        }
    }

    /// Runs the call from its wait for a place to its outcome.
    async fn run<O: Operation>(
        &self,
        operation: O,
        scope: Scope,
        call: CallState,
        keeper: Option<Box<Keeper>>,
        (party, own_memory): (Party, Account),
    ) -> Result<O::Outcome, CallError> {
        let code = &self.0.code.0;
        let about = self.0.about();
        let stay = keeper.as_ref().and_then(|keeper| keeper.stay.as_ref());
        // Waiting ends with a place or with the deadline. Places are declared before the instance, so that the instance is dropped before
        // they are given back.
        let _turn = loop {
            let turn = self.0.admission.wait(party).await;
            let Some(hold) = call.wait_to_run() else { break turn };
            drop(turn);
            hold.await;
        };
        let _running = Running::new(&self.0.running);
        let _slot = self.slot(party).await;
        let ticking = code.sandbox.ticks.begin();
        call.begin();
        let Sandbox { warm, memory, handles, .. } = &*code.sandbox;
        let owner =
            keeper.as_ref().zip(Reach::of(&scope)).map(|(keeper, reach)| keeper.owner(self.0.number, reach, party));
        let share = handles.take();
        let kept = owner.as_ref().and_then(|owner| warm.take(&owner.key));
        let kept = kept.filter(|kept| {
            let fits = share.covers(kept.handles_limit());
            if let Some(stay) = stay.filter(|_| !fits) {
                stay.lose(Lost::Room);
            }
            fits
        });
        let mut staying = match (&keeper, &owner) {
            (Some(keeper), Some(Owner { stay: Some(stay), .. })) => {
                Some(Staying::new(stay, kept.is_some(), keeper.deadline))
            }
            _ => None,
        };
        // Data that a guest passes to the host exists twice for a while: in the guest's memory and in the host's.
        let transfer = self.0.spec.limits.output_bytes.saturating_add(TRANSFER_SLACK_BYTES);
        let needed = if kept.is_some() { transfer } else { transfer.saturating_add(self.0.memory_bytes) };
        // Idle instances that are retained for later calls make room for a running one: those of all clients if memory is short for all,
        // and those of its own party if that party's share is used up.
        while memory.whole().left() < needed && warm.make_room(None) {}
        while !own_memory.has_room(needed) && warm.make_room(Some(party)) {}
        let _transfer = own_memory.charge(transfer).map_err(|_| failed(&mut staying, CallError::TotalMemory))?;
        let reused = kept.is_some();
        let mut instance = match kept {
            Some(mut instance) => {
                instance.renew(&ticking, |state| state.renew(share, call, told::of(&scope.directories)));
                instance
            }
            None => {
                let process = operation.process(&about)?;
                let plugin = (&self.0.spec, self.0.memory_bytes, &self.0.settings);
                let state = State::new(scope, plugin, &own_memory, process, share, call);
                let store = Instance::store(&code.linked, &self.0.spec.limits, state, &ticking)?;
                Instance::start(&code.linked, store).await?
            }
        };
        tracing::debug!(reused, "runs in an instance");
        if let Some(staying) = &staying {
            staying.run();
        }
        let result = operation.perform(&mut instance, &about).await;
        // An instance is retained only if the plugin answered, even with a failure. After a trap, or a result that is too large, it is
        // dropped.
        let limit = self.0.spec.limits.output_bytes;
        let result = match result {
            Ok(outcome) if O::bytes(&outcome).is_some_and(|bytes| bytes > limit) => Err(CallError::Output(limit)),
            Err(CallError::Failed(failure)) if failure_bytes(&failure) > limit => Err(CallError::Output(limit)),
            result => result,
        };
        let ended = match &result {
            Err(CallError::Failed(failure)) if failure.data.as_deref() == Some(ENDED) => Some(Lost::Crashed),
            Ok(_) | Err(CallError::Failed(_)) => None,
            Err(_) if instance.was_refused_memory() => Some(Lost::OverLimit),
            Err(error) => Some(Lost::by(error)),
        };
        // An instance with state is not dropped before its memory is full.
        let rested =
            owner.filter(|_| ended.is_none()).and_then(|owner| Some((instance.rest(staying.is_some())?, owner)));
        if let Some(staying) = &mut staying {
            staying.end(ended.or_else(|| rested.is_none().then_some(Lost::Unfinished)));
        }
        if let Some((bytes, owner)) = rested {
            warm.put(owner, bytes, instance);
        }
        result
    }
}

/// Notes that a call failed before it ran, and what was kept for it is gone.
fn failed(staying: &mut Option<Staying>, error: CallError) -> CallError {
    if let Some(staying) = staying {
        staying.end(Some(Lost::by(&error)));
    }
    error
}

/// For whom the instance of a call is retained.
struct Keeper {
    client: Box<Client>,
    /// The client's stay, if all its calls run in one instance.
    stay: Option<Arc<Stay>>,
    /// The client's other calls wait until this is dropped, which is when the instance is kept again.
    _turn: Option<OwnedMutexGuard<()>>,
    deadline: Instant,
}

impl Keeper {
    fn owner(&self, plugin: u64, reach: Reach, party: Party) -> Owner {
        let Client { key, lasts, .. } = &*self.client;
        let key = Key { plugin, client: Arc::clone(key), reach };
        Owner { key, party, stay: self.stay.clone(), lasts: lasts.clone() }
    }
}

/// The result of a call, and what it takes if it is large.
type Held<T> = (Result<T, CallError>, Option<Box<Charge>>);

/// Charges for what a call returned, if it is large. `takes`: how much memory an outcome takes.
fn held<T>(
    result: Result<T, CallError>,
    memory: &Account,
    takes: impl FnOnce(&T) -> usize,
) -> Result<Held<T>, CallError> {
    let bytes = match &result {
        Ok(outcome) => takes(outcome),
        Err(CallError::Failed(failure)) => failure_bytes(failure),
        Err(_) => 0,
    };
    if bytes <= LARGE_TEXT_BYTES {
        return Ok((result, None));
    }
    let charge = memory.charge(bytes).map_err(|_| CallError::TotalMemory)?;
    Ok((result, Some(Box::new(charge))))
}

/// Masks the network's secrets in the outcome of a call.
async fn mask<O: Operation>(result: &mut Result<O::Outcome, CallError>, network: &dyn Network, pace: &Pace) {
    // Searching a long text would block an I/O worker for too long, so the call moves to a guest thread first.
    if result.as_ref().is_ok_and(|outcome| O::bytes(outcome).is_none_or(|bytes| bytes > MAX_INLINE_MASK_BYTES)) {
        pace.overrun();
        tokio::task::yield_now().await;
    }
    let hide = |bytes: &mut [u8]| network.hide(bytes);
    match result {
        Ok(outcome) => outcome.mask(&hide),
        Err(error) => error.mask(&hide),
    }
}

/// Counts a call as a running one of its plugin until dropped.
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

/// Refines an error with the traces of the call: a guest that crashed after it was refused memory ran out of memory. wasmtime's error about
/// too much output does not contain the limit, so it is added here.
fn explain(error: CallError, traces: &Traces, plugin: &About<'_>) -> CallError {
    match (error, traces.refused()) {
        (CallError::Output(_), _) => CallError::Output(plugin.spec.limits.output_bytes),
        (CallError::Trap { .. } | CallError::Exit(_), Some(Refused::Own)) => CallError::Memory(plugin.memory_bytes),
        (CallError::Trap { .. } | CallError::Exit(_), Some(Refused::Total)) => CallError::TotalMemory,
        (error, _) => error,
    }
}
