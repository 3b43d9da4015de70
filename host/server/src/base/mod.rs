//! What every other module may use and that depends on none of them: text, paths, counted memory, random ids.

pub mod explain;
pub mod guard;
pub mod heavy;
pub mod ledger;
pub mod parent;
pub mod paths;
pub mod principal;
pub mod program;
pub mod random_id;
pub mod refusals;
pub mod request_state;
pub mod slot;
pub mod text;
