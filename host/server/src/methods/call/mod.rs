//! Calls into plugins: from the parameters of `tools/call`, `resources/read`, `prompts/get` and `completion/complete` to their
//! results.
//!
//! The same steps for all of them and for both eras: find the plugin and check (`tool`, `resource`, `prompt`, `complete`), pass
//! the gates (`gates`), run and keep a record of it (`run`). If the plugin asks, put
//! its questions to the client and run it again from the start with all answers so far. Nothing is held while a person thinks: a
//! modern client gets the questions as its answer, and a legacy one as requests, with no sandbox alive meanwhile.

mod answered;
mod background;
mod complete;
pub mod direct;
mod failed;
mod gates;
mod prompt;
mod request;
mod resource;
mod rounds;
mod run;
mod tool;

pub use complete::complete;
pub use prompt::prompt;
pub use resource::resource;
pub use tool::tool;
