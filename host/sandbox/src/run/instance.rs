//! An instance: a store, and the exports of its component, which are looked up when they are first needed. It runs one operation at
//! a time.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use wasmtime::{AsContextMut, Store, UpdateDeadline, component};

use crate::{
    adapter::{
        command::{Command, Process},
        http::{
            Learnt,
            talk::{At, Server, Talk},
        },
    },
    bindings::{
        completions::{self, Completion},
        prompts, resources,
        types::{Failure, FailureKind},
    },
    bounds::{
        limits::{Refused, TRANSFER_SLACK_BYTES},
        runtime::Ticking,
    },
    compile::component::Linked,
    contract::{
        operation::{
            CallError, CallTool, Complete, GetPrompt, ListEntries, Listing, Outcome, PromptAnswer, ReadAnswer,
            ReadResource, ToolAnswer, call_error,
        },
        told::one_line,
    },
    file::load_error::LoadError,
    wasi::{reach::PluginSpec, store::State, tools_export::CallToolExport},
};
use wharf_base::accounts::{Account, Charge};
use wharf_scope::{Limits, adapter::ServedAs};

/// What an operation needs to know about its plugin.
pub struct About<'a> {
    pub(crate) linked: &'a Linked,
    pub(crate) spec: &'a PluginSpec,
    pub(crate) memory_bytes: usize,
    pub(crate) served: ServedAs,
    pub(crate) total_memory: &'a Account,
    /// What the plugin has learnt about its MCP server over HTTP, if it is one.
    pub(crate) learnt: &'a Mutex<Option<Arc<Learnt>>>,
}

/// How long a plugin may take to list what it offers.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A component with memory of its own, ready to be called.
pub struct Instance {
    store: Store<State>,
    instance: component::Instance,
    call_tool: Option<CallToolExport>,
    resources: Option<resources::Guest>,
    prompts: Option<prompts::Guest>,
    completions: Option<completions::Guest>,
    /// The conversation with it, if it is an MCP server over HTTP.
    talk: Option<Box<Talk>>,
    /// The bytes of memory that the instance had right after its start.
    base_bytes: usize,
}

/// Returns the exports of one interface, which are looked up at the first use.
macro_rules! guest {
    ($self:ident, $plugin:ident, $interface:ident) => {{
        if $self.$interface.is_none() {
            let indices = $plugin.linked.$interface.as_ref().ok_or(CallError::NoInterface(stringify!($interface)))?;
            $self.$interface = Some(indices.load(&mut $self.store, &$self.instance).map_err(trap)?);
        }
        $self.$interface.as_ref().ok_or(CallError::NoInterface(stringify!($interface)))?
    }};
}

fn trap(error: wasmtime::Error) -> CallError {
    call_error(&error)
}

impl Instance {
    /// Makes the store of a new instance. This is not part of [`Instance::start`], so that its future does not contain the whole state.
    pub(crate) fn store(
        linked: &Linked,
        limits: &Limits,
        mut state: State,
        ticking: &Ticking<'_>,
    ) -> Result<Store<State>, CallError> {
        // In one charge, since all calls share the account.
        let charged = state.budget.prepay(linked.instance_bytes.saturating_add(linked.start_bytes));
        if !(charged && state.budget.grow(linked.instance_bytes)) {
            return Err(match state.budget.refused() {
                Some(Refused::Total) => CallError::TotalMemory,
                _ => CallError::Memory(state.budget.limit()),
            });
        }
        let mut store = Store::new(linked.pre.engine(), state);
        store.limiter(|state| &mut state.budget);
        store.set_hostcall_fuel(limits.output_bytes.saturating_add(TRANSFER_SLACK_BYTES));
        ticking.interrupt(&mut store);
        store.epoch_deadline_callback(|store| {
            store.data().call.tick();
            Ok(UpdateDeadline::Yield(1))
        });
        Ok(store)
    }

    /// Instantiates the component in its store.
    pub(crate) async fn start(linked: &Linked, mut store: Store<State>) -> Result<Self, CallError> {
        let instance = linked.pre.instantiate_async(&mut store).await.map_err(trap)?;
        let base_bytes = store.data().budget.used();
        Ok(Self {
            store,
            instance,
            call_tool: None,
            resources: None,
            prompts: None,
            completions: None,
            talk: None,
            base_bytes,
        })
    }

    /// Returns the largest number of handles that the instance has ever had room for.
    pub(crate) fn handles_limit(&self) -> usize {
        self.store.data().handles_limit()
    }

    /// Begins another call in it.
    pub(crate) fn renew(&mut self, ticking: &Ticking<'_>, renew: impl FnOnce(&mut State)) {
        renew(self.store.data_mut());
        ticking.interrupt(&mut self.store);
    }

    /// Ends the call. Returns how many bytes of memory the instance holds, or `None` if it cannot be used again, because something in it is
    /// still running or it holds too much: more than half of what it may, unless its state would be missed.
    pub(crate) fn rest(&mut self, has_state: bool) -> Option<usize> {
        let state = self.store.data_mut();
        let kept = state.rest() && self.talk.as_ref().is_none_or(|talk| !talk.stuck);
        (kept && (has_state || !state.budget.is_half_spent(self.base_bytes))).then(|| state.budget.used())
    }

    pub(crate) fn was_refused_memory(&self) -> bool {
        self.store.data().budget.refused().is_some()
    }

    async fn list(&mut self, plugin: &About<'_>) -> Result<Listing, CallError> {
        let code = plugin.linked;
        match plugin.served {
            ServedAs::Contract => {}
            ServedAs::Functions => {
                let tools = code.foreign.functions.tools(&plugin.spec.adapter.described);
                return Ok(Listing { tools, ..Listing::default() });
            }
            ServedAs::Command => {
                let tools = plugin.spec.adapter.tools().map(|tool| Command(tool).tool());
                return Ok(Listing { tools: tools.collect(), ..Listing::default() });
            }
            ServedAs::Http => {
                let (server, at, talk) = self.server(plugin)?;
                return server.list(at, talk).await;
            }
        }
        let Self { store, instance, .. } = self;
        let wrong = |interface: &str, error: &wasmtime::Error| CallError::Trap {
            message: LoadError::WrongType(format!("wharf:plugin/{interface}")).to_string(),
            detail: one_line(error),
        };
        let mut listing = Listing::default();
        if let Some(tools) = &code.tools {
            let tools = tools.list.load(&mut *store, instance).map_err(|error| wrong("tools", &error))?;
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

impl Instance {
    /// Calls a function of a component that was not made for wharf.
    async fn call_function(&mut self, plugin: &About<'_>, call: &CallTool) -> Result<ToolAnswer, CallError> {
        let function = plugin.linked.foreign.functions.named(&call.name);
        let function = function.ok_or_else(|| unknown(&call.name))?;
        let limits = &plugin.spec.limits;
        let account = plugin.total_memory;
        let bounds = (account, plugin.memory_bytes, limits.output_bytes);
        function.call(&mut self.store, &self.instance, (*call.args).as_ref(), bounds).await
    }

    /// Returns its MCP server over HTTP, where it is, and the conversation with it.
    fn server<'a>(&'a mut self, plugin: &About<'a>) -> Result<(Server<'a>, At<'a>, &'a mut Talk), CallError> {
        let handler = plugin.linked.foreign.handle.ok_or(CallError::NoInterface("incoming-handler"))?;
        let endpoint = plugin.spec.adapter.endpoint();
        let (limit, account) = (plugin.spec.limits.output_bytes, plugin.total_memory);
        let server = Server { handler, endpoint, learnt: plugin.learnt, limit, account };
        Ok((server, (&mut self.store, &self.instance), self.talk.get_or_insert_default()))
    }

    /// Runs a command until it exits.
    async fn run(&mut self, plugin: &About<'_>, tool: &str) -> Result<ToolAnswer, CallError> {
        let tool = command(plugin, tool)?;
        let run = plugin.linked.foreign.run.ok_or(CallError::NoInterface("run"))?;
        let run = self.instance.get_typed_func::<(), (Result<(), ()>,)>(&mut self.store, run).map_err(trap)?;
        let ended = run.call_async(&mut self.store, ()).await;
        let limit = plugin.spec.limits.output_bytes;
        let state = self.store.data();
        let Some(stdout) = state.take_written() else { return Err(CallError::Output(limit)) };
        let code = match ended.map_err(trap) {
            Ok((Ok(()),)) => 0,
            Ok((Err(()),)) => 1,
            Err(CallError::Exit(code)) => code,
            Err(error) => return Err(error),
        };
        tool.answer(code, stdout, &state.printed(), limit)
    }
}

/// Returns the tool of a command with this name.
fn command<'a>(plugin: &About<'a>, name: &str) -> Result<Command<'a>, CallError> {
    plugin.spec.adapter.tools().find(|tool| tool.name == name).map(Command).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> CallError {
    let message = format!("there is no tool `{}`", name.escape_debug());
    CallError::Failed(Failure { kind: FailureKind::InvalidParams, message, data: None })
}

/// An operation that a plugin can perform: [`ListEntries`], [`CallTool`], [`ReadResource`], [`GetPrompt`] or [`Complete`].
pub trait Operation: sealed::Perform {}

impl<O: sealed::Perform> Operation for O {}

pub(crate) mod sealed {
    use std::time::Duration;

    use super::{About, Instance};
    use crate::{adapter::command::Process, contract::operation::CallError, wasi::masked::Masked};
    use wharf_base::accounts::Charge;

    /// Performs an operation. This trait is sealed: other crates cannot name it, so the operations of this crate remain the only ones.
    pub trait Perform: Send + 'static {
        /// The result of the operation.
        type Outcome: Masked + Send + 'static;

        /// How long it may take; `None` if the plugin's own limit holds.
        const TIMEOUT: Option<Duration> = None;

        /// Performs the operation in an instance of this component.
        fn perform(
            self,
            instance: &mut Instance,
            plugin: &About<'_>,
        ) -> impl Future<Output = Result<Self::Outcome, CallError>> + Send;

        /// Returns the arguments and the input of the command that this operation runs, and the charge for them. `None` if it does not run
        /// a command.
        fn process(&self, _: &About<'_>) -> Result<Option<(Process, Charge)>, CallError> {
            Ok(None)
        }

        /// Returns approximately how many bytes an outcome counts towards the plugin's output limit. `None` for questions, which have
        /// limits of their own.
        fn bytes(outcome: &Self::Outcome) -> Option<usize>;

        /// Returns about how much memory an outcome takes.
        fn takes(outcome: &Self::Outcome) -> usize {
            Self::bytes(outcome).unwrap_or(0)
        }

        /// Whether the outcome is an answer that says that the operation failed.
        fn says_failed(_: &Self::Outcome) -> bool {
            false
        }
    }
}

impl sealed::Perform for ListEntries {
    type Outcome = Listing;

    const TIMEOUT: Option<Duration> = Some(LIST_TIMEOUT);

    async fn perform(self, instance: &mut Instance, plugin: &About<'_>) -> Result<Listing, CallError> {
        instance.list(plugin).await
    }

    /// Lists are already bounded by the limit on what a guest passes to the host.
    fn bytes(_: &Listing) -> Option<usize> {
        Some(0)
    }

    fn takes(listing: &Listing) -> usize {
        listing.takes()
    }
}

impl sealed::Perform for CallTool {
    type Outcome = Outcome<ToolAnswer>;

    fn process(&self, plugin: &About<'_>) -> Result<Option<(Process, Charge)>, CallError> {
        match plugin.served {
            ServedAs::Command => command(plugin, &self.name)?
                .process(&plugin.spec.id, (*self.args).as_ref(), plugin.total_memory)
                .map(Some),
            ServedAs::Contract | ServedAs::Functions | ServedAs::Http => Ok(None),
        }
    }

    async fn perform(self, instance: &mut Instance, plugin: &About<'_>) -> Result<Self::Outcome, CallError> {
        match plugin.served {
            ServedAs::Contract => {}
            ServedAs::Functions => return instance.call_function(plugin, &self).await.map(Outcome::Done),
            ServedAs::Command => return instance.run(plugin, &self.name).await.map(Outcome::Done),
            ServedAs::Http => {
                let (server, at, talk) = instance.server(plugin)?;
                return server.call_tool(at, talk, &self).await;
            }
        }
        let call_tool = match instance.call_tool {
            Some(call_tool) => call_tool,
            None => {
                let tools = plugin.linked.tools.as_ref().ok_or(CallError::NoInterface("tools"))?;
                let found = tools.call_tool(instance.store.as_context_mut(), &instance.instance).map_err(trap)?;
                *instance.call_tool.insert(found)
            }
        };
        let called = call_tool.call(&mut instance.store, (&self.name, (*self.args).as_ref(), &self.context)).await;
        called.map_err(trap)?.map(Outcome::from).map_err(CallError::Failed)
    }

    fn bytes(outcome: &Self::Outcome) -> Option<usize> {
        outcome.bytes(ToolAnswer::bytes)
    }

    fn takes(outcome: &Self::Outcome) -> usize {
        outcome.bytes(ToolAnswer::takes).unwrap_or(0)
    }

    fn says_failed(outcome: &Self::Outcome) -> bool {
        matches!(outcome, Outcome::Done(ToolAnswer::Result(result)) if result.is_error)
    }
}

impl sealed::Perform for ReadResource {
    type Outcome = Outcome<ReadAnswer>;

    async fn perform(self, instance: &mut Instance, plugin: &About<'_>) -> Result<Self::Outcome, CallError> {
        if plugin.served == ServedAs::Http {
            let (server, at, talk) = instance.server(plugin)?;
            return server.read_resource(at, talk, &self).await;
        }
        let resources = guest!(instance, plugin, resources);
        let read = resources.call_read_resource(&mut instance.store, &self.uri, &self.context).await;
        read.map_err(trap)?.map(Outcome::from).map_err(CallError::Failed)
    }

    fn bytes(outcome: &Self::Outcome) -> Option<usize> {
        outcome.bytes(ReadAnswer::bytes)
    }

    fn takes(outcome: &Self::Outcome) -> usize {
        outcome.bytes(ReadAnswer::takes).unwrap_or(0)
    }
}

impl sealed::Perform for GetPrompt {
    type Outcome = Outcome<PromptAnswer>;

    async fn perform(self, instance: &mut Instance, plugin: &About<'_>) -> Result<Self::Outcome, CallError> {
        if plugin.served == ServedAs::Http {
            let (server, at, talk) = instance.server(plugin)?;
            return server.get_prompt(at, talk, &self).await;
        }
        let prompts = guest!(instance, plugin, prompts);
        let got = prompts.call_get_prompt(&mut instance.store, &self.name, &self.args, &self.context).await;
        got.map_err(trap)?.map(Outcome::from).map_err(CallError::Failed)
    }

    fn bytes(outcome: &Self::Outcome) -> Option<usize> {
        outcome.bytes(PromptAnswer::bytes)
    }

    fn takes(outcome: &Self::Outcome) -> usize {
        outcome.bytes(PromptAnswer::takes).unwrap_or(0)
    }
}

impl sealed::Perform for Complete {
    type Outcome = Completion;

    async fn perform(self, instance: &mut Instance, plugin: &About<'_>) -> Result<Completion, CallError> {
        if plugin.served == ServedAs::Http {
            let (server, at, talk) = instance.server(plugin)?;
            return server.complete(at, talk, &self).await;
        }
        let completions = guest!(instance, plugin, completions);
        let Self { target, argument, value, arguments } = &self;
        let completed = completions.call_complete(&mut instance.store, target, argument, value, arguments).await;
        completed.map_err(trap)?.map_err(CallError::Failed)
    }

    fn bytes(outcome: &Completion) -> Option<usize> {
        Some(outcome.values.iter().map(String::len).sum())
    }
}
