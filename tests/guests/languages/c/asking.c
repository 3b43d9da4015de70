/* Tools that ask the client. After a question, the tool is called again from its start with the answers; nothing waits in between. */

#include <string.h>

#include "conformance.h"

static const char NAME_FORM[] = WHARF_JSON({
    "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
});
static const char GREETING[] = WHARF_JSON({
    "messages": [{ "role": "user", "content": { "type": "text", "text": "Write a short greeting." } }], "maxTokens": 100
});

/* The parameters of sampling/createMessage for one message of the user. */
static const char *user_says(const char *text) {
    return wharf_format("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":%s}}],\"maxTokens\":100}",
                        wharf_quote(text));
}

/* The text of a reply; a client may send one block or several. */
static const char *text_of(const wharf_json *reply) {
    const wharf_json *content = wharf_member(reply, "content");
    if (content && content->kind == WHARF_LIST) content = content->first;
    return wharf_string(content, "text", "no text");
}

static wharf_result *sampled(wharf_call *call, const char *key, const char *prompt, const char *says) {
    const wharf_answer *reply = wharf_sample(call, key, user_says(prompt));
    if (!reply) return wharf_pending(call);
    if (reply->action != WHARF_SAMPLED) return wharf_fail("the client did not want to sample");
    return wharf_text("%s%s", says, text_of(reply->json));
}

static wharf_result *sampling(wharf_call *call, const wharf_json *args) {
    return sampled(call, "reply", wharf_string(args, "prompt", ""), "LLM response: ");
}

static wharf_result *form(wharf_call *call, const char *message, const char *schema) {
    const wharf_answer *answer = wharf_ask(call, "form", message, schema);
    if (!answer) return wharf_pending(call);
    if (answer->action == WHARF_ACCEPTED) {
        return wharf_text("Elicitation completed: action=accept, content=%s", wharf_json_text(answer->json));
    }
    return wharf_text("Elicitation completed: action=%s", answer->action == WHARF_DECLINED ? "decline" : "cancel");
}

static wharf_result *elicitation(wharf_call *call, const wharf_json *args) {
    return form(call, wharf_string(args, "message", ""), WHARF_JSON({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "The user's name." },
            "email": { "type": "string", "description": "The user's email address." }
        },
        "required": ["username", "email"]
    }));
}

static wharf_result *defaults(wharf_call *call, const wharf_json *args) {
    (void)args;
    return form(call, "Please review and update the form fields with defaults", WHARF_JSON({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active"
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true }
        }
    }));
}

#define TITLED [                                       \
        { "const": "value1", "title": "First Option" },  \
        { "const": "value2", "title": "Second Option" }, \
        { "const": "value3", "title": "Third Option" }   \
    ]
/* Expands TITLED before it becomes a string. */
#define EXPANDED(...) WHARF_JSON(__VA_ARGS__)

static wharf_result *enums(wharf_call *call, const wharf_json *args) {
    (void)args;
    return form(call, "Please select options from the enum fields", EXPANDED({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": TITLED },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
            "titledMulti": { "type": "array", "items": { "anyOf": TITLED } }
        }
    }));
}

static wharf_result *missing_capability(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    return wharf_text("The client can sample.");
}

static wharf_result *streaming(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_progress(1, 1, "about to answer");
    return wharf_text("Nothing had to be asked.");
}

static wharf_result *logging(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_log(WHARF_INFO, "a message for who wants it");
    return wharf_text("One message is logged.");
}

static wharf_result *tool_change(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_tools_changed();
    return wharf_text("The change of the tools is announced.");
}

static wharf_result *prompt_change(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wharf_prompts_changed();
    return wharf_text("The change of the prompts is announced.");
}

static wharf_result *region(wharf_call *call, const wharf_json *args) {
    (void)call;
    return wharf_text("The region is %s.", wharf_string(args, "region", ""));
}

wharf_result *ask_name(wharf_call *call, const wharf_json *args) {
    (void)args;
    const wharf_answer *answer = wharf_ask(call, "user_name", "What is your name?", NAME_FORM);
    if (!answer) return wharf_pending(call);
    return wharf_text("Hello, %s!", answer->action == WHARF_ACCEPTED ? wharf_string(answer->json, "name", "") : "anonymous");
}

static wharf_result *capital(wharf_call *call, const wharf_json *args) {
    (void)args;
    return sampled(call, "capital_question", "What is the capital of France?", "The model says: ");
}

static wharf_result *list_roots(wharf_call *call, const wharf_json *args) {
    (void)args;
    const wharf_answer *roots = wharf_roots(call, "roots");
    if (!roots) return wharf_pending(call);
    if (roots->action != WHARF_ROOTS) return wharf_fail("the client did not tell its roots");
    const char *uris = "";
    int count = 0;
    for (const wharf_json *one = roots->json->first; one; one = one->next, count++) {
        uris = wharf_format("%s %s", uris, wharf_string(one, "uri", ""));
    }
    return wharf_text("%d roots:%s", count, uris);
}

static wharf_result *request_state(wharf_call *call, const wharf_json *args) {
    (void)args;
    const char *kept = wharf_kept(call);
    wharf_keep(call, "asked");
    const wharf_answer *answer = wharf_ask(call, "confirm", "Is that all right?", WHARF_JSON({
        "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"]
    }));
    if (!answer) return wharf_pending(call);
    bool is_fine = answer->action == WHARF_ACCEPTED && wharf_bool(answer->json, "ok", false);
    return wharf_text("%s: %s", kept && !strcmp(kept, "asked") ? "state-ok" : "state-lost", is_fine ? "confirmed" : "not confirmed");
}

static wharf_result *multiple_inputs(wharf_call *call, const wharf_json *args) {
    (void)args;
    wharf_keep(call, "asked");
    const wharf_answer *name = wharf_ask(call, "user_name", "What is your name?", NAME_FORM);
    const wharf_answer *greeting = wharf_sample(call, "greeting", GREETING);
    const wharf_answer *roots = wharf_roots(call, "client_roots");
    if (!name || !greeting || !roots) return wharf_pending(call);
    return wharf_text("3 answers arrived.");
}

static wharf_result *multi_round(wharf_call *call, const wharf_json *args) {
    (void)args;
    wharf_keep(call, "the name is asked");
    const wharf_answer *name = wharf_ask(call, "step1", "Step 1: what is your name?", NAME_FORM);
    if (!name) return wharf_pending(call);
    if (name->action != WHARF_ACCEPTED) return wharf_text("There was no name.");
    const char *called = wharf_string(name->json, "name", "");
    wharf_keep(call, "the color is asked");
    const char *message = wharf_format("Step 2: what is your favorite color, %s?", called);
    const wharf_answer *color = wharf_ask(call, "step2", message, WHARF_JSON({
        "type": "object", "properties": { "color": { "type": "string" } }, "required": ["color"]
    }));
    if (!color) return wharf_pending(call);
    if (color->action != WHARF_ACCEPTED) return wharf_text("%s has no favorite.", called);
    return wharf_text("%s likes %s.", called, wharf_string(color->json, "color", ""));
}

static wharf_result *capabilities(wharf_call *call, const wharf_json *args) {
    (void)args;
    int asked = 0, answered = 0;
    if (wharf_can(call, WHARF_CAN_SAMPLE)) asked++, answered += wharf_sample(call, "greeting", GREETING) != NULL;
    if (wharf_can(call, WHARF_CAN_FORM)) asked++, answered += wharf_ask(call, "user_name", "What is your name?", NAME_FORM) != NULL;
    if (wharf_can(call, WHARF_CAN_ROOTS)) asked++, answered += wharf_roots(call, "client_roots") != NULL;
    if (!asked) return wharf_text("This client can be asked nothing.");
    return answered < asked ? wharf_pending(call) : wharf_text("%d answers arrived.", answered);
}

void add_asking(void) {
    TOOL("test_sampling", "Has the client's model answer a prompt.", sampling, .schema = WHARF_JSON({
        "type": "object",
        "properties": { "prompt": { "type": "string", "description": "What the model is to answer." } },
        "required": ["prompt"]
    }));
    TOOL("test_elicitation", "Asks the person for a user name and an email address.", elicitation, .schema = WHARF_JSON({
        "type": "object",
        "properties": { "message": { "type": "string", "description": "What the person reads." } },
        "required": ["message"]
    }));
    TOOL("test_elicitation_sep1034_defaults", "Asks the person with a form whose fields have defaults.", defaults);
    TOOL("test_elicitation_sep1330_enums", "Asks the person with a form of every kind of choice.", enums);
    TOOL("test_missing_capability", "Cannot be called by a client without sampling.", missing_capability,
         .needs = WHARF_CAN_SAMPLE);
    TOOL("test_streaming_elicitation", "Reports progress before it answers, and asks nothing.", streaming);
    TOOL("test_logging_tool", "Logs one message before it answers.", logging);
    TOOL("test_trigger_tool_change", "Announces that the list of tools has changed.", tool_change);
    TOOL("test_trigger_prompt_change", "Announces that the list of prompts has changed.", prompt_change);
    TOOL("test_x_mcp_header", "Takes an argument that clients repeat in a header.", region, .schema = WHARF_JSON({
        "type": "object",
        "properties": {
            "region": {
                "type": "string",
                "description": "Which region; sent in the header `Mcp-Param-Region` as well.",
                "x-mcp-header": "Region"
            }
        },
        "required": ["region"]
    }));
    TOOL("test_input_required_result_elicitation", "Asks for a name and greets.", ask_name);
    TOOL("test_input_required_result_sampling", "Has the client's model name a capital.", capital);
    TOOL("test_input_required_result_list_roots", "Asks what the client has opened.", list_roots);
    TOOL("test_input_required_result_request_state", "Asks for a confirmation and keeps something meanwhile.", request_state);
    TOOL("test_input_required_result_multiple_inputs", "Asks three things at once.", multiple_inputs);
    TOOL("test_input_required_result_multi_round", "Asks twice, one after the other.", multi_round);
    TOOL("test_input_required_result_tampered_state", "Asks for a confirmation; what it keeps meanwhile must come back unchanged.",
         request_state);
    TOOL("test_input_required_result_capabilities", "Asks only what this client can answer.", capabilities);
}
