//! Every method of the protocol: from a request in its context to the JSON of its result.

pub mod call;
pub mod listen;
pub mod response;
pub mod router;
pub mod tasks;
