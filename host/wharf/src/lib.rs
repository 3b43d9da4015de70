//! An MCP server whose tools, resources and prompts come from sandboxed WebAssembly components. It is a program, and a library
//! that other programs can embed.
//!
//! ```no_run
//! use wharf::{Access, Plugin, Wharf};
//!
//! async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//!     let wharf = Wharf::builder().plugin(Plugin::file("files.wasm").roots(Access::Read)).build().await?;
//!     let result = wharf.call("files_list_allowed_directories", serde_json::json!({})).await?;
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
//! Begin with [`Wharf`].
//!
//! This crate only passes on what other programs may use; `docs/architecture.md` lists the crates behind it, and the path of a call through
//! them.

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

pub use wharf_app::{Builder, Error, Session, Wharf};
pub use wharf_base::principal::Principal;
pub use wharf_config::{
    access::{
        approval::{Approver, Ask},
        capability::Access,
    },
    config::Plugin,
};
pub use wharf_plugins::{
    observe::record::{Action, ApprovalOutcome, CallRecord, Ended, Granted, Observer, RequestFacts, Transport},
    plugins::{
        snapshot::{OfferedEntry, PluginStatus, Serving, Wanted},
        status::{Problem, Stage, Status, Subject},
    },
};
