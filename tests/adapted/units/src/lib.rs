//! An MCP server by the official Rust SDK, in a component that exports `wasi:http/incoming-handler`: each request runs to its end on a
//! runtime of tokio inside the handler.

use std::{
    io::{Read as _, Write as _},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use rmcp::{
    ServerHandler,
    handler::server::wrapper::Parameters,
    model::{ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use wasip2::http::types::{
    Fields, IncomingBody, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Length {
    miles: f64,
}

struct Units;

#[tool_router]
impl Units {
    #[tool(description = "Converts miles to kilometres")]
    fn kilometres(&self, Parameters(Length { miles }): Parameters<Length>) -> String {
        format!("{:.3}", miles * 1.609_344)
    }
}

#[tool_handler]
impl ServerHandler for Units {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_instructions("Units of length.")
    }
}

struct Component;

impl wasip2::exports::http::incoming_handler::Guest for Component {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(answer(request, out));
    }
}

async fn answer(request: IncomingRequest, out: ResponseOutparam) {
    let mut built = http::Request::post(request.path_with_query().unwrap_or_default());
    for (name, value) in request.headers().entries() {
        built = built.header(name, value);
    }
    let incoming = request.consume().expect("a body");
    let mut stream = incoming.stream().expect("a stream");
    let mut body = Vec::new();
    stream.read_to_end(&mut body).expect("the body");
    drop(stream);
    drop(IncomingBody::finish(incoming));
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_sse_keep_alive(None);
    let service = StreamableHttpService::new(|| Ok(Units), Arc::new(LocalSessionManager::default()), config);
    let request = built.body(Full::new(Bytes::from(body))).expect("a request");
    let (parts, mut body) = service.handle(request).await.into_parts();
    let headers = Fields::new();
    for (name, value) in &parts.headers {
        headers.append(name.as_str(), value.as_bytes()).expect("a header");
    }
    let response = OutgoingResponse::new(headers);
    response.set_status_code(parts.status.as_u16()).expect("a status");
    let outgoing = response.body().expect("a body");
    ResponseOutparam::set(out, Ok(response));
    let mut stream = outgoing.write().expect("a stream");
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            stream.write_all(&data).expect("a reader");
        }
    }
    stream.flush().expect("a reader");
    drop(stream);
    OutgoingBody::finish(outgoing, None).expect("an end");
}

wasip2::http::proxy::export!(Component);
