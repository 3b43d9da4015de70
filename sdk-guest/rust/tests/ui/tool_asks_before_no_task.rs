use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Counts.
    #[tool(ask_before_task)]
    fn count() -> String {
        "1".into()
    }
}

fn main() {}
