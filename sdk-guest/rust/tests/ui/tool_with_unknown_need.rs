use wharf_sdk::prelude::*;

struct Plugin;

#[tools]
impl Plugin {
    /// Counts.
    #[tool(needs = "form, elicitation")]
    fn count() -> String {
        "1".into()
    }
}

fn main() {}
