//! What is known about clients, and how they are told: sessions, the context of a request, notifications, queues of messages.

pub mod context;
mod entitled;
pub mod in_flight;
pub mod notifier;
pub mod outbox;
pub mod seat;
pub mod server;
pub mod session;
