/* Parses JSON strictly, into memory of the call, and writes strings and objects of strings. */

#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* The host passes on no schema or argument that is nested deeper than this. */
enum { MAX_DEPTH = 64 };

typedef struct {
    const char *start, *at, *end;
    const char *problem;
} reader;

static const char *last_problem = "";

const char *wharf_parse_problem(void) { return last_problem; }

static bool read_value(reader *from, wharf_json *to, int depth);

static bool fails(reader *from, const char *problem) {
    if (!from->problem) from->problem = wharf_format("%s at byte %zu", problem, (size_t)(from->at - from->start));
    return false;
}

static void skip_space(reader *from) {
    while (from->at < from->end && strchr(" \t\n\r", *from->at) && *from->at) from->at++;
}

static bool read_word(reader *from, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(from->end - from->at) < length || memcmp(from->at, word, length)) return fails(from, "there is no value");
    from->at += length;
    return true;
}

static bool digits(reader *from) {
    const char *start = from->at;
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9') from->at++;
    return from->at > start;
}

static bool read_number(reader *from, wharf_json *to) {
    const char *start = from->at;
    if (*from->at == '-') from->at++;
    if (from->at < from->end && *from->at == '0') {
        from->at++;
    } else if (!digits(from)) {
        return fails(from, "there is no value");
    }
    if (from->at < from->end && *from->at == '.') {
        from->at++;
        if (!digits(from)) return fails(from, "a number has no digit after its point");
    }
    if (from->at < from->end && (*from->at == 'e' || *from->at == 'E')) {
        from->at++;
        if (from->at < from->end && (*from->at == '+' || *from->at == '-')) from->at++;
        if (!digits(from)) return fails(from, "a number has no digit in its exponent");
    }
    to->kind = WHARF_NUMBER;
    to->number = strtod(wharf_copy(start, (size_t)(from->at - start)), NULL);
    return true;
}

static int hex(reader *from) {
    int value = 0;
    for (int digit = 0; digit < 4; digit++, from->at++) {
        if (from->at >= from->end) return -1;
        char c = *from->at;
        int one = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (one < 0) return -1;
        value = value * 16 + one;
    }
    return value;
}

static size_t utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t at = length - 1; at > 0; at--) {
        to[at] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    to[0] = (char)((0xf0 << (4 - length)) | code);
    return length;
}

/* Texts from the host are valid UTF-8, so bytes above 127 are copied unchanged. */
static bool read_string(reader *from, const char **text, size_t *length) {
    const char *close = ++from->at;
    while (close < from->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= from->end) return fails(from, "a string does not end");
    /* An escape is at least as long as the character it stands for. */
    char *to = wharf_alloc((size_t)(close - from->at) + 1);
    size_t used = 0;
    while (*from->at != '"') {
        unsigned char c = (unsigned char)*from->at;
        if (c < 0x20) return fails(from, "a string has a control character");
        from->at++;
        if (c != '\\') {
            to[used++] = (char)c;
            continue;
        }
        static const char named[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
        char escape = *from->at++;
        const char *found = escape ? strchr(named, escape) : NULL;
        if (found) {
            to[used++] = meant[found - named];
            continue;
        }
        if (escape != 'u') return fails(from, "a string has an unknown escape");
        int high = hex(from);
        if (high < 0) return fails(from, "a string has an invalid \\u escape");
        uint32_t code = (uint32_t)high;
        if (high >= 0xd800 && high < 0xdc00 && from->end - from->at > 6 && from->at[0] == '\\' && from->at[1] == 'u') {
            const char *kept = from->at;
            from->at += 2;
            int low = hex(from);
            if (low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            } else {
                from->at = kept;
            }
        }
        /* A surrogate without its partner is not a character. */
        used += utf8(to + used, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    }
    from->at++;
    *text = to;
    *length = used;
    return true;
}

static bool read_many(reader *from, wharf_json *to, int depth) {
    bool is_object = *from->at == '{';
    char close = is_object ? '}' : ']';
    to->kind = is_object ? WHARF_OBJECT : WHARF_LIST;
    if (depth >= MAX_DEPTH) return fails(from, "the nesting is too deep");
    from->at++;
    skip_space(from);
    if (from->at < from->end && *from->at == close) {
        from->at++;
        return true;
    }
    const wharf_json **place = &to->first;
    for (;;) {
        wharf_json *one = wharf_alloc(sizeof *one);
        skip_space(from);
        if (is_object) {
            size_t length;
            if (from->at >= from->end || *from->at != '"') return fails(from, "a key is missing");
            if (!read_string(from, &one->key, &length)) return false;
            skip_space(from);
            if (from->at >= from->end || *from->at++ != ':') return fails(from, "a colon is missing");
        }
        if (!read_value(from, one, depth + 1)) return false;
        *place = one;
        place = (const wharf_json **)&one->next;
        skip_space(from);
        if (from->at >= from->end) return fails(from, "the text ends too early");
        if (*from->at == close) {
            from->at++;
            return true;
        }
        if (*from->at != ',') return fails(from, "a comma is missing");
        from->at++;
    }
}

static bool read_value(reader *from, wharf_json *to, int depth) {
    skip_space(from);
    to->source = from->at;
    if (from->at >= from->end) return fails(from, "the text ends too early");
    bool fine;
    switch (*from->at) {
    case '{':
    case '[':
        fine = read_many(from, to, depth);
        break;
    case '"':
        to->kind = WHARF_STRING;
        fine = read_string(from, &to->text, &to->length);
        break;
    case 't':
        to->kind = WHARF_BOOL;
        to->boolean = true;
        fine = read_word(from, "true");
        break;
    case 'f':
        to->kind = WHARF_BOOL;
        fine = read_word(from, "false");
        break;
    case 'n':
        fine = read_word(from, "null");
        break;
    default:
        fine = read_number(from, to);
    }
    to->source_length = (size_t)(from->at - to->source);
    return fine;
}

const wharf_json *wharf_parse(const char *text, size_t length) {
    reader from = {text, text, text + length, NULL};
    wharf_json *value = wharf_alloc(sizeof *value);
    bool fine = read_value(&from, value, 0);
    skip_space(&from);
    if (fine && from.at < from.end) fine = fails(&from, "there is text after the value");
    last_problem = fine ? "" : from.problem;
    return fine ? value : NULL;
}

const wharf_json *wharf_member(const wharf_json *object, const char *key) {
    if (!object || object->kind != WHARF_OBJECT) return NULL;
    for (const wharf_json *one = object->first; one; one = one->next) {
        if (!strcmp(one->key, key)) return one;
    }
    return NULL;
}

const char *wharf_string(const wharf_json *object, const char *key, const char *fallback) {
    const wharf_json *one = wharf_member(object, key);
    return one && one->kind == WHARF_STRING ? one->text : fallback;
}

double wharf_number(const wharf_json *object, const char *key, double fallback) {
    const wharf_json *one = wharf_member(object, key);
    return one && one->kind == WHARF_NUMBER ? one->number : fallback;
}

bool wharf_bool(const wharf_json *object, const char *key, bool fallback) {
    const wharf_json *one = wharf_member(object, key);
    return one && one->kind == WHARF_BOOL ? one->boolean : fallback;
}

const char *wharf_json_text(const wharf_json *value) {
    return value ? wharf_copy(value->source, value->source_length) : "null";
}

const char *wharf_quote(const char *text) {
    /* The longest escape has six bytes, for a control character. */
    char *quoted = wharf_alloc(strlen(text) * 6 + 3), *to = quoted;
    *to++ = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
        } else if (c < 0x20) {
            static const char hexadecimal[] = "0123456789abcdef";
            memcpy(to, "\\u00", 4);
            to[4] = hexadecimal[c >> 4];
            to[5] = hexadecimal[c & 15];
            to += 6;
        } else {
            *to++ = (char)c;
        }
    }
    *to++ = '"';
    return quoted;
}

wharf_json *wharf_object(void) {
    wharf_json *object = wharf_alloc(sizeof *object);
    object->kind = WHARF_OBJECT;
    object->source = "{}";
    object->source_length = 2;
    return object;
}

void wharf_set(wharf_json *object, const char *key, const char *text) {
    wharf_json *one = wharf_alloc(sizeof *one);
    one->kind = WHARF_STRING;
    one->key = key;
    one->text = text;
    one->length = strlen(text);
    one->source = wharf_quote(text);
    one->source_length = strlen(one->source);
    /* Members keep the order in which they were added; the object's JSON text is extended too. */
    const wharf_json **place = &object->first;
    while (*place) place = (const wharf_json **)&(*place)->next;
    *place = one;
    object->source = wharf_format("%.*s%s%s:%s}", (int)object->source_length - 1, object->source,
                                  object->first == one ? "" : ",", wharf_quote(key), one->source);
    object->source_length = strlen(object->source);
}

static bool match_parts(const char *pattern, const char *uri, wharf_json **variables, int *count) {
    const char *brace = strchr(pattern, '{');
    if (!brace) return !strcmp(pattern, uri);
    size_t literal = (size_t)(brace - pattern);
    const char *close = strchr(brace, '}');
    if (strncmp(pattern, uri, literal) || !close) return false;
    uri += literal;
    bool spans = brace[1] == '+';
    const char *name = brace + 1 + spans;
    size_t limit = spans ? strlen(uri) : strcspn(uri, "/");
    int kept = *count;
    /* Matching is greedy: the longest value of a variable is tried first. */
    for (size_t end = limit; end > 0; end--) {
        if (*count == 16) return false;
        wharf_json *one = wharf_alloc(sizeof *one);
        one->key = wharf_copy(name, (size_t)(close - name));
        one->text = wharf_copy(uri, end);
        variables[(*count)++] = one;
        if (match_parts(close + 1, uri + end, variables, count)) return true;
        *count = kept;
    }
    return false;
}

const wharf_json *wharf_match(const char *uri_template, const char *uri) {
    wharf_json *variables[16], *object = wharf_object();
    int count = 0;
    if (!match_parts(uri_template, uri, variables, &count)) return NULL;
    for (int at = 0; at < count; at++) wharf_set(object, variables[at]->key, variables[at]->text);
    return object;
}
