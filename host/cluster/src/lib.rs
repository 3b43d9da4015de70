//! What several wharf processes behind one address share, so that any of them answers any request: values, counts, and messages to each
//! other. Redis carries them; `[cluster]` in the config says where it is. Without that table there is no [`Cluster`], and each process
//! stands for itself.
//!
//! Redis is not trusted. Every value and every message is sealed with a key that only the replicas have, bound to its name or channel, so
//! anyone who can write in Redis can delete, delay and repeat, but not forge. What must happen at most once is therefore not decided by Redis
//! but by the one replica that began it: the others ask that replica. The exception are the counts of limits on calls, which are numbers in
//! Redis.
//!
//! While Redis does not answer, every function here fails at once. The caller decides what that means; docs/replicas.md has the table.

#![forbid(unsafe_code)]

mod bus;
mod cluster;
mod count;
mod link;
mod silent;
mod store;
mod taken;
mod turns;
mod waiting;

pub use bus::{Answer, Frames, Member};
pub use cluster::{ADDRESS_BYTES, Cluster};
pub use count::{Counted, Limit, Used};
pub use silent::{NoRoom, NotStored, Silent, Unanswered};
pub use store::Before;
pub use waiting::ASKED;
