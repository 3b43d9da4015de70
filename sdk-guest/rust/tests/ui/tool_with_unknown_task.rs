use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Counts.
    #[tool(task = "sometimes")]
    fn count() -> String {
        "1".into()
    }
}

fn main() {}
