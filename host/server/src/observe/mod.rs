//! Records of the runs of plugins and of what happened to plugins and the config, and who is told about them.

pub mod journal;
pub mod meter;
pub mod observers;
pub mod record;
pub mod trace;
