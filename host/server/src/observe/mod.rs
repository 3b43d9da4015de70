//! Records of the runs of plugins, and who is told about them.

pub mod record;
