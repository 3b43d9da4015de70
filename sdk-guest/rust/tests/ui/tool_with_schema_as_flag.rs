use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Counts.
    #[tool(schema)]
    fn count() -> String {
        "1".into()
    }
}

fn main() {}
