//! What may be asked of a plugin, and what it answers: counted, cut and charged before anybody reads it.

pub mod json;
pub mod operation;
pub mod told;
