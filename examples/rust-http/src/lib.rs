//! One tool that sends an HTTP request. The operator's `http` grants decide which hosts it may reach.

use wharf_sdk::{http, prelude::*};

#[derive(Deserialize, JsonSchema)]
struct Page {
    /// The page's URL.
    url: String,
}

struct Status;

#[tools]
impl Status {
    /// Says how a web page answers: its status, and how long it is.
    #[tool(read_only)]
    fn status(args: Page) -> Result<String> {
        let response = http::get(&args.url)?;
        Ok(format!("{}, {} characters", response.status, String::from_utf8_lossy(&response.body).chars().count()))
    }
}
