//! Records of plugin runs and of events concerning plugins and the config, and the interfaces that receive them: observers, the journal,
//! the meter, the tracer and the board.

pub mod journal;
pub mod meter;
pub mod observers;
pub mod record;
mod shown;
pub mod trace;
