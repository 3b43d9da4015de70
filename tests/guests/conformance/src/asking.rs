//! Tools that ask the client. After a question, the tool is called again from its start with the answers; nothing waits in between.

use wharf_sdk::{
    Answer, ClientCapabilities, Form, FormAnswer, Question,
    prelude::*,
    serde_json::{Value, json},
};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct Prompt {
    /// What the model is to answer.
    pub prompt: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
pub struct Message {
    /// What the person reads.
    pub message: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Account {
    /// The user's name.
    username: String,
    /// The user's email address.
    email: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Confirm {
    ok: bool,
}

pub fn sampling(call: &Call, args: Prompt) -> Result<String> {
    let reply = call.sample("reply", user_says(&args.prompt))?;
    Ok(format!("LLM response: {}", text_of(&reply)))
}

pub fn elicitation(call: &Call, args: Message) -> Result<String> {
    Ok(told(call.ask("account", form::<Account>(args.message))?))
}

pub fn defaults(call: &Call) -> Result<String> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
    });
    written_form(call, "Please review and update the form fields with defaults", &schema)
}

pub fn enums(call: &Call) -> Result<String> {
    let titled = json!([
        { "const": "value1", "title": "First Option" },
        { "const": "value2", "title": "Second Option" },
        { "const": "value3", "title": "Third Option" },
    ]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    });
    written_form(call, "Please select options from the enum fields", &schema)
}

pub fn name(call: &Call) -> Result<String> {
    match call.ask("user_name", form::<Name>("What is your name?"))? {
        FormAnswer::Accepted(Name { name }) => Ok(format!("Hello, {name}!")),
        FormAnswer::Declined | FormAnswer::Cancelled => Ok("Hello, anonymous!".into()),
    }
}

pub fn capital(call: &Call) -> Result<String> {
    let reply = call.sample("capital_question", user_says("What is the capital of France?"))?;
    Ok(format!("The model says: {}", text_of(&reply)))
}

pub fn list_roots(call: &Call) -> Result<String> {
    let roots: Vec<String> = call.roots()?.into_iter().map(|root| root.uri).collect();
    Ok(format!("{} roots: {}", roots.len(), roots.join(" ")))
}

pub fn request_state(call: &Call) -> Result<String> {
    call.keep(&"asked")?;
    let confirmed = call.ask("confirm", form::<Confirm>("Is that all right?"))?;
    let state = if call.kept::<String>()?.as_deref() == Some("asked") { "state-ok" } else { "state-lost" };
    let answer = if let FormAnswer::Accepted(Confirm { ok: true }) = confirmed { "confirmed" } else { "not confirmed" };
    Ok(format!("{state}: {answer}"))
}

pub fn multiple_inputs(call: &Call) -> Result<String> {
    call.keep(&"asked")?;
    let answers = call.ask_all(vec![
        ("user_name".into(), name_form("What is your name?")),
        ("greeting".into(), Question::Sampling(user_says("Write a short greeting.").to_string())),
        ("client_roots".into(), Question::Roots),
    ])?;
    Ok(format!("{} answers arrived.", answers.len()))
}

pub fn multi_round(call: &Call) -> Result<String> {
    call.keep(&"the name is asked")?;
    let FormAnswer::Accepted(Name { name }) = call.ask("step1", form::<Name>("Step 1: what is your name?"))? else {
        return Ok("There was no name.".into());
    };
    call.keep(&"the color is asked")?;
    let question = form::<Color>(format!("Step 2: what is your favorite color, {name}?"));
    let FormAnswer::Accepted(Color { color }) = call.ask("step2", question)? else {
        return Ok(format!("{name} has no favorite."));
    };
    Ok(format!("{name} likes {color}."))
}

pub fn capabilities(call: &Call) -> Result<String> {
    let mut questions = Vec::new();
    if call.can(ClientCapabilities::SAMPLING) {
        questions.push(("greeting".into(), Question::Sampling(user_says("Write a short greeting.").to_string())));
    }
    if call.can(ClientCapabilities::FORM) {
        questions.push(("user_name".into(), name_form("What is your name?")));
    }
    if call.can(ClientCapabilities::ROOTS) {
        questions.push(("client_roots".into(), Question::Roots));
    }
    if questions.is_empty() {
        return Ok("This client can be asked nothing.".into());
    }
    Ok(format!("{} answers arrived.", call.ask_all(questions)?.len()))
}

/// A form for a name, as one of several questions. The suite answers each with a `name`.
pub fn name_form(message: &str) -> Question {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    Question::Form(Form { message: message.into(), schema: schema.to_string() })
}

/// The parameters of `sampling/createMessage` for one message of the user.
fn user_says(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": 100 })
}

/// The text of a reply; a client may send one block or several.
fn text_of(reply: &Value) -> &str {
    let text = reply.pointer("/content/text").or_else(|| reply.pointer("/content/0/text"));
    text.and_then(Value::as_str).unwrap_or("no text")
}

/// Asks with a schema that no Rust type gives exactly.
fn written_form(call: &Call, message: &str, schema: &Value) -> Result<String> {
    let question = Question::Form(Form { message: message.into(), schema: schema.to_string() });
    let answers = call.ask_all(vec![("form".into(), question)])?;
    Ok(match answers.into_iter().next() {
        Some(Answer::Accepted(content)) => format!("Elicitation completed: action=accept, content={content}"),
        Some(Answer::Declined) => "Elicitation completed: action=decline".into(),
        _ => "Elicitation completed: action=cancel".into(),
    })
}

fn told<T: Serialize>(answer: FormAnswer<T>) -> String {
    match answer {
        FormAnswer::Accepted(content) => {
            format!("Elicitation completed: action=accept, content={}", json!(content))
        }
        FormAnswer::Declined => "Elicitation completed: action=decline".into(),
        FormAnswer::Cancelled => "Elicitation completed: action=cancel".into(),
    }
}
