"""Sends requests through `wasi:http`. Imported only inside of a component that imports it.

Every wait has a timeout and every body a maximum length. WASI requires that child resources, such as pollables and streams,
are dropped before their parents; nested `with` statements do that.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from componentize_py_types import Err, Ok
from wit_world.imports import monotonic_clock, outgoing_handler, poll
from wit_world.imports import wasi_http_types as http
from wit_world.imports.streams import InputStream, OutputStream, StreamError_Closed, StreamError_LastOperationFailed

from ._http import FetchError, Headers, Request, Response

Wait = Callable[[poll.Pollable], None]
CHUNK = 64 << 10
METHODS: dict[str, http.Method] = {
    "GET": http.Method_Get(),
    "HEAD": http.Method_Head(),
    "POST": http.Method_Post(),
    "PUT": http.Method_Put(),
    "PATCH": http.Method_Patch(),
    "DELETE": http.Method_Delete(),
    "OPTIONS": http.Method_Options(),
}


def send(request: Request) -> Response:
    host = request.host
    outgoing = _outgoing(request)
    with monotonic_clock.subscribe_duration(int(request.timeout * 1e9)) as deadline:

        def wait(pollable: poll.Pollable) -> None:
            with pollable:
                if 0 not in poll.poll([pollable, deadline]):
                    raise FetchError(f"{host} did not answer in full within {request.timeout:g} seconds.")

        try:
            body = outgoing.body() if request.body else None
            with outgoing_handler.handle(outgoing, None) as coming:
                if body:
                    with body.write() as stream:
                        whole = _write(stream, request.body, wait)
                    if whole:
                        http.OutgoingBody.finish(body, None)
                while (answer := coming.get()) is None:
                    wait(coming.subscribe())
            match answer:
                case Ok(Ok(response)):
                    return _read(response, request, wait)
                case Ok(Err() as problem) | (Err() as problem):
                    raise problem
                case _:
                    raise FetchError(f"The request to {host} failed.")
        except Err as problem:
            raise FetchError(_told(host, problem.value)) from None


def _outgoing(request: Request) -> http.OutgoingRequest:
    try:
        fields = http.Fields.from_list(request.headers)
    except Err:
        raise FetchError("The request has a header that may not be set or is malformed.") from None
    outgoing = http.OutgoingRequest(fields)
    try:
        outgoing.set_method(METHODS.get(request.method) or http.Method_Other(request.method))
        outgoing.set_scheme(http.Scheme_Https() if request.https else http.Scheme_Http())
        outgoing.set_authority(request.authority)
        outgoing.set_path_with_query(request.path)
    except Err:
        raise FetchError(f"{request.method} {request.path} of {request.host} cannot be requested.") from None
    return outgoing


def _write(stream: OutputStream, body: bytes, wait: Wait) -> bool:
    """Writes a body. Returns False if the server closed the stream before all of it was written; its response says why."""
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


def _read(response: http.IncomingResponse, request: Request, wait: Wait) -> Response:
    body = bytearray()
    most = request.max_body
    with response:
        with response.headers() as fields:
            headers = [(name, value.decode("latin-1")) for name, value in fields.entries()]
        with response.consume() as incoming, incoming.stream() as stream:
            while (chunk := _chunk(stream)) is not None:
                body += chunk
                if len(body) > most:
                    raise FetchError(f"The answer of {request.host} is longer than the limit of {most >> 10} KiB.")
                if not chunk:
                    wait(stream.subscribe())
        return Response(response.status(), Headers(headers), bytes(body))


def _chunk(stream: InputStream) -> bytes | None:
    """Reads the bytes of a body that have arrived, which may be none at all. Returns None at its end."""
    try:
        return stream.read(CHUNK)
    except Err as problem:
        if isinstance(problem.value, StreamError_Closed):
            return None
        raise


def _told(host: str, problem: object) -> str:
    if isinstance(problem, StreamError_LastOperationFailed):
        problem = http.http_error_code(problem.value) or http.ErrorCode_ConnectionTerminated()
    if isinstance(problem, http.ErrorCode_HttpRequestDenied):
        return f"The operator of this server does not allow this request to {host}."
    if isinstance(problem, http.ErrorCode_DestinationIpProhibited):
        return (
            "The operator of this server does not allow requests to addresses of a private network, "
            f"such as that of {host}."
        )
    # Turns `ErrorCode_ConnectionRefused()` into "connection refused".
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(problem).__name__.partition("_")[2]).lower()
    return f"The request to {host} failed: {words}."
