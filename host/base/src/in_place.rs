//! Boxes large futures without copying them.

use std::pin::Pin;

/// Boxes a future. `Box::pin` builds a future on the stack and then copies all of it, including the kilobytes that only its execution
/// fills. Here the box comes first, so nothing can fail between building the future and storing it, and the compiler stores only what the
/// future begins with. It does so if that is a few words: a future that needs more should begin with a box of it.
#[inline(always)]
pub fn boxed<F>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}
