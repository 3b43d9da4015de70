/* The smallest good plugin: one tool. */

#include "wharf.h"

static wharf_result *greet(wharf_call *call, const wharf_json *args) {
    (void)call;
    return wharf_text("Hello, %s!", wharf_string(args, "name", ""));
}

void wharf_plugin(void) {
    wharf_add_tool((wharf_tool){
        .name = "greet",
        .description = "Greets a person.",
        .run = greet,
        .schema = WHARF_JSON({
            "type": "object",
            "properties": { "name": { "type": "string", "description": "Whom to greet." } },
            "required": ["name"]
        }),
    });
}
