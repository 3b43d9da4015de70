/* The exports of the component, in the types of the contract. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "result.h"

/* ---- Registration ---- */

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

/* Grows a list by one element. The lists outlive the call, so they are not in its arena. */
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
    /* Without a seed, rand() would return the same numbers in every call, because each runs in a new instance. */
    unsigned seed;
    if (!getentropy(&seed, sizeof seed)) srand(seed);
    wharf_plugin();
}

static const char *from_string(plugin_string_t from) { return wharf_copy(from.ptr, from.len); }

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

bool wharf_can(const wharf_call *call, unsigned capabilities) {
    return (call->context->capabilities & capabilities) == capabilities;
}

bool wharf_wants(const wharf_call *call, unsigned reports) { return (call->context->reports & reports) == reports; }

const char *wharf_caller_id(const wharf_call *call) {
    return call->context->caller.is_some ? from_string(call->context->caller.val) : NULL;
}

const wharf_json *wharf_caller(const wharf_call *call) {
    const wharf_plugin_types_context_t *from = call->context;
    const char *client = "null";
    if (from->client.is_some) {
        const wharf_plugin_types_client_info_t *info = &from->client.val;
        const char *title = info->title.is_some ? wharf_format(",\"title\":%s", wharf_quote(from_string(info->title.val))) : "";
        client = wharf_format("{\"name\":%s,\"version\":%s%s}", wharf_quote(from_string(info->name)),
                              wharf_quote(from_string(info->version)), title);
    }
    /* `more` is an object with members, so what follows its brace continues this one. */
    const char *text = wharf_format("{\"revision\":%s,\"client\":%s,%s", wharf_quote(from_string(from->revision)), client,
                                    from_string(from->more) + 1);
    return wharf_parse(text, strlen(text));
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
    one->message = wharf_copied(message);
    one->text = wharf_copied(text);
    one->tag = tag;
    *call->last = one;
    call->last = &one->next;
    call->count++;
    return NULL;
}

const wharf_answer *wharf_ask(wharf_call *call, const char *key, const char *message, const char *schema) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_FORM, key, message, schema);
}

const wharf_answer *wharf_ask_url(wharf_call *call, const char *key, const char *message, const char *url) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_URL, key, message, url);
}

const wharf_answer *wharf_sample(wharf_call *call, const char *key, const char *parameters) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_SAMPLING, key, NULL, parameters);
}

const wharf_answer *wharf_roots(wharf_call *call, const char *key) {
    return asked(call, WHARF_PLUGIN_TYPES_QUESTION_ROOTS, key, NULL, NULL);
}

wharf_result *wharf_pending(wharf_call *call) {
    return call->count ? wharf_result_of(PENDING) : wharf_fail("wharf_pending was called, but every question is answered");
}

void wharf_keep(wharf_call *call, const char *text) { call->keeps = wharf_copied(text); }

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
    wharf_plugin_types_round_t round = {{wharf_taken(call->count * sizeof *round.questions.ptr), call->count}, {false, {NULL, 0}}};
    size_t at = 0;
    for (const question *one = call->first; one; one = one->next, at++) {
        wharf_plugin_types_question_t *to = &round.questions.ptr[at].f1;
        round.questions.ptr[at].f0 = wharf_to_string(one->key);
        to->tag = one->tag;
        if (one->tag == WHARF_PLUGIN_TYPES_QUESTION_FORM) {
            to->val.form.message = wharf_to_string(one->message);
            to->val.form.schema = wharf_to_string(one->text);
        } else if (one->tag == WHARF_PLUGIN_TYPES_QUESTION_URL) {
            to->val.url.message = wharf_to_string(one->message);
            to->val.url.url = wharf_to_string(one->text);
        } else if (one->tag == WHARF_PLUGIN_TYPES_QUESTION_SAMPLING) {
            to->val.sampling = wharf_to_string(one->text);
        }
    }
    if (call->keeps) {
        round.state.is_some = true;
        round.state.val = wharf_to_bytes(call->keeps, strlen(call->keeps));
    }
    return round;
}

/* ---- Exports ---- */

static bool failed(wharf_plugin_types_failure_t *to, const wharf_result *from) {
    to->message = wharf_to_string(from->text);
    switch (from->code) {
    case 0:
        to->kind.tag = WHARF_PLUGIN_TYPES_FAILURE_KIND_FAILED;
        break;
    case INVALID_PARAMS:
        to->kind.tag = WHARF_PLUGIN_TYPES_FAILURE_KIND_INVALID_PARAMS;
        break;
    case RESOURCE_NOT_FOUND:
        to->kind.tag = WHARF_PLUGIN_TYPES_FAILURE_KIND_NOT_FOUND;
        break;
    default:
        to->kind.tag = WHARF_PLUGIN_TYPES_FAILURE_KIND_OTHER;
        to->kind.val.other = from->code;
    }
    to->data.is_some = from->data != NULL;
    to->data.val = wharf_to_string(from->data);
    return false;
}

static wharf_result *unknown(const char *kind, const char *name) { return wharf_invalid_params("unknown %s: %s", kind, name); }

/* Ends a call: frees its memory. The result for the host was copied before. */
static bool ended(bool fine) {
    wharf_free_all();
    return fine;
}

static exports_wharf_plugin_tools_option_json_t to_tool_json(const char *text) {
    exports_wharf_plugin_tools_option_json_t to = {text != NULL, wharf_to_string(text)};
    return to;
}

static plugin_option_bool_t to_hint(wharf_hint hint) {
    plugin_option_bool_t to = {hint != WHARF_UNSAID, hint == WHARF_YES};
    return to;
}

/* Checks the registration of a tool; returns the mistake, or NULL. */
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

/* Adds to other members of a tool the one that makes wharf ask before a task begins. */
static const char *asking_before_task(const char *more) {
    const wharf_json *given = more ? wharf_parse(more, strlen(more)) : NULL;
    const char *meta = "\"dev.wharf/ask-before-task\":true", *others = "";
    for (const wharf_json *member = given ? given->first : NULL; member; member = member->next) {
        if (strcmp(member->key, "_meta")) {
            others = wharf_format("%s,%s:%s", others, wharf_quote(member->key), wharf_json_text(member));
            continue;
        }
        for (const wharf_json *one = member->first; one; one = one->next) {
            meta = wharf_format("%s,%s:%s", meta, wharf_quote(one->key), wharf_json_text(one));
        }
    }
    return wharf_format("{\"_meta\":{%s}%s}", meta, others);
}

bool exports_wharf_plugin_tools_list_tools(exports_wharf_plugin_tools_list_tool_t *ret, exports_wharf_plugin_tools_failure_t *err) {
    fill();
    wharf_result *mistake = NULL;
    if (!plugin.tool_count && !plugin.resource_count && !plugin.prompt_count) {
        mistake = wharf_fail("the plugin registers nothing: call wharf_add_tool in the function wharf_plugin");
    }
    for (size_t at = 0; at < plugin.tool_count && !mistake; at++) mistake = mistake_in(&plugin.tools[at]);
    if (mistake) return ended(failed(err, mistake));
    ret->ptr = wharf_taken(plugin.tool_count * sizeof *ret->ptr);
    ret->len = plugin.tool_count;
    for (size_t at = 0; at < plugin.tool_count; at++) {
        const wharf_tool *from = &plugin.tools[at].tool;
        exports_wharf_plugin_tools_tool_t *to = &ret->ptr[at];
        exports_wharf_plugin_tools_tool_details_t *details = &to->details.val;
        to->name = wharf_to_string(from->name);
        to->description = wharf_to_string(from->description);
        to->input_schema = wharf_to_string(from->schema ? from->schema : "{\"type\":\"object\",\"properties\":{}}");
        to->details.is_some = true;
        details->title = wharf_to_option(from->title);
        details->output_schema = to_tool_json(from->output_schema);
        details->hints.is_some = from->read_only || from->destructive || from->idempotent || from->open_world;
        details->hints.val.read_only = to_hint(from->read_only);
        details->hints.val.destructive = to_hint(from->destructive);
        details->hints.val.idempotent = to_hint(from->idempotent);
        details->hints.val.open_world = to_hint(from->open_world);
        details->needs = (exports_wharf_plugin_tools_client_capabilities_t)from->needs;
        details->task = (exports_wharf_plugin_tools_task_support_t)from->task;
        details->more = to_tool_json(from->ask_before_task ? asking_before_task(from->more) : from->more);
    }
    return ended(true);
}

static const wharf_result *ran(wharf_result *result, const char *name) {
    return result ? result : wharf_fail("the function of %s returned NULL instead of a result", name);
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
        to->val.text = wharf_to_string(from->text);
        return true;
    case STRUCTURED:
        to->tag = EXPORTS_WHARF_PLUGIN_TOOLS_TOOL_OUTCOME_STRUCTURED;
        to->val.structured = wharf_to_string(from->text);
        return true;
    case BLOCKS:
        break;
    }
    exports_wharf_plugin_tools_tool_result_t *done = &to->val.done;
    to->tag = EXPORTS_WHARF_PLUGIN_TOOLS_TOOL_OUTCOME_DONE;
    done->content.len = from->count;
    done->content.ptr = wharf_taken(from->count * sizeof *done->content.ptr);
    size_t at = 0;
    for (const block *one = from->first; one; one = one->next) done->content.ptr[at++] = one->content;
    done->structured = to_tool_json(from->structured);
    done->is_error = from->is_error;
    done->more = to_tool_json(from->more);
    return true;
}

bool exports_wharf_plugin_tools_call_tool(
    plugin_string_t *name, exports_wharf_plugin_tools_json_t *arguments, exports_wharf_plugin_tools_context_t *context,
    exports_wharf_plugin_tools_tool_outcome_t *ret, exports_wharf_plugin_tools_failure_t *err
) {
    fill();
    wharf_call call = new_call(context);
    call.last = &call.first;
    const char *wanted = from_string(*name);
    const wharf_result *result = unknown("tool", wanted);
    for (size_t at = 0; at < plugin.tool_count; at++) {
        if (strcmp(plugin.tools[at].tool.name, wanted)) continue;
        const wharf_json *parsed = wharf_parse(from_string(*arguments), arguments->len);
        result = parsed ? ran(plugin.tools[at].tool.run(&call, parsed), wanted)
                        : wharf_fail("the arguments are not JSON: %s", wharf_parse_problem());
        break;
    }
    bool fine = to_tool_outcome(result, &call, ret, err);
    plugin_string_free(name);
    plugin_string_free(arguments);
    exports_wharf_plugin_tools_context_free(context);
    return ended(fine);
}

bool exports_wharf_plugin_resources_list_resources(
    exports_wharf_plugin_resources_list_resource_entry_t *ret, exports_wharf_plugin_resources_failure_t *err
) {
    (void)err;
    fill();
    ret->len = 0;
    ret->ptr = wharf_taken(plugin.resource_count * sizeof *ret->ptr);
    for (size_t at = 0; at < plugin.resource_count; at++) {
        const wharf_resource *from = &plugin.resources[at];
        if (!from->uri) continue;
        exports_wharf_plugin_resources_resource_entry_t *to = &ret->ptr[ret->len++];
        to->uri = wharf_to_string(from->uri);
        to->name = wharf_to_string(from->name);
        to->description = wharf_to_option(from->description);
        to->mime_type = wharf_to_option(from->mime_type);
        to->more.is_some = from->more != NULL;
        to->more.val = wharf_to_string(from->more);
    }
    return ended(true);
}

bool exports_wharf_plugin_resources_list_templates(
    exports_wharf_plugin_resources_list_resource_template_t *ret, exports_wharf_plugin_resources_failure_t *err
) {
    (void)err;
    fill();
    ret->len = 0;
    ret->ptr = wharf_taken(plugin.resource_count * sizeof *ret->ptr);
    for (size_t at = 0; at < plugin.resource_count; at++) {
        const wharf_resource *from = &plugin.resources[at];
        if (from->uri || !from->uri_template) continue;
        exports_wharf_plugin_resources_resource_template_t *to = &ret->ptr[ret->len++];
        to->uri_template = wharf_to_string(from->uri_template);
        to->name = wharf_to_string(from->name);
        to->description = wharf_to_option(from->description);
        to->mime_type = wharf_to_option(from->mime_type);
        to->more.is_some = from->more != NULL;
        to->more.val = wharf_to_string(from->more);
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
        to->val.text = wharf_to_string(from->text);
        return true;
    }
    to->tag = EXPORTS_WHARF_PLUGIN_RESOURCES_READ_OUTCOME_DONE;
    to->val.done.len = 0;
    to->val.done.ptr = wharf_taken(from->count * sizeof *to->val.done.ptr);
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
    ret->ptr = wharf_taken(plugin.prompt_count * sizeof *ret->ptr);
    for (size_t at = 0; at < plugin.prompt_count; at++) {
        const wharf_prompt *from = &plugin.prompts[at];
        exports_wharf_plugin_prompts_prompt_t *to = &ret->ptr[at];
        size_t count = 0, most = sizeof from->arguments / sizeof *from->arguments;
        while (count < most && from->arguments[count].name) count++;
        to->name = wharf_to_string(from->name);
        to->description = wharf_to_option(from->description);
        to->arguments.len = count;
        to->arguments.ptr = wharf_taken(count * sizeof *to->arguments.ptr);
        for (size_t one = 0; one < count; one++) {
            to->arguments.ptr[one].name = wharf_to_string(from->arguments[one].name);
            to->arguments.ptr[one].description = wharf_to_option(from->arguments[one].description);
            to->arguments.ptr[one].required = from->arguments[one].required;
        }
        to->more.is_some = from->more != NULL;
        to->more.val = wharf_to_string(from->more);
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
        to->val.text = wharf_to_string(from->text);
        return true;
    }
    exports_wharf_plugin_prompts_prompt_result_t *done = &to->val.done;
    memset(done, 0, sizeof *done);
    to->tag = EXPORTS_WHARF_PLUGIN_PROMPTS_PROMPT_OUTCOME_DONE;
    done->messages.len = from->count;
    done->messages.ptr = wharf_taken(from->count * sizeof *done->messages.ptr);
    size_t at = 0;
    for (const block *one = from->first; one; one = one->next, at++) {
        done->messages.ptr[at].role = one->role;
        done->messages.ptr[at].content = one->content;
    }
    done->more.is_some = from->more != NULL;
    done->more.val = wharf_to_string(from->more);
    return true;
}

static const wharf_json *from_pairs(plugin_list_tuple2_string_string_t pairs) {
    wharf_json *object = wharf_object();
    for (size_t at = 0; at < pairs.len; at++) wharf_set(object, from_string(pairs.ptr[at].f0), from_string(pairs.ptr[at].f1));
    return object;
}

bool exports_wharf_plugin_prompts_get_prompt(
    plugin_string_t *name, plugin_list_tuple2_string_string_t *arguments, exports_wharf_plugin_prompts_context_t *context,
    exports_wharf_plugin_prompts_prompt_outcome_t *ret, exports_wharf_plugin_prompts_failure_t *err
) {
    fill();
    wharf_call call = new_call(context);
    call.last = &call.first;
    const char *wanted = from_string(*name);
    const wharf_result *result = unknown("prompt", wanted);
    for (size_t at = 0; at < plugin.prompt_count; at++) {
        if (strcmp(plugin.prompts[at].name, wanted)) continue;
        result = ran(plugin.prompts[at].run(&call, from_pairs(*arguments)), wanted);
        break;
    }
    bool fine = to_prompt_outcome(result, &call, ret, err);
    plugin_string_free(name);
    plugin_list_tuple2_string_string_free(arguments);
    exports_wharf_plugin_prompts_context_free(context);
    return ended(fine);
}

bool exports_wharf_plugin_completions_complete(
    exports_wharf_plugin_completions_target_t *target, plugin_string_t *argument, plugin_string_t *value,
    plugin_list_tuple2_string_string_t *arguments, exports_wharf_plugin_completions_completion_t *ret,
    exports_wharf_plugin_completions_failure_t *err
) {
    enum { MAX_VALUES = 100 };
    fill();
    bool is_prompt = target->tag == EXPORTS_WHARF_PLUGIN_COMPLETIONS_TARGET_PROMPT;
    const char *wanted = from_string(is_prompt ? target->val.prompt : target->val.template_), *of = from_string(*argument);
    const wharf_result *result = wharf_blocks();
    for (size_t at = 0; at < plugin.completion_count; at++) {
        const wharf_completion *one = &plugin.completions[at];
        const char *has = is_prompt ? one->prompt : one->uri_template;
        if (!has || strcmp(has, wanted) || strcmp(one->argument, of)) continue;
        result = ran(one->run(from_string(*value), from_pairs(*arguments)), wanted);
        break;
    }
    bool fine = result->kind == FAILURE ? failed(err, result) : true;
    if (fine) {
        ret->values.len = 0;
        ret->values.ptr = wharf_taken(result->count * sizeof *ret->values.ptr);
        for (const block *one = result->first; one && ret->values.len < MAX_VALUES; one = one->next) {
            if (one->content.tag == WHARF_PLUGIN_TYPES_CONTENT_TEXT) ret->values.ptr[ret->values.len++] = one->content.val.text;
        }
        ret->total.is_some = true;
        ret->total.val = (uint32_t)result->count;
        ret->has_more = result->count > MAX_VALUES;
    }
    exports_wharf_plugin_completions_target_free(target);
    plugin_string_free(argument);
    plugin_string_free(value);
    plugin_list_tuple2_string_string_free(arguments);
    return ended(fine);
}
