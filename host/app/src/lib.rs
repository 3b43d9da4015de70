//! Puts everything together and runs it. Programs that embed wharf use what is exported here; the commands of the binary use
//! [`operator`] as well, which the facade does not export.
//!
//! The path of a call through the crates:
//!
//! 1. serve's `transport` turns bytes into a message, and decides whether it belongs to a session or is a modern request, which needs
//!    no session;
//! 2. serve's `client::context` has what is known about the request: revision, capabilities, caller, and the queue for messages about it;
//! 3. serve's `methods::router` calls the function for the method; `methods::call` has those that need a plugin. A call of the program
//!    itself begins here, in `methods::call::direct`;
//! 4. plugins' `catalog` says which plugin; config's `access` says what it may touch;
//! 5. the sandbox crate runs one operation in one instance, which is new or reused for the same client;
//! 6. plugins' `bridge` turns the outcome into MCP, the context's encoder writes it for the revision, and `methods::response` makes it a
//!    response.
//!
//! A call that goes on as a task takes the same path; plugins' `tasks` stores its result. Independently of calls, plugins' `watcher`
//! notices changed files, its `library` turns them into the next catalog, and serve's `client::notifier` tells clients.

#![forbid(unsafe_code)]

mod builder;
pub mod call;
mod current;
mod error;
pub mod http;
#[cfg(test)]
mod limits;
pub mod model;
pub mod operator;
mod session;
mod setup;
mod shown;
mod wharf;

pub use self::{
    builder::Builder,
    call::Call,
    error::{Error, ErrorKind},
    session::Session,
    wharf::Wharf,
};
