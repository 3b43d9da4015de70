//! Runs wharf plugins: compiles components, and makes each call in one instance, under one scope and one deadline.
//!
//! This crate knows tools, resources, prompts and completions as the plugin contract defines them; it knows nothing of
//! JSON-RPC or files on disk other than its own cache. What a call may touch arrives as a [`Scope`]; what it
//! did arrives back as a [`Report`].
//!
//! The invariant everything here serves: nothing a guest does outlives its call, and nothing of one call is visible to
//! another, unless the operator chose to keep a plugin's instances: then to later calls of the same client that may touch
//! the same.

mod bindings;
mod cache;
mod call;
mod compile;
mod engine;
mod files;
mod handles;
mod instance;
mod kept;
pub mod ledger;
mod limits;
mod linker;
mod load;
mod look;
mod output;
mod runtime;
mod scope;
mod store;
mod warm;

pub use bindings::model;
pub use cache::Cache;
pub use call::{Call, CallError, Listing, Operation, Outcome, Report};
pub use compile::{CompilerConfig, compile_if_asked};
pub use engine::{EngineError, Sandbox, SandboxConfig};
pub use load::{Code, Exports, LoadError, MAX_COMPONENT_BYTES, Plugin, PluginSpec};
pub use look::would_instantiate;
pub use scope::{Denial, Directory, Events, Limits, Scope, Silence, Wait};
