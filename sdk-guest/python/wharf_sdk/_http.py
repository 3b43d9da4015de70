"""`fetch`: HTTP requests, for plugins that the operator allows to send them."""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ._codec import to_json
from ._errors import Failure

TIMEOUT = 20.0
"""The default timeout of a whole request, in seconds. It is shorter than the default time limit of a call, so that the call
can still report the failure."""
MAX_BODY = 4 << 20
"""The default maximum length of a response body, in bytes."""


class FetchError(Failure):
    """The reason why there is no response, as a sentence for the model."""


class Headers(dict[str, str]):
    """Headers by case-insensitive name. The values of repeated headers are joined by commas."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__()
        self.pairs = [(name.lower(), value) for name, value in pairs]
        """All of them, also those that repeat."""
        for name, value in pairs:
            name = name.lower()
            super().__setitem__(name, f"{self[name]}, {value}" if name in self else value)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)


@dataclass
class Response:
    """An HTTP response, of any status."""

    status: int
    headers: Headers
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text, in the encoding that `content-type` names, or UTF-8."""
        kind = str(self.headers.get("content-type", ""))
        name = kind.partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8"
        try:
            return self.body.decode(name, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return _json.loads(self.body)


@dataclass(frozen=True)
class Request:
    """A request whose URL and arguments were validated."""

    method: str
    https: bool
    host: str
    authority: str
    path: str
    headers: list[tuple[str, bytes]]
    body: bytes
    timeout: float
    max_body: int


send: Callable[[Request], Response] | None = None
"""Sends a request: set by `_wasm` in a component that imports HTTP."""


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    body: str | bytes | None = None,
    timeout: float = TIMEOUT,
    max_body: int = MAX_BODY,
) -> Response:
    """Sends a request and returns its response, whatever its status. Raises `FetchError` if there is no response.

    A request is sent only if the operator's rules allow it; a rule may add a secret that the plugin never sees. Redirects
    are not followed: call `fetch` again to follow one, so that the rules apply to each hop.
    """
    request = prepare(url, method, headers, json, body, timeout, max_body)
    if send is None:
        raise FetchError("`fetch` works only in a plugin that was built with HTTP: write `fetch` in it, or build with --http.")
    return send(request)


def prepare(
    url: str,
    method: str,
    headers: Mapping[str, str] | None,
    json: Any,
    body: str | bytes | None,
    timeout: float,
    max_body: int,
) -> Request:
    if json is not None and body is not None:
        raise TypeError("a request has `json` or `body`, not both")
    given = {name.lower(): str(value) for name, value in (headers or {}).items()}
    if json is not None:
        body = _json.dumps(to_json(json, "`json`"), allow_nan=False)
        given.setdefault("content-type", "application/json")
    data = body.encode() if isinstance(body, str) else body or b""
    if data:
        given["content-length"] = str(len(data))
    rule = "it must begin with http:// or https://, name a host and no user or password, and be percent-encoded"
    try:
        parts = urlsplit(url)
        # A password in a URL would end up in logs and in messages to the model.
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc
    except ValueError:
        wrong = True
    if wrong or not url.isascii() or any(one <= " " for one in url):
        raise FetchError(f"{url} cannot be requested: {rule}.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    pairs = [(name, value.encode()) for name, value in given.items()]
    https, host = parts.scheme == "https", parts.hostname or ""
    return Request(method.upper(), https, host, parts.netloc, path, pairs, data, timeout, max_body)
