//! The id by which a plugin knows its caller.

use e2e::{Folder, Server, json, modern_params, plugin, text};

const KEY: &str = "WHARF_STATE_KEY";
const TOKEN: &str = "WHARF_TOKEN";

/// Starts a server that has this key, and takes this token.
async fn started(folder: &Folder, key: &str, token: &str) -> Server {
    Server::start_with(folder, &[], &[(KEY, &format!("{key}1c9").repeat(16)), (TOKEN, token)]).await
}

/// Returns the id that the plugin of this tool gets of the caller with this token.
async fn id(server: &Server, tool: &str, token: &str) -> String {
    let params = modern_params(json!({ "name": tool, "arguments": { "who": true } }), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let bearer = format!("Bearer {token}");
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
        ("Authorization", bearer.as_str()),
    ];
    text(&server.probe(&headers, &body).await.2["result"]).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_plugin_knows_a_caller_by_an_id_of_its_own() {
    let folder = Folder::new();
    let [one, two] = ["one", "two"].map(|id| {
        format!("[plugins.{id}]\npath = {:?}\nconfig = {{ mode = \"given\", alone = true }}\n", plugin("badlist"))
    });
    folder.config(&format!(
        "[protocol]\nstate_keys = [{{ env = \"{KEY}\" }}]\n[http]\ntoken.env = \"{TOKEN}\"\n{one}{two}"
    ));
    let server = started(&folder, "a", "first-token-of-tests").await;
    let known = id(&server, "one_t", "first-token-of-tests").await;
    assert_eq!(known.len(), 22, "{known}");
    assert_eq!(id(&server, "one_t", "first-token-of-tests").await, known, "it is the same in every call");
    assert_ne!(id(&server, "two_t", "first-token-of-tests").await, known, "plugins cannot compare their callers");
    let again = started(&folder, "a", "first-token-of-tests").await;
    assert_eq!(id(&again, "one_t", "first-token-of-tests").await, known, "with the key, it lasts over restarts");
    let other = started(&folder, "a", "second-token-of-tests").await;
    assert_ne!(id(&other, "one_t", "second-token-of-tests").await, known, "another caller has another id");
    let rekeyed = started(&folder, "b", "first-token-of-tests").await;
    assert_ne!(id(&rekeyed, "one_t", "first-token-of-tests").await, known, "nobody can compute it without the key");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_without_credentials_have_no_id() {
    let folder = Folder::new();
    folder.config(&format!("[plugins.one]\npath = {:?}\nconfig = {{ mode = \"given\" }}\n", plugin("badlist")));
    let server = Server::start(&folder, &[]).await;
    let call = json!({ "name": "one_t", "arguments": { "who": true } });
    assert_eq!(text(&server.modern("tools/call", call, json!({})).await.unwrap()), "nobody");
    let mut session = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(text(&session.call("one_t", json!({ "who": true })).await), "nobody");
}
