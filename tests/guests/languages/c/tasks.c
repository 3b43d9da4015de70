/* Tools that a client can run in the background, and one that it cannot. */

#include "conformance.h"

static const char NAME_FORM[] = WHARF_JSON({
    "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
});

static wharf_result *greet(wharf_call *call, const wharf_json *args) {
    (void)call;
    return wharf_text("Hello, %s!", wharf_string(args, "name", ""));
}

static wharf_result *slow_compute(wharf_call *call, const wharf_json *args) {
    (void)call;
    double seconds = wharf_number(args, "seconds", 0);
    if (seconds < 0 || seconds > 3600) return wharf_invalid_params("`seconds`: from 0 to 3600");
    wait_ms((unsigned)(seconds * 1000));
    return wharf_text("Computed %s in %g seconds.", wharf_string(args, "label", "it"), seconds);
}

/* A failure of the tool itself is for the model to read: the task completes, with a result that says so. */
static wharf_result *failing_job(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    wait_ms(1000);
    return wharf_fail("The job did not work out.");
}

/* An invalid request is a protocol error: the task fails. */
static wharf_result *protocol_error_job(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    return wharf_error(-32603, "The job cannot run.", NULL);
}

static wharf_result *confirm_delete(wharf_call *call, const wharf_json *args) {
    const char *file = wharf_string(args, "filename", "");
    const wharf_answer *answer = wharf_ask(call, "confirm", wharf_format("Delete %s?", file), WHARF_JSON({
        "type": "object",
        "properties": { "confirm": { "type": "boolean", "description": "Whether to delete it." } },
        "required": ["confirm"]
    }));
    if (!answer) return wharf_pending(call);
    bool is_sure = answer->action == WHARF_ACCEPTED && wharf_bool(answer->json, "confirm", false);
    return wharf_text("%s %s.", is_sure ? "Deleted" : "Kept", file);
}

static wharf_result *multi_input(wharf_call *call, const wharf_json *args) {
    (void)args;
    const wharf_answer *first = wharf_ask(call, "first", "The first name?", NAME_FORM);
    const wharf_answer *second = wharf_ask(call, "second", "The second name?", NAME_FORM);
    if (!first || !second) return wharf_pending(call);
    return wharf_text("%d names were given.", (first->action == WHARF_ACCEPTED) + (second->action == WHARF_ACCEPTED));
}

void add_tasks(void) {
    TOOL("greet", "Greets by name.", greet, .schema = WHARF_JSON({
        "type": "object", "properties": { "name": { "type": "string", "description": "Whom to greet." } }, "required": ["name"]
    }));
    TOOL("slow_compute", "Computes for as many seconds as asked.", slow_compute, .task = WHARF_TASK_OPTIONAL, .schema = WHARF_JSON({
        "type": "object",
        "properties": {
            "seconds": { "type": "number", "description": "How long it takes." },
            "label": { "type": "string", "description": "What to call the result." }
        },
        "required": ["seconds"]
    }));
    TOOL("failing_job", "Fails after a second, as a tool fails.", failing_job, .task = WHARF_TASK_REQUIRED);
    TOOL("protocol_error_job", "Fails with an error of the protocol.", protocol_error_job, .task = WHARF_TASK_OPTIONAL);
    TOOL("confirm_delete", "Asks before it would delete a file; deletes nothing.", confirm_delete, .task = WHARF_TASK_OPTIONAL,
         .destructive = WHARF_NO, .schema = WHARF_JSON({
        "type": "object",
        "properties": { "filename": { "type": "string", "description": "Which file would go." } },
        "required": ["filename"]
    }));
    TOOL("multi_input", "Asks two things at once while it runs.", multi_input, .task = WHARF_TASK_OPTIONAL);
    TOOL("test_tool_with_task", "Asks for a name, and greets in the background once it has it.", ask_name,
         .task = WHARF_TASK_REQUIRED, .ask_before_task = true);
}
