"""httpx, requests, urllib and urllib3 over wharf's `fetch`."""

from __future__ import annotations

import email.message
import gzip
import io
import zlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from wharf_sdk import _http
from wharf_sdk._http import FetchError

from . import imports

OWN = ("host", "connection", "content-length", "transfer-encoding", "keep-alive", "te", "upgrade", "proxy-authorization", "trailer")
"""Headers that wharf sets itself."""
MOST = 32 << 20
"""The longest body that these libraries get."""


def _url(url: str) -> str:
    """Returns the URL without user and fragment, in ASCII."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    if not netloc.isascii():
        netloc = netloc.encode("idna").decode()
    safe = "/%:@!$&'()*+,;=~-._?"
    return urlunsplit((parts.scheme, netloc, quote(parts.path, safe=safe), quote(parts.query, safe=safe + "[]|"), ""))


def send(method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes, timeout: float | None) -> _http.Response:
    """Sends a request by wharf. Raises `FetchError` if there is no response."""
    kept: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        if name not in OWN:
            kept[name] = f"{kept[name]}, {value}" if name in kept else value
    # Only these two encodings can be decoded inside of a plugin.
    if "accept-encoding" in kept:
        kept["accept-encoding"] = "gzip, deflate"
    waits = _http.TIMEOUT if timeout is None else max(0.001, min(timeout, 300.0))
    return _http.fetch(_url(url), method=method, headers=kept, body=body or None, timeout=waits, max_body=MOST)


def decoded(response: _http.Response) -> tuple[bytes, dict[str, str]]:
    """Returns the body without its encoding, and the headers that are right for it."""
    headers, body = dict(response.headers), response.body
    how = headers.get("content-encoding", "").lower()
    if how in ("gzip", "x-gzip"):
        body = gzip.decompress(body)
    elif how == "deflate":
        try:
            body = zlib.decompress(body)
        except zlib.error:
            body = zlib.decompress(body, -zlib.MAX_WBITS)
    else:
        return body, headers
    for name in ("content-encoding", "content-length"):
        headers.pop(name, None)
    return body, headers


def _is_timeout(problem: FetchError) -> bool:
    return "did not answer in full" in str(problem)


def _httpx(module: Any) -> None:
    def answer(request: Any, body: bytes) -> Any:
        limits = request.extensions.get("timeout") or {}
        given = [one for one in (limits.get("connect"), limits.get("read")) if one is not None]
        try:
            response = send(request.method, str(request.url), request.headers.multi_items(), body, max(given) if given else None)
        except FetchError as problem:
            kind = module.ReadTimeout if _is_timeout(problem) else module.ConnectError
            raise kind(str(problem), request=request) from None
        found = module.Response(response.status, headers=list(response.headers.items()), content=response.body, request=request)
        found.extensions["http_version"] = b"HTTP/1.1"
        return found

    def configure(self: Any, *args: Any, **kwargs: Any) -> None:
        self._pool = None

    def handle_request(self: Any, request: Any) -> Any:
        return answer(request, request.read())

    async def handle_async_request(self: Any, request: Any) -> Any:
        return answer(request, await request.aread())

    async def leave(self: Any, *args: Any) -> None:
        pass

    async def enter(self: Any) -> Any:
        return self

    sync, later = module.HTTPTransport, module.AsyncHTTPTransport
    sync.__init__ = later.__init__ = configure
    sync.handle_request, later.handle_async_request = handle_request, handle_async_request
    sync.close, later.aclose = lambda self: None, leave
    sync.__enter__, sync.__exit__ = lambda self: self, lambda self, *args: None
    later.__aenter__, later.__aexit__ = enter, leave


def _requests(module: Any) -> None:
    def send_(self: Any, request: Any, stream: bool = False, timeout: Any = None, *args: Any, **kwargs: Any) -> Any:
        from requests import Response, exceptions
        from requests.structures import CaseInsensitiveDict
        from requests.utils import get_encoding_from_headers

        given = [one for one in (timeout if isinstance(timeout, tuple) else (timeout,)) if isinstance(one, (int, float))]
        try:
            answer = send(request.method, request.url, request.headers.items(), _body(request.body), max(given) if given else None)
        except FetchError as problem:
            kind = exceptions.ReadTimeout if _is_timeout(problem) else exceptions.ConnectionError
            raise kind(str(problem), request=request) from None
        body, headers = decoded(answer)
        found = Response()
        found.status_code, found.headers, found.url = answer.status, CaseInsensitiveDict(headers), request.url
        found.reason, found.raw, found.request = _reason(answer.status), io.BytesIO(body), request
        found.encoding, found.connection = get_encoding_from_headers(found.headers), self
        return found

    module.HTTPAdapter.send = send_


def _reason(status: int) -> str:
    from http.client import responses

    return responses.get(status, "")


def _body(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    if hasattr(body, "read"):
        return _body(body.read())
    return b"".join(_body(one) for one in body)


def _urllib(module: Any) -> None:
    from urllib.error import URLError
    from urllib.response import addinfourl

    def open_(self: Any, request: Any) -> Any:
        headers: Mapping[str, str] = {**request.unredirected_hdrs, **request.headers}
        timeout = request.timeout if isinstance(request.timeout, (int, float)) else None
        try:
            answer = send(request.get_method(), request.full_url, headers.items(), _body(request.data), timeout)
        except FetchError as problem:
            raise URLError(str(problem)) from None
        said = email.message.Message()
        for name, value in answer.headers.items():
            said[name] = value
        found = addinfourl(io.BytesIO(answer.body), said, request.full_url, answer.status)
        found.msg = found.reason = _reason(answer.status)
        return found

    module.HTTPHandler.http_open = open_
    if not hasattr(module, "HTTPSHandler"):

        class HTTPSHandler(module.AbstractHTTPHandler):  # type: ignore[misc, name-defined]
            https_request = module.AbstractHTTPHandler.do_request_

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__()

        module.HTTPSHandler = HTTPSHandler
        module.__all__.append("HTTPSHandler")
        made = module.build_opener

        def build_opener(*handlers: Any) -> Any:
            opener = made(*handlers)
            if not any(isinstance(one, HTTPSHandler) for one in opener.handlers):
                opener.add_handler(HTTPSHandler())
            return opener

        module.build_opener = build_opener
    module.HTTPSHandler.https_open = open_
    # Proxies are the operator's matter.
    module.getproxies = module.getproxies_environment = dict


def _urllib3(module: Any) -> None:
    def urlopen(self: Any, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any) -> Any:
        from urllib3 import HTTPResponse, exceptions

        port = f":{self.port}" if self.port else ""
        whole = url if "://" in url else f"{self.scheme}://{self.host}{port}{url}"
        given = dict(headers if headers is not None else self.headers or {})
        try:
            answer = send(method, whole, given.items(), _body(body), None)
        except FetchError as problem:
            raise exceptions.MaxRetryError(self, url, exceptions.NewConnectionError(self, str(problem))) from None
        found, said = decoded(answer)
        return HTTPResponse(
            body=io.BytesIO(found), headers=said, status=answer.status, reason=_reason(answer.status),
            preload_content=kwargs.get("preload_content", True), decode_content=False, request_method=method, request_url=whole,
        )  # fmt: skip

    module.HTTPConnectionPool.urlopen = urlopen


def install() -> None:
    imports.after("httpx", _httpx)
    imports.after("httpx2", _httpx)
    imports.after("requests.adapters", _requests)
    imports.after("urllib.request", _urllib)
    imports.after("urllib3.connectionpool", _urllib3)
