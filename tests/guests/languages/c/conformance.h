/* The fixture that the official conformance suite expects on a server, and after it the tools that test each ability. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "wharf.h"

extern const unsigned char PNG[], WAV[];
extern const size_t PNG_SIZE, WAV_SIZE;

void wait_ms(unsigned milliseconds);

/* In the order in which they are listed: the suite calls the first tool without arguments and reads the first resource. */
void add_plain(void);
void add_asking(void);
void add_tasks(void);
void add_abilities(void);
void add_resources(void);
void add_prompts(void);

wharf_result *ask_name(wharf_call *call, const wharf_json *args);

#define TOOL(NAME, DESCRIPTION, RUN, ...) \
    wharf_add_tool((wharf_tool){ .name = NAME, .description = DESCRIPTION, .run = RUN, __VA_ARGS__ })

#endif
