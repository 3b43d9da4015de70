//! Reads component files without running them.

pub mod load_error;
pub mod look;
pub mod outside;
pub mod sections;
