use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Adds.
    fn add(a: u32, b: u32) -> String {
        (a + b).to_string()
    }
}

fn main() {}
