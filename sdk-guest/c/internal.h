/* Declarations that the SDK's source files share. */
#ifndef WHARF_INTERNAL_H
#define WHARF_INTERNAL_H

#include <stdarg.h>

#include "wharf.h"

void wharf_free_all(void);
/* Copies bytes into memory of the call, with a NUL after them. */
char *wharf_copy(const void *bytes, size_t length);

/* Copies a NUL-terminated text, so that the author's own need not live until the end of the call. NULL stays NULL. */
char *wharf_copied(const char *text);
char *wharf_print(const char *format, va_list values);
/* Why the last text could not be parsed as JSON, and at which byte. */
const char *wharf_parse_problem(void);
/* Returns the variables of a URI that matches a template, as an object; NULL if it does not match. */
const wharf_json *wharf_match(const char *uri_template, const char *uri);
/* Returns an empty JSON object, to which wharf_set adds strings. */
wharf_json *wharf_object(void);
void wharf_set(wharf_json *object, const char *key, const char *text);

#endif
