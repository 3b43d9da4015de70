"""`fetch`: requests over HTTP, for plugins that the operator lets out."""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ._errors import Failure

TIMEOUT = 20.0
"""Seconds for all of a request: less than a call may take by default, so that its failure can be told."""
MAX_BODY = 4 << 20
"""The most bytes that the body of an answer may have."""


class FetchError(Failure):
    """Why there is no answer, in a sentence for the model."""


class Headers(dict[str, str]):
    """Headers by name, however it is written. What came more than once is joined by commas."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__()
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
    """An answer, of any status."""

    status: int
    headers: Headers
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text, in the encoding that it says, or UTF-8."""
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
    """A request that was looked at: what is wrong with it is told before anything is sent."""

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
    """Sends a request and waits for its answer, whatever its status. Raises `FetchError` if there is none.

    Every request is put to the operator's rules, which may add a secret that the plugin never sees. No redirect is followed:
    who follows one fetches again, so that each hop is judged.
    """
    request = prepare(url, method, headers, json, body, timeout, max_body)
    if send is None:
        raise FetchError("`fetch` works only in a plugin that was built with HTTP: name `fetch` in it, or build with --http.")
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
        body = _json.dumps(json, allow_nan=False)
        given.setdefault("content-type", "application/json")
    data = body.encode() if isinstance(body, str) else body or b""
    if data:
        given["content-length"] = str(len(data))
    rule = "it must begin with http:// or https://, name a host and no user or password, and be escaped"
    try:
        parts = urlsplit(url)
        # A password in a URL would end up in logs and in what a model reads.
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc
    except ValueError:
        wrong = True
    if wrong or not url.isascii() or any(one <= " " for one in url):
        raise FetchError(f"{url} cannot be requested: {rule}.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    pairs = [(name, value.encode()) for name, value in given.items()]
    https, host = parts.scheme == "https", parts.hostname or ""
    return Request(method.upper(), https, host, parts.netloc, path, pairs, data, timeout, max_body)
