use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Counts.
    #[tool(task)]
    fn count() -> String {
        "1".into()
    }
}

fn main() {}
