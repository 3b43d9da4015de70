"""httpx, requests, urllib, urllib3 and aiohttp over wharf's `fetch`."""

from __future__ import annotations

import asyncio
import email.message
import gzip
import io
import sys
import types
import zlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from wharf_sdk import _call, _http
from wharf_sdk._http import FetchError

from . import imports
from .loop import NO_SOCKETS, Serving

OWN = ("host", "connection", "content-length", "transfer-encoding", "keep-alive", "te", "upgrade", "proxy-authorization", "trailer")
"""Headers that wharf sets itself."""
NO_CERTIFICATE = "a certificate of the client cannot be used inside of a plugin: wharf encrypts its requests"
NO_PROXY = "a proxy cannot be chosen inside of a plugin: wharf sends its requests, as the operator's `[egress]` says"
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
    if _call.current is None:
        raise FetchError("nothing is fetched while the plugin is built, or between calls")
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
        if request.url.scheme not in ("http", "https"):
            raise module.UnsupportedProtocol(f"Request URL has an unsupported protocol '{request.url.scheme}://'.", request=request)
        limits = request.extensions.get("timeout") or {}
        given = [one for one in (limits.get("connect"), limits.get("read")) if one is not None]
        try:
            response = send(request.method, str(request.url), request.headers.multi_items(), body, max(given) if given else None)
        except FetchError as problem:
            kind = module.ReadTimeout if _is_timeout(problem) else module.ConnectError
            raise kind(str(problem), request=request) from None
        found = module.Response(response.status, headers=response.headers.pairs, stream=module.ByteStream(response.body), request=request)
        found.extensions["http_version"] = b"HTTP/1.1"
        return found

    def configure(self: Any, *args: Any, **kwargs: Any) -> None:
        self._pool = None
        if kwargs.get("cert"):
            raise OSError(NO_CERTIFICATE)
        if kwargs.get("proxy"):
            raise OSError(NO_PROXY)

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
    client = module.Client
    close, end = client.close, client.__exit__
    # A function that serves until the process ends closes its client then. In a plugin, it is left as soon as the server waits.
    client.close = lambda self: None if isinstance(sys.exc_info()[1], Serving) else close(self)
    client.__exit__ = lambda self, *thrown: None if isinstance(thrown[1], Serving) else end(self, *thrown)


def _requests(module: Any) -> None:
    real = module.HTTPAdapter.cert_verify

    def cert_verify(self: Any, conn: Any, url: str, verify: Any, cert: Any) -> None:
        if cert or isinstance(verify, str):
            real(self, conn, url, verify, cert)
        if cert:
            raise OSError(NO_CERTIFICATE)

    module.HTTPAdapter.cert_verify = cert_verify


def _reason(status: int) -> str:
    from http.client import responses

    return responses.get(status, "")


def _message(answer: _http.Response) -> Any:
    """Returns the headers as `http.client` does."""
    from http.client import HTTPMessage

    said = HTTPMessage()
    for name, value in answer.headers.pairs:
        said.add_header(name, value)
    return said


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

    class Answer(addinfourl):
        """What `urlopen` returns."""

        version = 11

        def getheader(self, name: str, default: Any = None) -> Any:
            found = self.headers.get_all(name)
            return ", ".join(found) if found else default

        def getheaders(self) -> list[Any]:
            return list(self.headers.items())

        def isclosed(self) -> bool:
            return bool(self.fp.closed) or self.fp.tell() == len(self.fp.getbuffer())

    def open_(self: Any, request: Any) -> Any:
        if request.has_proxy():
            raise URLError(NO_PROXY)
        headers: Mapping[str, str] = {**request.unredirected_hdrs, **request.headers}
        timeout = request.timeout if isinstance(request.timeout, (int, float)) else None
        try:
            answer = send(request.get_method(), request.full_url, headers.items(), _body(request.data), timeout)
        except FetchError as problem:
            raise URLError(str(problem)) from None
        found = Answer(io.BytesIO(answer.body), _message(answer), request.full_url, answer.status)
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
    def make_request(self: Any, conn: Any, method: str, url: str, body: Any = None, headers: Any = None, retries: Any = None, timeout: Any = None,
                     chunked: bool = False, response_conn: Any = None, preload_content: bool = True, decode_content: bool = True,
                     **_: Any) -> Any:  # fmt: skip
        from urllib3 import HTTPResponse, exceptions
        from urllib3._collections import HTTPHeaderDict

        if self.proxy:
            raise exceptions.NewConnectionError(conn, NO_PROXY)
        if getattr(self, "cert_file", None):
            raise OSError(NO_CERTIFICATE)
        host = f"[{self.host}]" if ":" in self.host else self.host
        whole = url if "://" in url else f"{self.scheme}://{host}{f':{self.port}' if self.port else ''}{url}"
        given = [one for one in (getattr(timeout, "connect_timeout", None), getattr(timeout, "read_timeout", None)) if isinstance(one, (int, float))]
        try:
            answer = send(method, whole, dict(headers or {}).items(), _body(body), max(given) if given else None)
        except FetchError as problem:
            if _is_timeout(problem):
                raise exceptions.ReadTimeoutError(self, url, str(problem)) from None
            raise exceptions.NewConnectionError(conn, str(problem)) from None
        said, fields = _message(answer), HTTPHeaderDict()
        for name, value in answer.headers.pairs:
            fields.add(name, value)
        # Cookies are looked for in the message.
        original = types.SimpleNamespace(msg=said, isclosed=lambda: True, close=lambda: None)
        response = HTTPResponse(
            body=io.BytesIO(answer.body), headers=fields, status=answer.status, reason=_reason(answer.status), version=11,
            version_string="HTTP/1.1", preload_content=preload_content, decode_content=decode_content, original_response=original,
            request_method=method, request_url=url, connection=response_conn, pool=self, retries=retries,
        )  # fmt: skip
        response.retries = retries
        return response

    module.HTTPConnectionPool._make_request = make_request


def _aiohttp(module: Any) -> None:
    from http.cookies import SimpleCookie

    from aiohttp.http import HttpVersion11
    from multidict import CIMultiDict, CIMultiDictProxy
    from yarl import URL

    KNOWN = {
        "skip_auto_headers", "compress", "chunked", "expect100", "read_until_eof", "proxy_auth", "verify_ssl", "fingerprint", "ssl_context",
        "server_hostname", "proxy_headers", "trace_request_ctx", "read_bufsize", "auto_decompress", "max_line_size", "max_field_size", "middlewares",
        "max_headers",
    }  # fmt: skip

    async def ws_connect(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise module.ClientConnectionError(NO_SOCKETS)

    class Content:
        """The body of a response, as a stream."""

        def __init__(self, body: bytes) -> None:
            self.rest = io.BytesIO(body)

        async def read(self, count: int = -1) -> bytes:
            return self.rest.read(count)

        async def readline(self) -> bytes:
            return self.rest.readline()

        async def readany(self) -> bytes:
            return self.rest.read()

        async def readexactly(self, count: int) -> bytes:
            found = self.rest.read(count)
            if len(found) < count:
                raise asyncio.IncompleteReadError(found, count)
            return found

        def at_eof(self) -> bool:
            return self.rest.tell() == len(self.rest.getbuffer())

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"`StreamReader.{name}` does not exist inside of a plugin, where wharf sends the requests")

        async def iter_chunked(self, size: int) -> Any:
            while piece := self.rest.read(size):
                yield piece

        async def iter_any(self) -> Any:
            yield self.rest.read()

        def __aiter__(self) -> Any:
            return self._lines()

        async def _lines(self) -> Any:
            while line := self.rest.readline():
                yield line

    class Response:
        """What `ClientSession` returns for a response of wharf."""

        version = HttpVersion11

        def __init__(self, info: Any, answer: _http.Response, history: tuple[Any, ...]) -> None:
            self.body, said = decoded(answer)
            self.request_info, self.history, self.cookies = info, history, SimpleCookie()
            self.status, self.reason, self.method = answer.status, _reason(answer.status), info.method
            pairs = [(name, value) for name, value in answer.headers.pairs if name in said or name == "set-cookie"]
            self.headers = CIMultiDictProxy(CIMultiDict(pairs))
            for line in self.headers.getall("set-cookie", ()):
                self.cookies.load(line)
            self.url = self.real_url = info.url
            self.content, self.closed = Content(self.body), True

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"`ClientResponse.{name}` does not exist inside of a plugin, where wharf sends the requests")

        @property
        def ok(self) -> bool:
            return self.status < 400

        @property
        def content_type(self) -> str:
            return str(self.headers.get("content-type", "application/octet-stream")).split(";")[0].strip().lower()

        @property
        def charset(self) -> str | None:
            said = email.message.Message()
            said["content-type"] = self.headers.get("content-type", "")
            found = said.get_param("charset")
            return found if isinstance(found, str) else None

        @property
        def content_length(self) -> int | None:
            found = self.headers.get("content-length")
            return int(found) if found else None

        def _error(self, kind: Any, message: str) -> Exception:
            return kind(self.request_info, self.history, status=self.status, message=message, headers=self.headers)  # type: ignore[no-any-return]

        def raise_for_status(self) -> None:
            if not self.ok:
                raise self._error(module.ClientResponseError, self.reason)

        async def read(self) -> bytes:
            return self.body

        def get_encoding(self) -> str:
            return self.charset or "utf-8"

        async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
            return self.body.decode(encoding or self.get_encoding(), errors)

        async def json(self, *, encoding: str | None = None, loads: Any = None, content_type: str | None = "application/json") -> Any:
            import json

            is_json = self.content_type == "application/json" or self.content_type.endswith("+json")
            if content_type is not None and content_type not in self.content_type and not (content_type == "application/json" and is_json):
                raise self._error(
                    module.ContentTypeError, f"Attempt to decode JSON with unexpected mimetype: {self.headers.get('content-type', '')}"
                )
            text = (await self.text(encoding)).strip()
            return (loads or json.loads)(text) if text else None

        def release(self) -> None:
            pass

        def close(self) -> None:
            self.closed = True

        async def wait_for_close(self) -> None:
            pass

        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *_: Any) -> None:
            pass

    async def request(
        self: Any, method: str, str_or_url: Any, *, params: Any = None, data: Any = None, json: Any = None, cookies: Any = None,
        headers: Any = None, auth: Any = None, allow_redirects: bool = True, max_redirects: int = 10, timeout: Any = None,
        raise_for_status: Any = None, proxy: Any = None, ssl: Any = None, **more: Any,
    ) -> Any:  # fmt: skip
        unknown = set(more) - KNOWN
        if unknown:
            raise TypeError(f"ClientSession._request() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        if proxy is not None:
            raise module.ClientConnectionError(NO_PROXY)
        try:
            url = self._build_url(str_or_url) if hasattr(self, "_build_url") else URL(str_or_url)
        except ValueError as problem:
            raise module.InvalidURL(str_or_url) from problem
        if not url.host:
            raise module.InvalidUrlClientError(url)
        if params:
            url = url.extend_query(params)
        given = self._prepare_headers(headers)
        body, kind = b"", None
        if json is not None:
            said = self._json_serialize(json)
            body, kind = said if isinstance(said, bytes) else said.encode(), "application/json"
        elif isinstance(data, (dict, list, tuple, module.FormData)):
            form = (data if isinstance(data, module.FormData) else module.FormData(data))()
            body, kind = await form.as_bytes(), form.headers.get("content-type")
        elif data is not None:
            if not isinstance(data, (str, bytes, bytearray, memoryview)) and not hasattr(data, "read"):
                raise TypeError(f"a body of `{type(data).__name__}` cannot be sent inside of a plugin: give bytes, text or a dict")
            body, kind = _body(data), "text/plain; charset=utf-8" if isinstance(data, str) else "application/octet-stream"
        if kind:
            given.setdefault("content-type", kind)
        auth = auth or getattr(self, "_default_auth", None)
        if auth is not None:
            given["authorization"] = auth.encode()
        given.setdefault("accept", "*/*")
        waits = timeout if isinstance(timeout, (int, float)) else getattr(timeout or self.timeout, "total", None)
        method, history = method.upper(), ()
        while True:
            held = SimpleCookie(self._cookie_jar.filter_cookies(url))
            for name, value in (cookies or {}).items():
                held[name] = value
            sent = CIMultiDict(given)
            if held:
                sent["cookie"] = held.output(header="", sep=";").strip()
            info = module.RequestInfo(url, method, CIMultiDictProxy(sent), url)
            try:
                answer = send(method, str(url), sent.items(), body, waits)
            except FetchError as problem:
                if _is_timeout(problem):
                    raise module.ServerTimeoutError(str(problem)) from None
                place = types.SimpleNamespace(host=url.host, port=url.port, ssl=True, is_ssl=url.scheme == "https")
                raise module.ClientConnectorError(place, OSError(111, str(problem))) from None
            found = Response(info, answer, history)
            self._cookie_jar.update_cookies(found.cookies, url)
            to = found.headers.get("location") or found.headers.get("uri")
            if found.status not in (301, 302, 303, 307, 308) or not allow_redirects or to is None:
                break
            history = (*history, found)
            if len(history) >= max_redirects:
                raise module.TooManyRedirects(history[0].request_info, history)
            if found.status == 303 and method != "HEAD" or found.status in (301, 302) and method == "POST":
                method, body = "GET", b""
                given.pop("content-type", None)
            before, url = url, url.join(URL(to))
            if url.origin() != before.origin():
                given.pop("authorization", None)
                given.pop("cookie", None)
                cookies = None
        if raise_for_status or (raise_for_status is None and getattr(self, "_raise_for_status", False) is True):
            found.raise_for_status()
        return found

    module.ClientSession._request, module.ClientSession._ws_connect = request, ws_connect


def install() -> None:
    imports.after("aiohttp", _aiohttp)
    imports.after("httpx", _httpx)
    imports.after("httpx2", _httpx)
    imports.after("requests.adapters", _requests)
    imports.after("urllib.request", _urllib)
    imports.after("urllib3.connectionpool", _urllib3)
