//! A place where somebody keeps what it would otherwise have to look up each time. Whoever has the place need not know what is in
//! it, nor who puts it there.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

/// Empty until it is used for the first time. Clones are the same place.
#[derive(Clone, Default)]
pub struct Slot(Arc<OnceLock<Box<dyn Any + Send + Sync>>>);

impl Slot {
    /// What is kept here, made now if there is nothing yet. None: somebody else keeps something of another type here.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_made_once() {
        let slot = Slot::default();
        assert_eq!(slot.get_or_init(|| 7), Some(&7));
        assert_eq!(slot.clone().get_or_init(|| 8), Some(&7));
        assert_eq!(slot.get_or_init(|| "text"), None, "another type");
    }
}
