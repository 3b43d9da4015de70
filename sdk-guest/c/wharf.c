/* What the component exports, in the types of the contract, and what it asks of the host. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/plugin.h"
#include "internal.h"

enum { INVALID_PARAMS = -32602, RESOURCE_NOT_FOUND = -32002 };

/* ---- What the plugin has ---- */

typedef struct {
    wharf_tool tool;
    const char *file;
    int line;
} listed_tool;

static struct {
    bool filled;
    listed_tool *tools;
    wharf_resource *resources;
    wharf_prompt *prompts;
    wharf_completion *completions;
    size_t tool_count, resource_count, prompt_count, completion_count;
} plugin;

/* Room for one more. These lists outlive the call. */
static void *grown(void *list, size_t count, size_t size) {
    void *larger = realloc(list, (count + 1) * size);
    if (!larger) abort();
    return larger;
}

#define APPEND(list, count, value) ((list) = grown((list), (count), sizeof *(list)), (list)[(count)++] = (value))

void wharf_add_tool_at(const char *file, int line, wharf_tool tool) {
    const char *name = strrchr(file, '/');
    listed_tool one = {tool, name ? name + 1 : file, line};
    APPEND(plugin.tools, plugin.tool_count, one);
}

void wharf_add_resource(wharf_resource resource) { APPEND(plugin.resources, plugin.resource_count, resource); }

void wharf_add_prompt(wharf_prompt prompt) { APPEND(plugin.prompts, plugin.prompt_count, prompt); }

void wharf_add_completion(wharf_completion completion) {
    APPEND(plugin.completions, plugin.completion_count, completion);
}

static void fill(void) {
    if (plugin.filled) return;
    plugin.filled = true;
    /* A call in a new instance would draw the same numbers as every other. */
    unsigned seed;
    if (!getentropy(&seed, sizeof seed)) srand(seed);
    wharf_plugin();
}

/* ---- Texts of the contract, which the generated code frees ---- */

static void *taken(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) abort();
    return memory;
}

static plugin_string_t to_string(const char *text) {
    plugin_string_t to = {NULL, text ? strlen(text) : 0};
    if (to.len) to.ptr = memcpy(taken(to.len), text, to.len);
    return to;
}

static plugin_option_string_t to_option(const char *text) {
    plugin_option_string_t to = {text != NULL, to_string(text)};
    return to;
}

static plugin_list_u8_t to_bytes(const void *data, size_t size) {
    plugin_list_u8_t to = {NULL, size};
    if (size) to.ptr = memcpy(taken(size), data, size);
    return to;
}

static const char *from_string(plugin_string_t from) { return wharf_copy(from.ptr, from.len); }

/* ---- Results ---- */

typedef struct block {
    struct block *next;
    wharf_plugin_types_role_t role;
    wharf_plugin_types_content_t content;
} block;

typedef enum { TEXT, STRUCTURED, BLOCKS, FAILURE, PENDING } result_kind;

struct wharf_result {
    result_kind kind;
    const char *text, *structured, *more, *data;
    int32_t code;
    bool is_error, assistant_says;
    block *first, **last;
    size_t count;
};

static wharf_result *result_of(result_kind kind) {
    wharf_result *result = wharf_alloc(sizeof *result);
    result->kind = kind;
    result->last = &result->first;
    return result;
}

static wharf_result *printed(result_kind kind, int32_t code, const char *format, va_list values) {
    wharf_result *result = result_of(kind);
    result->code = code;
    result->text = wharf_print(format, values);
    return result;
}

#define PRINTED(kind, code)                                      \
    va_list values;                                              \
    va_start(values, format);                                    \
    wharf_result *result = printed((kind), (code), format, values); \
    va_end(values);                                              \
    return result

wharf_result *wharf_text(const char *format, ...) { PRINTED(TEXT, 0); }

wharf_result *wharf_fail(const char *format, ...) { PRINTED(FAILURE, 0); }

wharf_result *wharf_invalid_params(const char *format, ...) { PRINTED(FAILURE, INVALID_PARAMS); }

wharf_result *wharf_structured(const char *json) {
    wharf_result *result = result_of(STRUCTURED);
    result->text = json;
    return result;
}

wharf_result *wharf_error(int32_t code, const char *message, const char *data) {
    wharf_result *result = result_of(FAILURE);
    result->code = code;
    result->text = message;
    result->data = data;
    return result;
}

wharf_result *wharf_not_found(const char *uri) {
    return wharf_error(RESOURCE_NOT_FOUND, "Resource not found", wharf_format("{\"uri\":%s}", wharf_quote(uri)));
}

wharf_result *wharf_blocks(void) { return result_of(BLOCKS); }

static wharf_plugin_types_content_t *added(wharf_result *result, uint8_t tag) {
    block *one = wharf_alloc(sizeof *one);
    one->role = result->assistant_says ? WHARF_PLUGIN_TYPES_ROLE_ASSISTANT : WHARF_PLUGIN_TYPES_ROLE_USER;
    one->content.tag = tag;
    *result->last = one;
    result->last = &one->next;
    result->count++;
    return &one->content;
}

void wharf_add_text(wharf_result *result, const char *text) {
    added(result, WHARF_PLUGIN_TYPES_CONTENT_TEXT)->val.text = to_string(text);
}

void wharf_add_image(wharf_result *result, const char *mime_type, const void *data, size_t size) {
    wharf_plugin_types_media_t media = {to_string(mime_type), to_bytes(data, size)};
    added(result, WHARF_PLUGIN_TYPES_CONTENT_IMAGE)->val.image = media;
}

void wharf_add_audio(wharf_result *result, const char *mime_type, const void *data, size_t size) {
    wharf_plugin_types_media_t media = {to_string(mime_type), to_bytes(data, size)};
    added(result, WHARF_PLUGIN_TYPES_CONTENT_AUDIO)->val.audio = media;
}

void wharf_add_link(wharf_result *result, const char *uri, const char *name, const char *mime_type) {
    wharf_plugin_types_resource_link_t link = {to_string(uri), to_string(name), to_option(mime_type), {false, {NULL, 0}}};
    added(result, WHARF_PLUGIN_TYPES_CONTENT_LINK)->val.link = link;
}

void wharf_add_resource_text(wharf_result *result, const char *uri, const char *mime_type, const char *text) {
    wharf_plugin_types_resource_contents_t *to = &added(result, WHARF_PLUGIN_TYPES_CONTENT_EMBEDDED)->val.embedded;
    to->uri = to_string(uri);
    to->mime_type = to_option(mime_type);
    to->body.tag = WHARF_PLUGIN_TYPES_BODY_TEXT;
    to->body.val.text = to_string(text);
}

void wharf_add_resource_bytes(wharf_result *result, const char *uri, const char *mime_type, const void *data, size_t size) {
    wharf_plugin_types_resource_contents_t *to = &added(result, WHARF_PLUGIN_TYPES_CONTENT_EMBEDDED)->val.embedded;
    to->uri = to_string(uri);
    to->mime_type = to_option(mime_type);
    to->body.tag = WHARF_PLUGIN_TYPES_BODY_BYTES;
    to->body.val.bytes = to_bytes(data, size);
}

void wharf_add_raw(wharf_result *result, const char *json) {
    added(result, WHARF_PLUGIN_TYPES_CONTENT_RAW)->val.raw = to_string(json);
}

void wharf_assistant_says(wharf_result *result) { result->assistant_says = true; }

void wharf_user_says(wharf_result *result) { result->assistant_says = false; }

void wharf_set_structured(wharf_result *result, const char *json) { result->structured = json; }

void wharf_set_error(wharf_result *result) { result->is_error = true; }

void wharf_set_more(wharf_result *result, const char *json) { result->more = json; }

/* ---- The call ---- */

typedef struct question {
    struct question *next;
    const char *key, *message, *text;
    uint8_t tag;
} question;

struct wharf_call {
    const wharf_plugin_types_context_t *context;
    question *first, **last;
    size_t count;
    const char *keeps;
};

bool wharf_can(const wharf_call *call, unsigned abilities) { return (call->context->abilities & abilities) == abilities; }

const wharf_json *wharf_caller(const wharf_call *call) {
    const char *text = from_string(call->context->more);
    return wharf_parse(text, call->context->more.len);
}

static const wharf_json *listed_roots(wharf_plugin_types_list_root_t roots) {
    const char *text = "[";
    for (size_t at = 0; at < roots.len; at++) {
        const char *name = roots.ptr[at].name.is_some
            ? wharf_format(",\"name\":%s", wharf_quote(from_string(roots.ptr[at].name.val))) : "";
        text = wharf_format("%s%s{\"uri\":%s%s}", text, at ? "," : "", wharf_quote(from_string(roots.ptr[at].uri)), name);
    }
    text = wharf_format("%s]", text);
    return wharf_parse(text, strlen(text));
}

static const wharf_answer *given(wharf_call *call, const char *key) {
    wharf_plugin_types_list_tuple2_string_answer_t answers = call->context->answers;
    for (size_t at = 0; at < answers.len; at++) {
        if (strcmp(from_string(answers.ptr[at].f0), key)) continue;
        const wharf_plugin_types_answer_t *from = &answers.ptr[at].f1;
        wharf_answer *answer = wharf_alloc(sizeof *answer);
        answer->action = (wharf_action)from->tag;
        if (from->tag == WHARF_PLUGIN_TYPES_ANSWER_ACCEPTED || from->tag == WHARF_PLUGIN_TYPES_ANSWER_SAMPLED) {
            plugin_string_t json = from->tag == WHARF_PLUGIN_TYPES_ANSWER_ACCEPTED ? from->val.accepted : from->val.sampled;
            answer->json = wharf_parse(from_string(json), json.len);
        } else if (from->tag == WHARF_PLUGIN_TYPES_ANSWER_ROOTS) {
            answer->json = listed_roots(from->val.roots);
        }
        return answer;
    }
    return NULL;
}

static const wharf_answer *asked(wharf_call *call, uint8_t tag, const char *key, const char *message, const char *text) {
    const wharf_answer *answer = given(call, key);
    if (answer) return answer;
    question *one = wharf_alloc(sizeof *one);
    one->key = wharf_copy(key, strlen(key));
    one->message = message;
    one->text = text;
    one->tag = tag;
    *call->last = one;
    call->last = &one->next;
    call->count++;
    return NULL;
}

const wharf_answer *wharf_ask(wharf_call *call, const char *key, const char *message, const char *schema) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_FORM, key, message, schema);
}

const wharf_answer *wharf_ask_page(wharf_call *call, const char *key, const char *message, const char *url) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_PAGE, key, message, url);
}

const wharf_answer *wharf_sample(wharf_call *call, const char *key, const char *parameters) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_SAMPLE, key, NULL, parameters);
}

const wharf_answer *wharf_roots(wharf_call *call, const char *key) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_ROOTS, key, NULL, NULL);
}

wharf_result *wharf_pending(wharf_call *call) {
    return call->count ? result_of(PENDING) : wharf_fail("wharf_pending was called, but every question is answered");
}

void wharf_keep(wharf_call *call, const char *text) { call->keeps = text; }

const char *wharf_kept(const wharf_call *call) {
    plugin_option_list_u8_t state = call->context->state;
    return state.is_some ? wharf_copy(state.val.ptr, state.val.len) : NULL;
}

static wharf_call new_call(const wharf_plugin_types_context_t *context) {
    wharf_call call = {.context = context};
    call.keeps = wharf_kept(&call);
    return call;
}

static wharf_plugin_types_round_t to_round(const wharf_call *call) {
    wharf_plugin_types_round_t round = {{taken(call->count * sizeof *round.questions.ptr), call->count}, {false, {NULL, 0}}};
    size_t at = 0;
    for (const question *one = call->first; one; one = one->next, at++) {
        wharf_plugin_types_question_t *to = &round.questions.ptr[at].f1;
        round.questions.ptr[at].f0 = to_string(one->key);
        to->tag = one->tag;
        if (one->tag == WHARF_PLUGIN_TYPES_QUESTION_FORM) {
            to->val.form.message = to_string(one->message);
            to->val.form.schema = to_string(one->text);
        } else if (one->tag == WHARF_PLUGIN_TYPES_QUESTION_PAGE) {
            to->val.page.message = to_string(one->message);
            to->val.page.url = to_string(one->text);
        } else if (one->tag == WHARF_PLUGIN_TYPES_QUESTION_SAMPLE) {
            to->val.sample = to_string(one->text);
        }
    }
    if (call->keeps) {
        round.state.is_some = true;
        round.state.val = to_bytes(call->keeps, strlen(call->keeps));
    }
    return round;
}

/* ---- Exports ---- */

static bool failed(wharf_plugin_types_failure_t *to, const wharf_result *from) {
    to->message = to_string(from->text);
    to->code.is_some = from->code != 0;
    to->code.val = from->code;
    to->data.is_some = from->data != NULL;
    to->data.val = to_string(from->data);
    return false;
}

static wharf_result *unknown(const char *kind, const char *name) { return wharf_invalid_params("unknown %s: %s", kind, name); }

/* Ends a call: what it allocated goes, what the host gets was copied before. */
static bool ended(bool fine) {
    wharf_free_all();
    return fine;
}

static exports_wharf_plugin_tools_option_json_t to_tool_json(const char *text) {
    exports_wharf_plugin_tools_option_json_t to = {text != NULL, to_string(text)};
    return to;
}

static plugin_option_bool_t to_hint(wharf_hint hint) {
    plugin_option_bool_t to = {hint != WHARF_UNSAID, hint == WHARF_YES};
    return to;
}

/* What is wrong with a tool before anyone calls it, or NULL. */
static wharf_result *mistake_in(const listed_tool *one) {
    if (!one->tool.name || !one->tool.run) {
        return wharf_fail("%s:%d: a tool needs a name and a function to run", one->file, one->line);
    }
    const struct {
        const char *what, *text;
    } texts[] = {{"schema", one->tool.schema}, {"output schema", one->tool.output_schema}, {"more", one->tool.more}};
    for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
        const char *text = texts[at].text;
        const wharf_json *value = text ? wharf_parse(text, strlen(text)) : NULL;
        if (text && !value) {
            return wharf_fail("%s:%d: the %s of the tool \"%s\" is not JSON: %s", one->file, one->line, texts[at].what, one->tool.name,
                              wharf_parse_problem());
        }
        if (value && value->kind != WHARF_OBJECT) {
            return wharf_fail("%s:%d: the %s of the tool \"%s\" is not a JSON object", one->file, one->line, texts[at].what,
                              one->tool.name);
        }
    }
    return NULL;
}

bool exports_wharf_plugin_tools_list_tools(exports_wharf_plugin_tools_list_tool_t *ret, exports_wharf_plugin_tools_failure_t *err) {
    fill();
    wharf_result *mistake = NULL;
    if (!plugin.tool_count && !plugin.resource_count && !plugin.prompt_count) {
        mistake = wharf_fail("the plugin registers nothing: call wharf_add_tool in the function wharf_plugin");
    }
    for (size_t at = 0; at < plugin.tool_count && !mistake; at++) mistake = mistake_in(&plugin.tools[at]);
    if (mistake) return ended(failed(err, mistake));
    ret->ptr = taken(plugin.tool_count * sizeof *ret->ptr);
    ret->len = plugin.tool_count;
    for (size_t at = 0; at < plugin.tool_count; at++) {
        const wharf_tool *from = &plugin.tools[at].tool;
        exports_wharf_plugin_tools_tool_t *to = &ret->ptr[at];
        exports_wharf_plugin_tools_tool_details_t *details = &to->details.val;
        to->name = to_string(from->name);
        to->description = to_string(from->description);
        to->input_schema = to_string(from->schema ? from->schema : "{\"type\":\"object\",\"properties\":{}}");
        to->details.is_some = true;
        details->title = to_option(from->title);
        details->output_schema = to_tool_json(from->output_schema);
        details->hints.is_some = from->read_only || from->destructive || from->idempotent || from->open_world;
        details->hints.val.read_only = to_hint(from->read_only);
        details->hints.val.destructive = to_hint(from->destructive);
        details->hints.val.idempotent = to_hint(from->idempotent);
        details->hints.val.open_world = to_hint(from->open_world);
        details->needs = (exports_wharf_plugin_tools_abilities_t)from->needs;
        details->task = (exports_wharf_plugin_tools_task_support_t)from->task;
        details->ask_before_task = from->ask_before_task;
        details->more = to_tool_json(from->more);
    }
    return ended(true);
}

static const wharf_result *ran(wharf_result *result, const char *name) {
    return result ? result : wharf_fail("the function of %s returned NULL in place of a result", name);
}

static bool to_tool_outcome(
    const wharf_result *from, const wharf_call *call, exports_wharf_plugin_tools_tool_outcome_t *to, wharf_plugin_types_failure_t *err
) {
    switch (from->kind) {
    case FAILURE:
        return failed(err, from);
    case PENDING:
        to->tag = EXPORTS_WHARF_PLUGIN_TOOLS_TOOL_OUTCOME_ASK;
        to->val.ask = to_round(call);
        return true;
    case TEXT:
        to->tag = EXPORTS_WHARF_PLUGIN_TOOLS_TOOL_OUTCOME_TEXT;
        to->val.text = to_string(from->text);
        return true;
    case STRUCTURED:
        to->tag = EXPORTS_WHARF_PLUGIN_TOOLS_TOOL_OUTCOME_STRUCTURED;
        to->val.structured = to_string(from->text);
        return true;
    case BLOCKS:
        break;
    }
    exports_wharf_plugin_tools_tool_result_t *done = &to->val.done;
    to->tag = EXPORTS_WHARF_PLUGIN_TOOLS_TOOL_OUTCOME_DONE;
    done->content.len = from->count;
    done->content.ptr = taken(from->count * sizeof *done->content.ptr);
    size_t at = 0;
    for (const block *one = from->first; one; one = one->next) done->content.ptr[at++] = one->content;
    done->structured = to_tool_json(from->structured);
    done->is_error = from->is_error;
    done->more = to_tool_json(from->more);
    return true;
}

bool exports_wharf_plugin_tools_call_tool(
    plugin_string_t *name, exports_wharf_plugin_tools_json_t *args, exports_wharf_plugin_tools_context_t *context,
    exports_wharf_plugin_tools_tool_outcome_t *ret, exports_wharf_plugin_tools_failure_t *err
) {
    fill();
    wharf_call call = new_call(context);
    call.last = &call.first;
    const char *wanted = from_string(*name);
    const wharf_result *result = unknown("tool", wanted);
    for (size_t at = 0; at < plugin.tool_count; at++) {
        if (strcmp(plugin.tools[at].tool.name, wanted)) continue;
        const wharf_json *parsed = wharf_parse(from_string(*args), args->len);
        result = parsed ? ran(plugin.tools[at].tool.run(&call, parsed), wanted)
                        : wharf_fail("the arguments are not JSON: %s", wharf_parse_problem());
        break;
    }
    bool fine = to_tool_outcome(result, &call, ret, err);
    plugin_string_free(name);
    plugin_string_free(args);
    exports_wharf_plugin_tools_context_free(context);
    return ended(fine);
}

bool exports_wharf_plugin_resources_list_resources(
    exports_wharf_plugin_resources_list_resource_entry_t *ret, exports_wharf_plugin_resources_failure_t *err
) {
    (void)err;
    fill();
    ret->len = 0;
    ret->ptr = taken(plugin.resource_count * sizeof *ret->ptr);
    for (size_t at = 0; at < plugin.resource_count; at++) {
        const wharf_resource *from = &plugin.resources[at];
        if (!from->uri) continue;
        exports_wharf_plugin_resources_resource_entry_t *to = &ret->ptr[ret->len++];
        to->uri = to_string(from->uri);
        to->name = to_string(from->name);
        to->description = to_option(from->description);
        to->mime_type = to_option(from->mime_type);
        to->more.is_some = from->more != NULL;
        to->more.val = to_string(from->more);
    }
    return ended(true);
}

bool exports_wharf_plugin_resources_list_templates(
    exports_wharf_plugin_resources_list_resource_template_t *ret, exports_wharf_plugin_resources_failure_t *err
) {
    (void)err;
    fill();
    ret->len = 0;
    ret->ptr = taken(plugin.resource_count * sizeof *ret->ptr);
    for (size_t at = 0; at < plugin.resource_count; at++) {
        const wharf_resource *from = &plugin.resources[at];
        if (from->uri || !from->uri_template) continue;
        exports_wharf_plugin_resources_resource_template_t *to = &ret->ptr[ret->len++];
        to->uri_template = to_string(from->uri_template);
        to->name = to_string(from->name);
        to->description = to_option(from->description);
        to->mime_type = to_option(from->mime_type);
        to->more.is_some = from->more != NULL;
        to->more.val = to_string(from->more);
    }
    return ended(true);
}

static bool to_read_outcome(
    const wharf_result *from, const wharf_call *call, exports_wharf_plugin_resources_read_outcome_t *to,
    wharf_plugin_types_failure_t *err
) {
    if (from->kind == FAILURE) return failed(err, from);
    if (from->kind == PENDING) {
        to->tag = EXPORTS_WHARF_PLUGIN_RESOURCES_READ_OUTCOME_ASK;
        to->val.ask = to_round(call);
        return true;
    }
    if (from->kind != BLOCKS) {
        to->tag = EXPORTS_WHARF_PLUGIN_RESOURCES_READ_OUTCOME_TEXT;
        to->val.text = to_string(from->text);
        return true;
    }
    to->tag = EXPORTS_WHARF_PLUGIN_RESOURCES_READ_OUTCOME_DONE;
    to->val.done.len = 0;
    to->val.done.ptr = taken(from->count * sizeof *to->val.done.ptr);
    for (const block *one = from->first; one; one = one->next) {
        if (one->content.tag == WHARF_PLUGIN_TYPES_CONTENT_EMBEDDED) {
            to->val.done.ptr[to->val.done.len++] = one->content.val.embedded;
        }
    }
    return true;
}

bool exports_wharf_plugin_resources_read_resource(
    plugin_string_t *uri, exports_wharf_plugin_resources_context_t *context, exports_wharf_plugin_resources_read_outcome_t *ret,
    exports_wharf_plugin_resources_failure_t *err
) {
    fill();
    wharf_call call = new_call(context);
    call.last = &call.first;
    const char *wanted = from_string(*uri);
    const wharf_result *result = wharf_not_found(wanted);
    for (size_t at = 0; at < plugin.resource_count; at++) {
        const wharf_resource *one = &plugin.resources[at];
        const wharf_json *variables = NULL;
        if (!one->uri) variables = wharf_match(one->uri_template, wanted);
        if (one->uri && !strcmp(one->uri, wanted)) variables = wharf_object();
        if (!variables) continue;
        result = ran(one->read(&call, wanted, variables), wanted);
        break;
    }
    bool fine = to_read_outcome(result, &call, ret, err);
    plugin_string_free(uri);
    exports_wharf_plugin_resources_context_free(context);
    return ended(fine);
}

bool exports_wharf_plugin_prompts_list_prompts(
    exports_wharf_plugin_prompts_list_prompt_t *ret, exports_wharf_plugin_prompts_failure_t *err
) {
    (void)err;
    fill();
    ret->len = plugin.prompt_count;
    ret->ptr = taken(plugin.prompt_count * sizeof *ret->ptr);
    for (size_t at = 0; at < plugin.prompt_count; at++) {
        const wharf_prompt *from = &plugin.prompts[at];
        exports_wharf_plugin_prompts_prompt_t *to = &ret->ptr[at];
        size_t count = 0, most = sizeof from->arguments / sizeof *from->arguments;
        while (count < most && from->arguments[count].name) count++;
        to->name = to_string(from->name);
        to->description = to_option(from->description);
        to->params.len = count;
        to->params.ptr = taken(count * sizeof *to->params.ptr);
        for (size_t one = 0; one < count; one++) {
            to->params.ptr[one].name = to_string(from->arguments[one].name);
            to->params.ptr[one].description = to_option(from->arguments[one].description);
            to->params.ptr[one].required = from->arguments[one].required;
        }
        to->more.is_some = from->more != NULL;
        to->more.val = to_string(from->more);
    }
    return ended(true);
}

static bool to_prompt_outcome(
    const wharf_result *from, const wharf_call *call, exports_wharf_plugin_prompts_prompt_outcome_t *to,
    wharf_plugin_types_failure_t *err
) {
    if (from->kind == FAILURE) return failed(err, from);
    if (from->kind == PENDING) {
        to->tag = EXPORTS_WHARF_PLUGIN_PROMPTS_PROMPT_OUTCOME_ASK;
        to->val.ask = to_round(call);
        return true;
    }
    if (from->kind != BLOCKS) {
        to->tag = EXPORTS_WHARF_PLUGIN_PROMPTS_PROMPT_OUTCOME_TEXT;
        to->val.text = to_string(from->text);
        return true;
    }
    exports_wharf_plugin_prompts_prompt_result_t *done = &to->val.done;
    memset(done, 0, sizeof *done);
    to->tag = EXPORTS_WHARF_PLUGIN_PROMPTS_PROMPT_OUTCOME_DONE;
    done->messages.len = from->count;
    done->messages.ptr = taken(from->count * sizeof *done->messages.ptr);
    size_t at = 0;
    for (const block *one = from->first; one; one = one->next, at++) {
        done->messages.ptr[at].role = one->role;
        done->messages.ptr[at].content = one->content;
    }
    done->more.is_some = from->more != NULL;
    done->more.val = to_string(from->more);
    return true;
}

static const wharf_json *from_pairs(plugin_list_tuple2_string_string_t pairs) {
    wharf_json *object = wharf_object();
    for (size_t at = 0; at < pairs.len; at++) wharf_set(object, from_string(pairs.ptr[at].f0), from_string(pairs.ptr[at].f1));
    return object;
}

bool exports_wharf_plugin_prompts_get_prompt(
    plugin_string_t *name, plugin_list_tuple2_string_string_t *args, exports_wharf_plugin_prompts_context_t *context,
    exports_wharf_plugin_prompts_prompt_outcome_t *ret, exports_wharf_plugin_prompts_failure_t *err
) {
    fill();
    wharf_call call = new_call(context);
    call.last = &call.first;
    const char *wanted = from_string(*name);
    const wharf_result *result = unknown("prompt", wanted);
    for (size_t at = 0; at < plugin.prompt_count; at++) {
        if (strcmp(plugin.prompts[at].name, wanted)) continue;
        result = ran(plugin.prompts[at].run(&call, from_pairs(*args)), wanted);
        break;
    }
    bool fine = to_prompt_outcome(result, &call, ret, err);
    plugin_string_free(name);
    plugin_list_tuple2_string_string_free(args);
    exports_wharf_plugin_prompts_context_free(context);
    return ended(fine);
}

bool exports_wharf_plugin_completions_complete(
    exports_wharf_plugin_completions_target_t *target, plugin_string_t *argument, plugin_string_t *value,
    plugin_list_tuple2_string_string_t *others, exports_wharf_plugin_completions_completion_t *ret,
    exports_wharf_plugin_completions_failure_t *err
) {
    enum { MOST = 100 };
    fill();
    bool is_prompt = target->tag == EXPORTS_WHARF_PLUGIN_COMPLETIONS_TARGET_PROMPT;
    const char *wanted = from_string(is_prompt ? target->val.prompt : target->val.template_), *of = from_string(*argument);
    const wharf_result *result = wharf_blocks();
    for (size_t at = 0; at < plugin.completion_count; at++) {
        const wharf_completion *one = &plugin.completions[at];
        const char *has = is_prompt ? one->prompt : one->uri_template;
        if (!has || strcmp(has, wanted) || strcmp(one->argument, of)) continue;
        result = ran(one->run(from_string(*value), from_pairs(*others)), wanted);
        break;
    }
    bool fine = result->kind == FAILURE ? failed(err, result) : true;
    if (fine) {
        ret->values.len = 0;
        ret->values.ptr = taken(result->count * sizeof *ret->values.ptr);
        for (const block *one = result->first; one && ret->values.len < MOST; one = one->next) {
            if (one->content.tag == WHARF_PLUGIN_TYPES_CONTENT_TEXT) ret->values.ptr[ret->values.len++] = one->content.val.text;
        }
        ret->total.is_some = true;
        ret->total.val = (uint32_t)result->count;
        ret->has_more = result->count > MOST;
    }
    exports_wharf_plugin_completions_target_free(target);
    plugin_string_free(argument);
    plugin_string_free(value);
    plugin_list_tuple2_string_string_free(others);
    return ended(fine);
}

/* ---- The host ---- */

/* What imports take is only read, so these texts need no copy. */
static plugin_string_t lent(const char *text) {
    plugin_string_t to = {(uint8_t *)text, strlen(text)};
    return to;
}

void wharf_log(wharf_level level, const char *format, ...) {
    va_list values;
    va_start(values, format);
    plugin_string_t message = lent(wharf_print(format, values));
    va_end(values);
    wharf_plugin_host_log((wharf_plugin_host_level_t)level, &message, NULL);
}

void wharf_progress(double done, double total, const char *message) {
    plugin_string_t text = message ? lent(message) : (plugin_string_t){NULL, 0};
    wharf_plugin_host_progress(done, total != 0 ? &total : NULL, message ? &text : NULL);
}

void wharf_tools_changed(void) { wharf_plugin_host_list_changed(WHARF_PLUGIN_HOST_KIND_TOOLS); }

void wharf_resources_changed(void) { wharf_plugin_host_list_changed(WHARF_PLUGIN_HOST_KIND_RESOURCES); }

void wharf_prompts_changed(void) { wharf_plugin_host_list_changed(WHARF_PLUGIN_HOST_KIND_PROMPTS); }

void wharf_resource_updated(const char *uri) {
    plugin_string_t text = lent(uri);
    wharf_plugin_host_resource_updated(&text);
}

const wharf_json *wharf_config(void) {
    plugin_string_t text;
    wharf_plugin_host_config(&text);
    const wharf_json *config = wharf_parse(from_string(text), text.len);
    plugin_string_free(&text);
    return config;
}

const wharf_directory *wharf_directories(void) {
    wharf_plugin_host_list_directory_t from;
    wharf_plugin_host_directories(&from);
    wharf_directory *to = wharf_alloc((from.len + 1) * sizeof *to);
    for (size_t at = 0; at < from.len; at++) {
        to[at].path = from_string(from.ptr[at].path);
        to[at].writable = from.ptr[at].writable;
    }
    wharf_plugin_host_list_directory_free(&from);
    return to;
}
