/* Tests of the code that needs no host: cc -Wall -Wextra -Werror -o /tmp/json tests/json.c json.c memory.c && /tmp/json */

#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "../internal.h"

static const wharf_json *parsed(const char *text) { return wharf_parse(text, strlen(text)); }

static void values_are_read(void) {
    const wharf_json *all = parsed(
        " { \"a\" : [ 1 , -2.5e3, true, false, null, \"x\" ], \"b\": {\"c\": \"\\u00e9\\ud83d\\ude00\\n\\\"\\ud800\"}, \"\": 0 } ");
    assert(all && all->kind == WHARF_OBJECT);
    const wharf_json *one = wharf_member(all, "a")->first;
    assert(one->number == 1 && (one = one->next)->number == -2500 && (one = one->next)->boolean);
    assert((one = one->next)->kind == WHARF_BOOL && !one->boolean && (one = one->next)->kind == WHARF_NULL);
    assert(!strcmp((one = one->next)->text, "x") && !one->next);
    assert(!strcmp(wharf_string(wharf_member(all, "b"), "c", ""), "\xc3\xa9\xf0\x9f\x98\x80\n\"\xef\xbf\xbd"));
    assert(!strcmp(wharf_json_text(wharf_member(all, "a")), "[ 1 , -2.5e3, true, false, null, \"x\" ]"));
    assert(wharf_number(all, "", 7) == 0 && wharf_number(all, "z", 7) == 7 && wharf_number(all, "a", 7) == 7);
    assert(!wharf_member(NULL, "a") && wharf_bool(NULL, "a", true));
    assert(parsed("\"a\\u0000b\"")->length == 3);
}

static void what_is_no_json_is_refused(void) {
    static const struct {
        const char *text, *problem;
    } table[] = {
        {"", "the text ends too early at byte 0"},
        {"{", "a key is missing at byte 1"},
        {"{\"a\"", "a colon is missing at byte 4"},
        {"{\"a\":}", "there is no value at byte 5"},
        {"[1,]", "there is no value at byte 3"},
        {"[1 2]", "a comma is missing at byte 3"},
        {"[1", "the text ends too early at byte 2"},
        {"01", "there is text after the value at byte 1"},
        {"1.", "a number has no digit after its point at byte 2"},
        {"1e", "a number has no digit in its exponent at byte 2"},
        {"-", "there is no value at byte 1"},
        {"tru", "there is no value at byte 0"},
        {"\"a", "a string does not end at byte 1"},
        {"\"\\", "a string does not end at byte 1"},
        {"\"\\\"", "a string does not end at byte 1"},
        {"\"\n\"", "a string has a control character at byte 1"},
        {"\"\\x\"", "a string has an unknown escape at byte 3"},
        {"\"\\u12g4\"", "a string has an invalid \\u escape at byte 5"},
        {"'a'", "there is no value at byte 0"},
    };
    for (size_t at = 0; at < sizeof table / sizeof *table; at++) {
        assert(!parsed(table[at].text));
        if (strcmp(wharf_parse_problem(), table[at].problem)) printf("%s: %s\n", table[at].text, wharf_parse_problem());
        assert(!strcmp(wharf_parse_problem(), table[at].problem));
    }
    char deep[200];
    memset(deep, '[', sizeof deep);
    assert(!wharf_parse(deep, sizeof deep) && strstr(wharf_parse_problem(), "too deep"));
}

static void strings_are_written(void) {
    assert(!strcmp(wharf_quote("a\"\\\n\x01\xc3\xa9"), "\"a\\\"\\\\\\u000a\\u0001\xc3\xa9\""));
    wharf_json *object = wharf_object();
    assert(!strcmp(wharf_json_text(object), "{}"));
    wharf_set(object, "a", "1");
    wharf_set(object, "b", "\"");
    assert(!strcmp(wharf_json_text(object), "{\"a\":\"1\",\"b\":\"\\\"\"}"));
    assert(!strcmp(wharf_string(object, "b", ""), "\""));
}

static void templates_match(void) {
    static const struct {
        const char *template, *uri, *variables;
    } table[] = {
        {"note:///{day}", "note:///today", "{\"day\":\"today\"}"},
        {"note:///{day}", "note:///a/b", NULL},
        {"file:///{+path}", "file:///a/b.txt", "{\"path\":\"a/b.txt\"}"},
        {"x://{a}/{b}", "x://1/2", "{\"a\":\"1\",\"b\":\"2\"}"},
        {"x://{a}-{b}", "x://1-2-3", "{\"a\":\"1-2\",\"b\":\"3\"}"},
        {"x://{a}/c", "x://1/d", NULL},
        {"x://fixed", "x://fixed", "{}"},
    };
    for (size_t at = 0; at < sizeof table / sizeof *table; at++) {
        const wharf_json *found = wharf_match(table[at].template, table[at].uri);
        assert(!found == !table[at].variables);
        if (found) assert(!strcmp(wharf_json_text(found), table[at].variables));
    }
}

int main(void) {
    values_are_read();
    what_is_no_json_is_refused();
    strings_are_written();
    templates_match();
    wharf_free_all();
    return 0;
}
