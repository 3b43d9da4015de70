//! Tools for issues on GitHub, and an example of a plugin that uses an API with a secret that it never sees. The plugin sends no token; the
//! operator's rule for the API adds the `authorization` header outside of the sandbox.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wharf_sdk::{
    http::{self, Method, Request, Response},
    prelude::*,
};

wants! {
    http = [{
        url = "https://api.github.com/",
        methods = ["GET", "POST"],
        why = "lists, reads and searches issues, and with POST opens new ones",
        secret = "github",
    }]
    secrets = [{ name = "github", why = "a token that may read issues, and write them if new ones are to be opened" }]
    settings = [{ key = "api", type = "string", why = "a GitHub of one's own, which also needs a rule of its own" }]
}

#[derive(Deserialize, JsonSchema)]
struct ListIssues {
    /// Owner and name, such as `rust-lang/rust`.
    repository: String,
    /// Only those with all of these labels.
    labels: Option<Vec<String>>,
    /// Which page of 30; the first if left out.
    page: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct OneIssue {
    /// Owner and name, such as `rust-lang/rust`.
    repository: String,
    number: u64,
}

#[derive(Deserialize, JsonSchema)]
struct NewIssue {
    /// Owner and name, such as `rust-lang/rust`.
    repository: String,
    title: String,
    body: Option<String>,
    labels: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// As in GitHub's own search, such as `repo:rust-lang/rust is:open overflow`.
    query: String,
    /// Which page of 30; the first if left out.
    page: Option<u32>,
}

/// The answers of the GitHub API.
#[derive(Deserialize)]
struct Issue {
    number: u64,
    title: String,
    state: String,
    html_url: String,
    body: Option<String>,
    pull_request: Option<Value>,
}

#[derive(Deserialize)]
struct Found {
    total_count: u64,
    items: Vec<Issue>,
}

struct GitHub;

#[tools]
impl GitHub {
    /// Lists the open issues and pull requests of a repository, the newest first.
    #[tool(title = "List issues", read_only)]
    fn list_issues(args: ListIssues) -> Result<String> {
        let mut query = vec![("page", args.page.unwrap_or(1).to_string())];
        query.extend(args.labels.map(|labels| ("labels", labels.join(","))));
        let found: Vec<Issue> = ask(Method::Get, &repository(&args.repository, "issues")?, &query, None)?;
        Ok(lines(&found))
    }

    /// Shows an issue or pull request with its text.
    #[tool(title = "Get issue", read_only)]
    fn get_issue(args: OneIssue) -> Result<String> {
        let path = format!("issues/{}", args.number);
        let issue: Issue = ask(Method::Get, &repository(&args.repository, &path)?, &[], None)?;
        Ok(format!("{}\n\n{}", line(&issue), issue.body.as_deref().unwrap_or("(no text)")))
    }

    /// Opens an issue in a repository.
    #[tool(title = "Create issue", destructive = false)]
    fn create_issue(args: NewIssue) -> Result<String> {
        let body = json!({ "title": args.title, "body": args.body, "labels": args.labels.unwrap_or_default() });
        let issue: Issue = ask(Method::Post, &repository(&args.repository, "issues")?, &[], Some(body))?;
        Ok(format!("Opened {}", line(&issue)))
    }

    /// Searches issues and pull requests of all repositories.
    #[tool(title = "Search issues", read_only)]
    fn search_issues(args: Search) -> Result<String> {
        let query = [("q", args.query), ("page", args.page.unwrap_or(1).to_string())];
        let found: Found = ask(Method::Get, "/search/issues", &query, None)?;
        Ok(format!("{} in all\n{}", found.total_count, lines(&found.items)))
    }
}

/// Returns the API path of a repository, followed by `rest`.
fn repository(name: &str, rest: &str) -> Result<String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let plain = |part: &str| part.bytes().all(known) && !part.trim_matches('.').is_empty();
    match name.split_once('/') {
        Some((owner, name)) if plain(owner) && plain(name) => Ok(format!("/repos/{owner}/{name}/{rest}")),
        _ => Err(Error::failed(format!("`{name}` is not a repository; write owner and name, such as rust-lang/rust"))),
    }
}

fn ask<T: DeserializeOwned>(method: Method, path: &str, query: &[(&str, String)], body: Option<Value>) -> Result<T> {
    let config: Value = serde_json::from_str(&host::config())?;
    let api = config.get("api").and_then(Value::as_str).unwrap_or("https://api.github.com");
    let mut url = api.trim_end_matches('/').to_owned() + path;
    for (key, value) in query {
        let mark = if url.contains('?') { '&' } else { '?' };
        url += &format!("{mark}{key}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    let request = Request::new(method, url)
        .header("accept", "application/vnd.github+json")
        .header("user-agent", "wharf")
        .header("x-github-api-version", "2022-11-28");
    let request = if let Some(body) = body { request.json(&body)? } else { request };
    let response = http::send(&request)?;
    if response.is_success() { Ok(response.json()?) } else { Err(failure(&response)) }
}

/// Returns an error with the API's message and advice on what to do.
fn failure(response: &Response) -> Error {
    let body: Value = response.json().unwrap_or_default();
    let said = body.get("message").and_then(Value::as_str).unwrap_or("no reason").trim_end_matches('.');
    let advice = match response.status {
        403 | 429 if response.header("x-ratelimit-remaining") == Some("0") => "Try again in an hour at most.",
        401 => "The operator's token is missing or no longer valid; only the operator can change that.",
        403 => "The operator's token does not allow this.",
        404 => "There is nothing there, or the operator's token cannot see it.",
        422 => "Change the arguments.",
        _ => "Try again later.",
    };
    Error::failed(format!("GitHub answered {}: {said}. {advice}", response.status))
}

fn lines(issues: &[Issue]) -> String {
    if issues.is_empty() { "None found.".to_owned() } else { issues.iter().map(line).collect::<Vec<_>>().join("\n") }
}

fn line(Issue { number, title, state, html_url, pull_request, .. }: &Issue) -> String {
    let kind = if pull_request.is_some() { "pull request" } else { "issue" };
    format!("#{number} {title} ({state} {kind}) {html_url}")
}
