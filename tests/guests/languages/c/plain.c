/* Tools that only answer, log or report progress. */

#include "conformance.h"

static wharf_result *simple_text(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    return wharf_text("This is a simple text response for testing.");
}

static wharf_result *image(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_result *result = wharf_blocks();
    wharf_add_image(result, "image/png", PNG, PNG_SIZE);
    return result;
}

static wharf_result *audio(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_result *result = wharf_blocks();
    wharf_add_audio(result, "audio/wav", WAV, WAV_SIZE);
    return result;
}

static wharf_result *embedded(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_result *result = wharf_blocks();
    wharf_add_resource_text(result, "test://embedded-resource", "text/plain", "This is an embedded resource content.");
    return result;
}

static wharf_result *multiple(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_result *result = wharf_blocks();
    wharf_add_text(result, "Multiple content types test:");
    wharf_add_image(result, "image/png", PNG, PNG_SIZE);
    wharf_add_resource_text(result, "test://mixed-content-resource", "application/json", "{\"test\":\"data\",\"value\":123}");
    return result;
}

/* The same as wharf_fail, written out. */
static wharf_result *error(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_result *result = wharf_blocks();
    wharf_add_text(result, "This tool intentionally returns an error for testing.");
    wharf_set_error(result);
    return result;
}

static wharf_result *with_logging(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_log(WHARF_INFO, "Tool execution started");
    wait_ms(50);
    wharf_log(WHARF_INFO, "Tool processing data");
    wait_ms(50);
    wharf_log(WHARF_INFO, "Tool execution completed");
    return wharf_text("Three messages are logged.");
}

static wharf_result *with_progress(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_progress(0, 100, NULL);
    wait_ms(50);
    wharf_progress(50, 100, NULL);
    wait_ms(50);
    wharf_progress(100, 100, NULL);
    return wharf_text("The progress is reported.");
}

/* The operator's `poll_after_ms` has to be less than this duration, so that the suite sees the stream close. */
static wharf_result *reconnection(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wait_ms(900);
    return wharf_text("The answer that the client came back for.");
}

static wharf_result *called_with(wharf_call *call, const wharf_json *args) {
    (void)call;
    return wharf_text("Called with: %s", wharf_json_text(args));
}

void add_plain(void) {
    TOOL("test_simple_text", "Answers with one text block.", simple_text);
    TOOL("test_image_content", "Answers with one image.", image);
    TOOL("test_audio_content", "Answers with one piece of audio.", audio);
    TOOL("test_embedded_resource", "Answers with one embedded resource.", embedded);
    TOOL("test_multiple_content_types", "Answers with a text, an image and an embedded resource.", multiple);
    TOOL("test_error_handling", "Always fails, as a tool fails: with a result that says so.", error);
    TOOL("test_tool_with_logging", "Logs three messages while it runs.", with_logging);
    TOOL("test_tool_with_progress", "Reports progress three times while it runs.", with_progress);
    /* Published unchanged: the suite looks for each of its keywords. */
    TOOL("json_schema_2020_12_tool", "Takes arguments whose JSON Schema uses what is new in the draft 2020-12.", called_with,
         .schema = WHARF_JSON({
             "$schema": "https://json-schema.org/draft/2020-12/schema",
             "type": "object",
             "additionalProperties": false,
             "$defs": {
                 "address": {
                     "$anchor": "addressDef",
                     "type": "object",
                     "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
                 }
             },
             "properties": {
                 "name": { "type": "string" },
                 "address": { "$ref": "#/$defs/address" },
                 "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                 "phone": { "type": "string" },
                 "email": { "type": "string" }
             },
             "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
             "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
             "then": { "required": ["phone"] },
             "else": { "required": ["email"] }
         }));
    TOOL("test_reconnection", "Takes so long that the stream of its answer is closed meanwhile and the client has to come back.",
         reconnection);
}
