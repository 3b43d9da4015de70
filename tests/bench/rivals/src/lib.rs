//! What the servers that wharf is measured against have in common.

use anyhow::Result;
use axum::{Router, serve::ListenerExt};

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
