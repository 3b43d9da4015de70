//! Every method of the protocol: from a request in its context to its result.
//!
//! The answer of a tool takes these forms, each made from the one before:
//!
//! - `Outcome`: what the plugin gave, or its questions. `Report`: the outcome, and what the run cost. The sandbox makes both.
//! - `CallResult`: the result in the terms of MCP. `call::tool` checks and converts the outcome.
//! - `Encoded`: the JSON of the result, written by the context's encoder. All other methods begin here; `router` returns it.
//! - `ResponseText`: the JSON-RPC response, made by `response`. A pipe sends it as it is.
//! - `Reply`: over HTTP, `transport` adds the status and what is held until the client has read it.

pub mod call;
pub mod listen;
pub mod response;
pub mod router;
pub mod tasks;
