//! The time plugin: time zones, and local times that are skipped or occur twice.

use e2e::{Folder, Pipe, Value, is_error, json, plugin, text};

async fn started(config: &str) -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.config(&format!("[plugins.time]\npath = {:?}\nprefix = \"\"\n{config}\n", plugin("time")));
    let mut pipe = Pipe::start_with(&folder, &["run"], &[("TZ", "Asia/Kolkata")]);
    pipe.legacy("2025-11-25", json!({})).await;
    (folder, pipe)
}

/// Returns the answer, which is JSON as text, and nothing else.
fn answer(result: &Value) -> Value {
    assert!(!is_error(result) && result.get("structuredContent").is_none(), "{result}");
    serde_json::from_str(text(result)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_zone_is_the_operators() {
    for (config, expected) in [
        ("", "UTC"),
        ("config = { timezone = \"Asia/Tokyo\" }", "Asia/Tokyo"),
        ("config = { timezone = { env = \"TZ\" } }", "Asia/Kolkata"),
    ] {
        let (_folder, mut pipe) = started(config).await;
        let now = pipe.call("get_current_time", json!({})).await;
        assert_eq!(answer(&now)["timezone"], expected, "{now}");
        let named = pipe.call("get_current_time", json!({ "timezone": "Europe/Paris" })).await;
        assert_eq!(answer(&named)["timezone"], "Europe/Paris");
    }
    let (_folder, mut pipe) = started("config = { timezone = \"Nowhere/Else\" }").await;
    let wrong = pipe.call("get_current_time", json!({})).await;
    assert!(is_error(&wrong) && text(&wrong).contains("Nowhere/Else"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_have_the_reference_servers_form() {
    let (_folder, mut pipe) = started("").await;
    for (source, target, difference) in
        [("UTC", "Asia/Tokyo", "+9.0h"), ("Asia/Kathmandu", "UTC", "-5.75h"), ("UTC", "UTC", "+0.0h")]
    {
        let arguments = json!({ "source_timezone": source, "target_timezone": target, "time": "12:00" });
        let converted: Value = pipe.call("convert_time", arguments).await;
        assert_eq!(answer(&converted)["time_difference"], difference, "{converted}");
    }
}
