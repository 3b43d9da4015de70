//! Tools that only answer, log or report progress.

use wharf_sdk::{Level, ToolResult, prelude::*};

use crate::{media, wait_ms};

/// Published unchanged: the suite looks for each of its keywords.
pub const SCHEMA: &str = include_str!("schema.json");

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct Region {
    /// Which region; sent in the header `Mcp-Param-Region` as well.
    #[schemars(extend("x-mcp-header" = "Region"))]
    pub region: String,
}

pub fn image() -> Content {
    wharf_sdk::image("image/png", media::PNG.to_vec())
}

pub fn audio() -> Content {
    wharf_sdk::audio("audio/wav", media::WAV.to_vec())
}

pub fn embedded_resource() -> Content {
    wharf_sdk::resource_text("test://embedded-resource", "text/plain", "This is an embedded resource content.")
}

pub fn multiple_content_types() -> Vec<Content> {
    vec![
        Content::Text("Multiple content types test:".into()),
        image(),
        wharf_sdk::resource_text("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
    ]
}

/// The same as returning `Error::failed`, written out.
pub fn error_handling() -> ToolResult {
    let content = vec![Content::Text("This tool intentionally returns an error for testing.".into())];
    ToolResult { content, structured: None, is_error: true, more: None }
}

pub fn with_logging(call: &Call) -> &'static str {
    call.log(Level::Info, "Tool execution started");
    wait_ms(50);
    call.log(Level::Info, "Tool processing data");
    wait_ms(50);
    call.log(Level::Info, "Tool execution completed");
    "Three messages are logged."
}

pub fn with_progress(call: &Call) -> &'static str {
    for (done, pause) in [(0.0, 50), (50.0, 50), (100.0, 0)] {
        call.progress(done, Some(100.0), None);
        wait_ms(pause);
    }
    "The progress is reported."
}

pub fn streaming(call: &Call) -> &'static str {
    call.progress(1.0, Some(1.0), Some("about to answer"));
    "Nothing had to be asked."
}

pub fn logging(call: &Call) -> &'static str {
    call.log(Level::Info, "a message for who wants it");
    "One message is logged."
}

/// The operator's `poll_after_ms` has to be less than this duration, so that the suite sees the stream close.
pub fn reconnection() -> &'static str {
    wait_ms(900);
    "The answer that the client came back for."
}
