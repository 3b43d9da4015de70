//! Write wharf plugins in Rust: MCP tools, resources and prompts as sandboxed WebAssembly components.
//!
//! A plugin is a type with associated functions. An attribute macro on their impl block exports them from the component:
//!
//! ```no_run
//! use wharf_sdk::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! struct Hello;
//!
//! #[tools]
//! impl Hello {
//!     /// Greets a person.
//!     fn greet(args: Greet) -> Result<String> {
//!         Ok(format!("Hello, {}!", args.name))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Build with `cargo build --target wasm32-wasip2 --release` as a `cdylib`.
//!
//! Options on a function set everything else; [`tools`] lists them. The following tool may run as a task in the background, requires
//! clients that can show a form, and has a hand-written schema for its arguments:
//!
//! ```no_run
//! use wharf_sdk::{FailureKind, FormAnswer, prelude::*, serde_json::Value};
//!
//! const SCHEMA: &str = r#"{"type":"object","properties":{"older_than":{"type":"string","format":"date"}}}"#;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Sure {
//!     really: bool,
//! }
//!
//! struct Cleaner;
//!
//! #[tools]
//! impl Cleaner {
//!     /// Removes old notes.
//!     #[tool(task = "optional", needs = "form", schema = SCHEMA)]
//!     fn clean_up(call: &Call, args: Value) -> Result<String> {
//!         let Some(date) = args.get("older_than").and_then(Value::as_str) else {
//!             let data = Some(wharf_sdk::serde_json::json!({ "missing": "older_than" }));
//!             return Err(Error::Protocol { kind: FailureKind::InvalidParams, message: "no date".into(), data });
//!         };
//!         match call.ask("sure", form::<Sure>(format!("Remove all notes before {date}?")))? {
//!             FormAnswer::Accepted(Sure { really: true }) => Ok("removed".into()),
//!             _ => Ok("kept".into()),
//!         }
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The attributes expand to an implementation of one of the traits [`Tools`], [`Resources`], [`Prompts`] and [`Completions`], and one line
//! that exports it. A plugin whose list varies implements the trait by hand and adds that line:
//! `wharf_sdk::bindings::tools::export_tools!(Hello with_types_in wharf_sdk::bindings::tools);`

mod arguments;
#[doc(hidden)]
pub mod bindings;
mod call;
mod error;
mod form;
#[cfg(feature = "http")]
pub mod http;
mod output;
mod schema;

pub use bindings::{
    completions::exports::wharf::plugin::completions::{Completion, Guest as Completions, Target},
    plugin::wharf::plugin::{
        announcements::Kind,
        environment::Directory,
        logging::Level,
        types::{
            Answer, Body, ClientCapabilities, ClientInfo, Content, Context, Failure, FailureKind, Form, Media,
            Question, Reports, ResourceContents, ResourceLink, Role, Root, Round, Url,
        },
    },
    prompts::exports::wharf::plugin::prompts::{
        Guest as Prompts, Message, Prompt, PromptArgument, PromptOutcome, PromptResult,
    },
    resources::exports::wharf::plugin::resources::{Guest as Resources, ReadOutcome, ResourceEntry, ResourceTemplate},
    tools::exports::wharf::plugin::tools::{
        Guest as Tools, Hints, TaskSupport, Tool, ToolDetails, ToolOutcome, ToolResult,
    },
};
pub use call::Call;
pub use error::{Error, Result};
pub use form::{FormAnswer, form, url};
pub use output::{IntoPrompt, IntoRead, IntoTool, Json, audio, image, link, resource_text, structured};
pub use schema::{arguments_schema, output_schema};
pub use wharf_sdk_macros::{prompts, resources, tools, wants};

/// The functions of wharf that a plugin may call while it runs.
pub mod host {
    use crate::bindings::plugin::wharf::plugin;

    pub use plugin::{
        announcements::{list_changed, resource_updated},
        environment::{Directory, config, directories},
        logging::log,
        progress::report as progress,
    };
}

/// Sets the plugin's instructions: a paragraph for the model about all tools together, such as which one to call first.
///
/// wharf adds it to the instructions that clients give to their model, unless the operator replaces it. It has at most 2 KiB.
///
/// ```
/// wharf_sdk::instructions!("Search first, then read by id. Ids stay the same for ever.");
/// ```
#[macro_export]
macro_rules! instructions {
    ($text:expr) => {
        const _: () = {
            const TEXT: &str = $text;
            const _: () = assert!(TEXT.len() <= 2048, "instructions have at most 2048 bytes");
            $crate::section!("wharf:instructions", TEXT);
        };
    };
}

/// Puts a text into a custom section of the component, where the host can read it without running the plugin.
#[doc(hidden)]
#[macro_export]
macro_rules! section {
    ($name:literal, $text:expr) => {
        #[cfg(target_family = "wasm")]
        #[used]
        #[unsafe(link_section = $name)]
        static SECTION: [u8; $text.len()] = $crate::macro_support::section($text);
    };
}

/// The imports that a small plugin needs.
pub mod prelude {
    pub use crate::{Call, Content, Error, Json, Result, form, host, prompts, resources, tools, wants};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

#[doc(hidden)]
pub mod macro_support;

// Re-exported, so that a plugin's crate can do without these dependencies: `#[serde(crate = "wharf_sdk::serde")]` on its derives.
pub use schemars;
pub use serde;
pub use serde_json;
