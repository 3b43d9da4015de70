//! An MCP server whose tools, resources and prompts come from sandboxed WebAssembly components. It is a program, and a library
//! that other programs can embed.
//!
//! ```no_run
//! use wharf::{Access, Call, Plugin, Wharf};
//!
//! async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//!     let files = Plugin::file("files.wasm").roots(Access::Read);
//!     let wharf = Wharf::builder().plugin(files).build().await?;
//!     for tool in wharf.list_tools().await {
//!         println!("{}: {}", tool.name, tool.description);
//!     }
//!     let arguments = serde_json::json!({ "path": "/srv" });
//!     let call = Call::tool("files_list_directory").arguments(arguments).roots(["/srv"]);
//!     println!("{}", wharf.call(call).await?.text());
//!     let app = axum::Router::new().fallback_service(wharf.http_service("/mcp"));
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
//! Begin with [`Wharf`]. `docs/embedding.md` explains the whole interface by examples, and says which parts of it stay as they are.
//!
//! This crate only passes on what other programs may use; `host/README.md` lists the crates behind it, and the path of a call through
//! them.

#![forbid(unsafe_code)]

pub use wharf_app::{Builder, Call, Error, ErrorKind, Session, Wharf, call, http, model};
pub use wharf_base::{
    digest::{Digest, InvalidDigest},
    principal::{Principal, User},
};
pub use wharf_config::config::{Ask, Plugin};
pub use wharf_policy::access::{
    approval::{ApprovalRequest, Approver, Decision},
    capability::Access,
};
pub use wharf_sandbox::{compile_if_asked, narrow_page_scans};

/// What is served, and what is not and why.
pub mod status {
    pub use wharf_plugins::plugins::{
        snapshot::{OfferedEntry, PluginStatus, Serving, Wanted},
        status::{Problem, Stage, Status, Subject},
    };
}

/// The record of each run of a plugin, for an [`Observer`](observe::Observer).
pub mod observe {
    pub use wharf_plugins::observe::record::{
        Action, ApprovalOutcome, CallRecord, Denied, Ended, Granted, Observer, RequestFacts, RequestMethod, Transport,
    };
    pub use wharf_protocol::meta::Trace;
    pub use wharf_scope::network::HttpUse;
}
