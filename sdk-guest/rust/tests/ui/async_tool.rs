use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Greets.
    async fn greet() -> String {
        "hello".into()
    }
}

fn main() {}
