//! An MCP server whose tools, resources and prompts come from sandboxed WebAssembly components. It is a program, and a library
//! that other programs can embed.
//!
//! ```no_run
//! use wharf::{Access, Plugin, Wharf};
//!
//! async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//!     let wharf = Wharf::builder().plugin(Plugin::file("files.wasm").roots(Access::Read)).build().await?;
//!     let result = wharf.call("files_list_allowed_directories").await?;
//!     println!("{:?}", result.content);
//!     let app = axum::Router::new().merge(wharf.router("/mcp"));
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:7300").await?;
//!     Ok(axum::serve(listener, app).await?)
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     // Plugins are compiled in a child process: this program, started again.
//!     if let Some(compiled) = wharf::compile_if_asked() {
//!         return compiled;
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
//!     match runtime.map(|runtime| runtime.block_on(serve())) {
//!         Ok(Ok(())) => std::process::ExitCode::SUCCESS,
//!         _ => std::process::ExitCode::FAILURE,
//!     }
//! }
//! ```
//!
//! Begin with [`Wharf`]. The rest of this page is for people who work on wharf itself.
//!
//! The modules, each of which uses only those below it (`cargo xtask tidy` checks this):
//!
//! ```text
//! cli          commands of the binary
//! authoring    templates of plugins, and how they are built
//! setup        configs of MCP clients, and edits of them
//! app          puts everything together and runs it: `Wharf`
//! transport    bytes to messages and back: pipes, HTTP
//! methods      what each method of the protocol does; calls into plugins
//! client       sessions, the context of a request, notifications
//! telemetry    metrics
//! plugins      files, loading, lists, the catalog
//! bridge       translates between MCP and the contract of plugins
//! audit        the log of all runs and changes, and its files
//! approvals    which calls a person approved, and what a person is asked
//! observe      the record of each run, and its receivers
//! profiles     named parts of the catalog
//! roles        which callers may use what
//! auth         checks access tokens, and tells clients where to get them
//! tasks        calls that run in the background
//! config       the operator's file
//! access       each kind of grant; grants and roots become the scope of a call
//! egress       what plugins send over HTTP: rules, connections, secrets
//! schema       JSON Schema within a budget
//! base         text, paths, counted memory
//! ```
//!
//! The path of a call through the modules:
//!
//! 1. `transport` turns bytes into a message, and decides whether it belongs to a session or is a modern request, which needs
//!    no session;
//! 2. `client::context` has what is known about the request: revision, capabilities, caller, and the queue for messages about it;
//! 3. `methods::router` calls the function for the method; `methods::call` has those that need a plugin;
//! 4. `plugins::catalog` says which plugin; `access` says what it may touch;
//! 5. the sandbox crate runs one operation in one instance, which is new or reused for the same client;
//! 6. `bridge` turns the outcome into MCP, the context's encoder writes it for the revision, and `methods::response` makes it a
//!    response.
//!
//! A call that goes on as a task takes the same path; `tasks` stores its result. Independently of calls, `plugins::watcher`
//! notices changed files, `plugins::library` turns them into the next catalog, and `client::notifier` tells clients.

#![forbid(unsafe_code)]

pub use wharf_protocol::{
    Method, Revision,
    meta::Trace,
    model::{Content, ToolResult},
};
pub use wharf_sandbox::{
    Denial, compile_if_asked,
    network::{HttpDenial, HttpRefusal, HttpUse},
};

pub use wharf_app::{Builder, Call, Error, ErrorKind, Session, Wharf, call};
pub use wharf_base::principal::Principal;
pub use wharf_config::{
    access::{
        approval::{Approver, Ask},
        capability::Access,
    },
    config::Plugin,
};
pub use wharf_plugins::{
    observe::record::{Action, Approval, CallRecord, Ended, Granted, Observer, RequestFacts, Transport},
    plugins::{
        snapshot::{Entry, PluginStatus, Serving, Wanted},
        status::{Problem, Stage, Status, Subject},
    },
};
