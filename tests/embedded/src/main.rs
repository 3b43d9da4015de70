//! A program that embeds wharf, for the conformance suite: its own HTTP server, with a middleware in front of wharf, on one thread. Takes
//! the arguments of `wharf serve` that the suite's runner passes, and prints the same line when it is ready.

use std::{net::SocketAddr, process::ExitCode};

use anyhow::{Context, Result, ensure};
use axum::{Router, extract::Request, middleware::Next};
use wharf::{Wharf, status::Status};

fn main() -> ExitCode {
    if let Some(compiled) = wharf::compile_if_asked() {
        return compiled;
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn serve() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [_, _, listen, _, config] = &*arguments else { anyhow::bail!("usage: embedded serve --listen ADDR -c FILE") };
    let wharf = Wharf::builder().config_file(config).build().await?;
    for plugin in wharf.plugins() {
        ensure!(plugin.status == Status::Serving, "{} does not load: {:?}", plugin.subject, plugin.status);
        eprintln!("serving plugin=\"{}\"", plugin.subject);
    }
    let pass = |request: Request, next: Next| next.run(request);
    let app = Router::new().fallback_service(wharf.http_service("/mcp")).layer(axum::middleware::from_fn(pass));
    let listener = tokio::net::TcpListener::bind(listen).await.context("the address is taken")?;
    eprintln!("serving MCP at http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?)
}
