/* Sends HTTP requests through wasi:http, each with one deadline. WASI requires that child resources, such as pollables, are dropped
 * before their parents. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gen/plugin.h"
#include "internal.h"

static const double DEFAULT_SECONDS = 20;
static const size_t DEFAULT_MAX_BODY = 4 << 20, CHUNK_BYTES = 64 << 10;

typedef struct {
    bool is_secure;
    const char *authority, *host, *path;
} target;

typedef struct {
    const wharf_request *request;
    const char *host;
    wasi_clocks_monotonic_clock_own_pollable_t over;
    /* The first reason why there is no response. */
    const char *problem;
} fetch;

static plugin_string_t lent(const char *text) {
    plugin_string_t to = {(uint8_t *)text, strlen(text)};
    return to;
}

static const char *bad_url(const char *url) {
    return wharf_format("%s is not a URL that can be requested: it must begin with http:// or https:// and name a host, and no user or "
                        "password.", url);
}

static const char *unreachable(const char *host, const char *problem) {
    return wharf_format("%s cannot be reached: %s.", host, problem);
}

static bool target_of(const char *url, target *to) {
    to->is_secure = !strncasecmp(url, "https://", 8);
    if (!to->is_secure && strncasecmp(url, "http://", 7)) return false;
    const char *rest = url + (to->is_secure ? 8 : 7);
    size_t authority = strcspn(rest, "/?#"), path = strcspn(rest + authority, "#");
    to->authority = wharf_copy(rest, authority);
    to->path = wharf_format("%s%.*s", rest[authority] == '/' ? "" : "/", (int)path, rest + authority);
    size_t host = authority;
    const char *colon = strrchr(to->authority, ':');
    if (colon && strspn(colon + 1, "0123456789") == strlen(colon + 1)) host = (size_t)(colon - to->authority);
    to->host = wharf_copy(rest, host);
    /* A password in a URL would end up in logs and in messages to the model. */
    return host && !strchr(to->authority, '@');
}

static const char *problem_of(const wasi_http_types_error_code_t *code, const fetch *one) {
    switch (code->tag) {
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_DENIED:
        return wharf_format("The operator of this server does not allow this request to %s.", one->host);
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_IP_PROHIBITED:
        return wharf_format("The operator of this server does not allow requests to addresses of a private network, such as that of %s.",
                            one->host);
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_URI_INVALID:
        return bad_url(one->request->url);
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_READ_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_WRITE_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_TIMEOUT:
        return unreachable(one->host, "it did not answer in time");
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_NOT_FOUND:
        return unreachable(one->host, "there is no host of this name");
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_REFUSED:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_UNAVAILABLE:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_IP_UNROUTABLE:
        return unreachable(one->host, "it refused the connection");
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TERMINATED:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_INCOMPLETE:
        return unreachable(one->host, "the connection broke");
    case WASI_HTTP_TYPES_ERROR_CODE_TLS_PROTOCOL_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_TLS_CERTIFICATE_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_TLS_ALERT_RECEIVED:
        return unreachable(one->host, "the TLS handshake failed, or its certificate is not trusted");
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_PROTOCOL_ERROR:
        return unreachable(one->host, "its answer is not HTTP");
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_LIMIT_REACHED:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_BODY_SIZE:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_BODY_SIZE:
        return wharf_format("The request to %s is more than the operator of this server allows one call, in requests or in bytes.",
                            one->host);
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_HEADER_SECTION_SIZE:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_HEADER_SIZE:
        return wharf_format("The answer of %s cannot be used: its headers are more, or longer, than this server reads.", one->host);
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_TRANSFER_CODING:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_CONTENT_CODING:
        return wharf_format("The answer of %s cannot be used: it is encoded in a way that was not requested.", one->host);
    case WASI_HTTP_TYPES_ERROR_CODE_CONFIGURATION_ERROR:
        return "The request cannot be sent: the operator's settings for it are wrong; the server's log says how.";
    default:
        return wharf_format("The request to %s is not one that this server can send, or its answer not one that it can read.", one->host);
    }
}

static bool failed(fetch *one, const char *problem) {
    if (!one->problem) one->problem = problem;
    return false;
}

static bool failed_with(fetch *one, wasi_http_types_error_code_t *code) {
    const char *problem = problem_of(code, one);
    wasi_http_types_error_code_free(code);
    return failed(one, problem);
}

/* Waits until a pollable is ready; fails when the deadline has passed. */
static bool waited(fetch *one, wasi_io_poll_own_pollable_t ready) {
    wasi_io_poll_borrow_pollable_t both[] = {wasi_io_poll_borrow_pollable(ready), wasi_io_poll_borrow_pollable(one->over)};
    wasi_io_poll_list_borrow_pollable_t list = {both, 2};
    plugin_list_u32_t which;
    wasi_io_poll_poll(&list, &which);
    bool is_ready = false;
    for (size_t at = 0; at < which.len; at++) is_ready = is_ready || which.ptr[at] == 0;
    plugin_list_u32_free(&which);
    wasi_io_poll_pollable_drop_own(ready);
    return is_ready || failed(one, wharf_format("%s did not answer in full within %g seconds.", one->host, one->request->seconds));
}

static uint8_t method_of(const char *name) {
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    for (uint8_t at = 0; at < sizeof names / sizeof *names; at++) {
        if (!strcasecmp(name, names[at])) return at;
    }
    return WASI_HTTP_TYPES_METHOD_OTHER;
}

static bool prepared(fetch *one, const target *to, wasi_http_types_own_outgoing_request_t *outgoing) {
    const wharf_request *request = one->request;
    plugin_tuple2_string_list_u8_t headers[17];
    plugin_list_tuple2_string_list_u8_t list = {headers, 0};
    while (list.len < 16 && request->headers[list.len].name) {
        const wharf_header *from = &request->headers[list.len];
        plugin_string_t value = lent(from->value ? from->value : "");
        headers[list.len].f0 = lent(from->name);
        headers[list.len++].f1 = (plugin_list_u8_t){value.ptr, value.len};
    }
    if (request->body_size) {
        plugin_string_t length = lent(wharf_format("%zu", request->body_size));
        headers[list.len].f0 = lent("content-length");
        headers[list.len++].f1 = (plugin_list_u8_t){length.ptr, length.len};
    }
    wasi_http_types_own_fields_t fields;
    wasi_http_types_header_error_t wrong;
    if (!wasi_http_types_static_fields_from_list(&list, &fields, &wrong)) {
        return failed(one, "The request cannot be sent: it has a header that may not be set or is malformed.");
    }
    *outgoing = wasi_http_types_constructor_outgoing_request(fields);
    wasi_http_types_borrow_outgoing_request_t self = wasi_http_types_borrow_outgoing_request(*outgoing);
    wasi_http_types_method_t method = {method_of(request->method), {lent(request->method)}};
    wasi_http_types_scheme_t scheme = {to->is_secure ? WASI_HTTP_TYPES_SCHEME_HTTPS : WASI_HTTP_TYPES_SCHEME_HTTP, {{NULL, 0}}};
    plugin_string_t authority = lent(to->authority), path = lent(to->path);
    if (wasi_http_types_method_outgoing_request_set_method(self, &method) &&
        wasi_http_types_method_outgoing_request_set_scheme(self, &scheme) &&
        wasi_http_types_method_outgoing_request_set_authority(self, &authority) &&
        wasi_http_types_method_outgoing_request_set_path_with_query(self, &path)) {
        return true;
    }
    wasi_http_types_outgoing_request_drop_own(*outgoing);
    return failed(one, bad_url(request->url));
}

/* Writes a body. A server that responds before it has read the whole body closes the stream: then *is_whole is false, and the response
 * says why. */
static bool written(fetch *one, wasi_http_types_borrow_outgoing_body_t body, bool *is_whole) {
    wasi_io_streams_own_output_stream_t stream;
    if (!wasi_http_types_method_outgoing_body_write(body, &stream)) {
        return failed(one, "The request cannot be sent: its body cannot be written.");
    }
    wasi_io_streams_borrow_output_stream_t self = wasi_io_streams_borrow_output_stream(stream);
    const uint8_t *at = one->request->body;
    size_t rest = one->request->body_size;
    wasi_io_streams_stream_error_t closed;
    uint64_t room;
    bool in_time = true, is_open = true;
    while (rest && in_time && is_open) {
        is_open = wasi_io_streams_method_output_stream_check_write(self, &room, &closed);
        if (!is_open) {
            wasi_io_streams_stream_error_free(&closed);
        } else if (!room) {
            in_time = waited(one, wasi_io_streams_method_output_stream_subscribe(self));
        } else {
            plugin_list_u8_t piece = {(uint8_t *)at, room < rest ? (size_t)room : rest};
            is_open = wasi_io_streams_method_output_stream_write(self, &piece, &closed);
            if (!is_open) wasi_io_streams_stream_error_free(&closed);
            at += piece.len;
            rest -= piece.len;
        }
    }
    if (in_time && is_open && !wasi_io_streams_method_output_stream_flush(self, &closed)) {
        is_open = false;
        wasi_io_streams_stream_error_free(&closed);
    }
    wasi_io_streams_output_stream_drop_own(stream);
    *is_whole = is_open;
    return in_time;
}

static bool sent(fetch *one, wasi_http_types_own_outgoing_request_t outgoing, wasi_http_types_own_future_incoming_response_t *coming) {
    wasi_http_types_own_outgoing_body_t body;
    wasi_http_types_error_code_t code;
    bool has_body = one->request->body_size > 0, is_whole = false;
    if (has_body && !wasi_http_types_method_outgoing_request_body(wasi_http_types_borrow_outgoing_request(outgoing), &body)) {
        wasi_http_types_outgoing_request_drop_own(outgoing);
        return failed(one, "The request cannot be sent: its body cannot be written.");
    }
    if (!wasi_http_outgoing_handler_handle(outgoing, NULL, coming, &code)) {
        if (has_body) wasi_http_types_outgoing_body_drop_own(body);
        return failed_with(one, &code);
    }
    if (!has_body) return true;
    bool fine = written(one, wasi_http_types_borrow_outgoing_body(body), &is_whole);
    if (!fine || !is_whole) {
        wasi_http_types_outgoing_body_drop_own(body);
    } else if (!wasi_http_types_static_outgoing_body_finish(body, NULL, &code)) {
        fine = failed_with(one, &code);
    }
    if (!fine) wasi_http_types_future_incoming_response_drop_own(*coming);
    return fine;
}

static bool answered(
    fetch *one, wasi_http_types_own_future_incoming_response_t coming, wasi_http_types_own_incoming_response_t *incoming
) {
    wasi_http_types_borrow_future_incoming_response_t self = wasi_http_types_borrow_future_incoming_response(coming);
    wasi_http_types_result_result_own_incoming_response_error_code_void_t answer;
    while (!wasi_http_types_method_future_incoming_response_get(self, &answer)) {
        if (!waited(one, wasi_http_types_method_future_incoming_response_subscribe(self))) return false;
    }
    if (answer.is_err) return failed(one, unreachable(one->host, "its answer was already consumed"));
    if (answer.val.ok.is_err) return failed_with(one, &answer.val.ok.val.err);
    *incoming = answer.val.ok.val.ok;
    return true;
}

static void read_headers(wasi_http_types_borrow_incoming_response_t incoming, wharf_response *response) {
    wasi_http_types_own_fields_t fields = wasi_http_types_method_incoming_response_headers(incoming);
    plugin_list_tuple2_string_list_u8_t entries;
    wasi_http_types_method_fields_entries(wasi_http_types_borrow_fields(fields), &entries);
    wharf_header *headers = wharf_alloc((entries.len + 1) * sizeof *headers);
    for (size_t at = 0; at < entries.len; at++) {
        char *name = wharf_copy(entries.ptr[at].f0.ptr, entries.ptr[at].f0.len);
        for (char *letter = name; *letter; letter++) *letter = (char)tolower((unsigned char)*letter);
        headers[at].name = name;
        headers[at].value = wharf_copy(entries.ptr[at].f1.ptr, entries.ptr[at].f1.len);
    }
    plugin_list_tuple2_string_list_u8_free(&entries);
    wasi_http_types_fields_drop_own(fields);
    response->headers = headers;
}

static bool read_stream(fetch *one, wasi_io_streams_borrow_input_stream_t stream, wharf_response *response) {
    size_t most = one->request->max_body, room = 0;
    char *body = wharf_alloc(1);
    for (;;) {
        plugin_list_u8_t piece;
        wasi_io_streams_stream_error_t problem;
        if (!wasi_io_streams_method_input_stream_read(stream, CHUNK_BYTES, &piece, &problem)) {
            response->body = body;
            if (problem.tag == WASI_IO_STREAMS_STREAM_ERROR_CLOSED) return true;
            wasi_http_types_error_code_t code;
            bool is_known = wasi_http_types_http_error_code(
                wasi_io_error_borrow_error(problem.val.last_operation_failed), &code);
            wasi_io_streams_stream_error_free(&problem);
            return is_known ? failed_with(one, &code) : failed(one, unreachable(one->host, "the connection broke"));
        }
        if (piece.len > most - response->body_size) {
            plugin_list_u8_free(&piece);
            return failed(one, wharf_format("The answer of %s is longer than the limit of %zu KiB.", one->host, most / 1024));
        }
        if (!piece.len && !waited(one, wasi_io_streams_method_input_stream_subscribe(stream))) return false;
        if (response->body_size + piece.len > room) {
            room = 2 * (response->body_size + piece.len);
            char *larger = wharf_alloc(room + 1);
            memcpy(larger, body, response->body_size);
            body = larger;
        }
        if (piece.len) memcpy(body + response->body_size, piece.ptr, piece.len);
        response->body_size += piece.len;
        plugin_list_u8_free(&piece);
    }
}

static bool read_answer(fetch *one, wasi_http_types_own_incoming_response_t incoming, wharf_response *response) {
    wasi_http_types_borrow_incoming_response_t self = wasi_http_types_borrow_incoming_response(incoming);
    wasi_http_types_own_incoming_body_t body;
    wasi_io_streams_own_input_stream_t stream;
    response->status = wasi_http_types_method_incoming_response_status(self);
    read_headers(self, response);
    if (!wasi_http_types_method_incoming_response_consume(self, &body)) {
        return failed(one, unreachable(one->host, "its answer cannot be read"));
    }
    bool fine = wasi_http_types_method_incoming_body_stream(wasi_http_types_borrow_incoming_body(body), &stream);
    if (fine) {
        fine = read_stream(one, wasi_io_streams_borrow_input_stream(stream), response);
        wasi_io_streams_input_stream_drop_own(stream);
    } else {
        failed(one, unreachable(one->host, "its answer cannot be read"));
    }
    wasi_http_types_incoming_body_drop_own(body);
    return fine;
}

wharf_response wharf_fetch(wharf_request request) {
    wharf_response response = {.body = "", .headers = wharf_alloc(sizeof(wharf_header))};
    target to;
    if (!request.method) request.method = "GET";
    if (request.seconds <= 0) request.seconds = DEFAULT_SECONDS;
    if (!request.max_body) request.max_body = DEFAULT_MAX_BODY;
    if (!request.url || !target_of(request.url, &to)) {
        response.problem = bad_url(request.url ? request.url : "NULL");
        return response;
    }
    fetch one = {&request, to.host, wasi_clocks_monotonic_clock_subscribe_duration((uint64_t)(request.seconds * 1e9)), NULL};
    wasi_http_types_own_outgoing_request_t outgoing;
    wasi_http_types_own_future_incoming_response_t coming;
    wasi_http_types_own_incoming_response_t incoming;
    if (prepared(&one, &to, &outgoing) && sent(&one, outgoing, &coming)) {
        if (answered(&one, coming, &incoming)) {
            read_answer(&one, incoming, &response);
            wasi_http_types_incoming_response_drop_own(incoming);
        }
        wasi_http_types_future_incoming_response_drop_own(coming);
    }
    wasi_io_poll_pollable_drop_own(one.over);
    response.problem = one.problem;
    return response;
}
