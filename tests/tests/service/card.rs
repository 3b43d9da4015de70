//! Information about a server that can be read before connecting to it.

use e2e::{
    Folder, Server, Value,
    folder::{stderr, stdout},
    json,
};

const ANY_PAGE: (&str, &str) = ("Origin", "https://any.example");

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_served_if_the_operator_says_so() {
    let folder = Folder::new();
    folder.plugin("echo");
    let plugin = "[plugins.echo]\npath = \"../../plugins/echo.wasm\"\n";
    folder.config(plugin);
    let server = Server::start(&folder, &[]).await;
    for path in ["/mcp/server-card", "/.well-known/ai-catalog.json"] {
        assert_eq!(server.send("GET", path, &[], b"").await.status(), 404, "{path}");
    }
    server.terminate().await;
    let none = folder.run(&["card"], &[]).await;
    assert!(stderr(&none).contains("server_card = true"), "{}", stderr(&none));

    folder.config(&format!(
        "[server]\nname = \"files\"\ndescription = \"Files of the team\"\n\
         [http]\npublic_url = \"https://mcp.example.com/mcp\"\nserver_card = true\n[protocol]\nlegacy = false\n{plugin}"
    ));
    let server = Server::start(&folder, &[]).await;
    let mut exchange = server.send("GET", "/mcp/server-card", &[ANY_PAGE], b"").await;
    assert_eq!(exchange.status(), 200);
    assert_eq!(exchange.header("content-type"), Some("application/mcp-server-card+json"));
    assert_eq!(exchange.header("access-control-allow-origin"), Some("*"));
    let tag = exchange.header("etag").unwrap().to_owned();
    let card: Value = serde_json::from_str(&exchange.text().await).unwrap();
    let info = server.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert_eq!(
        card,
        json!({
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": "com.example.mcp/files",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Files of the team",
            "remotes": [{
                "type": "streamable-http",
                "url": "https://mcp.example.com/mcp",
                "supportedProtocolVersions": info["supportedVersions"],
            }],
        })
    );
    let again = server.send("GET", "/mcp/server-card", &[("If-None-Match", &tag)], b"").await;
    assert_eq!(again.status(), 304);
    let mut exchange = server.send("GET", "/.well-known/ai-catalog.json", &[ANY_PAGE], b"").await;
    let catalog: Value = serde_json::from_str(&exchange.text().await).unwrap();
    assert_eq!(catalog["entries"][0]["url"], "https://mcp.example.com/mcp/server-card");
    assert_eq!(server.send("GET", "/mcp/server-card", &[("Host", "evil.example")], b"").await.status(), 403);
    server.terminate().await;
    let printed: Value = serde_json::from_str(&stdout(&folder.run(&["card"], &[]).await)).unwrap();
    assert_eq!(printed, card);
}
