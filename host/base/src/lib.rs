//! Basics that all other crates of the host may use, and that use none of them but `protocol`: text, paths, counted memory, random ids.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

mod access_list;
pub mod accounts;
pub mod appended;
pub mod below;
pub mod caller_id;
pub mod certificate;
pub mod digest;
pub mod explain;
pub mod failed;
pub mod folders;
pub mod group;
pub mod guard;
pub mod guessable;
pub mod headers;
pub mod heavy;
pub mod hex;
pub mod in_place;
pub mod json_size;
pub mod leading;
pub mod ledger;
pub mod machine;
mod mounts;
pub mod parent;
pub mod party;
pub mod paths;
pub mod pattern;
pub mod places;
pub mod principal;
pub mod program;
pub mod quota;
pub mod random_id;
pub mod reading;
pub mod refusals;
pub mod request_state;
pub mod rewrite;
pub mod session_id;
pub mod slot;
#[cfg(target_os = "linux")]
mod sock_diag;
pub mod socket_owner;
pub mod state_keys;
pub mod text;
pub mod whole;
