/* The resources, the prompts, one of which asks a question first, and the completion of a prompt's arguments. */

#include <string.h>

#include "conformance.h"

static wharf_result *static_text(wharf_call *call, const char *uri, const wharf_json *variables) {
    (void)call, (void)uri, (void)variables;
    return wharf_text("This is the content of the static text resource.");
}

static wharf_result *static_binary(wharf_call *call, const char *uri, const wharf_json *variables) {
    (void)call, (void)variables;
    wharf_result *result = wharf_blocks();
    wharf_add_resource_bytes(result, uri, "image/png", PNG, PNG_SIZE);
    return result;
}

static wharf_result *watched(wharf_call *call, const char *uri, const wharf_json *variables) {
    (void)call, (void)uri, (void)variables;
    return wharf_text("Watched resource content");
}

static wharf_result *template_data(wharf_call *call, const char *uri, const wharf_json *variables) {
    (void)call, (void)uri;
    const char *id = wharf_string(variables, "id", "");
    return wharf_text("{\"id\":%s,\"templateTest\":true,\"data\":%s}", wharf_quote(id),
                      wharf_quote(wharf_format("Data for ID: %s", id)));
}

void add_resources(void) {
    wharf_add_resource((wharf_resource){
        .uri = "test://static-text", .name = "static-text", .mime_type = "text/plain", .read = static_text,
        .description = "A text that stays as it is."
    });
    wharf_add_resource((wharf_resource){
        .uri = "test://static-binary", .name = "static-binary", .mime_type = "image/png", .read = static_binary,
        .description = "A picture that stays as it is."
    });
    wharf_add_resource((wharf_resource){
        .uri = "test://watched-resource", .name = "watched-resource", .mime_type = "text/plain", .read = watched,
        .description = "A text to subscribe to. It never changes: no scenario waits for that."
    });
    wharf_add_resource((wharf_resource){
        .uri_template = "test://template/{id}/data", .name = "template-data", .mime_type = "application/json",
        .read = template_data, .description = "Data by its id."
    });
}

static wharf_result *simple_prompt(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    return wharf_text("This is a simple prompt for testing.");
}

static wharf_result *prompt_with_arguments(wharf_call *call, const wharf_json *args) {
    (void)call;
    return wharf_text("Prompt with arguments: arg1='%s', arg2='%s'", wharf_string(args, "arg1", ""), wharf_string(args, "arg2", ""));
}

static wharf_result *prompt_with_resource(wharf_call *call, const wharf_json *args) {
    (void)call;
    wharf_result *result = wharf_blocks();
    wharf_add_resource_text(result, wharf_string(args, "resourceUri", ""), "text/plain", "Embedded resource content for testing.");
    wharf_add_text(result, "Please process the embedded resource above.");
    return result;
}

static wharf_result *prompt_with_image(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_result *result = wharf_blocks();
    wharf_add_image(result, "image/png", PNG, PNG_SIZE);
    wharf_add_text(result, "Please analyze the image above.");
    return result;
}

static wharf_result *asking_prompt(wharf_call *call, const wharf_json *args) {
    (void)args;
    const wharf_answer *answer = wharf_ask(call, "user_context", "What is the context?", WHARF_JSON({
        "type": "object", "properties": { "context": { "type": "string" } }, "required": ["context"]
    }));
    if (!answer) return wharf_pending(call);
    if (answer->action != WHARF_ACCEPTED) return wharf_text("Answer.");
    return wharf_text("Answer with this in mind: %s", wharf_string(answer->json, "context", ""));
}

static wharf_result *complete_arg1(const char *value, const wharf_json *others) {
    (void)others;
    static const char *const known[] = {"test1", "test2", "other"};
    wharf_result *result = wharf_blocks();
    for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
        if (!strncmp(known[at], value, strlen(value))) wharf_add_text(result, known[at]);
    }
    return result;
}

void add_prompts(void) {
    wharf_add_prompt((wharf_prompt){
        .name = "test_simple_prompt", .description = "A prompt without arguments.", .run = simple_prompt
    });
    wharf_add_prompt((wharf_prompt){
        .name = "test_prompt_with_arguments", .description = "A prompt with two arguments.", .run = prompt_with_arguments,
        .arguments = {{"arg1", "The first argument.", true}, {"arg2", "The second argument.", true}}
    });
    wharf_add_prompt((wharf_prompt){
        .name = "test_prompt_with_embedded_resource", .description = "A prompt that carries a resource.",
        .run = prompt_with_resource, .arguments = {{"resourceUri", "The URI of the resource.", true}}
    });
    wharf_add_prompt((wharf_prompt){
        .name = "test_prompt_with_image", .description = "A prompt that carries a picture.", .run = prompt_with_image
    });
    wharf_add_prompt((wharf_prompt){
        .name = "test_input_required_result_prompt", .description = "A prompt that asks for the context first.",
        .run = asking_prompt
    });
    wharf_add_completion((wharf_completion){
        .prompt = "test_prompt_with_arguments", .argument = "arg1", .run = complete_arg1
    });
}
