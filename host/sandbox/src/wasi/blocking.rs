//! Runs blocking work on threads that are meant for it.

use std::panic::resume_unwind;

use tokio_util::task::AbortOnDropHandle;

/// Runs blocking work on a thread that is meant for it, and waits for the result. If the future is dropped before the work has begun, the
/// work never begins. A panic of the work is resumed in the caller.
#[expect(clippy::disallowed_methods, reason = "waits for what it spawns")]
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match AbortOnDropHandle::new(tokio::task::spawn_blocking(work)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Only the shutdown of the runtime cancels the work, and it drops the caller too. Until then there is no result to return.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_end_of_a_runtime_is_not_taken_for_a_panic() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(blocking(|| 7)), 7);
        let handle = runtime.handle().clone();
        drop(runtime);
        let _entered = handle.enter();
        let mut work = std::pin::pin!(blocking(|| 7));
        let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Pending);
    }

    #[test]
    fn a_panic_of_the_work_is_the_callers() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let caught = std::panic::catch_unwind(|| runtime.block_on(blocking(|| resume_unwind(Box::new("why")))));
        let why: Result<(), _> = caught;
        assert_eq!(why.unwrap_err().downcast_ref(), Some(&"why"));
    }
}
