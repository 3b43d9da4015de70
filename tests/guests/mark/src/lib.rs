//! Offers one resource and nothing else: when it is dropped in or taken out, only the list of resources changes.

use wharf_sdk::prelude::*;

struct Mark;

#[resources]
impl Mark {
    /// That it is there.
    #[resource(uri = "mark:///here", name = "here", mime_type = "text/plain")]
    fn here() -> String {
        "here".into()
    }
}
