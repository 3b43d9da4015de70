use wharf_sdk::prelude::*;

struct Plugin;

#[resources]
impl Plugin {
    /// Today's notes.
    fn today() -> String {
        "notes".into()
    }
}

fn main() {}
