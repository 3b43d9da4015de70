//! Calls into plugins: from the parameters of `tools/call`, `resources/read`, `prompts/get` and `completion/complete` to their
//! results.
//!
//! The steps are the same for all of them and for all revisions: find the plugin (`coming` waits for plugins that are still being loaded)
//! and check the request (`tool`, `resource`, `prompt`, `complete`), pass the gates (`gates`), run the plugin and record the run (`run`;
//! `refused` records requests that are refused before that). If the plugin asks questions, the client gets them (`rounds`), and the plugin
//! runs again from the start with all answers so far (MRTR). A modern client gets the questions as its answer, a legacy one as requests. No
//! sandbox waits while a person thinks.

mod background;
mod coming;
mod complete;
mod confirm;
mod counted;
pub mod direct;
mod failed;
mod gates;
mod noted;
mod parsed;
mod prompt;
mod refused;
mod request;
mod resource;
mod result;
mod rounds;
mod run;
mod search;
mod tool;

pub use coming::for_list;
pub use complete::complete;
pub use failed::{Failed, Said, Why};
pub use prompt::prompt;
pub use refused::refused;
pub use resource::resource;
pub use result::CallResult;
pub use search::{call as search, is_own as is_search};
pub use tool::{WantedCall, call as tool};
