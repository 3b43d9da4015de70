//! The JSON Schema of the config, for editors, and the reference of all keys, docs/config.md. The code that generates them is not part of
//! the binary: a test generates them, and fails if the files differ.

#[cfg(test)]
mod made;
#[cfg(test)]
mod reference;

/// The schema, as JSON.
pub const SCHEMA: &str = include_str!("../../../../../docs/wharf.schema.json");
