//! A timer for the HTTP library that registers with the runtime rarely.
//!
//! The library limits how long a client may take to send the head of each request, so it begins a timeout after each answer. Registering
//! and removing one takes two locks that all connections share. But the deadlines of one connection only move into the future, so a single
//! registration serves them all: when it fires before the current deadline, it is registered again for that one.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::time;

/// The timer of one connection. Only one of its timeouts may be waited for at a time.
#[derive(Clone, Default)]
pub struct OneTimer(Arc<Mutex<Option<Pin<Box<time::Sleep>>>>>);

impl Timer for OneTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Timeout { timer: self.clone(), deadline: deadline.into() })
    }
}

struct Timeout {
    timer: OneTimer,
    deadline: time::Instant,
}

impl Sleep for Timeout {}

impl Future for Timeout {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut registered = self.timer.0.lock();
        let registered = registered.get_or_insert_with(|| Box::pin(time::sleep_until(self.deadline)));
        loop {
            // The registration is not for a later time than this deadline: then it was for an earlier one of this connection.
            ready!(registered.as_mut().poll(cx));
            if time::Instant::now() >= self.deadline {
                return Poll::Ready(());
            }
            registered.as_mut().reset(self.deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_timeout_ends_at_its_own_deadline() {
        let (timer, began) = (OneTimer::default(), Instant::now());
        let at = |millis: u64| began + Duration::from_millis(millis);
        let mut first = timer.sleep_until(at(20));
        assert!(futures_util::poll!(&mut first).is_pending());
        drop(first);
        timer.sleep_until(at(50)).await;
        assert!(Instant::now() >= at(50), "the registration for the first one has ended before");
        timer.sleep_until(at(60)).await;
        assert!(Instant::now() >= at(60));
        let mut passed = timer.sleep_until(at(10));
        assert!(futures_util::poll!(&mut passed).is_ready());
    }
}
