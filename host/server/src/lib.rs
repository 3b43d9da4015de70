//! wharf: an MCP server whose tools, resources and prompts are sandboxed WebAssembly components.
//!
//! The rooms, each of which sees only those below it (`cargo xtask tidy` checks that):
//!
//! ```text
//! cli          commands of the binary
//! app          puts everything together and runs it
//! transport    bytes to messages and back: pipes, HTTP
//! methods      what each method of the protocol does; calls into plugins
//! client       sessions, the context of a request, notifications
//! plugins      files, loading, lists, the catalog
//! bridge       what plugins say becomes MCP, what clients say becomes the contract
//! tasks        calls that go on in the background
//! config       the operator's file
//! access       each kind of grant; grants and roots become the scope of a call
//! schema       JSON Schema within a budget
//! base         text, paths, counted memory
//! ```
//!
//! The path of a call, one way down and one way back:
//!
//! 1. `transport` turns bytes into a message, and decides what it is: part of a session, or a request that says all of itself;
//! 2. `client::context` is what is known of the request: revision, capabilities, who asks, where messages about it go;
//! 3. `methods::router` names every method; `methods::call` runs those that need a plugin;
//! 4. `plugins::catalog` says which plugin; `access` says what it may touch;
//! 5. the sandbox crate runs one operation in one instance, made for it or kept for its client;
//! 6. `bridge` turns the outcome into MCP, the context's encoder writes it for the revision, `methods::response` makes it a
//!    response.
//!
//! A call that goes on in the background takes the same way; `tasks` keeps what becomes of it. Beside that, `plugins::watcher`
//! notices files and `plugins::library` turns them into the next catalog; `client::notifier` tells clients.

#![forbid(unsafe_code)]

pub mod access;
pub mod app;
pub mod base;
pub mod bridge;
pub mod cli;
pub mod client;
pub mod config;
pub mod methods;
pub mod plugins;
pub mod schema;
pub mod tasks;
pub mod transport;
