/* Abilities of a plugin in addition to answering, with one tool for each. */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance.h"

static wharf_result *config(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    return wharf_text("%s", wharf_json_text(wharf_config()));
}

static wharf_result *directories(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    const char *list = "";
    for (const wharf_directory *one = wharf_directories(); one->path; one++) {
        list = wharf_format("%s%s{\"path\":%s,\"writable\":%s}", list, *list ? "," : "", wharf_quote(one->path),
                            one->writable ? "true" : "false");
    }
    return wharf_text("[%s]", list);
}

static wharf_result *read_file(wharf_call *call, const wharf_json *args) {
    (void)call;
    const char *path = wharf_string(args, "path", "");
    FILE *file = fopen(path, "rb");
    if (!file) return wharf_fail("%s: %s", path, strerror(errno));
    char *text = wharf_alloc(65537);
    size_t length = fread(text, 1, 65536, file);
    bool is_read = !ferror(file);
    fclose(file);
    return is_read ? wharf_text("%.*s", (int)length, text) : wharf_fail("%s: %s", path, strerror(errno));
}

static wharf_result *get(wharf_call *call, const wharf_json *args) {
    (void)call;
    wharf_request request = {.url = wharf_string(args, "url", "")};
    const char *variable = wharf_string(args, "variable", NULL);
    const char *authorization = variable ? getenv(variable) : NULL;
    if (authorization) request.headers[0] = (wharf_header){"authorization", authorization};
    wharf_response response = wharf_fetch(request);
    if (response.problem) return wharf_fail("%s", response.problem);
    return wharf_text("%u %s", response.status, response.body);
}

static wharf_result *chance(wharf_call *call, const wharf_json *args) {
    (void)call, (void)args;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return wharf_text("{\"random\":%d,\"secure\":%u,\"clock_ms\":%lld}", rand(), (unsigned)arc4random(),
                      (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static wharf_result *fails(wharf_call *call, const wharf_json *args) {
    (void)call;
    if (strcmp(wharf_string(args, "how", ""), "throws")) return wharf_fail("It did not work out.");
    assert(!"It broke.");
    return NULL;
}

void add_abilities(void) {
    TOOL("ability_config", "The plugin's config.", config);
    TOOL("ability_directories", "The directories that are open.", directories);
    TOOL("ability_read", "The text of a file.", read_file, .schema = WHARF_JSON({
        "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"]
    }));
    TOOL("ability_fetch", "What is at a URL.", get, .schema = WHARF_JSON({
        "type": "object",
        "properties": { "url": { "type": "string" }, "variable": { "type": "string" } },
        "required": ["url"]
    }));
    TOOL("ability_chance", "What differs from call to call.", chance);
    TOOL("ability_fails", "Fails.", fails, .schema = WHARF_JSON({
        "type": "object", "properties": { "how": { "type": "string", "enum": ["throws", "returns"] } }, "required": ["how"]
    }));
}
