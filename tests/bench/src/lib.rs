//! What the measurements and the micro benchmarks have in common.

use std::time::Duration;

use wharf_base::accounts::Account;
use wharf_sandbox::{
    CompilerConfig, Effort, Program, SandboxConfig,
    model::{ClientCapabilities, Context, Reports},
};

/// A sandbox that is never the bottleneck. The program that makes it compiles its plugins.
pub fn sandbox_config() -> SandboxConfig {
    SandboxConfig {
        total_concurrency: 64,
        total_memory_bytes: 2 << 30,
        cache_dir: None,
        compiler: CompilerConfig {
            program: Program::This,
            memory_bytes: 4 << 30,
            timeout: Duration::from_secs(120),
            effort: Effort::Full,
        },
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
