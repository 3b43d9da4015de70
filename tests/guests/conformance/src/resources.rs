//! The resources that the suite reads. It reads the first one without checking its kind, so that is a plain text.

use wharf_sdk::{Body, ResourceContents, prelude::*, serde_json::json};

use crate::{Conformance, media};

#[resources]
impl Conformance {
    /// A text that stays as it is.
    #[resource(uri = "test://static-text", name = "static-text", mime_type = "text/plain")]
    fn static_text() -> String {
        "This is the content of the static text resource.".into()
    }

    /// A picture that stays as it is.
    #[resource(uri = "test://static-binary", name = "static-binary", mime_type = "image/png")]
    fn static_binary() -> Vec<ResourceContents> {
        vec![ResourceContents {
            uri: "test://static-binary".into(),
            mime_type: Some("image/png".into()),
            body: Body::Bytes(media::PNG.to_vec()),
            more: None,
        }]
    }

    /// A text to subscribe to. It never changes: no scenario waits for that.
    #[resource(uri = "test://watched-resource", name = "watched-resource", mime_type = "text/plain")]
    fn watched_resource() -> String {
        "Watched resource content".into()
    }

    /// Data by its id.
    #[resource(template = "test://template/{id}/data", name = "template-data", mime_type = "application/json")]
    fn template_data(id: String) -> String {
        json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string()
    }
}
