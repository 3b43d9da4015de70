//! The JSON Schema of the config, for editors. The code that generates it is not part of the binary: a test generates it, and fails if
//! docs/wharf.schema.json differs.

#[cfg(test)]
mod made;

/// The schema, as JSON.
pub const SCHEMA: &str = include_str!("../../../../../docs/wharf.schema.json");
