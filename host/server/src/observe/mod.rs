//! What is known of each run of a plugin afterwards, and who is told.

pub mod record;
