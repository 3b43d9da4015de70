//! The client of a case. It talks to the real server over an in-process pipe, in the newest protocol revision, and answers the plugin's
//! questions (MRTR) as the case says.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    task::JoinSet,
};
use wharf_protocol::Revision;

use super::cases::{Answer, List, Sampled};
use wharf_app::operator::{Operator, Pipe};
use wharf_config::config::to_json;
use wharf_policy::access::call_roots::Folder;

/// The capacity of the pipe in each direction.
const PIPE_BYTES: usize = 64 << 10;
/// How long one answer may take. The plugin's own deadline is shorter, so this ends only a hang of wharf itself.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of rounds of questions in one request; wharf itself allows fewer.
const MAX_ROUNDS: usize = 32;
/// The maximum number of pages of a list.
const MAX_PAGES: usize = 1000;

/// How a request ended, and what the plugin said meanwhile.
#[derive(Debug)]
pub struct Ended {
    /// The result without the members that the protocol adds, or the text of the error.
    pub result: Result<Value, String>,
    pub logs: Vec<String>,
    pub progress: Vec<String>,
    /// Descriptions of the questions that the case does not answer.
    pub unanswered: Vec<String>,
}

impl Default for Ended {
    fn default() -> Self {
        Self { result: Ok(Value::Null), logs: Vec::new(), progress: Vec::new(), unanswered: Vec::new() }
    }
}

pub struct Client {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    /// The task that serves the other end of the pipe.
    _serving: JoinSet<()>,
    requests: u64,
}

impl Client {
    /// Connects a client that has opened these folders.
    pub fn open(operator: &Operator, roots: Vec<Folder>) -> Self {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let (read, write) = tokio::io::split(far);
        let pipe = Pipe { alone: true, roots: Some(roots), ..Pipe::default() };
        let served = operator.serve_pipe(read, write, pipe);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // If serving fails, for example because a folder cannot be opened, the client sees the end of the pipe.
            served.await.ok();
        });
        let (read, write) = tokio::io::split(near);
        Self { read: BufReader::new(read), write, _serving: serving, requests: 0 }
    }

    /// Sends a request, and answers the plugin's questions.
    pub async fn request(
        &mut self,
        method: &str,
        params: &Map<String, Value>,
        answers: &BTreeMap<String, Answer>,
    ) -> Result<Ended> {
        let mut ended = Ended::default();
        let mut params = params.clone();
        for _ in 0..MAX_ROUNDS {
            let mut result = match self.exchange(method, params.clone(), &mut ended).await? {
                Ok(result) => result,
                Err(error) => return Ok(Ended { result: Err(error), ..ended }),
            };
            let kind = result.remove("resultType");
            if kind.is_none_or(|kind| kind != "input_required") {
                for key in ["ttlMs", "cacheScope"] {
                    result.remove(key);
                }
                strip_server_meta(&mut result);
                return Ok(Ended { result: Ok(Value::Object(result)), ..ended });
            }
            let Some(Value::Object(questions)) = result.remove("inputRequests") else {
                bail!("the server asks for input without a question")
            };
            let mut replies = Map::new();
            for (key, question) in questions {
                match reply(&key, &question, answers.get(&key)) {
                    Ok(reply) => drop(replies.insert(key, reply)),
                    Err(problem) => ended.unanswered.push(problem),
                }
            }
            if !ended.unanswered.is_empty() {
                return Ok(Ended {
                    result: Err("the plugin asked a question that the case does not answer".into()),
                    ..ended
                });
            }
            params.insert("inputResponses".into(), Value::Object(replies));
            match result.remove("requestState") {
                Some(state) => params.insert("requestState".into(), state),
                None => params.remove("requestState"),
            };
        }
        bail!("the plugin asked in more than {MAX_ROUNDS} rounds");
    }

    /// Requests all items of a list, from all its pages.
    pub async fn list(&mut self, list: List) -> Result<Ended> {
        let (method, key) = list.method();
        let mut items = Vec::new();
        let mut params = Map::new();
        for _ in 0..MAX_PAGES {
            let ended = self.request(method, &params, &BTreeMap::new()).await?;
            let Ok(mut page) = ended.result else { return Ok(ended) };
            match page.get_mut(key).map(Value::take) {
                Some(Value::Array(mut more)) => {
                    more.iter_mut().filter_map(Value::as_object_mut).for_each(strip_server_meta);
                    items.extend(more);
                }
                _ => bail!("the answer to {method} has no `{key}`"),
            }
            match page.get_mut("nextCursor").map(Value::take) {
                Some(cursor) => drop(params.insert("cursor".into(), cursor)),
                None => return Ok(Ended { result: Ok(json!({ (key): items })), ..Ended::default() }),
            }
        }
        bail!("{method} has more than {MAX_PAGES} pages");
    }

    /// Sends one request, and returns its answer. The inner error is the server's.
    async fn exchange(
        &mut self,
        method: &str,
        mut params: Map<String, Value>,
        said: &mut Ended,
    ) -> Result<Result<Map<String, Value>, String>> {
        self.requests += 1;
        let id = self.requests;
        params.insert("_meta".into(), meta(id));
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let talk = async {
            self.write.write_all(format!("{request}\n").as_bytes()).await?;
            let mut line = String::new();
            loop {
                line.clear();
                if self.read.read_line(&mut line).await? == 0 {
                    bail!("the server has closed the connection");
                }
                let mut message: Value = serde_json::from_str(&line)?;
                if message.get("id").is_some_and(|own| *own == id) {
                    return Ok(match message.get_mut("result").map(Value::take) {
                        Some(Value::Object(result)) => Ok(result),
                        _ => Err(in_words(message.get("error"))),
                    });
                }
                record(&message, said);
            }
        };
        match tokio::time::timeout(RESPONSE_TIMEOUT, talk).await {
            Ok(answered) => answered,
            Err(_) => bail!("there was no answer within {} s", RESPONSE_TIMEOUT.as_secs()),
        }
        .with_context(|| method.to_owned())
    }
}

/// Returns the `_meta` of a request. The client declares all capabilities, so that only the plugin's grants limit its questions.
fn meta(id: u64) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": Revision::NEWEST.as_str(),
        "io.modelcontextprotocol/clientInfo": { "name": "wharf test", "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {}
        },
        "io.modelcontextprotocol/logLevel": "debug",
        "progressToken": id,
    })
}

/// Removes the `_meta` members that wharf adds to results and list items, and leaves those of the plugin.
fn strip_server_meta(object: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.retain(|key, _| !key.starts_with("io.modelcontextprotocol/") && !key.starts_with("dev.wharf/"));
        if meta.is_empty() {
            object.remove("_meta");
        }
    }
}

fn in_words(error: Option<&Value>) -> String {
    let Some(error) = error else { return "an answer that is neither a result nor an error".into() };
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let code = error.get("code").unwrap_or(&Value::Null);
    format!("{message} ({code})")
}

/// Records a log message or progress report of a notification.
fn record(message: &Value, said: &mut Ended) {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    let of = |key: &str| message.get("params").and_then(|params| params.get(key));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match method {
        "notifications/message" => {
            let (level, data) = (of("level").map(plain), of("data").map(plain));
            said.logs.push(format!("{}: {}", level.unwrap_or_default(), data.unwrap_or_default()));
        }
        "notifications/progress" => {
            // Formatting as f64 prints a whole number without a decimal point.
            let number = |value: &Value| value.as_f64().map(|number| number.to_string()).unwrap_or_default();
            let total = of("total").map(|total| format!("/{}", number(total))).unwrap_or_default();
            let words = of("message").map(|message| format!(" {}", plain(message))).unwrap_or_default();
            let done = of("progress").map(number).unwrap_or_default();
            said.progress.push(format!("{done}{total}{words}"));
        }
        _ => {}
    }
}

/// Describes a question.
fn asked(key: &str, method: &str, params: &Value) -> String {
    let of = |name: &str| params.get(name).map(Value::to_string).unwrap_or_default();
    match method {
        "elicitation/create" if params.get("url").is_some() => {
            format!("the plugin asks `{key}`: {} at {}", of("message"), of("url"))
        }
        "elicitation/create" => {
            format!("the plugin asks `{key}`: {}, with the form {}", of("message"), of("requestedSchema"))
        }
        "sampling/createMessage" => format!("the plugin asks the model `{key}`: {}", of("messages")),
        "roots/list" => format!("the plugin asks `{key}`: which roots there are"),
        other => format!("the plugin asks `{key}`: {other} {params}"),
    }
}

/// Returns the reply to a question. The error says what was asked, and which answer is missing.
fn reply(key: &str, question: &Value, answer: Option<&Answer>) -> Result<Value, String> {
    let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
    let params = question.get("params").unwrap_or(&Value::Null);
    let fits: BTreeSet<&str> = match method {
        "elicitation/create" => BTreeSet::from(["accepted", "declined", "cancelled"]),
        "sampling/createMessage" => BTreeSet::from(["sampled"]),
        _ => BTreeSet::from(["roots"]),
    };
    let table = |table: &toml::Table| to_json(&toml::Value::Table(table.clone()));
    let (kind, reply) = match answer {
        None => return Err(format!("{}; `given.answers` has no `{key}`", asked(key, method, params))),
        Some(Answer::Declined) => ("declined", json!({ "action": "decline" })),
        Some(Answer::Cancelled) => ("cancelled", json!({ "action": "cancel" })),
        // Accepting to open a page returns no content.
        Some(Answer::Accepted(_)) if params.get("url").is_some() => ("accepted", json!({ "action": "accept" })),
        Some(Answer::Accepted(content)) => ("accepted", json!({ "action": "accept", "content": table(content) })),
        Some(Answer::Sampled(Sampled::Text(text))) => {
            let content = json!({ "type": "text", "text": text });
            ("sampled", json!({ "role": "assistant", "content": content, "model": "test", "stopReason": "endTurn" }))
        }
        Some(Answer::Sampled(Sampled::Result(result))) => ("sampled", table(result)),
        Some(Answer::Roots(roots)) => {
            let uri = |root: &String| if root.starts_with('/') { format!("file://{root}") } else { root.clone() };
            let roots: Vec<Value> = roots.iter().map(|root| json!({ "uri": uri(root) })).collect();
            ("roots", json!({ "roots": roots }))
        }
    };
    if fits.contains(kind) {
        return Ok(reply);
    }
    let fits: Vec<&str> = fits.into_iter().collect();
    Err(format!("{}; `{kind}` does not fit; possible answers: {}", asked(key, method, params), fits.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_get_the_replies_that_a_client_would_give() {
        let form = json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Sure?", "requestedSchema": {} } });
        let page = json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Look", "url": "https://a.example" } });
        let sample = json!({ "method": "sampling/createMessage", "params": { "messages": [1], "maxTokens": 5 } });
        let roots = json!({ "method": "roots/list" });
        let accepted = Answer::Accepted(toml::toml! { yes = true });
        let said = Answer::Sampled(Sampled::Text("hm".into()));
        let open = Answer::Roots(vec!["/w".into(), "file:///v".into()]);
        for (question, answer, expected) in [
            (&form, Some(&accepted), Ok(json!({ "action": "accept", "content": { "yes": true } }))),
            (&page, Some(&accepted), Ok(json!({ "action": "accept" }))),
            (&form, Some(&Answer::Declined), Ok(json!({ "action": "decline" }))),
            (&page, Some(&Answer::Cancelled), Ok(json!({ "action": "cancel" }))),
            (
                &sample,
                Some(&said),
                Ok(
                    json!({ "role": "assistant", "content": { "type": "text", "text": "hm" }, "model": "test", "stopReason": "endTurn" }),
                ),
            ),
            (&roots, Some(&open), Ok(json!({ "roots": [{ "uri": "file:///w" }, { "uri": "file:///v" }] }))),
            (&form, None, Err("the plugin asks `k`: \"Sure?\", with the form {}; `given.answers` has no `k`")),
            (&page, None, Err("\"Look\" at \"https://a.example\"")),
            (&form, Some(&said), Err("`sampled` does not fit; possible answers: accepted, cancelled, declined")),
            (
                &sample,
                Some(&Answer::Declined),
                Err("the plugin asks the model `k`: [1]; `declined` does not fit; possible answers: sampled"),
            ),
            (&roots, Some(&accepted), Err("which roots there are; `accepted` does not fit; possible answers: roots")),
        ] {
            match (reply("k", question, answer), expected) {
                (Ok(reply), Ok(expected)) => assert_eq!(reply, expected),
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
                (got, expected) => panic!("{got:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn only_what_the_plugin_wrote_is_compared() {
        let Value::Object(mut result) = json!({ "_meta": { "io.modelcontextprotocol/serverInfo": {}, "mine": 1 } })
        else {
            panic!()
        };
        strip_server_meta(&mut result);
        assert_eq!(Value::Object(result.clone()), json!({ "_meta": { "mine": 1 } }));
        result.insert("_meta".into(), json!({ "io.modelcontextprotocol/serverInfo": {} }));
        strip_server_meta(&mut result);
        assert_eq!(Value::Object(result), json!({}));
    }
}
