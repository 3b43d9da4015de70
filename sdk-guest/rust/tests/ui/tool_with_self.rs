use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Counts.
    fn count(&self) -> String {
        "1".into()
    }
}

fn main() {}
