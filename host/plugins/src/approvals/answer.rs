//! The form with which a client asks its user for approval, and the parsing of the answer.

use serde_json::{Value, json};
use wharf_protocol::{Shown, model::Question};

use wharf_config::config::approvals::Remember;

/// The key of this question in requests of modern clients.
pub const KEY: &str = "wharf.approve";

const ONCE: &str = "once";
const SESSION: &str = "session";
const ALWAYS: &str = "always";

/// Creates the question. `longest` is the longest duration that may be offered. A form that is accepted unchanged approves one call, and so
/// does the first choice, which some clients preselect.
pub fn question(message: String, longest: Remember) -> Question {
    let mut properties = json!({});
    let mut choices = vec![(ONCE, "Only this call")];
    if longest >= Remember::Session {
        choices.push((SESSION, "All calls of this kind, until the session ends"));
    }
    if longest >= Remember::Always {
        choices.push((ALWAYS, "All calls of this kind, until you revoke it"));
    }
    if longest > Remember::Never {
        let choices: Vec<Value> =
            choices.into_iter().map(|(value, title)| json!({ "const": value, "title": title })).collect();
        properties = json!({ "remember": { "type": "string", "title": "Remember", "oneOf": choices } });
    }
    let schema = json!({ "type": "object", "properties": properties });
    Question::Form { message: message.into(), schema: Shown::data(schema) }
}

/// Parses the client's answer. Returns how long the approval is valid, or `None` for a no. The error says what is wrong with the answer.
pub fn read(reply: &Value, longest: Remember) -> Result<Option<Remember>, String> {
    match reply.get("action").and_then(Value::as_str) {
        Some("accept") => {}
        Some("decline" | "cancel") => return Ok(None),
        _ => return Err("`action` must be accept, decline or cancel".into()),
    }
    let remember = match reply.get("content") {
        None | Some(Value::Null) => None,
        Some(Value::Object(fields)) => fields.get("remember").filter(|value| !value.is_null()),
        Some(_) => return Err("`content` must be an object".into()),
    };
    let chosen = match remember.map(Value::as_str) {
        None | Some(Some(ONCE)) => Remember::Never,
        Some(Some(SESSION)) => Remember::Session,
        Some(Some(ALWAYS)) => Remember::Always,
        Some(_) => return Err("`remember` is not one of the choices".into()),
    };
    if chosen > longest { Err("`remember` is not one of the choices".into()) } else { Ok(Some(chosen)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_approves() {
        let longest = Remember::Session;
        for (reply, expected) in [
            (json!({ "action": "accept" }), Ok(Some(Remember::Never))),
            (json!({ "action": "accept", "content": {} }), Ok(Some(Remember::Never))),
            (json!({ "action": "accept", "content": { "remember": "once" } }), Ok(Some(Remember::Never))),
            (json!({ "action": "accept", "content": { "remember": "session" } }), Ok(Some(Remember::Session))),
            (json!({ "action": "accept", "content": { "remember": "always" } }), Err(())),
            (json!({ "action": "accept", "content": { "remember": 1 } }), Err(())),
            (json!({ "action": "accept", "content": [] }), Err(())),
            (json!({ "action": "decline" }), Ok(None)),
            (json!({ "action": "cancel", "content": { "remember": "session" } }), Ok(None)),
            (json!({ "action": "Accept" }), Err(())),
            (json!({ "action": true }), Err(())),
            (json!("accept"), Err(())),
            (json!({}), Err(())),
        ] {
            assert_eq!(read(&reply, longest).map_err(|_| ()), expected, "{reply}");
        }
    }

    #[test]
    fn what_is_not_offered_is_not_in_the_form() {
        for (longest, expected) in [(Remember::Never, 0), (Remember::Session, 2), (Remember::Always, 3)] {
            let Question::Form { schema, .. } = question("?".into(), longest) else { panic!("no form") };
            let choices = schema.pointer("/properties/remember/oneOf").and_then(Value::as_array);
            assert_eq!(choices.map_or(0, Vec::len), expected);
            assert!(schema.get("required").is_none());
        }
    }
}
