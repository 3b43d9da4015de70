//! The code that wasmtime generates from the contract in `wit/`.

mod generated {
    #![allow(clippy::all, clippy::pedantic, missing_docs, reason = "generated code")]
    wasmtime::component::bindgen!({
        path: "wit",
        world: "full-plugin",
        imports: {
            "wharf:plugin/host.log": async | trappable,
            "wharf:plugin/host.progress": async | trappable,
            "wharf:plugin/host.resource-updated": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        additional_derives: [PartialEq],
    });
}

/// The contract's interfaces, for use inside this crate.
pub(crate) use generated::{
    exports::wharf::plugin::{completions, prompts, resources, tools},
    wharf::plugin::{host, types},
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
            host::{Kind, Level},
            types::{
                Abilities, Answer, Body, Content, Context, Failure, Form, Media, Page, Question, ResourceContents,
                ResourceLink, Role, Root, Round,
            },
        },
    };
}
