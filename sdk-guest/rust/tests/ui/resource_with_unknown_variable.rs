use wharf_sdk::prelude::*;

struct Plugin;

#[resources]
impl Plugin {
    /// A day's notes.
    #[resource(template = "note:///{day}")]
    fn notes(date: String) -> String {
        date
    }
}

fn main() {}
