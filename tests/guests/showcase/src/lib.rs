//! A test guest that uses every valid feature of the contract: every kind of content, structured results, questions in several rounds,
//! resources, templates, prompts and completions. Invalid behaviour is in the hostile guests.

use wharf_sdk::{
    Body, Completion, Completions, Failure, FormAnswer, Level, Question, ResourceContents, Role, Target, ToolResult,
    prelude::*, prompts, resources, serde_json::Value, url,
};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Count {
    n: u32,
}

#[derive(Serialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Sum {
    sum: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Sure {
    /// Whether to go on.
    really: bool,
    /// Why, if you like to say.
    reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Name {
    #[schemars(length(min = 2))]
    name: String,
}

struct Showcase;

wharf_sdk::instructions!("Begin with every_kind; it shows what there is.");

#[tools]
impl Showcase {
    /// Answers with one block of each kind.
    #[tool(title = "Every kind", read_only)]
    fn every_kind() -> Vec<Content> {
        vec![
            Content::Text("text".into()),
            wharf_sdk::image("image/png", vec![137, 80, 78, 71]),
            wharf_sdk::audio("audio/wav", vec![1, 2, 3]),
            wharf_sdk::link("show:///fixed", "fixed"),
            wharf_sdk::resource_text("show:///fixed", "text/plain", "embedded"),
            Content::Raw(r#"{"type":"text","text":"raw","annotations":{"audience":["user"],"priority":0.5}}"#.into()),
        ]
    }

    /// Adds up to n.
    fn sum(args: Count) -> Json<Sum> {
        Json(Sum { sum: (1..=args.n).sum() })
    }

    /// Refuses the request itself.
    fn refuse() -> Result<Json<Sum>> {
        Err(Error::invalid_params("not today"))
    }

    /// Fails in words.
    fn fail() -> Result<String> {
        Err(Error::failed("it is Sunday"))
    }

    /// Reports progress and logs.
    fn progress(call: &Call, args: Count) -> String {
        for done in 1..=args.n {
            call.progress(f64::from(done), Some(f64::from(args.n)), Some("counting"));
            call.log(Level::Info, &format!("step {done}"));
        }
        "counted".into()
    }

    /// Asks once, then does it.
    #[tool(destructive)]
    fn purge(call: &Call) -> Result<String> {
        call.progress(1.0, Some(3.0), Some("begun"));
        call.progress(2.0, Some(3.0), Some("found them"));
        match call.ask("sure", form::<Sure>("Delete 14 notes?"))? {
            FormAnswer::Accepted(Sure { really: true, reason }) => {
                Ok(format!("deleted: {}", reason.unwrap_or_default()))
            }
            FormAnswer::Accepted(_) => Ok("kept".into()),
            FormAnswer::Declined => Ok("declined".into()),
            FormAnswer::Cancelled => Ok("cancelled".into()),
        }
    }

    /// Asks twice, one after the other, and keeps a count in between.
    fn introduce(call: &Call) -> Result<String> {
        let rounds: u32 = call.kept()?.unwrap_or(0);
        call.keep(&(rounds + 1))?;
        let FormAnswer::Accepted(first) = call.ask("first", form::<Name>("Your first name?"))? else {
            return Ok("nobody".into());
        };
        let FormAnswer::Accepted(last) = call.ask("last", form::<Name>("Your last name?"))? else {
            return Ok(first.name);
        };
        Ok(format!("{} {} after {rounds} rounds", first.name, last.name))
    }

    /// Asks two things at once.
    fn both(call: &Call) -> Result<String> {
        let form = |message: &str| {
            Question::Form(wharf_sdk::Form {
                message: message.to_owned(),
                schema: r#"{"type":"object","properties":{"v":{"type":"string"}},"required":["v"]}"#.into(),
            })
        };
        let answers = call.ask_all(vec![("a".into(), form("A?")), ("b".into(), form("B?"))])?;
        Ok(format!("{} answers", answers.len()))
    }

    /// Sends the person to a page.
    fn sign_in(call: &Call) -> Result<String> {
        let went = call.ask_url("page", url("Sign in", "https://example.com/sign-in"))?;
        Ok(if went { "signed in" } else { "not signed in" }.into())
    }

    /// Has the client's model write something.
    fn write_poem(call: &Call) -> Result<String> {
        let params = r#"{"messages":[{"role":"user","content":{"type":"text","text":"A poem."}}],"maxTokens":50,"includeContext":"allServers"}"#;
        let reply = call.sample("poem", wharf_sdk::serde_json::from_str(params)?)?;
        Ok(reply.pointer("/content/text").and_then(|text| text.as_str()).unwrap_or("no text").to_owned())
    }

    /// Tells what the client calls its roots.
    fn client_roots(call: &Call) -> Result<String> {
        Ok(call.roots()?.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
    }

    /// Tells what it knows of the call.
    fn about(call: &Call) -> String {
        let context = call.context();
        let more: Value = wharf_sdk::serde_json::from_str(&context.more).unwrap_or_default();
        let client =
            context.client.as_ref().map(|client| [Some(&client.name), Some(&client.version), client.title.as_ref()]);
        wharf_sdk::serde_json::json!({
            "revision": context.revision,
            "client": client,
            "caller": call.caller(),
            "can": format!("{:?} {:?}", context.capabilities, context.reports),
            "meta": more.get("meta"),
            "capabilities": more.get("capabilities"),
        })
        .to_string()
    }

    /// Announces a change of every list, and of a resource, its own and another's.
    fn announce() -> String {
        for kind in [wharf_sdk::Kind::Tools, wharf_sdk::Kind::Resources, wharf_sdk::Kind::Prompts] {
            host::list_changed(kind);
        }
        host::resource_updated("show:///fixed");
        host::resource_updated("other:///thing");
        "announced".into()
    }

    /// Answers content of its own with a structured result.
    fn own_words(args: Count) -> Result<ToolResult> {
        wharf_sdk::structured(vec![Content::Text(format!("{} of them", args.n))], &Sum { sum: args.n })
    }
}

#[resources]
impl Showcase {
    /// Always the same.
    #[resource(uri = "show:///fixed", name = "fixed", mime_type = "text/plain")]
    fn fixed() -> String {
        "fixed text".into()
    }

    /// Bytes.
    #[resource(uri = "show:///bytes", mime_type = "application/octet-stream")]
    fn bytes() -> Vec<ResourceContents> {
        vec![ResourceContents {
            uri: "show:///bytes".into(),
            mime_type: Some("application/octet-stream".into()),
            body: Body::Bytes(vec![0, 255]),
            more: Some(r#"{"_meta":{"com.example/a":1}}"#.into()),
        }]
    }

    /// An item by its id.
    #[resource(template = "show:///items/{id}", mime_type = "text/plain")]
    fn item(id: String) -> Result<String> {
        if id == "none" { Err(Error::resource_not_found("show:///items/none")) } else { Ok(format!("item {id}")) }
    }

    /// Asks before it shows anything.
    #[resource(uri = "show:///secret", mime_type = "text/plain")]
    fn secret(call: &Call) -> Result<String> {
        match call.ask("sure", form::<Sure>("Show it?"))? {
            FormAnswer::Accepted(Sure { really: true, .. }) => Ok("the secret".into()),
            _ => Err(Error::failed("not shown")),
        }
    }
}

#[prompts]
impl Showcase {
    /// Reviews code.
    fn review(
        /// The code.
        code: String,
        /// Its language.
        language: Option<String>,
    ) -> String {
        format!("Review this {}: {code}", language.unwrap_or_else(|| "code".into()))
    }

    /// A conversation with a picture.
    fn conversation() -> Vec<(Role, Content)> {
        vec![
            (Role::User, Content::Text("What is this?".into())),
            (Role::Assistant, wharf_sdk::image("image/png", vec![1])),
            (Role::User, wharf_sdk::resource_text("show:///fixed", "text/plain", "look here")),
            (Role::User, wharf_sdk::audio("audio/wav", vec![1])),
            (Role::User, wharf_sdk::link("show:///fixed", "fixed")),
        ]
    }

    /// Asks for a topic first.
    fn essay(call: &Call) -> Result<String> {
        match call.ask("name", form::<Name>("About what?"))? {
            FormAnswer::Accepted(Name { name }) => Ok(format!("Write about {name}.")),
            _ => Err(Error::failed("no topic")),
        }
    }
}

impl Completions for Showcase {
    fn complete(
        target: Target,
        argument: String,
        value: String,
        arguments: Vec<(String, String)>,
    ) -> std::result::Result<Completion, Failure> {
        let values: Vec<String> = match (&target, argument.as_str()) {
            (Target::Prompt(name), "language") if name == "review" => {
                let other = arguments.iter().map(|(key, value)| format!("{key}={value}"));
                ["python", "perl", "rust"]
                    .into_iter()
                    .map(str::to_owned)
                    .filter(|one| one.starts_with(&value))
                    .chain(other)
                    .collect()
            }
            (Target::Template(template), "id") if template == "show:///items/{id}" => {
                (0..150).map(|n| n.to_string()).collect()
            }
            _ => vec![],
        };
        Ok(Completion { total: u32::try_from(values.len()).ok(), values, has_more: false })
    }
}

wharf_sdk::bindings::completions::export_completions!(Showcase with_types_in wharf_sdk::bindings::completions);
