//! The code that wasmtime generates from the contract in `wit/`.

mod generated {
    #![allow(clippy::all, clippy::pedantic, missing_docs, reason = "generated code")]
    wasmtime::component::bindgen!({
        path: "wit",
        world: "full-plugin",
        imports: {
            "wharf:plugin/logging.log": async | trappable,
            "wharf:plugin/progress.report": async | trappable,
            "wharf:plugin/announcements.resource-updated": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        additional_derives: [PartialEq],
    });
}

/// The contract's interfaces, for use inside this crate.
pub(crate) use generated::{
    exports::wharf::plugin::{completions, prompts, resources, tools},
    wharf::plugin::{announcements, environment, logging, progress, types},
};

/// All types of the contract that other crates need, in one module.
pub mod model {
    pub use super::generated::{
        exports::wharf::plugin::{
            completions::{Completion, Target},
            prompts::{Message, Prompt, PromptArgument, PromptResult},
            resources::{ResourceEntry, ResourceTemplate},
            tools::{Hints, TaskSupport, Tool, ToolDetails, ToolResult},
        },
        wharf::plugin::{
            announcements::Kind,
            logging::Level,
            types::{
                Answer, Body, ClientCapabilities, ClientInfo, Content, Context, Failure, FailureKind, Form, Media,
                Question, Reports, ResourceContents, ResourceLink, Role, Root, Round, Url,
            },
        },
    };
}
