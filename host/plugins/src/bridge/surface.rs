//! The surface of a plugin: everything that it tells models, and what it wants to be granted. An operator can pin it.

use serde::Deserialize;
use serde_json::{Value, json};
use wharf_base::{
    ledger::{Account, Charged, Full},
    text::escaped_json,
};
use wharf_config::lock::Surface;
use wharf_protocol::unambiguous::Unambiguous;
use wharf_sandbox::{
    Listing,
    json::{NotParsed, Parsed, Room},
    model::{ClientCapabilities, TaskSupport, Tool},
    sections::Sections,
};

/// JSON whose objects have each name once.
#[derive(Deserialize)]
struct Once(Unambiguous);

impl Parsed<'_> for Once {
    const LEVELS: usize = usize::MAX;
}

/// Returns the surface of a plugin with these lists and sections, which is charged to the account. It does not depend on the config.
pub fn surface(listing: &Listing, sections: &Sections, account: &Account) -> Result<Charged<Surface>, Full> {
    let (mut surface, mut charge) = (Surface::default(), account.open());
    let mut put = |key: String, told: &dyn Fn(&Room) -> Result<Value, Full>| {
        // What is parsed of one entry is gone before the next one.
        let room = Room::of(account);
        let text = escaped_json(&told(&room)?.to_string());
        charge.grow(key.len() + text.len())?;
        surface.0.insert(key, text);
        Ok(())
    };
    let instructions = if sections.instructions.is_some() { &sections.instructions } else { &listing.instructions };
    for (name, section) in [("instructions", instructions), ("wants", &sections.wants)] {
        if let Some(text) = section {
            put(name.to_owned(), &|room| parsed(text, room))?;
        }
    }
    for one in &listing.tools {
        put(format!("tool {}", one.name), &|room| tool(one, room))?;
    }
    for one in &listing.resources {
        let told = |room: &Room| resource((&one.name, &one.description, &one.mime_type), &one.more, room);
        put(format!("resource {}", one.uri), &told)?;
    }
    for one in &listing.templates {
        let told = |room: &Room| resource((&one.name, &one.description, &one.mime_type), &one.more, room);
        put(format!("template {}", one.uri_template), &told)?;
    }
    for one in &listing.prompts {
        let told = |room: &Room| {
            let arguments = one.arguments.iter().map(|argument| {
                given([
                    ("name", json!(argument.name)),
                    ("description", json!(argument.description)),
                    ("required", json!(argument.required)),
                ])
            });
            Ok(given([
                ("description", json!(one.description)),
                ("arguments", arguments.collect()),
                ("more", maybe(&one.more, room)?),
            ]))
        };
        put(format!("prompt {}", one.name), &told)?;
    }
    Ok(Charged::new(surface, charge))
}

/// Returns what is told about a resource or a template.
fn resource(
    (name, description, mime_type): (&str, &Option<String>, &Option<String>),
    more: &Option<String>,
    room: &Room,
) -> Result<Value, Full> {
    Ok(given([
        ("name", json!(name)),
        ("description", json!(description)),
        ("mimeType", json!(mime_type)),
        ("more", maybe(more, room)?),
    ]))
}

/// The capabilities of clients that a tool may need, by their names in the contract.
const CAPABILITIES: [(ClientCapabilities, &str); 5] = [
    (ClientCapabilities::FORM, "form"),
    (ClientCapabilities::URL, "url"),
    (ClientCapabilities::SAMPLING, "sampling"),
    (ClientCapabilities::SAMPLING_TOOLS, "sampling-tools"),
    (ClientCapabilities::ROOTS, "roots"),
];

fn tool(tool: &Tool, room: &Room) -> Result<Value, Full> {
    let told = [("description", json!(tool.description)), ("inputSchema", parsed(&tool.input_schema, room)?)];
    let Some(details) = &tool.details else { return Ok(given(told)) };
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
    let details = [
        ("title", json!(details.title)),
        ("outputSchema", maybe(&details.output_schema, room)?),
        ("hints", json!(hints)),
        ("needs", json!(Some(needs).filter(|needs| !needs.is_empty()))),
        ("task", json!(task)),
        ("more", maybe(&details.more, room)?),
    ];
    Ok(given(told.into_iter().chain(details)))
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
fn parsed(text: &str, room: &Room) -> Result<Value, Full> {
    match room.parse(text) {
        Ok(Once(Unambiguous(value))) => Ok(value),
        Err(NotParsed::Malformed(_)) => Ok(text.into()),
        Err(NotParsed::Full(full)) => Err(full),
    }
}

fn maybe(text: &Option<String>, room: &Room) -> Result<Value, Full> {
    text.as_deref().map_or(Ok(Value::Null), |text| parsed(text, room))
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
            surfaced(&listing, &Sections::default()).0.get("tool a").map(String::as_str),
            Some(
                r#"{"description":"Asks.","inputSchema":{"type":"object"},"needs":["form","roots"],"task":"optional"}"#
            )
        );
    }

    fn surfaced(listing: &Listing, sections: &Sections) -> Surface {
        surface(listing, sections, &Account::new(1 << 20)).unwrap().into_parts().0
    }

    #[test]
    fn what_is_parsed_of_a_list_is_charged() {
        let tree = format!("[{}0]", "0,".repeat(4000));
        let mut wide = listing("a");
        wide.tools[0].input_schema = tree.clone();
        let tool = |number: u32| Tool { name: number.to_string(), ..wide.tools[0].clone() };
        let many = Listing { tools: (0..20).map(tool).collect(), ..Listing::default() };
        for (limit, fits) in [(100_000, false), (500_000, true)] {
            let account = Account::new(limit);
            // However many there are, one after the other is parsed.
            for listing in [&wide, &many] {
                let surface = surface(listing, &Sections::default(), &account);
                assert_eq!(surface.is_ok(), fits);
                let held = surface.as_ref().map_or(0, |surface| surface.0.values().map(String::len).sum());
                assert!(account.used() >= held && account.used() < held + 1000, "{} bytes", account.used());
            }
            assert_eq!(account.used(), 0);
            let sections = Sections { wants: Some(tree.clone()), ..Sections::default() };
            assert_eq!(surface(&Listing::default(), &sections, &account).is_ok(), fits);
        }
    }

    #[test]
    fn each_word_counts() {
        let of = |description: &str, sections: &Sections| surfaced(&listing(description), sections);
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
