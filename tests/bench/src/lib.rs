//! What the servers that wharf is measured against have in common.

use std::time::Duration;

use anyhow::Result;
use axum::{Router, serve::ListenerExt};
use wharf_sandbox::{
    CompilerConfig, Program, SandboxConfig,
    ledger::Account,
    model::{ClientCapabilities, Context, Reports},
};

/// Serves on a free port of loopback, without waiting for small answers to become large ones, and says where.
#[expect(clippy::print_stdout, reason = "the address is what the program is asked for")]
pub async fn serve(app: Router) -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // Without it, it is only slower.
        stream.set_nodelay(true).ok();
    });
    axum::serve(listener, app).await?;
    Ok(())
}

/// A sandbox that is never the bottleneck. The program that makes it compiles its plugins.
pub fn sandbox_config() -> SandboxConfig {
    SandboxConfig {
        total_concurrency: 64,
        total_memory_bytes: 2 << 30,
        cache_dir: None,
        compiler: CompilerConfig { program: Program::This, memory_bytes: 4 << 30, timeout: Duration::from_secs(120) },
        host_memory: Account::new(1 << 30),
    }
}

/// The context of a call by a client that can do nothing.
pub fn context() -> Context {
    Context {
        answers: Vec::new(),
        state: None,
        revision: "2026-07-28".into(),
        client: None,
        caller: None,
        capabilities: ClientCapabilities::empty(),
        reports: Reports::empty(),
        more: r#"{"meta":{},"capabilities":{}}"#.into(),
    }
}
