//! Runs wharf plugins: compiles components, and makes each call in one instance, under one scope and one deadline.
//!
//! This crate knows tools, resources, prompts and completions as the plugin contract defines them. It knows nothing of JSON-RPC, except as
//! the client of components that are MCP servers, nor of any files on disk except those of its own cache. The caller states in a
//! [`wharf_scope::Scope`] what a call may access, and gets a [`Report`] of how the call ended.
//!
//! This crate maintains one invariant: nothing that a guest does outlives its call, and no call can see anything of another. The one
//! exception is per call: if its caller names the client, what the call leaves in its instance is visible to later calls of the same client
//! that have exactly the same access.

#![deny(clippy::large_futures, missing_docs)]

mod adapter;
mod bindings;
mod bounds;
mod compile;
mod contract;
mod file;
mod run;
mod wasi;

pub use bindings::model;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[doc(hidden)]
pub use bounds::pagemap::ioctl;
pub use bounds::written::NotWritten;
pub use compile::{
    child::{CompilerConfig, Program, compile_if_asked},
    component::Exports,
    effort::Effort,
};
pub use contract::{
    json,
    operation::{
        CallError, CallTool, Complete, GetPrompt, ListEntries, Listing, MAX_QUESTIONS, Outcome, PromptAnswer,
        ReadAnswer, ReadResource, Text, ToolAnswer,
    },
    told::{Told, demangled},
};
pub use file::{
    load_error::{EngineError, LoadError},
    look::would_instantiate,
    outside::{Outside, with_section},
    sections,
};
pub use run::{
    call::{PluginCall, Report},
    instance::Operation,
    load::{Code, LoadedPlugin},
    sandbox::{Sandbox, SandboxConfig},
    stays::Client,
};
pub use wasi::{
    reach::{Events, NoEvents, PluginSpec, Wait},
    traces::Traces,
};

/// The rules of the sandbox's bounded pools, for the table of limits in the documentation.
pub static RULES: [&wharf_base::places::PoolRule; 3] = [&run::load::CALLS, &run::sandbox::SLOTS, &run::sandbox::FIRST];

/// Makes the page scans of this program those that wharf needs: define it once, next to `main`. It puts a function of wharf in the place of
/// the C library's `ioctl`, which otherwise does the same. Without it everything works, but calls of plugins with much memory take longer.
/// It does nothing on other systems than Linux.
#[macro_export]
macro_rules! narrow_page_scans {
    () => {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        const _: () = {
            #[allow(unsafe_code, reason = "a symbol of the whole program; not every program refuses it")]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn ioctl(
                fd: ::std::ffi::c_int,
                request: ::std::ffi::c_ulong,
                argument: *mut ::std::ffi::c_void,
            ) -> ::std::ffi::c_int {
                // SAFETY: the caller has promised it.
                unsafe { $crate::ioctl(fd, request, argument) }
            }
        };
    };
}
