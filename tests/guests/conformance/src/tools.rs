//! The list of tools, in the order they are published: the suite calls the first one without arguments.

use wharf_sdk::{Kind, ToolResult, prelude::*, serde_json::Value};

use crate::{
    Conformance,
    asking::{self, Message, Prompt},
    plain::{self, Region},
    tasks::{self, Compute, File, Person},
};

#[tools]
impl Conformance {
    /// Answers with one text block.
    fn test_simple_text() -> &'static str {
        "This is a simple text response for testing."
    }

    /// Answers with one image.
    fn test_image_content() -> Content {
        plain::image()
    }

    /// Answers with one piece of audio.
    fn test_audio_content() -> Content {
        plain::audio()
    }

    /// Answers with one embedded resource.
    fn test_embedded_resource() -> Content {
        plain::embedded_resource()
    }

    /// Answers with a text, an image and an embedded resource.
    fn test_multiple_content_types() -> Vec<Content> {
        plain::multiple_content_types()
    }

    /// Always fails, as a tool fails: with a result that says so.
    fn test_error_handling() -> ToolResult {
        plain::error_handling()
    }

    /// Logs three messages while it runs.
    fn test_tool_with_logging(call: &Call) -> &'static str {
        plain::with_logging(call)
    }

    /// Reports progress three times while it runs.
    fn test_tool_with_progress(call: &Call) -> &'static str {
        plain::with_progress(call)
    }

    /// Takes arguments whose JSON Schema uses what is new in the draft 2020-12.
    #[tool(schema = plain::SCHEMA)]
    fn json_schema_2020_12_tool(args: Value) -> String {
        format!("Called with: {args}")
    }

    /// Takes so long that the stream of its answer is closed meanwhile and the client has to come back.
    fn test_reconnection() -> &'static str {
        plain::reconnection()
    }

    /// Has the client's model answer a prompt.
    fn test_sampling(call: &Call, args: Prompt) -> Result<String> {
        asking::sampling(call, args)
    }

    /// Asks the person for a user name and an email address.
    fn test_elicitation(call: &Call, args: Message) -> Result<String> {
        asking::elicitation(call, args)
    }

    /// Asks the person with a form whose fields have defaults.
    fn test_elicitation_sep1034_defaults(call: &Call) -> Result<String> {
        asking::defaults(call)
    }

    /// Asks the person with a form of every kind of choice.
    fn test_elicitation_sep1330_enums(call: &Call) -> Result<String> {
        asking::enums(call)
    }

    /// Cannot be called by a client without sampling.
    #[tool(needs = "sampling")]
    fn test_missing_capability() -> &'static str {
        "The client can sample."
    }

    /// Reports progress before it answers, and asks nothing.
    fn test_streaming_elicitation(call: &Call) -> &'static str {
        plain::streaming(call)
    }

    /// Logs one message before it answers.
    fn test_logging_tool(call: &Call) -> &'static str {
        plain::logging(call)
    }

    /// Announces that the list of tools has changed.
    fn test_trigger_tool_change() -> &'static str {
        host::list_changed(Kind::Tools);
        "The change of the tools is announced."
    }

    /// Announces that the list of prompts has changed.
    fn test_trigger_prompt_change() -> &'static str {
        host::list_changed(Kind::Prompts);
        "The change of the prompts is announced."
    }

    /// Takes an argument that clients repeat in a header.
    fn test_x_mcp_header(args: Region) -> String {
        format!("The region is {}.", args.region)
    }

    /// Asks for a name and greets.
    fn test_input_required_result_elicitation(call: &Call) -> Result<String> {
        asking::name(call)
    }

    /// Has the client's model name a capital.
    fn test_input_required_result_sampling(call: &Call) -> Result<String> {
        asking::capital(call)
    }

    /// Asks what the client has opened.
    fn test_input_required_result_list_roots(call: &Call) -> Result<String> {
        asking::list_roots(call)
    }

    /// Asks for a confirmation and keeps something meanwhile.
    fn test_input_required_result_request_state(call: &Call) -> Result<String> {
        asking::request_state(call)
    }

    /// Asks three things at once.
    fn test_input_required_result_multiple_inputs(call: &Call) -> Result<String> {
        asking::multiple_inputs(call)
    }

    /// Asks twice, one after the other.
    fn test_input_required_result_multi_round(call: &Call) -> Result<String> {
        asking::multi_round(call)
    }

    /// Asks for a confirmation; what it keeps meanwhile must come back unchanged.
    fn test_input_required_result_tampered_state(call: &Call) -> Result<String> {
        asking::request_state(call)
    }

    /// Asks only what this client can answer.
    fn test_input_required_result_capabilities(call: &Call) -> Result<String> {
        asking::capabilities(call)
    }

    /// Greets by name.
    fn greet(args: Person) -> String {
        tasks::greet(&args)
    }

    /// Computes for as many seconds as asked.
    #[tool(task = "optional")]
    fn slow_compute(args: Compute) -> Result<String> {
        tasks::slow_compute(args)
    }

    /// Fails after a second, as a tool fails.
    #[tool(task = "required")]
    fn failing_job() -> Result<String> {
        tasks::failing_job()
    }

    /// Fails with an error of the protocol.
    #[tool(task = "optional")]
    fn protocol_error_job() -> Result<String> {
        tasks::protocol_error_job()
    }

    /// Asks before it would delete a file; deletes nothing.
    #[tool(task = "optional", destructive = false)]
    fn confirm_delete(call: &Call, args: File) -> Result<String> {
        tasks::confirm_delete(call, &args)
    }

    /// Asks two things at once while it runs.
    #[tool(task = "optional")]
    fn multi_input(call: &Call) -> Result<String> {
        tasks::multi_input(call)
    }

    /// Asks for a name, and greets in the background once it has it.
    #[tool(task = "required", ask_before_task)]
    fn test_tool_with_task(call: &Call) -> Result<String> {
        asking::name(call)
    }
}
