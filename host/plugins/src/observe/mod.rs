//! Records of plugin runs and of events concerning plugins and the config, and the interfaces that receive them: observers, the journal,
//! the meter and the tracer.

pub mod journal;
pub mod meter;
pub mod observers;
pub mod record;
pub mod trace;
