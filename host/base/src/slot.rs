//! A cache for one value of any type. The module that owns the slot need not know the type of the value, nor which module stores
//! it.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

/// A slot for one value, which is empty until it is used for the first time. Clones share the same value.
#[derive(Clone, Default)]
pub struct Slot(Arc<OnceLock<Box<dyn Any + Send + Sync>>>);

impl Slot {
    /// Returns the stored value, which is made now if the slot is empty. None: the slot has a value of another type.
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
