//! An instance: a store and what its component exports, found when first needed. It runs one operation at a time.

use wasmtime::{Store, UpdateDeadline, component};

use crate::{
    bindings::{completions, prompts, resources, tools},
    component::Linked,
    limits::Refused,
    load_error::{LoadError, one_line},
    operation::{CallError, Listing, Operation, Outcome, call_error},
    scope::Limits,
    store::State,
};

/// What crosses to the host besides the result itself: names, lengths, the sizes of records in lists.
pub(crate) const TRANSFER_SLACK_BYTES: usize = 256 * 1024;

pub(crate) struct Instance {
    store: Store<State>,
    instance: component::Instance,
    tools: Option<tools::Guest>,
    resources: Option<resources::Guest>,
    prompts: Option<prompts::Guest>,
    completions: Option<completions::Guest>,
    /// The memory it began with.
    base_bytes: usize,
}

/// The exports of one interface, loaded once.
macro_rules! guest {
    ($self:ident, $code:ident, $interface:ident) => {{
        if $self.$interface.is_none() {
            let indices = $code.$interface.as_ref().ok_or(CallError::NoInterface(stringify!($interface)))?;
            $self.$interface = Some(indices.load(&mut $self.store, &$self.instance).map_err(trap)?);
        }
        $self.$interface.as_ref().ok_or(CallError::NoInterface(stringify!($interface)))?
    }};
}

fn trap(error: wasmtime::Error) -> CallError {
    call_error(&error)
}

impl Instance {
    pub(crate) async fn start(linked: &Linked, limits: &Limits, mut state: State) -> Result<Self, CallError> {
        if !state.budget.grow(linked.instance_bytes) {
            return Err(match state.budget.refused() {
                Some(Refused::Total) => CallError::TotalMemory,
                _ => CallError::Memory(limits.memory_bytes),
            });
        }
        let mut store = Store::new(linked.pre.engine(), state);
        store.limiter(|state| &mut state.budget);
        store.set_hostcall_fuel(limits.output_bytes.saturating_add(TRANSFER_SLACK_BYTES));
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            store.data().call.overran();
            Ok(UpdateDeadline::Yield(1))
        });
        let instance = linked.pre.instantiate_async(&mut store).await.map_err(trap)?;
        let base_bytes = store.data().budget.used();
        Ok(Self { store, instance, tools: None, resources: None, prompts: None, completions: None, base_bytes })
    }

    /// How many handles it has had room for.
    pub(crate) fn handles_limit(&self) -> usize {
        self.store.data().handles_limit()
    }

    /// To begin another call in it.
    pub(crate) fn renew(&mut self, renew: impl FnOnce(&mut State)) {
        renew(self.store.data_mut());
        self.store.set_epoch_deadline(1);
    }

    /// Ends the call; gives how much memory the instance holds, or none if it holds too much to be used again.
    pub(crate) fn rest(&mut self) -> Option<usize> {
        let state = self.store.data_mut();
        state.rest();
        (!state.budget.is_half_spent(self.base_bytes)).then(|| state.budget.used())
    }

    pub(crate) async fn perform(&mut self, code: &Linked, operation: Operation) -> Result<Outcome, CallError> {
        match operation {
            Operation::List => self.list(code).await.map(Outcome::Listing),
            Operation::CallTool { name, args, context } => {
                let tools = guest!(self, code, tools);
                let outcome = tools.call_call_tool(&mut self.store, &name, &args, &context).await.map_err(trap)?;
                outcome.map(Outcome::Tool).map_err(CallError::Failed)
            }
            Operation::ReadResource { uri, context } => {
                let resources = guest!(self, code, resources);
                let outcome = resources.call_read_resource(&mut self.store, &uri, &context).await.map_err(trap)?;
                outcome.map(Outcome::Read).map_err(CallError::Failed)
            }
            Operation::GetPrompt { name, args, context } => {
                let prompts = guest!(self, code, prompts);
                let outcome = prompts.call_get_prompt(&mut self.store, &name, &args, &context).await.map_err(trap)?;
                outcome.map(Outcome::Prompt).map_err(CallError::Failed)
            }
            Operation::Complete { target, argument, value, others } => {
                let completions = guest!(self, code, completions);
                let outcome = completions
                    .call_complete(&mut self.store, &target, &argument, &value, &others)
                    .await
                    .map_err(trap)?;
                outcome.map(Outcome::Completion).map_err(CallError::Failed)
            }
        }
    }

    async fn list(&mut self, code: &Linked) -> Result<Listing, CallError> {
        let Self { store, instance, .. } = self;
        let wrong = |interface: &str, error: &wasmtime::Error| CallError::Trap {
            message: LoadError::WrongType(format!("wharf:plugin/{interface}")).to_string(),
            detail: one_line(error),
        };
        let mut listing = Listing::default();
        if let Some(tools) = &code.tools {
            let tools = tools.load(&mut *store, instance).map_err(|error| wrong("tools", &error))?;
            listing.tools = tools.call_list_tools(&mut *store).await.map_err(trap)?.map_err(CallError::Failed)?;
        }
        if let Some(resources) = &code.resources {
            let resources = resources.load(&mut *store, instance).map_err(|error| wrong("resources", &error))?;
            listing.resources =
                resources.call_list_resources(&mut *store).await.map_err(trap)?.map_err(CallError::Failed)?;
            listing.templates =
                resources.call_list_templates(&mut *store).await.map_err(trap)?.map_err(CallError::Failed)?;
        }
        if let Some(prompts) = &code.prompts {
            let prompts = prompts.load(&mut *store, instance).map_err(|error| wrong("prompts", &error))?;
            listing.prompts = prompts.call_list_prompts(&mut *store).await.map_err(trap)?.map_err(CallError::Failed)?;
        }
        if let Some(completions) = &code.completions {
            completions.load(&mut *store, instance).map_err(|error| wrong("completions", &error))?;
        }
        Ok(listing)
    }
}
