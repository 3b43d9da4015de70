/* What the files of the SDK share. */
#ifndef WHARF_INTERNAL_H
#define WHARF_INTERNAL_H

#include <stdarg.h>

#include "wharf.h"

void wharf_free_all(void);
/* A copy with a NUL after it. */
char *wharf_copy(const void *bytes, size_t length);

/* The same for a text that ends in a zero, or none: what the author gives need not outlive the call. */
char *wharf_copied(const char *text);
char *wharf_print(const char *format, va_list values);
/* Why the last text was no JSON, and at which byte. */
const char *wharf_parse_problem(void);
/* The variables of a URI that fits a template, as an object; NULL if it does not fit. */
const wharf_json *wharf_match(const char *uri_template, const char *uri);
/* An object of strings, to which more can be added. */
wharf_json *wharf_object(void);
void wharf_set(wharf_json *object, const char *key, const char *text);

#endif
