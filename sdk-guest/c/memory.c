/* An arena allocator, whose memory lives until the end of a call. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct piece {
    struct piece *before;
    size_t used, size;
    _Alignas(16) char bytes[];
} piece;

static piece *newest;

void *wharf_alloc(size_t size) {
    /* A size near SIZE_MAX would overflow when it is rounded up. */
    if (size > SIZE_MAX / 2) abort();
    size = (size + 15) & ~(size_t)15;
    if (!newest || newest->size - newest->used < size) {
        size_t room = size > 4096 ? size : 4096;
        piece *made = calloc(1, sizeof(piece) + room);
        if (!made) abort();
        made->before = newest;
        made->size = room;
        newest = made;
    }
    void *memory = newest->bytes + newest->used;
    newest->used += size;
    return memory;
}

void wharf_free_all(void) {
    while (newest) {
        piece *before = newest->before;
        free(newest);
        newest = before;
    }
}

char *wharf_copy(const void *bytes, size_t length) {
    char *copy = wharf_alloc(length + 1);
    if (length) memcpy(copy, bytes, length);
    return copy;
}

char *wharf_copied(const char *text) { return text ? wharf_copy(text, strlen(text)) : NULL; }

char *wharf_print(const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    int length = vsnprintf(NULL, 0, format, values);
    char *text = wharf_alloc(length > 0 ? (size_t)length + 1 : 1);
    if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

const char *wharf_format(const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *text = wharf_print(format, values);
    va_end(values);
    return text;
}
