//! Writes questions to the client in the form that each revision defines.

use serde_json::{Value, json};

use crate::{encode::Encoder, model::Question, object::Object, revision::Revision};

impl Encoder {
    /// Returns the name of the part of a question that this revision does not support; `None` if the question can be asked.
    pub fn cannot_ask(&self, question: &Question) -> Option<&'static str> {
        let Question::Form { schema, .. } = question else { return None };
        let fields = schema.get("properties").and_then(Value::as_object);
        let several = fields.into_iter().flatten().any(|(_, field)| field.get("type") == Some(&json!("array")));
        (several && !self.since(Revision::V2025_11_25)).then_some("a choice of several")
    }

    /// Returns the method and the parameters of the request that asks the question in this revision.
    pub fn question(&self, question: &Question) -> (&'static str, Option<Value>) {
        match question {
            Question::Form { message, schema } => {
                let mut params = Object::new();
                if self.since(Revision::V2025_11_25) {
                    params.insert("mode".into(), "form".into());
                }
                params.insert("message".into(), message.as_str().into());
                let schema = if self.since(Revision::V2025_11_25) { Value::clone(schema) } else { early_form(schema) };
                params.insert("requestedSchema".into(), schema);
                ("elicitation/create", Some(Value::Object(params)))
            }
            Question::Page { message, url } => {
                ("elicitation/create", Some(json!({ "mode": "url", "message": message, "url": url })))
            }
            Question::Sample(params) => {
                let mut params = Object::clone(params);
                if !self.since(Revision::V2025_11_25)
                    && let Some(Value::Array(messages)) = params.get_mut("messages")
                {
                    *messages = messages.drain(..).flat_map(one_block_each).collect();
                }
                ("sampling/createMessage", Some(Value::Object(params)))
            }
            Question::Roots => ("roots/list", self.modern().then(|| json!({}))),
        }
    }
}

/// Converts a form for 2025-06-18: only booleans have defaults, and the titles of choices are in `enumNames`.
fn early_form(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, field) in fields.into_iter().flatten() {
        let Some(field) = field.as_object_mut() else { continue };
        if field.get("type") != Some(&json!("boolean")) {
            field.remove("default");
        }
        if let Some(Value::Array(choices)) = field.remove("oneOf") {
            let part = |key: &str| -> Vec<Value> { choices.iter().filter_map(|one| one.get(key).cloned()).collect() };
            field.insert("enum".into(), part("const").into());
            field.insert("enumNames".into(), part("title").into());
        }
    }
    schema
}

/// Splits a message into messages of one block each. Before 2025-11-25 a message for sampling cannot have several.
fn one_block_each(message: Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::Array(blocks)) => {
            let role = message.get("role").cloned().unwrap_or_default();
            blocks.iter().map(|block| json!({ "role": role, "content": block })).collect()
        }
        _ => vec![message],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::ServerInfo, shown::Shown};

    fn encoder(revision: Revision) -> Encoder {
        let server = ServerInfo { name: "s".into(), version: "1".into(), ..ServerInfo::default() };
        Encoder::new(revision, server)
    }

    #[test]
    fn forms_fit_their_revision() {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string", "default": "x" },
            "sure": { "type": "boolean", "default": true },
            "kind": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }] },
        } });
        let form = Question::Form { message: "?".into(), schema: Shown::schema(schema.clone()).unwrap() };
        let (_, params) = encoder(Revision::V2025_06_18).question(&form);
        assert_eq!(
            params.unwrap()["requestedSchema"]["properties"],
            json!({
                "name": { "type": "string" },
                "sure": { "type": "boolean", "default": true },
                "kind": { "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"] },
            })
        );
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            assert_eq!(encoder(revision).question(&form).1.unwrap()["requestedSchema"], schema);
        }
        let several = json!({ "properties": { "kinds": { "type": "array", "items": { "enum": ["a"] } } } });
        let several = Question::Form { message: "?".into(), schema: Shown::schema(several).unwrap() };
        assert!(encoder(Revision::V2025_06_18).cannot_ask(&several).is_some());
        assert!(encoder(Revision::V2025_11_25).cannot_ask(&several).is_none());
    }

    #[test]
    fn early_messages_have_one_block() {
        let blocks = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let params = json!({ "messages": [{ "role": "user", "content": blocks }], "maxTokens": 1 });
        let question = Question::Sample(Shown::sampling(params.as_object().unwrap().clone()).unwrap());
        let messages = |revision| encoder(revision).question(&question).1.unwrap()["messages"].clone();
        assert_eq!(messages(Revision::V2025_11_25), params["messages"]);
        let split = messages(Revision::V2025_06_18);
        assert_eq!(split[1], json!({ "role": "user", "content": { "type": "text", "text": "b" } }));
    }
}
