//! Calls into plugins: from the parameters of `tools/call`, `resources/read` and `prompts/get` to their results.
//!
//! The same steps for all three and for both eras: find the plugin, check, build the scope, run. If the plugin asks, put
//! its questions to the client and run it again from the start with all answers so far. Nothing is held while a person thinks: a
//! modern client gets the questions as its answer, and a legacy one as requests, with no sandbox alive meanwhile.

mod answered;
mod background;
mod failed;
mod once;
mod prompt;
mod request;
mod resource;
mod tool;

pub use failed::other_failed;
pub use once::once;
pub use prompt::prompt;
pub use resource::resource;
pub use tool::tool;
