"""Requests over HTTP, through `wasi:http`.

Nothing here waits without a limit or takes in more than a limit, and no redirect is followed: who follows one asks again,
so that the operator's rules are put to each hop. Each `with` releases what belongs to something else before that is
released, as the contract of WASI wants it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from componentize_py_types import Err, Ok
from wit_world.imports import monotonic_clock, outgoing_handler, poll
from wit_world.imports import wasi_http_types as http
from wit_world.imports.streams import InputStream, OutputStream, StreamError_Closed, StreamError_LastOperationFailed

# Seconds for all of a request: less than a call may take by default, so that its failure can be told.
TIMEOUT = 20
# The most bytes that the body of an answer may have, and how many of them are read at once.
MAX_BODY = 4 << 20
CHUNK = 64 << 10

Headers = Iterable[tuple[str, str]]
Wait = Callable[[poll.Pollable], None]


class Error(Exception):
    """Why there is no answer, in a sentence for the model."""


@dataclass
class Response:
    """An answer, of any status. The names of its headers are in small letters."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def get(url: str, headers: Headers = ()) -> Response:
    return send(http.Method_Get(), url, headers)


def post(url: str, body: bytes, headers: Headers = ()) -> Response:
    return send(http.Method_Post(), url, headers, body)


def send(method: http.Method, url: str, headers: Headers = (), body: bytes = b"") -> Response:
    """Sends a request and waits for its answer. Raises `Error` if there is none."""
    request, host = _prepare(method, url, headers, body)
    with monotonic_clock.subscribe_duration(TIMEOUT * 10**9) as deadline:

        def wait(pollable: poll.Pollable) -> None:
            with pollable:
                if 0 not in poll.poll([pollable, deadline]):
                    raise Error(f"{host} did not answer in full within {TIMEOUT} seconds.")

        try:
            outgoing = request.body() if body else None
            with outgoing_handler.handle(request, None) as coming:
                if outgoing:
                    with outgoing.write() as stream:
                        whole = _write(stream, body, wait)
                    if whole:
                        http.OutgoingBody.finish(outgoing, None)
                while (answer := coming.get()) is None:
                    wait(coming.subscribe())
            match answer:
                case Ok(Ok(response)):
                    return _read(response, host, wait)
                case Ok(Err() as problem) | (Err() as problem):
                    raise problem
        except Err as problem:
            raise Error(f"The request to {host} failed: {_words(problem.value)}.") from None


def _prepare(method: http.Method, url: str, headers: Headers, body: bytes) -> tuple[http.OutgoingRequest, str]:
    length = [("content-length", str(len(body)))] if body else []
    try:
        fields = http.Fields.from_list([(name, value.encode()) for name, value in [*headers, *length]])
    except Err:
        raise Error("The request has a header that may not be set, or that is not written right.") from None
    request = http.OutgoingRequest(fields)
    try:
        parts = urlsplit(url)
        # A password in a URL would end up in logs and in what a model reads.
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError(url)
        request.set_method(method)
        request.set_scheme(http.Scheme_Https() if parts.scheme == "https" else http.Scheme_Http())
        request.set_authority(parts.netloc)
        request.set_path_with_query((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    except (ValueError, Err):
        rule = "it must begin with http:// or https://, name a host and no user or password, and be escaped"
        raise Error(f"{url} cannot be requested: {rule}.") from None
    return request, parts.hostname


def _write(stream: OutputStream, body: bytes, wait: Wait) -> bool:
    """Writes all of a body. False if the other side wanted no more of it: its answer tells why."""
    rest = memoryview(body)
    try:
        while rest:
            room = stream.check_write()
            if room:
                stream.write(bytes(rest[:room]))
                rest = rest[room:]
            else:
                wait(stream.subscribe())
        stream.flush()
        return True
    except Err:
        return False


def _read(response: http.IncomingResponse, host: str, wait: Wait) -> Response:
    body = bytearray()
    with response:
        with response.headers() as fields:
            headers = [(name.lower(), value.decode("latin-1")) for name, value in fields.entries()]
        with response.consume() as incoming, incoming.stream() as stream:
            while (chunk := _chunk(stream)) is not None:
                body += chunk
                if len(body) > MAX_BODY:
                    raise Error(f"The answer of {host} is longer than {MAX_BODY >> 10} KiB, the most that is taken in.")
                if not chunk:
                    wait(stream.subscribe())
        return Response(response.status(), headers, bytes(body))


def _chunk(stream: InputStream) -> bytes | None:
    """What has come of a body, which may be nothing. None at its end."""
    try:
        return stream.read(CHUNK)
    except Err as problem:
        if isinstance(problem.value, StreamError_Closed):
            return None
        raise


def _words(problem: object) -> str:
    """`ErrorCode_ConnectionRefused()` as "connection refused"."""
    if isinstance(problem, StreamError_LastOperationFailed):
        problem = http.http_error_code(problem.value) or http.ErrorCode_ConnectionTerminated()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(problem).__name__.partition("_")[2]).lower()
