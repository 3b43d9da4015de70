//! Clients that keep their connection alive, as most do.

use e2e::{Server, Value, http::modern_headers, json, modern_params};
use http_body_util::Full;
use hyper::{Request, body::Bytes, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;

pub type Body = Full<Bytes>;

pub async fn connected(server: &Server) -> SendRequest<Body> {
    let stream = TokioIo::new(server.open().await.unwrap());
    let (client, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client
}

pub fn request(server: &Server, params: Value, method: &str) -> Request<Body> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
    let mut request = Request::post("/mcp")
        .header("host", server.address.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in modern_headers(&body) {
        request = request.header(name, value);
    }
    request.body(Full::from(body.to_string())).unwrap()
}
