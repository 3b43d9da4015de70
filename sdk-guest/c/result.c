/* Results of tools, resources, prompts and completions. */

#include <stdlib.h>
#include <string.h>

#include "result.h"

void *wharf_taken(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) abort();
    return memory;
}

plugin_string_t wharf_to_string(const char *text) {
    plugin_string_t to = {NULL, text ? strlen(text) : 0};
    if (to.len) to.ptr = memcpy(wharf_taken(to.len), text, to.len);
    return to;
}

plugin_option_string_t wharf_to_option(const char *text) {
    plugin_option_string_t to = {text != NULL, wharf_to_string(text)};
    return to;
}

plugin_list_u8_t wharf_to_bytes(const void *data, size_t size) {
    plugin_list_u8_t to = {NULL, size};
    if (size) to.ptr = memcpy(wharf_taken(size), data, size);
    return to;
}

wharf_result *wharf_result_of(result_kind kind) {
    wharf_result *result = wharf_alloc(sizeof *result);
    result->kind = kind;
    result->last = &result->first;
    return result;
}

static wharf_result *printed(result_kind kind, int32_t code, const char *format, va_list values) {
    wharf_result *result = wharf_result_of(kind);
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
    wharf_result *result = wharf_result_of(STRUCTURED);
    result->text = wharf_copied(json);
    return result;
}

wharf_result *wharf_error(int32_t code, const char *message, const char *data) {
    wharf_result *result = wharf_result_of(FAILURE);
    result->code = code;
    result->text = wharf_copied(message);
    result->data = wharf_copied(data);
    return result;
}

wharf_result *wharf_not_found(const char *uri) {
    return wharf_error(RESOURCE_NOT_FOUND, "Resource not found", wharf_format("{\"uri\":%s}", wharf_quote(uri)));
}

wharf_result *wharf_blocks(void) { return wharf_result_of(BLOCKS); }

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
    added(result, WHARF_PLUGIN_TYPES_CONTENT_TEXT)->val.text = wharf_to_string(text);
}

void wharf_add_image(wharf_result *result, const char *mime_type, const void *data, size_t size) {
    wharf_plugin_types_media_t media = {wharf_to_string(mime_type), wharf_to_bytes(data, size)};
    added(result, WHARF_PLUGIN_TYPES_CONTENT_IMAGE)->val.image = media;
}

void wharf_add_audio(wharf_result *result, const char *mime_type, const void *data, size_t size) {
    wharf_plugin_types_media_t media = {wharf_to_string(mime_type), wharf_to_bytes(data, size)};
    added(result, WHARF_PLUGIN_TYPES_CONTENT_AUDIO)->val.audio = media;
}

void wharf_add_link(wharf_result *result, const char *uri, const char *name, const char *mime_type) {
    wharf_plugin_types_resource_link_t link = {wharf_to_string(uri), wharf_to_string(name), wharf_to_option(mime_type), {false, {NULL, 0}}};
    added(result, WHARF_PLUGIN_TYPES_CONTENT_LINK)->val.link = link;
}

void wharf_add_resource_text(wharf_result *result, const char *uri, const char *mime_type, const char *text) {
    wharf_plugin_types_resource_contents_t *to = &added(result, WHARF_PLUGIN_TYPES_CONTENT_EMBEDDED)->val.embedded;
    to->uri = wharf_to_string(uri);
    to->mime_type = wharf_to_option(mime_type);
    to->body.tag = WHARF_PLUGIN_TYPES_BODY_TEXT;
    to->body.val.text = wharf_to_string(text);
}

void wharf_add_resource_bytes(wharf_result *result, const char *uri, const char *mime_type, const void *data, size_t size) {
    wharf_plugin_types_resource_contents_t *to = &added(result, WHARF_PLUGIN_TYPES_CONTENT_EMBEDDED)->val.embedded;
    to->uri = wharf_to_string(uri);
    to->mime_type = wharf_to_option(mime_type);
    to->body.tag = WHARF_PLUGIN_TYPES_BODY_BYTES;
    to->body.val.bytes = wharf_to_bytes(data, size);
}

void wharf_add_raw(wharf_result *result, const char *json) {
    added(result, WHARF_PLUGIN_TYPES_CONTENT_RAW)->val.raw = wharf_to_string(json);
}

void wharf_assistant_says(wharf_result *result) { result->assistant_says = true; }

void wharf_user_says(wharf_result *result) { result->assistant_says = false; }

void wharf_set_structured(wharf_result *result, const char *json) { result->structured = wharf_copied(json); }

void wharf_set_error(wharf_result *result) { result->is_error = true; }

void wharf_set_more(wharf_result *result, const char *json) { result->more = wharf_copied(json); }
