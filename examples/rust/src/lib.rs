use wharf_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

struct Hello;

#[tools]
impl Hello {
    /// Greets a person.
    fn greet(args: Greet) -> String {
        format!("Hello, {}!", args.name)
    }
}
