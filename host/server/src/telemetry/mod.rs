//! What operators watch wharf with: metrics, which are counted as runs end, and made into text or messages when somebody asks for
//! them; and traces, which are sent to a collector. Nothing here is asked for anything by the path of a call: it is told, as every observer is.

pub mod metrics;
pub mod otlp;
