//! Serves components that were not made for wharf. Functions become tools according to their WIT types, a command becomes the tools that the
//! operator declares for it, and of an MCP server over HTTP, wharf is the client.
//!
//! The exports of a component are decoded once, when it is loaded, and within bounds, because its types may be as hostile as its code.

pub(crate) mod command;
mod docs;
mod ended;
pub(crate) mod functions;
pub(crate) mod http;
mod schema;
mod types;
mod values;

use wasmtime::component::{Component, ComponentExportIndex, types::ComponentItem};

use crate::file::load_error::LoadError;
use command::RUN_INTERFACE_PREFIX;
use functions::Functions;
use http::exchange::HANDLER_INTERFACE_PREFIX;
use wharf_scope::adapter::{Adapter, Described, ServedAs};

/// The maximum number of types in an import that consists only of types.
const MAX_TYPES: usize = 1_000;

/// The exports of a component that are not part of the contract.
#[derive(Default)]
pub(crate) struct Foreign {
    /// The `run` function of a command.
    pub(crate) run: Option<ComponentExportIndex>,
    /// The `handle` function of an HTTP server.
    pub(crate) handle: Option<ComponentExportIndex>,
    pub(crate) functions: Functions,
}

impl Foreign {
    /// Decodes the exports. `docs`: the contents of the component's section of documentation.
    pub(crate) fn of(component: &Component, docs: Option<&str>) -> Result<Self, LoadError> {
        let ty = component.component_type();
        let engine = component.engine();
        let function = |interface: &str, function: &str| {
            let (name, _) = ty.exports(engine).find(|(name, _)| name.starts_with(interface))?;
            let interface = component.get_export_index(None, name)?;
            component.get_export_index(Some(&interface), function)
        };
        let (run, handle) = (function(RUN_INTERFACE_PREFIX, "run"), function(HANDLER_INTERFACE_PREFIX, "handle"));
        Ok(Self { run, handle, functions: Functions::of(component, docs)? })
    }
}

/// Decides how a component is served. `made_for_wharf`: whether it exports anything of the contract.
pub(crate) fn served(made_for_wharf: bool, foreign: &Foreign, adapter: &Adapter) -> Result<ServedAs, LoadError> {
    let wrong = |text: &str| Err(LoadError::Adapter(text.to_owned()));
    let served = if made_for_wharf {
        if adapter.kind.is_some() {
            return wrong("`adapter` is for components that were not made for wharf, and this one was; leave it out");
        }
        ServedAs::Contract
    } else {
        match adapter.kind {
            Some(kind) => kind,
            None if foreign.run.is_some() => ServedAs::Command,
            // Some language runtimes export the handler of HTTP whether the component has one or not.
            None if foreign.handle.is_some() && foreign.functions.all.is_empty() => ServedAs::Http,
            None => ServedAs::Functions,
        }
    };
    match served {
        served if adapter.endpoint.is_some() && served != ServedAs::Http => {
            wrong("`endpoint` is for MCP servers over HTTP, and this component is not served as one; leave it out")
        }
        ServedAs::Http if foreign.handle.is_none() => wrong(
            "`adapter` says that it is an MCP server over HTTP, but it does not export wasi:http/incoming-handler of WASI 0.2",
        ),
        ServedAs::Command if foreign.run.is_none() => {
            wrong("`adapter` says that it is a command, but it does not export wasi:cli/run")
        }
        ServedAs::Functions if foreign.functions.all.is_empty() && foreign.functions.refused.is_empty() => {
            if adapter.kind.is_some() {
                return wrong("`adapter` says that its functions are tools, but it exports none");
            }
            Err(LoadError::NoExport)
        }
        ServedAs::Functions if foreign.functions.all.is_empty() => {
            Err(LoadError::NotServed(foreign.functions.refused.join("; ")))
        }
        ServedAs::Contract | ServedAs::Functions | ServedAs::Http if !adapter.commands.is_empty() => {
            wrong("only the tools of a command have `argv`, and this component is not a command")
        }
        ServedAs::Contract | ServedAs::Http if !adapter.described.is_empty() => {
            wrong("it describes its tools itself; `tools` may list the names of those that are published")
        }
        ServedAs::Command if !adapter.described.is_empty() => {
            wrong("each tool of a command needs `argv`, the arguments of the command")
        }
        served => {
            let is_there = |one: &&Described| foreign.functions.named(&one.name).is_none();
            match adapter.described.iter().find(is_there) {
                Some(Described { name, .. }) => {
                    wrong(&format!("`tools` describes `{name}`, and no function is a tool of that name"))
                }
                None => Ok(served),
            }
        }
    }
}

/// Whether an import consists only of types, so that it does not have to be provided.
pub(crate) fn only_types(engine: &wasmtime::Engine, import: &ComponentItem) -> bool {
    match import {
        ComponentItem::ComponentInstance(instance) => {
            // An import with more types than this is refused without looking at them.
            let few = instance.exports(engine).len() <= MAX_TYPES;
            few && instance.exports(engine).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
        }
        ComponentItem::Type(_) => true,
        _ => false,
    }
}
