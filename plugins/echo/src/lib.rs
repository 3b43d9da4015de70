//! A plugin that returns its message unchanged, for measurements and tests.

use wharf_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Echo {
    /// What to answer.
    message: String,
}

struct Plugin;

#[tools]
impl Plugin {
    /// Answers the message unchanged.
    #[tool(read_only, idempotent, open_world = false)]
    fn echo(args: Echo) -> String {
        args.message
    }
}
