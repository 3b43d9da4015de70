//! The arguments of a call: the text that the client wrote, and the value that it has.

use std::sync::OnceLock;

use serde_json::Value;
use wharf_protocol::{Object, Written};
use wharf_schema::Schema;

use super::values;

/// Checked arguments. The value is parsed when something needs it: most calls need only the text, which the plugin gets.
#[derive(Debug, Default)]
pub struct CallArguments {
    /// `None` if the value is known from the beginning.
    text: Option<Written>,
    value: OnceLock<Value>,
}

impl CallArguments {
    /// Returns the arguments if their text is certain to fit the schema as it is.
    pub fn fitting(text: &Written, schema: &Schema) -> Option<Self> {
        schema.fits(text.as_str()).then(|| Self { text: Some(text.clone()), value: OnceLock::new() })
    }

    /// Returns the value of the arguments.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let written = self.text.as_ref().map(Written::as_str);
            // The schema was checked by parsing this text, so it is JSON.
            values::arguments(written).unwrap_or_else(|_| Value::Object(Object::new()))
        })
    }

    /// Returns the value of the arguments.
    pub fn into_value(self) -> Value {
        self.value();
        self.value.into_inner().unwrap_or_default()
    }
}

impl From<Value> for CallArguments {
    fn from(value: Value) -> Self {
        Self { text: None, value: value.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_schema::Plan;

    use super::*;

    #[test]
    fn the_value_is_what_was_written() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        let schema = Plan::of(schema, true).unwrap().compile().unwrap();
        let fitting = |text: &str| CallArguments::fitting(&Written::from(text.to_owned()), &schema);
        assert_eq!(fitting(r#"{"a":"b"}"#).unwrap().value(), &json!({ "a": "b" }));
        assert!(fitting(r#"{"a":1}"#).is_none() && fitting(r#"{"b":1}"#).is_none());
        assert_eq!(CallArguments::from(json!({ "a": 1 })).value(), &json!({ "a": 1 }));
        assert_eq!(CallArguments::default().value(), &json!({}));
    }
}
