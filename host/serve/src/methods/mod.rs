//! Every method of the protocol: from a request in its context to its result.
//!
//! An answer takes these forms, each made from the one before: the plugin gives an `Outcome`; the sandbox makes a `Report` of it and of what the
//! run cost; `call` makes the `CallResult`, which is MCP; the context's encoder writes it as JSON, which is `Encoded` (`router`);
//! `response` puts it into the `ResponseText`, which a pipe sends as it is; and over HTTP, `transport` adds the status and makes the `Reply`.

pub mod call;
pub mod listen;
pub mod response;
pub mod router;
pub mod tasks;
