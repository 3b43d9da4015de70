/* Write wharf plugins in C, C++ or Zig: MCP tools, resources and prompts in a sandboxed WebAssembly component.
 *
 *   #include "wharf.h"
 *
 *   static wharf_result *greet(wharf_call *call, const wharf_json *args) {
 *       return wharf_text("Hello, %s!", wharf_string(args, "name", ""));
 *   }
 *
 *   void wharf_plugin(void) {
 *       wharf_add_tool((wharf_tool){ .name = "greet", .description = "Greets a person.", .run = greet, .schema = WHARF_JSON({
 *           "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
 *       }) });
 *   }
 *
 * Everything that a function of this file returns lives until the end of the call, and need not be freed. By default, every call runs in
 * a new instance: nothing in memory outlives it. Texts are UTF-8 and NUL-terminated; NULL stands for a text that is left out. */
#ifndef WHARF_H
#define WHARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* JSON as a C string: WHARF_JSON({ "type": "object" }) */
#define WHARF_JSON(...) #__VA_ARGS__

typedef struct wharf_call wharf_call;
typedef struct wharf_result wharf_result;

/* ---- Reading JSON ---- */

typedef enum { WHARF_NULL, WHARF_BOOL, WHARF_NUMBER, WHARF_STRING, WHARF_LIST, WHARF_OBJECT } wharf_kind;

typedef struct wharf_json {
    wharf_kind kind;
    bool boolean;
    double number;
    /* A string, and its length in bytes, because it may contain NULs. */
    const char *text;
    size_t length;
    /* The first value in this list or object; the next value after this one in the same list or object. */
    const struct wharf_json *first, *next;
    /* The key of this value in its object. */
    const char *key;
    /* The JSON text of this value. */
    const char *source;
    size_t source_length;
} wharf_json;

/* Parses a text; returns NULL if it is not JSON. */
const wharf_json *wharf_parse(const char *text, size_t length);
/* Returns a member of an object, or NULL. */
const wharf_json *wharf_member(const wharf_json *object, const char *key);
/* Return a member of an object, or the fallback if it is absent or has another type. */
const char *wharf_string(const wharf_json *object, const char *key, const char *fallback);
double wharf_number(const wharf_json *object, const char *key, double fallback);
bool wharf_bool(const wharf_json *object, const char *key, bool fallback);
/* Returns the JSON text of a value, as it was parsed. */
const char *wharf_json_text(const wharf_json *value);

/* ---- Writing text ---- */

/* Like printf, into memory of the call. */
const char *wharf_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns a text as a JSON string, with its quotes. */
const char *wharf_quote(const char *text);
/* Allocates zeroed memory that lives until the end of the call. */
void *wharf_alloc(size_t size);

/* ---- Results ---- */

wharf_result *wharf_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Structured content: the text of a JSON object. */
wharf_result *wharf_structured(const char *json);
/* The operation failed. The model reads the message. */
wharf_result *wharf_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A protocol error, for requests that are wrong rather than operations that failed. `code` is one of the plugin's own: 0, 403, 429
 * and -32768 to -32000 are reserved. `data` is JSON or NULL. */
wharf_result *wharf_error(int32_t code, const char *message, const char *data);
wharf_result *wharf_invalid_params(const char *format, ...) __attribute__((format(printf, 1, 2)));
wharf_result *wharf_not_found(const char *uri);

/* An empty result, to which the functions below add blocks. Tools and prompts take any block, resources only those of
 * wharf_add_resource_*, completions only those of wharf_add_text. */
wharf_result *wharf_blocks(void);
void wharf_add_text(wharf_result *result, const char *text);
void wharf_add_image(wharf_result *result, const char *mime_type, const void *data, size_t size);
void wharf_add_audio(wharf_result *result, const char *mime_type, const void *data, size_t size);
void wharf_add_link(wharf_result *result, const char *uri, const char *name, const char *mime_type);
void wharf_add_resource_text(wharf_result *result, const char *uri, const char *mime_type, const char *text);
void wharf_add_resource_bytes(wharf_result *result, const char *uri, const char *mime_type, const void *data, size_t size);
/* A complete MCP content block, as JSON. */
void wharf_add_raw(wharf_result *result, const char *json);
/* In prompts: blocks that are added from here on are messages of the assistant, or of the user. */
void wharf_assistant_says(wharf_result *result);
void wharf_user_says(wharf_result *result);
/* Sets structured content in addition to the blocks. */
void wharf_set_structured(wharf_result *result, const char *json);
/* Marks the result as an error (`isError`). */
void wharf_set_error(wharf_result *result);
/* Sets other members of the MCP object, such as _meta, as a JSON object. */
void wharf_set_more(wharf_result *result, const char *json);

/* ---- Registration ---- */

/* Defined by the author: registers the plugin's tools, resources, prompts and completions by the functions below. */
void wharf_plugin(void);

typedef enum { WHARF_UNSAID, WHARF_YES, WHARF_NO } wharf_hint;
typedef enum { WHARF_TASK_FORBIDDEN, WHARF_TASK_OPTIONAL, WHARF_TASK_REQUIRED } wharf_task;

/* The kinds of questions that a client can answer. */
enum {
    WHARF_CAN_FORM = 1,
    WHARF_CAN_URL = 2,
    WHARF_CAN_SAMPLE = 4,
    WHARF_CAN_SAMPLE_WITH_TOOLS = 8,
    WHARF_CAN_ROOTS = 16
};

/* The kinds of reports that a client wants to get while a call runs. */
enum { WHARF_WANTS_PROGRESS = 1, WHARF_WANTS_LOG = 2 };

typedef struct {
    const char *name, *description;
    wharf_result *(*run)(wharf_call *call, const wharf_json *args);
    /* JSON Schema of the arguments; NULL for a tool without arguments. */
    const char *schema;
    const char *title;
    /* JSON Schema of the structured result, if there is one. */
    const char *output_schema;
    /* Hints for clients, which grant nothing. */
    wharf_hint read_only, destructive, idempotent, open_world;
    /* Capabilities (WHARF_CAN_…) that the client must have, or wharf refuses the call. */
    unsigned needs;
    /* Whether the call may run in the background, and whether questions are asked before it does. */
    wharf_task task;
    bool ask_before_task;
    /* Other members of the MCP tool object, such as icons and _meta, as a JSON object. */
    const char *more;
} wharf_tool;

typedef struct {
    /* Set one of the two. A template has variables: {day} does not match a slash, {+path} does. */
    const char *uri, *uri_template;
    const char *name, *description, *mime_type;
    wharf_result *(*read)(wharf_call *call, const char *uri, const wharf_json *variables);
    const char *more;
} wharf_resource;

typedef struct {
    const char *name, *description;
    bool required;
} wharf_argument;

typedef struct {
    const char *name, *description;
    wharf_result *(*run)(wharf_call *call, const wharf_json *args);
    wharf_argument arguments[16];
    const char *more;
} wharf_prompt;

typedef struct {
    /* Set one of the two: the name of a prompt, or the text of a resource template. */
    const char *prompt, *uri_template;
    const char *argument;
    wharf_result *(*run)(const char *value, const wharf_json *others);
} wharf_completion;

void wharf_add_tool_at(const char *file, int line, wharf_tool tool);
void wharf_add_resource(wharf_resource resource);
void wharf_add_prompt(wharf_prompt prompt);
void wharf_add_completion(wharf_completion completion);
/* Registers a tool. Messages about mistakes in it name the line of this call. */
#define wharf_add_tool(...) wharf_add_tool_at(__FILE__, __LINE__, __VA_ARGS__)

/* ---- The call ---- */

/* Whether the client can answer all of these kinds of questions (WHARF_CAN_…). */
bool wharf_can(const wharf_call *call, unsigned capabilities);
/* Whether the client wants to get all of these kinds of reports during this call (WHARF_WANTS_…). */
bool wharf_wants(const wharf_call *call, unsigned reports);
/* Returns an opaque id under which a plugin can store what belongs to one user. It is made for this plugin alone. NULL: wharf does not tell
 * callers apart (stdio, or HTTP without credentials), and all such calls count as one caller's. */
const char *wharf_caller_id(const wharf_call *call);
/* Returns other information about the caller: {"revision": …, "client": {"name": …, "version": …}, "meta": …, "capabilities": …} */
const wharf_json *wharf_caller(const wharf_call *call);

typedef enum { WHARF_ACCEPTED, WHARF_DECLINED, WHARF_CANCELLED, WHARF_SAMPLED, WHARF_ROOTS } wharf_action;

typedef struct {
    wharf_action action;
    /* The values that the user entered; or the result of sampling/createMessage, which comes from a model: do not trust it; or the roots,
     * a list of objects with `uri` and, if it is known, `name`. */
    const wharf_json *json;
} wharf_answer;

/* Questions to the client. These functions return NULL until the question is answered. Then return wharf_pending(call): wharf asks all
 * open questions at once and calls the function again from its start. So before the last question, do nothing that must not happen twice.
 *
 *   const wharf_answer *sure = wharf_ask(call, "sure", "Delete 14 notes?", SURE);
 *   if (!sure) return wharf_pending(call);
 *   if (sure->action != WHARF_ACCEPTED) return wharf_text("kept"); */
const wharf_answer *wharf_ask(wharf_call *call, const char *key, const char *message, const char *schema);
const wharf_answer *wharf_ask_url(wharf_call *call, const char *key, const char *message, const char *url);
/* Asks the client's model, with the parameters of sampling/createMessage as JSON. */
const wharf_answer *wharf_sample(wharf_call *call, const char *key, const char *parameters);
const wharf_answer *wharf_roots(wharf_call *call, const char *key);
wharf_result *wharf_pending(wharf_call *call);
/* Stores a text for the next round, when this function is called again with answers. At most 64 KiB; the client cannot read it. */
void wharf_keep(wharf_call *call, const char *text);
/* Returns the text that an earlier round stored, or NULL. */
const char *wharf_kept(const wharf_call *call);

/* ---- The host ---- */

typedef enum {
    WHARF_DEBUG, WHARF_INFO, WHARF_NOTICE, WHARF_WARNING, WHARF_ERROR, WHARF_CRITICAL, WHARF_ALERT, WHARF_EMERGENCY
} wharf_level;

/* Logs to the operator, and to the client if the log level that it set allows. */
void wharf_log(wharf_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports progress to the client. `done` must grow; a total of 0 means unknown. */
void wharf_progress(double done, double total, const char *message);
void wharf_tools_changed(void);
void wharf_resources_changed(void);
void wharf_prompts_changed(void);
void wharf_resource_updated(const char *uri);
/* Returns the plugin's table from the operator's config file, an object. */
const wharf_json *wharf_config(void);

/* A directory that is open to this call: fopen and similar functions work in it. */
typedef struct {
    const char *path;
    bool writable;
} wharf_directory;
/* Returns the directories that are open to this call. The list ends with a path of NULL. */
const wharf_directory *wharf_directories(void);

/* ---- HTTP requests, as far as the operator's rules allow them. Redirects are not followed. ---- */

typedef struct {
    const char *name, *value;
} wharf_header;

typedef struct {
    /* GET if it is NULL. */
    const char *method;
    const char *url;
    wharf_header headers[16];
    const void *body;
    size_t body_size;
    /* The time limit of the whole request; 20 seconds if it is 0. */
    double seconds;
    /* The maximum length of the response body in bytes; 4 MiB if it is 0. */
    size_t max_body;
} wharf_request;

typedef struct {
    /* NULL, or a sentence that says why there is no response. */
    const char *problem;
    unsigned status;
    /* A list that ends with a name of NULL. Names are in lowercase. */
    const wharf_header *headers;
    /* The body, with a NUL after it. */
    const char *body;
    size_t body_size;
} wharf_response;

wharf_response wharf_fetch(wharf_request request);

#ifdef __cplusplus
}
#endif

#endif
