/* The functions of the host that a plugin calls. */

#include <string.h>

#include "gen/plugin.h"
#include "internal.h"

/* Imports only read their arguments, so these texts need no copy. */
static plugin_string_t lent(const char *text) {
    plugin_string_t to = {(uint8_t *)text, strlen(text)};
    return to;
}

void wharf_log(wharf_level level, const char *format, ...) {
    va_list values;
    va_start(values, format);
    plugin_string_t message = lent(wharf_print(format, values));
    va_end(values);
    wharf_plugin_logging_log((wharf_plugin_logging_level_t)level, &message, NULL);
}

void wharf_progress(double done, double total, const char *message) {
    plugin_string_t text = message ? lent(message) : (plugin_string_t){NULL, 0};
    wharf_plugin_progress_report(done, total != 0 ? &total : NULL, message ? &text : NULL);
}

void wharf_tools_changed(void) { wharf_plugin_announcements_list_changed(WHARF_PLUGIN_ANNOUNCEMENTS_KIND_TOOLS); }

void wharf_resources_changed(void) { wharf_plugin_announcements_list_changed(WHARF_PLUGIN_ANNOUNCEMENTS_KIND_RESOURCES); }

void wharf_prompts_changed(void) { wharf_plugin_announcements_list_changed(WHARF_PLUGIN_ANNOUNCEMENTS_KIND_PROMPTS); }

void wharf_resource_updated(const char *uri) {
    plugin_string_t text = lent(uri);
    wharf_plugin_announcements_resource_updated(&text);
}

const wharf_json *wharf_config(void) {
    plugin_string_t text;
    wharf_plugin_environment_config(&text);
    const wharf_json *config = wharf_parse(wharf_copy(text.ptr, text.len), text.len);
    plugin_string_free(&text);
    return config;
}

const wharf_directory *wharf_directories(void) {
    wharf_plugin_environment_list_directory_t from;
    wharf_plugin_environment_directories(&from);
    wharf_directory *to = wharf_alloc((from.len + 1) * sizeof *to);
    for (size_t at = 0; at < from.len; at++) {
        to[at].path = wharf_copy(from.ptr[at].path.ptr, from.ptr[at].path.len);
        to[at].writable = from.ptr[at].writable;
    }
    wharf_plugin_environment_list_directory_free(&from);
    return to;
}
