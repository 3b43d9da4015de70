use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Clone for Plugin {
    /// Clones.
    fn clone(&self) -> Self {
        Plugin
    }
}

fn main() {}
