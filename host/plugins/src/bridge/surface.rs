//! The surface of a plugin: everything that it tells models, and what it wants to be granted. An operator can pin it.

use serde_json::{Value, json};
use wharf_base::text::escaped_json;
use wharf_config::lock::Surface;
use wharf_protocol::unambiguous::Unambiguous;
use wharf_sandbox::{
    Listing,
    model::{ClientCapabilities, TaskSupport, Tool},
    sections::Sections,
};

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
            given([
                ("name", json!(argument.name)),
                ("description", json!(argument.description)),
                ("required", json!(argument.required)),
            ])
        });
        let told = [
            ("description", json!(one.description)),
            ("arguments", arguments.collect()),
            ("more", json!(one.more.as_deref().map(parsed))),
        ];
        put(format!("prompt {}", one.name), &given(told));
    }
    surface
}

/// Returns what is told about a resource or a template.
fn resource(name: &str, description: &Option<String>, mime_type: &Option<String>, more: &Option<String>) -> Value {
    given([
        ("name", json!(name)),
        ("description", json!(description)),
        ("mimeType", json!(mime_type)),
        ("more", json!(more.as_deref().map(parsed))),
    ])
}

/// The capabilities of clients that a tool may need, by their names in the contract.
const CAPABILITIES: [(ClientCapabilities, &str); 5] = [
    (ClientCapabilities::FORM, "form"),
    (ClientCapabilities::URL, "url"),
    (ClientCapabilities::SAMPLING, "sampling"),
    (ClientCapabilities::SAMPLING_TOOLS, "sampling-tools"),
    (ClientCapabilities::ROOTS, "roots"),
];

fn tool(tool: &Tool) -> Value {
    let told = [("description", json!(tool.description)), ("inputSchema", parsed(&tool.input_schema))];
    let details = tool.details.iter().flat_map(|details| {
        let hints = details.hints.as_ref().map(|hints| {
            json!({
                "readOnly": hints.read_only,
                "destructive": hints.destructive,
                "idempotent": hints.idempotent,
                "openWorld": hints.open_world,
            })
        });
        let needs = CAPABILITIES.iter().filter(|(one, _)| details.needs.contains(*one)).map(|(_, name)| *name);
        let needs: Vec<&str> = needs.collect();
        let task = match details.task {
            TaskSupport::Forbidden => None,
            TaskSupport::Optional => Some("optional"),
            TaskSupport::Required => Some("required"),
        };
        [
            ("title", json!(details.title)),
            ("outputSchema", json!(details.output_schema.as_deref().map(parsed))),
            ("hints", json!(hints)),
            ("needs", json!(Some(needs).filter(|needs| !needs.is_empty()))),
            ("task", json!(task)),
            ("more", json!(details.more.as_deref().map(parsed))),
        ]
    });
    given(told.into_iter().chain(details))
}

/// Returns an object with those members that are not null.
fn given<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    members
        .into_iter()
        .filter(|(_, member)| !member.is_null())
        .map(|(name, member)| (name.to_owned(), member))
        .collect()
}

/// Returns a text as JSON if it is JSON whose objects have each name once, and otherwise as a string, so that nothing is left out.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).map_or_else(|_| text.into(), |Unambiguous(value)| value)
}

#[cfg(test)]
mod tests {
    use wharf_sandbox::model::ToolDetails;

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
    fn what_a_tool_needs_is_told_in_the_words_of_the_contract() {
        let all = CAPABILITIES.iter().fold(ClientCapabilities::empty(), |all, (one, _)| all | *one);
        assert_eq!(all, ClientCapabilities::all());
        let mut listing = listing("Asks.");
        listing.tools[0].details = Some(ToolDetails {
            title: None,
            output_schema: None,
            hints: None,
            needs: ClientCapabilities::FORM | ClientCapabilities::ROOTS,
            task: TaskSupport::Optional,
            more: None,
        });
        assert_eq!(
            surface(&listing, &Sections::default()).0.get("tool a").map(String::as_str),
            Some(
                r#"{"description":"Asks.","inputSchema":{"type":"object"},"needs":["form","roots"],"task":"optional"}"#
            )
        );
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
