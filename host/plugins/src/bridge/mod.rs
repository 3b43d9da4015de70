//! Converts between the types of the plugin interface (WIT) and those of MCP. All data from a plugin is validated here, once.

mod arguments;
mod asking;
mod charge;
#[cfg(test)]
mod hidden;
mod icons;
mod offer;
mod outcome;
mod paid;
mod surface;
pub mod template;
mod uri;
mod values;

pub use arguments::CallArguments;
pub use asking::{
    RequestInfo, capability_for, carried_answer, carry_answer, client_info, context, missing_capabilities, question,
    read_answer, roots,
};
pub use offer::{MAX_TOOL_WORDS, MAX_URI_BYTES, Offer, OfferedPrompt, OfferedTool, offer};
pub use outcome::{completion, failure_error, prompt_result, prompt_text, read_result, structured_result, tool_result};
pub use paid::{HoldsJson, Paid, Unpaid};
pub use surface::surface;
pub use uri::check_uri;
pub use values::{PLUGIN_META, arguments, level};
