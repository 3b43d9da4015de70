//! The surface of a plugin: everything that it tells models, and what it wants to be granted. An operator can pin it.

use super::unambiguous::Unambiguous;
use serde_json::{Value, json};
use wharf_base::text::escaped_json;
use wharf_config::lock::Surface;
use wharf_sandbox::{Listing, model::Tool, sections::Sections};

/// Returns the surface of a plugin with these lists and sections. It does not depend on the config.
pub fn surface(listing: &Listing, sections: &Sections) -> Surface {
    let mut surface = Surface::default();
    let mut put = |key: String, value: &Value| {
        surface.0.insert(key, escaped_json(&value.to_string()));
    };
    let instructions = if sections.instructions.is_some() { &sections.instructions } else { &listing.instructions };
    for (name, section) in [("instructions", instructions), ("wants", &sections.wants)] {
        if let Some(text) = section {
            put(name.to_owned(), &parsed(text));
        }
    }
    for one in &listing.tools {
        put(format!("tool {}", one.name), &tool(one));
    }
    for one in &listing.resources {
        put(format!("resource {}", one.uri), &resource(&one.name, &one.description, &one.mime_type, &one.more));
    }
    for one in &listing.templates {
        put(
            format!("template {}", one.uri_template),
            &resource(&one.name, &one.description, &one.mime_type, &one.more),
        );
    }
    for one in &listing.prompts {
        let arguments = one.arguments.iter().map(|argument| {
            json!({ "name": argument.name, "description": argument.description, "required": argument.required })
        });
        put(
            format!("prompt {}", one.name),
            &json!({
                "description": one.description,
                "arguments": arguments.collect::<Vec<_>>(),
                "more": one.more.as_deref().map(parsed),
            }),
        );
    }
    surface
}

/// Returns what is told about a resource or a template.
fn resource(name: &str, description: &Option<String>, mime_type: &Option<String>, more: &Option<String>) -> Value {
    json!({
        "name": name,
        "description": description,
        "mimeType": mime_type,
        "more": more.as_deref().map(parsed),
    })
}

fn tool(tool: &Tool) -> Value {
    let mut value = json!({ "description": tool.description, "inputSchema": parsed(&tool.input_schema) });
    if let (Some(details), Some(members)) = (&tool.details, value.as_object_mut()) {
        let hints = details.hints.as_ref().map(|hints| {
            json!({
                "readOnly": hints.read_only,
                "destructive": hints.destructive,
                "idempotent": hints.idempotent,
                "openWorld": hints.open_world,
            })
        });
        for (name, member) in [
            ("title", json!(details.title)),
            ("outputSchema", json!(details.output_schema.as_deref().map(parsed))),
            ("hints", json!(hints)),
            ("needs", json!(format!("{:?}", details.needs))),
            ("task", json!(format!("{:?}", details.task))),
            ("more", json!(details.more.as_deref().map(parsed))),
        ] {
            members.insert(name.to_owned(), member);
        }
    }
    value
}

/// Returns a text as JSON if it is JSON whose objects have each name once, and otherwise as a string, so that nothing is left out.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).map_or_else(|_| text.into(), |Unambiguous(value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(description: &str) -> Listing {
        let tool = Tool {
            name: "a".into(),
            description: description.into(),
            input_schema: r#"{ "type": "object" }"#.into(),
            details: None,
        };
        Listing { tools: vec![tool], ..Listing::default() }
    }

    #[test]
    fn each_word_counts() {
        let of = |description: &str, sections: &Sections| surface(&listing(description), sections);
        let before = of("Reads a file.", &Sections::default());
        assert_eq!(
            before.0.get("tool a").map(String::as_str),
            Some(r#"{"description":"Reads a file.","inputSchema":{"type":"object"}}"#)
        );
        let hidden = of("Reads a file.\u{200b}", &Sections::default());
        assert!(hidden.0.get("tool a").is_some_and(|text| text.contains(r"file.\u200b")), "{hidden:?}");
        assert_ne!(before, hidden);
        let wants = Sections { wants: Some(r#"{"grants": []}"#.into()), ..Sections::default() };
        assert_ne!(before, of("Reads a file.", &wants));
        assert_eq!(before, of("Reads a file.", &Sections::default()));
    }
}
