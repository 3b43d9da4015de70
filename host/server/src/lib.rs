//! wharf: an MCP server whose tools, resources and prompts are sandboxed WebAssembly components.
//!
//! The path of a call, one way down and one way back:
//!
//! 1. `transport` turns bytes into a message and finds its `era`;
//! 2. `era` gives the request its `context`: revision, capabilities, who asks, where messages about it go;
//! 3. `router` names every method; `call` runs those that need a plugin;
//! 4. `catalog` says which plugin; `scope` and `grants` say what it may touch;
//! 5. the sandbox crate runs one operation in one instance, made for it or kept for its client;
//! 6. `bridge` turns the outcome into MCP, the context's encoder writes it for the revision, `answer` makes it a response.
//!
//! A call that goes on in the background takes the same way; `tasks` keeps what becomes of it. Beside that, `watcher` notices files and `library` turns them into the next catalog; `hub` tells clients.

#![forbid(unsafe_code)]

pub mod announced;
pub mod answer;
pub mod app;
pub mod bridge;
pub mod bring;
pub mod call;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod context;
pub mod era;
pub mod grants;
pub mod hub;
pub mod in_flight;
pub mod judge;
pub mod ledger;
pub mod library;
pub mod loader;
pub mod outlet;
pub mod parent;
pub mod paths;
pub mod refusals;
pub mod roots;
pub mod router;
pub mod schema;
pub mod scope;
pub mod seal;
pub mod server;
pub mod shelf;
pub mod task_methods;
pub mod tasks;
pub mod template;
pub mod text;
pub mod transport;
pub mod unguessable;
pub mod watcher;
