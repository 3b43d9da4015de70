/* The SDK's own representation of results, before their conversion to types of the contract. */
#ifndef WHARF_RESULT_H
#define WHARF_RESULT_H

#include "gen/plugin.h"
#include "internal.h"

/* Copies that the generated code frees after the host has read them. */
void *wharf_taken(size_t size);
plugin_string_t wharf_to_string(const char *text);
plugin_option_string_t wharf_to_option(const char *text);
plugin_list_u8_t wharf_to_bytes(const void *data, size_t size);

typedef struct block {
    struct block *next;
    wharf_plugin_types_role_t role;
    wharf_plugin_types_content_t content;
} block;

/* The codes for which the contract has a kind of failure. */
enum { INVALID_PARAMS = -32602, RESOURCE_NOT_FOUND = -32002 };

typedef enum { TEXT, STRUCTURED, BLOCKS, FAILURE, PENDING } result_kind;

struct wharf_result {
    result_kind kind;
    const char *text, *structured, *more, *data;
    /* The code of a protocol error; 0 if the operation itself failed. */
    int32_t code;
    bool is_error, assistant_says;
    block *first, **last;
    size_t count;
};

wharf_result *wharf_result_of(result_kind kind);

#endif
