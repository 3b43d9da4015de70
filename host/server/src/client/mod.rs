//! What is known of clients, and how they are told: sessions, the surroundings of a request, notifications, what waits to be
//! read.

pub mod context;
pub mod in_flight;
pub mod notifier;
pub mod outbox;
pub mod server;
pub mod session;
