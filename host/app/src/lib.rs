//! Puts everything together and runs it. Programs that embed wharf use what is exported here; the commands of the binary use
//! [`operator`] as well, which the facade does not export.
//!
//! host/README.md describes the path of a call through the crates.

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
mod window;

pub use self::{
    builder::Builder,
    call::Call,
    error::{Error, ErrorKind},
    session::Session,
    wharf::Wharf,
};
