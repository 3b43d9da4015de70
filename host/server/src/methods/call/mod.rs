//! Calls into plugins: from the parameters of `tools/call`, `resources/read`, `prompts/get` and `completion/complete` to their
//! results.
//!
//! The steps are the same for all of them and for all revisions: find the plugin and check the request (`tool`, `resource`,
//! `prompt`, `complete`), pass the gates (`gates`), run the plugin and keep a record of it (`run`; `refused` for
//! requests that do not come so far). If the plugin asks, the
//! client gets its questions (`rounds`), and the plugin runs again from the start with all answers so far. A modern client gets
//! the questions as its answer, a legacy one as requests. No sandbox is kept while a person thinks.

mod answered;
mod background;
mod complete;
mod confirm;
pub mod direct;
mod failed;
mod gates;
mod prompt;
mod refused;
mod request;
mod resource;
mod rounds;
mod run;
mod tool;

pub use complete::complete;
pub use prompt::prompt;
pub use refused::refused;
pub use resource::resource;
pub use tool::tool;
