//! The form with which a client asks its user for approval, and the parsing of the answer.

use serde_json::{Value, json};
use wharf_protocol::{Shown, error::clip_to, model::Question};

use super::{Yes, rule::ApprovalRule, target::plain};
use wharf_base::text::escaped;
use wharf_config::config::approvals::Remember;

/// The key of this question in requests of modern clients.
pub const KEY: &str = "wharf.approve";

/// The most characters of the name of a tool.
const MAX_NAME_CHARS: usize = 128;

/// The choices, from the least to the most. A form that is accepted unchanged approves one call, and so does the first choice, which some
/// clients preselect.
const CHOICES: [(&str, Yes); 5] = [
    ("once", Yes::ONCE),
    ("session", Yes { remember: Remember::Session, any: false }),
    ("always", Yes { remember: Remember::Always, any: false }),
    ("session-any", Yes { remember: Remember::Session, any: true }),
    ("always-any", Yes { remember: Remember::Always, any: true }),
];

/// Creates the question. `longest` is the longest duration that may be offered, `narrowest` the rule for further calls of `name`.
pub fn question(message: String, name: &str, longest: Remember, narrowest: &ApprovalRule) -> Question {
    let choices = choices(name, longest, narrowest);
    let choices: Vec<Value> = choices.map(|(value, title)| json!({ "const": value, "title": title })).collect();
    let name = shown(name);
    let (message, properties) = match longest {
        Remember::Never => (message, json!({})),
        // Not all clients show the titles of choices.
        _ => (
            format!("{message}\nif it is remembered: `{name}` with {}", narrowest.text()),
            json!({ "remember": { "type": "string", "title": "Remember", "oneOf": choices } }),
        ),
    };
    let schema = json!({ "type": "object", "properties": properties });
    Question::Form { message: message.into(), schema: Shown::data(schema) }
}

/// Returns the choices of a yes, each with what it means.
pub fn choices(
    name: &str,
    longest: Remember,
    narrowest: &ApprovalRule,
) -> impl Iterator<Item = (&'static str, String)> {
    let name = shown(name);
    let title = move |yes: Yes| {
        let calls = if yes.any { ApprovalRule::Any.text() } else { narrowest.text() };
        match yes.remember {
            Remember::Never => "Only this call".to_owned(),
            Remember::Session => format!("Until the session ends: `{name}` with {calls}"),
            Remember::Always => format!("Until you revoke it by `wharf approvals`: `{name}` with {calls}"),
        }
    };
    let is_narrow = *narrowest != ApprovalRule::Any;
    let meant = offered(longest).filter(move |(_, yes)| !yes.any || is_narrow);
    meant.map(move |(value, yes)| (value, title(yes)))
}

/// Returns the choice that this word stands for.
pub fn chosen(word: &str, longest: Remember) -> Option<Yes> {
    offered(longest).find(|(value, _)| *value == word).map(|(_, yes)| yes)
}

fn shown(name: &str) -> String {
    plain(&escaped(&clip_to(name, MAX_NAME_CHARS)))
}

fn offered(longest: Remember) -> impl Iterator<Item = (&'static str, Yes)> {
    CHOICES.into_iter().filter(move |(_, yes)| yes.remember <= longest)
}

/// Parses the client's answer. Returns what the person said yes to, or `None` for a no. The error says what is wrong with the answer.
pub fn read(reply: &Value, longest: Remember) -> Result<Option<Yes>, String> {
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
    let Some(chosen) = remember else { return Ok(Some(Yes::ONCE)) };
    let chosen = chosen.as_str().and_then(|word| self::chosen(word, longest));
    chosen.map(Some).ok_or_else(|| "`remember` is not one of the choices".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::rule::ApprovalRules;

    fn narrow() -> ApprovalRule {
        ApprovalRules::of(&json!({ "path": "notes/a.txt" }), &["path".into()], &[]).narrowest
    }

    #[test]
    fn only_a_clear_yes_approves() {
        let longest = Remember::Session;
        let session = |any| Yes { remember: longest, any };
        for (reply, expected) in [
            (json!({ "action": "accept" }), Ok(Some(Yes::ONCE))),
            (json!({ "action": "accept", "content": {} }), Ok(Some(Yes::ONCE))),
            (json!({ "action": "accept", "content": { "remember": "once" } }), Ok(Some(Yes::ONCE))),
            (json!({ "action": "accept", "content": { "remember": "session" } }), Ok(Some(session(false)))),
            (json!({ "action": "accept", "content": { "remember": "session-any" } }), Ok(Some(session(true)))),
            (json!({ "action": "accept", "content": { "remember": "always" } }), Err(())),
            (json!({ "action": "accept", "content": { "remember": "always-any" } }), Err(())),
            (json!({ "action": "accept", "content": { "remember": "session any" } }), Err(())),
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
        let narrow = narrow();
        for (longest, rule, expected) in [
            (Remember::Never, &narrow, [].as_slice()),
            (Remember::Session, &ApprovalRule::Any, &["once", "session"]),
            (Remember::Session, &narrow, &["once", "session", "session-any"]),
            (Remember::Always, &narrow, &["once", "session", "always", "session-any", "always-any"]),
        ] {
            let Question::Form { schema, .. } = question("?".into(), "write_file", longest, rule) else {
                panic!("no form")
            };
            let choices = schema.pointer("/properties/remember/oneOf").and_then(Value::as_array);
            let choices: Vec<_> = choices.into_iter().flatten().map(|choice| choice["const"].clone()).collect();
            assert_eq!(choices, expected);
            assert!(schema.get("required").is_none());
        }
    }

    #[test]
    fn a_choice_says_which_calls_it_is_about() {
        let narrow = narrow();
        let Question::Form { schema, .. } = question("?".into(), "write_file", Remember::Session, &narrow) else {
            panic!("no form")
        };
        let titles: Vec<_> =
            (0..3).map(|at| schema.pointer(&format!("/properties/remember/oneOf/{at}/title")).cloned()).collect();
        let expected = [
            "Only this call",
            "Until the session ends: `write_file` with `path` in `notes` (other values may differ)",
            "Until the session ends: `write_file` with any arguments",
        ];
        assert_eq!(titles, expected.map(|title| Some(title.into())));
    }
}
