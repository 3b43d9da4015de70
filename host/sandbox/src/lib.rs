//! Runs wharf plugins: compiles components, and makes each call in one instance, under one scope and one deadline.
//!
//! This crate knows tools, resources, prompts and completions as the plugin contract defines them. It knows nothing of JSON-RPC, except as
//! the client of components that are MCP servers, nor of any files on disk except those of its own cache. The caller states in a [`Scope`]
//! what a call may access, and gets a [`Report`] of how the call ended.
//!
//! This crate maintains one invariant: nothing that a guest does outlives its call, and no call can see anything of another. The one
//! exception is opt-in: if the operator lets a plugin's instances be reused, what a call leaves in its instance is visible to later calls
//! of the same client that have exactly the same access.

#![deny(clippy::large_futures, missing_docs)]

mod adapter;
mod bindings;
mod blocking;
pub mod braces;
mod cache;
mod call;
mod compile;
mod component;
mod config_store;
mod denial;
mod draft;
mod effort;
mod engine;
mod files;
mod fixed;
mod handles;
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(dead_code, reason = "other systems cannot tell which pages were written")
)]
mod idle;
mod instance;
pub mod json;
mod limits;
mod linker;
mod load;
mod load_error;
mod look;
mod masked;
pub mod network;
mod new_entries;
mod operation;
mod output;
mod outside;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "wasmtime's page scan can be changed nowhere else")]
mod pagemap;
mod parts;
#[cfg(test)]
mod prepared;
mod retained;
mod runtime;
mod sandbox;
mod scope;
pub mod sections;
mod store;
mod told;
#[expect(unsafe_code, reason = "calls a function whose type was checked before")]
mod tools_export;
mod traces;
mod traffic;
mod voice;
mod warm;
mod written;

pub use adapter::{
    command::{CommandTool, Flag, Output, Param, ParamType, Template, is_param_name},
    declared::{Adapter, Described, ServedAs},
};
pub use bindings::model;
pub use call::{PluginCall, Report};
pub use compile::{CompilerConfig, Program, compile_if_asked};
pub use component::Exports;
pub use denial::Denial;
pub use effort::Effort;
pub use fixed::Fixed;
pub use instance::Operation;
pub use load::{Code, LoadedPlugin};
pub use load_error::{EngineError, LoadError, MAX_COMPONENT_BYTES};
pub use look::would_instantiate;
pub use operation::{
    CallError, CallTool, Complete, GetPrompt, ListEntries, Listing, MAX_QUESTIONS, Outcome, PromptAnswer, ReadAnswer,
    ReadResource, Text, ToolAnswer,
};
pub use outside::{Outside, with_section};
pub use sandbox::{Sandbox, SandboxConfig};
pub use scope::{Directory, Events, Limits, MemoryLimit, NoEvents, PluginSpec, Scope, Wait};
pub use told::{Told, demangled};
pub use wharf_base::{
    accounts as ledger,
    digest::{Digest, InvalidDigest},
    heavy,
    in_place::boxed,
    places,
};
pub use written::NotWritten;

/// The rules of the sandbox's bounded pools, for the table of limits in the documentation.
pub static RULES: [&places::PoolRule; 3] = [&load::CALLS, &sandbox::SLOTS, &sandbox::FIRST];
