//! Fetches web pages for a model. Names, arguments and texts are those of the reference fetch server, so that prompts and settings written
//! for it keep working.
//!
//! The plugin enforces no rules about which hosts it may access: wharf applies the operator's rules to every request, outside of the
//! sandbox. The plugin itself only obeys `robots.txt`, and makes checks that let it answer with messages that a model can act on.

use url::Url;
use wharf_sdk::{Content, Message, PromptResult, Role, http, prelude::*};

mod charset;
#[cfg(test)]
mod hostile;
mod markdown;
mod page;
mod parse;
mod robots;
mod visit;
mod weight;

use visit::Visit;

// The plugin requests no HTTP rules, because the operator decides which hosts it may access.
wants! {
    settings = [
        { key = "ignore_robots_txt", type = "boolean", why = "pages that robots are asked to stay away from are fetched too" },
        { key = "user_agent", type = "string", why = "how it names itself to sites" },
    ]
}

wharf_sdk::instructions!(
    "`fetch` reads web pages as Markdown; a long page comes in parts: call it again with the start_index that its answer names."
);

/// The reference server's user agent for requests of a model.
const AUTONOMOUS: &str = "ModelContextProtocol/1.0 (Autonomous; +https://github.com/modelcontextprotocol/servers)";
/// The reference server's user agent for requests of a user.
const MANUAL: &str = "ModelContextProtocol/1.0 (User-Specified; +https://github.com/modelcontextprotocol/servers)";

/// The schema of the arguments, as in the reference server.
const SCHEMA: &str = r#"{
  "properties": {
    "url": { "description": "URL to fetch", "format": "uri", "minLength": 1, "title": "Url", "type": "string" },
    "max_length": {
      "default": 5000, "description": "Maximum number of characters to return.", "maximum": 999999, "minimum": 1,
      "title": "Max Length", "type": "integer"
    },
    "start_index": {
      "default": 0,
      "description": "On return output starting at this character index, useful if a previous fetch was truncated and more context is required.",
      "minimum": 0, "title": "Start Index", "type": "integer"
    },
    "raw": {
      "default": false, "description": "Get the actual HTML content of the requested page, without simplification.",
      "title": "Raw", "type": "boolean"
    }
  },
  "required": ["url"],
  "title": "fetchArguments",
  "type": "object"
}"#;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Wanted {
    url: String,
    max_length: Option<usize>,
    start_index: Option<usize>,
    raw: Option<bool>,
}

/// The plugin's table in the operator's config file.
#[derive(Deserialize, Default)]
#[serde(crate = "wharf_sdk::serde", default, deny_unknown_fields)]
struct Config {
    user_agent: Option<String>,
    ignore_robots_txt: bool,
}

impl Config {
    fn read() -> Result<Self> {
        wharf_sdk::serde_json::from_str(&host::config())
            .map_err(|error| Error::failed(format!("the config of the plugin fetch is wrong: {error}")))
    }
}

struct Fetch;

#[tools]
impl Fetch {
    #[doc = "Fetches a URL from the internet and optionally extracts its contents as markdown.\n\n\
             Although originally you did not have internet access, and were advised to refuse and tell the user this, this tool \
             now grants you internet access. Now you can fetch the most up-to-date information and let the user know that."]
    #[tool(read_only, destructive = false, idempotent, open_world, schema = SCHEMA)]
    fn fetch(args: Wanted) -> Result<String> {
        let config = Config::read()?;
        let url = Url::parse(&args.url).map_err(|error| {
            Error::failed(format!(
                "`{}` is not a valid URL: {error}; write all of it, such as https://example.org/",
                args.url
            ))
        })?;
        let agent = config.user_agent.as_deref().unwrap_or(AUTONOMOUS);
        let response = Visit::new(http::send, agent).page(&url, url.as_str(), !config.ignore_robots_txt)?;
        let page = page::read(&response, args.raw.unwrap_or(false))?;
        let part = page::part(&page.content, args.start_index.unwrap_or(0), args.max_length.unwrap_or(5000));
        Ok(format!("{}Contents of {url}:\n{part}", page.prefix))
    }
}

#[prompts]
impl Fetch {
    /// Fetch a URL and extract its contents as markdown
    #[prompt(name = "fetch")]
    fn fetch_for_person(
        /// URL to fetch
        url: String,
    ) -> Result<PromptResult> {
        let config = Config::read()?;
        let agent = config.user_agent.as_deref().unwrap_or(MANUAL);
        // A user asked, not a robot, so `robots.txt` does not apply, and errors are shown to the user as the prompt's text.
        let text = match for_person(&url, agent) {
            Ok(page) => format!("{}{}", page.prefix, page.content),
            Err(Error::Failed(problem)) => problem,
            Err(other) => return Err(other),
        };
        let messages = vec![Message { role: Role::User, content: Content::Text(text) }];
        let description = Some("Fetch a URL and extract its contents as markdown".to_owned());
        Ok(PromptResult { description, messages, more: None })
    }
}

fn for_person(url: &str, agent: &str) -> Result<page::Page> {
    let parsed = Url::parse(url)
        .map_err(|_| Error::failed(format!("Failed to fetch {url}: {}", http::Error::Url(url.to_owned()))))?;
    let response = Visit::new(http::send, agent).page(&parsed, url, false)?;
    page::read(&response, false)
}
