//! Clients: sessions, the context of a request, notifications, and queues of messages.

pub mod context;
mod entitled;
pub mod in_flight;
pub mod news;
pub mod notifier;
pub mod outbox;
pub mod remembered;
pub mod replicas;
pub mod seat;
pub mod server;
pub mod session;
mod shown;
