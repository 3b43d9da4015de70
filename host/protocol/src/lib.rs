//! The Model Context Protocol as data: messages, revisions, parameters, results and their encodings.
//!
//! This crate is not a server: it does no I/O, knows no async runtime and no WebAssembly. Parsing never panics and never fails a whole
//! connection; every failure is a value that contains the JSON-RPC error to answer with.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod capability;
pub mod content;
pub mod encode;
pub mod error;
mod escape;
pub mod header;
pub mod level;
pub mod long;
pub mod message;
pub mod meta;
pub mod method;
pub mod model;
pub mod notification;
pub mod object;
pub mod params;
pub mod question;
pub mod revision;
pub mod shown;
pub mod task;
pub mod text;
pub mod unambiguous;
pub mod written;

pub use error::RpcError;
pub use level::Level;
pub use message::{Frame, Id, Malformed, Message, Notification, Request, Response};
pub use method::Method;
pub use object::Object;
pub use revision::{Era, Feature, Revision};
pub use shown::Shown;
pub use written::Written;
