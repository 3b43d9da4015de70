//! What every room may use and that knows none of them: text, paths, memory that is counted, random ids.

pub mod heavy;
pub mod ledger;
pub mod parent;
pub mod paths;
pub mod principal;
pub mod random_id;
pub mod refusals;
pub mod request_state;
pub mod text;
