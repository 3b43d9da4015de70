//! What is held for a client that waits for an answer, and what becomes of it when the client leaves.

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

/// The client of legacy requests that wait for their answers. When this is dropped, the client has its answers, is gone for good, or
/// has a stream to which it may come back; then its places give way while nobody reads the stream.
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
