//! The JSON Schema of the config, for editors. What makes it of the types that the file is read into is no part of the binary: a test
//! makes it, and fails where the file beside the docs says something else.

#[cfg(test)]
mod made;

/// The schema, as JSON.
#[cfg(feature = "cli")]
pub const SCHEMA: &str = include_str!("../../../../../docs/wharf.schema.json");
