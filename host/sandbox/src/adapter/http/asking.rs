//! The questions of a server that returns them as its result (MRTR), and the answers to them.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    reader::{not_parsed, wrong},
    request::{Outgoing, Param},
};
use crate::{
    bindings::model::{Answer, Context, Form, Question, Round, Url},
    contract::{
        json::{Parsed, Room},
        operation::{CallError, MAX_QUESTIONS},
    },
};

/// What is carried from one round to the next: MCP sends only the answers to the latest questions, so their keys are carried too.
#[derive(Deserialize)]
struct Carried {
    keys: Vec<String>,
    state: Option<String>,
}

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The parameters of `elicitation/create`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicited<'a> {
    mode: Option<String>,
    message: String,
    #[serde(borrow)]
    requested_schema: Option<&'a RawValue>,
    url: Option<String>,
}

impl<'a> Parsed<'a> for Asked<'a> {
    const LEVELS: usize = 1;
}

impl<'a> Parsed<'a> for Elicited<'a> {
    const LEVELS: usize = 1;
}

impl<'a> Parsed<'a> for Requests<'a> {
    const LEVELS: usize = 1;
}

/// The questions of a result by their keys, as they are written. Nothing is made of a question before it is known that there are not too
/// many.
struct Requests<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Requests<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with questions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all: Self::Value = Vec::new();
                while let Some((key, request)) = map.next_entry::<String, &RawValue>()? {
                    let full = all.len() == MAX_QUESTIONS;
                    match all.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, last)) => *last = request,
                        None if full => return Err(A::Error::custom(format!("there are more than {MAX_QUESTIONS}"))),
                        None => all.push((key, request)),
                    }
                }
                Ok(all)
            }
        }

        deserializer.deserialize_map(Reader).map(Self)
    }
}

/// Converts the questions in a result. `state`: what the server wants back with the answers.
pub(super) fn round(room: &Room, requests: &RawValue, state: Option<String>) -> Result<Round, CallError> {
    let malformed = |error| not_parsed(error, |why| wrong(format_args!("its questions are malformed: {why}")));
    let Requests(requests) = room.parse(requests.get()).map_err(malformed)?;
    let mut questions = Vec::with_capacity(requests.len());
    for (key, request) in &requests {
        let asked: Asked<'_> = room.parse(request.get()).map_err(malformed)?;
        questions.push((key.clone(), question(room, &asked)?));
    }
    let keys: Vec<&String> = requests.iter().map(|(key, _)| key).collect();
    let carried = json!({ "keys": keys, "state": state }).to_string();
    Ok(Round { questions, state: Some(carried.into_bytes()) })
}

fn question(room: &Room, asked: &Asked<'_>) -> Result<Question, CallError> {
    let params = asked.params.map_or("{}", RawValue::get);
    Ok(match &*asked.method {
        "elicitation/create" => {
            let malformed = |why| wrong(format_args!("its question is malformed: {why}"));
            let Elicited { mode, message, requested_schema, url } =
                room.parse(params).map_err(|error| not_parsed(error, malformed))?;
            match (mode.as_deref(), requested_schema, url) {
                (None | Some("form"), Some(schema), _) => {
                    Question::Form(Form { message, schema: schema.get().to_owned() })
                }
                (Some("url"), _, Some(url)) => Question::Url(Url { message, url }),
                _ => return Err(wrong("its question is neither a form with a schema nor a URL")),
            }
        }
        "sampling/createMessage" => Question::Sampling(params.to_owned()),
        "roots/list" => Question::Roots,
        other => {
            let name: String = other.chars().take(100).collect();
            return Err(wrong(format!("it asks its client for `{name}`, which is not a question of MCP")));
        }
    })
}

/// Adds the answers to the questions of the last round, and the state that belongs to them.
pub(super) fn answered<'a>(outgoing: Outgoing<'a>, context: &Context) -> Outgoing<'a> {
    // Past the door: wharf has written this, and the client's message that brings it is charged.
    let carried: Option<Carried> = context.state.as_deref().and_then(|state| serde_json::from_slice(state).ok());
    let is_new = |key: &String| carried.as_ref().is_none_or(|carried| carried.keys.contains(key));
    let answers = context.answers.iter().filter(|(key, _)| is_new(key));
    let answers: Map<String, Value> = answers.map(|(key, answer)| (key.clone(), written(answer))).collect();
    let mut outgoing = outgoing;
    if !answers.is_empty() {
        outgoing = outgoing.param("inputResponses", Param::Json(answers.into()));
    }
    match carried.and_then(|carried| carried.state) {
        Some(state) => outgoing.param("requestState", Param::Json(state.into())),
        None => outgoing,
    }
}

/// Returns an answer as MCP writes it.
fn written(answer: &Answer) -> Value {
    // Past the door: both texts are JSON that was checked when it arrived in a client's message, which is charged.
    let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    match answer {
        Answer::Accepted(content) => json!({ "action": "accept", "content": parsed(content) }),
        Answer::Declined => json!({ "action": "decline" }),
        Answer::Cancelled => json!({ "action": "cancel" }),
        Answer::Sampled(result) => parsed(result),
        Answer::Roots(roots) => {
            let root = |root: &crate::bindings::model::Root| match &root.name {
                Some(name) => json!({ "uri": root.uri, "name": name }),
                None => json!({ "uri": root.uri }),
            };
            json!({ "roots": roots.iter().map(root).collect::<Vec<_>>() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::model::{ClientCapabilities, Reports};
    use wharf_base::accounts::Account;

    fn context(state: Option<Vec<u8>>, answers: &[&str]) -> Context {
        Context {
            answers: answers
                .iter()
                .map(|key| ((*key).to_owned(), Answer::Accepted(r#"{"sure":true}"#.into())))
                .collect(),
            state,
            revision: String::new(),
            client: None,
            caller: None,
            capabilities: ClientCapabilities::empty(),
            reports: Reports::empty(),
            more: String::new(),
        }
    }

    fn asked(requests: &Value, state: Option<&str>) -> Result<Round, CallError> {
        let room = Room::of(&Account::new(1 << 20));
        round(&room, &serde_json::value::to_raw_value(requests).unwrap(), state.map(str::to_owned))
    }

    #[test]
    fn only_the_latest_answers_are_sent_with_the_state() {
        let form = json!({ "method": "elicitation/create", "params": { "message": "Sure?", "requestedSchema": { "type": "object" } } });
        let round = asked(&json!({ "b": form }), Some("s")).unwrap();
        assert!(matches!(&round.questions[..], [(key, Question::Form(form))] if key == "b" && form.message == "Sure?"));
        let sent = answered(Outgoing::new("tools/call"), &context(round.state, &["a", "b"])).message(None, false);
        let params = &serde_json::from_str::<Value>(&sent).unwrap()["params"];
        let expected = json!({ "b": { "action": "accept", "content": { "sure": true } } });
        assert_eq!(params, &json!({ "inputResponses": expected, "requestState": "s" }));
        let first = answered(Outgoing::new("tools/call"), &context(None, &[])).message(None, false);
        assert_eq!(first, r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#);
    }

    #[test]
    fn questions_are_counted_before_they_are_read() {
        let room = Room::of(&Account::new(1 << 20));
        let round = |text: String| round(&room, &RawValue::from_string(text).unwrap(), None);
        let many =
            |count: usize| (0..count).map(|at| format!("\"{at}\":{{\"method\":\"roots\\/list\"}}")).collect::<Vec<_>>();
        let questions = round(format!("{{{}}}", many(16).join(","))).unwrap().questions;
        assert!(questions.iter().enumerate().all(|(at, (key, _))| *key == at.to_string()), "in their order");
        let error = round(format!("{{{}}}", many(17).join(","))).unwrap_err().to_string();
        assert!(error.contains("more than 16"), "{error}");
        let twice = round(r#"{"a":7,"b":{"method":"roots/list"},"a":{"method":"roots/list"}}"#.into()).unwrap();
        assert_eq!(twice.questions.len(), 2, "the last of a name counts");
    }

    #[test]
    fn questions_that_mcp_does_not_have_are_errors() {
        for (request, expected) in [
            (json!({ "method": "files/delete" }), "`files/delete`"),
            (json!({ "method": "elicitation/create", "params": { "message": "a" } }), "neither a form"),
            (json!({ "method": "elicitation/create", "params": { "mode": "url" } }), "malformed"),
            (json!(7), "malformed"),
        ] {
            let error = asked(&json!({ "a": request }), None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
