//! The prompts, one of which asks a question first, and the completion of a prompt's arguments.

use wharf_sdk::{Completion, Completions, Failure, FormAnswer, Role, Target, prelude::*};

use crate::{Conformance, media};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct UserContext {
    context: String,
}

#[prompts]
impl Conformance {
    /// A prompt without arguments.
    fn test_simple_prompt() -> String {
        "This is a simple prompt for testing.".into()
    }

    /// A prompt with two arguments.
    fn test_prompt_with_arguments(
        /// The first argument.
        arg1: String,
        /// The second argument.
        arg2: String,
    ) -> String {
        format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
    }

    /// A prompt that carries a resource.
    #[allow(non_snake_case, reason = "the parameter's name is the argument's, and the suite's is this")]
    fn test_prompt_with_embedded_resource(
        /// The URI of the resource.
        resourceUri: String,
    ) -> Vec<(Role, Content)> {
        let resource = wharf_sdk::resource_text(resourceUri, "text/plain", "Embedded resource content for testing.");
        vec![(Role::User, resource), (Role::User, Content::Text("Please process the embedded resource above.".into()))]
    }

    /// A prompt that carries a picture.
    fn test_prompt_with_image() -> Vec<(Role, Content)> {
        vec![
            (Role::User, wharf_sdk::image("image/png", media::PNG.to_vec())),
            (Role::User, Content::Text("Please analyze the image above.".into())),
        ]
    }

    /// A prompt that asks for the context first.
    fn test_input_required_result_prompt(call: &Call) -> Result<String> {
        match call.ask("user_context", form::<UserContext>("What is the context?"))? {
            FormAnswer::Accepted(UserContext { context }) => Ok(format!("Answer with this in mind: {context}")),
            FormAnswer::Declined | FormAnswer::Cancelled => Ok("Answer.".into()),
        }
    }
}

impl Completions for Conformance {
    fn complete(
        target: Target,
        argument: String,
        value: String,
        _others: Vec<(String, String)>,
    ) -> std::result::Result<Completion, Failure> {
        let known: &[&str] = match (&target, argument.as_str()) {
            (Target::Prompt(name), "arg1") if name == "test_prompt_with_arguments" => &["test1", "test2", "other"],
            _ => &[],
        };
        let values: Vec<String> =
            known.iter().filter(|one| one.starts_with(&value)).map(|one| (*one).to_owned()).collect();
        Ok(Completion { total: u32::try_from(values.len()).ok(), values, has_more: false })
    }
}

wharf_sdk::bindings::completions::export_completions!(Conformance with_types_in wharf_sdk::bindings::completions);
