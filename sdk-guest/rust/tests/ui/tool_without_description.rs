use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    fn greet() -> String {
        "hello".into()
    }
}

fn main() {}
