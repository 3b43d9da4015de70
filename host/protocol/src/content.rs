//! Blocks of content. Their texts may have hidden characters until `shown` has removed them.

use serde_json::Value;

use crate::object::Object;

/// A block of content, in a message or in the result of a tool.
#[derive(Debug, Clone)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A picture.
    Image {
        /// The type, such as `image/png`.
        mime_type: String,
        /// The bytes of the file; they are encoded as base64 when they are written.
        data: Vec<u8>,
    },
    /// A sound; since 2025-03-26. For earlier revisions a text is written in its place.
    Audio {
        /// The type, such as `audio/wav`.
        mime_type: String,
        /// The bytes of the file; they are encoded as base64 when they are written.
        data: Vec<u8>,
    },
    /// A link to a resource, which the client may read; since 2025-06-18. For earlier revisions a text is written in its place.
    Link(ResourceLink),
    /// A resource together with its contents.
    Embedded(ResourceContents),
    /// A whole block that the plugin provided as JSON: an object whose `type` is a string.
    Raw(Object),
}

impl Content {
    /// Whether the block is text that clients show to a model.
    pub(crate) fn is_text(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Raw(block) => block.get("type").and_then(Value::as_str) == Some("text"),
            Self::Image { .. } | Self::Audio { .. } | Self::Link(_) | Self::Embedded(_) => false,
        }
    }
}

/// A link to a resource, without its contents.
#[derive(Debug, Clone)]
pub struct ResourceLink {
    /// The URI under which the resource can be read.
    pub uri: String,
    /// The name that a person or a model sees.
    pub name: String,
    /// The type of its contents, if it is known.
    pub mime_type: Option<String>,
    /// Further members: see the top of this file.
    pub more: Object,
}

/// The contents of a resource, or one piece of them.
#[derive(Debug, Clone)]
pub struct ResourceContents {
    /// The URI that was read, or one below it.
    pub uri: String,
    /// The type of the body, if it is known.
    pub mime_type: Option<String>,
    /// The body.
    pub body: Body,
    /// Further members: see the top of this file.
    pub more: Object,
}

/// The contents of a resource, as text or as bytes.
#[derive(Debug, Clone)]
pub enum Body {
    /// Text, which is written as it is.
    Text(String),
    /// Bytes, which are written as base64.
    Bytes(Vec<u8>),
}
