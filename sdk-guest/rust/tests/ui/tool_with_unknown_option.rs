use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Greets.
    #[tool(readonly)]
    fn greet() -> String {
        "hello".into()
    }
}

fn main() {}
