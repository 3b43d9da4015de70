//! The resources held for a client that waits for an answer, and what happens to them when the client leaves.

use std::sync::Arc;

use super::{listens::Listen, resume::EventLog};
use crate::client::{
    context::{ItsSeat, Sitting},
    seat::Left,
};

/// Marks a response that goes on for as long as its client listens.
#[derive(Clone, Copy)]
pub struct Lasting;

/// The answer to a request that was ended for another one.
pub const MADE_ROOM: &str = "the request was ended: its client was gone, and another client needed its place";

/// What a modern request holds while it is answered.
pub enum Place {
    Sits(#[expect(dead_code, reason = "held until it is dropped")] Sitting),
    Listens(#[expect(dead_code, reason = "held until it is dropped")] Listen),
}

/// RAII guard of legacy requests whose client waits for the answers. If this is dropped without the answers, the places of the requests
/// give way to others: at once if the client has no stream to come back to, else while its stream has no reader.
pub struct WaitedFor<'a> {
    pub seats: &'a [ItsSeat],
    pub stream: Option<Arc<EventLog>>,
}

impl Drop for WaitedFor<'_> {
    fn drop(&mut self) {
        for seat in self.seats {
            let left = match &self.stream {
                None => Left::for_good(seat.clone()),
                Some(log) => {
                    let log = Arc::clone(log);
                    Left { seat: seat.clone(), gone: Box::new(move |now| log.unread_for(now)) }
                }
            };
            seat.give_way(Arc::new(left));
        }
    }
}
