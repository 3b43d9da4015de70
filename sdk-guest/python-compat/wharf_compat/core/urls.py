"""`Url` and `MultiHostUrl`: URLs as the URL standard parses and prints them, as far as pydantic relies on it."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Any
from urllib.parse import parse_qsl, quote

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
SPECIAL = (*PORTS, "file")
_FORBIDDEN = set(' #/<>?@[\\]^|%"`{}')


class UrlProblem(ValueError):
    """Why a text is not a URL."""


def _host(text: str, special: bool) -> str:
    if text.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]" if text.endswith("]") else _wrong("invalid IPv6 address")
        except ValueError:
            _wrong("invalid IPv6 address")
    if not special:
        return quote(text, safe="!$&'()*+,;=-._~%:")
    host = text.lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            _wrong("invalid international domain name")
    if any(one in _FORBIDDEN or one <= " " for one in host):
        _wrong("invalid domain character" if "%" not in host else "invalid international domain name")
    if re.fullmatch(r"[\d.]+", host) and host.strip("."):
        parts = host.rstrip(".").split(".")
        if len(parts) > 4 or any(not part or int(part) > 255 for part in parts[:-1]) or int(parts[-1]) >= 256 ** (5 - len(parts)):
            _wrong("invalid IPv4 address")
        number = sum(int(part) << (24 - 8 * index) for index, part in enumerate(parts[:-1])) + int(parts[-1])
        return str(ipaddress.IPv4Address(number))
    return host


def _wrong(why: str) -> Any:
    raise UrlProblem(why)


def _dots(path: str) -> str:
    """Removes the segments `.` and `..`."""
    kept: list[str] = []
    segments = path.split("/")
    for index, one in enumerate(segments):
        last = index == len(segments) - 1
        if one == "..":
            if len(kept) > 1:
                kept.pop()
            if last:
                kept.append("")
        elif one == ".":
            if last:
                kept.append("")
        else:
            kept.append(one)
    return "/".join(kept)


class _Parts:
    """The parts of a URL."""

    def __init__(self, text: str, keep_empty_path: bool = False) -> None:
        text = re.sub(r"[\t\n\r]", "", text.strip("".join(map(chr, range(33)))))
        if not text:
            _wrong("input is empty")
        found = re.match(r"([A-Za-z][A-Za-z0-9+.\-]*):", text)
        if not found:
            _wrong("relative URL without a base")
        self.scheme = found[1].lower()
        special = self.special = self.scheme in SPECIAL
        rest = text[found.end() :]
        rest, hash_, fragment = rest.partition("#")
        self.fragment = quote(fragment, safe="!#$%&'()*+,/:;=?@[]~\\^{|}") if hash_ else None
        rest, mark, query = rest.partition("?")
        self.query = quote(query, safe="!$%&()*+,/:;=?@[]~\\^`{|}" + ("" if special else "'")) if mark else None
        if special:
            rest = rest.replace("\\", "/")
        self.authorities: list[tuple[str | None, str | None, str | None, int | None]] = []
        self.has_authority = rest.startswith("//") or (special and self.scheme != "file")
        if self.has_authority:
            rest = rest.lstrip("/") if special and self.scheme != "file" else rest[2:]
            authority, slash, path = rest.partition("/")
            path = slash + path
            for one in authority.split(","):
                self.authorities.append(self._authority(one))
        else:
            path = rest
        if path.startswith("/") or special:
            path = _dots(path)
        path = quote(path, safe="!$%&'()*+,/:;=@[]~\\^|")
        if special and not path and not keep_empty_path:
            path = "/"
        self.path = path

    def _authority(self, text: str) -> tuple[str | None, str | None, str | None, int | None]:
        user = password = None
        if "@" in text:
            login, _, text = text.rpartition("@")
            user, colon, password_ = login.partition(":")
            password = quote(password_, safe="!$%&'()*+,-._~") if colon else None
            user = quote(user, safe="!$%&'()*+,-._~")
        port: int | None = None
        found = re.fullmatch(r"(.*?|\[.*\])(?::([^:\]]*))?", text)
        host = found[1] if found else text
        if found and found[2]:
            if not found[2].isdigit() or int(found[2]) > 65535:
                _wrong("invalid port number")
            port = int(found[2])
            if PORTS.get(self.scheme) == port:
                port = None
        if not host:
            if self.special and self.scheme != "file":
                _wrong("empty host")
            return user, password, None, port
        return user, password, _host(host, self.special), port

    def text(self) -> str:
        told = f"{self.scheme}:"
        if self.has_authority:
            told += "//" + ",".join(_printed(*one) for one in self.authorities)
        told += self.path
        if self.query is not None:
            told += f"?{self.query}"
        return told if self.fragment is None else f"{told}#{self.fragment}"


def _printed(user: str | None, password: str | None, host: str | None, port: int | None) -> str:
    login = (user or "") + (f":{password}" if password else "")
    return (f"{login}@" if login else "") + (host or "") + (f":{port}" if port is not None else "")


def _unpunied(host: str | None) -> str | None:
    if host and "xn--" in host:
        try:
            return host.encode().decode("idna")
        except UnicodeError:
            return host
    return host


@functools.total_ordering
class _Base:
    def __init__(self, url: Any, *, preserve_empty_path: bool = False) -> None:
        self._parts = _Parts(str(url), preserve_empty_path)
        self._text = self._parts.text()

    @property
    def scheme(self) -> str:
        return self._parts.scheme

    @property
    def path(self) -> str | None:
        return self._parts.path or None

    @property
    def query(self) -> str | None:
        return self._parts.query

    @property
    def fragment(self) -> str | None:
        return self._parts.fragment

    def query_params(self) -> list[tuple[str, str]]:
        return parse_qsl(self._parts.query or "", keep_blank_values=True)

    def unicode_string(self) -> str:
        hosts = [(host, _unpunied(host)) for _, _, host, _ in self._parts.authorities]
        told = self._text
        for ascii_, told_ in hosts:
            if ascii_ and told_ and ascii_ != told_:
                told = told.replace(ascii_, told_, 1)
        return told

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.unicode_string()!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._text == other._text

    def __lt__(self, other: Any) -> bool:
        return self._text < other._text if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return type(self), (self._text,)


def _joined(scheme: str, authority: str, path: str | None, query: str | None, fragment: str | None) -> str:
    told = f"{scheme}://{authority}"
    if path is not None:
        told += f"/{path}"
    if query is not None:
        told += f"?{query}"
    return told if fragment is None else f"{told}#{fragment}"


def _login(username: str | None, password: str | None) -> str:
    if username is None and password is None:
        return ""
    user = quote(username or "", safe="!$&'()*+,;=-._~%")
    return user + (f":{quote(password, safe=_SAFE)}" if password is not None else "") + "@"


_SAFE = "!$&'()*+,;=-._~%"


class Url(_Base):
    """A URL with one host."""

    def __init__(self, url: Any, *, preserve_empty_path: bool = False) -> None:
        super().__init__(url, preserve_empty_path=preserve_empty_path)
        if len(self._parts.authorities) > 1:
            _wrong("invalid domain character" if self._parts.special else "invalid international domain name")

    @property
    def _one(self) -> tuple[str | None, str | None, str | None, int | None]:
        return self._parts.authorities[0] if self._parts.authorities else (None, None, None, None)

    @property
    def username(self) -> str | None:
        return self._one[0] or None

    @property
    def password(self) -> str | None:
        return self._one[1] or None

    @property
    def host(self) -> str | None:
        return self._one[2]

    def unicode_host(self) -> str | None:
        return _unpunied(self._one[2])

    @property
    def port(self) -> int | None:
        return self._one[3] if self._one[3] is not None else PORTS.get(self._parts.scheme)

    @classmethod
    def build(
        cls, *, scheme: str, username: str | None = None, password: str | None = None, host: str, port: int | None = None,
        path: str | None = None, query: str | None = None, fragment: str | None = None,
    ) -> Url:  # fmt: skip
        authority = _login(username, password) + host + (f":{port}" if port is not None else "")
        return cls(_joined(scheme, authority, path, query, fragment))


class MultiHostUrl(_Base):
    """A URL that may name several hosts, separated by commas."""

    def hosts(self) -> list[dict[str, Any]]:
        default = PORTS.get(self._parts.scheme)
        return [
            {"username": user or None, "password": password, "host": host, "port": default if port is None else port}
            for user, password, host, port in self._parts.authorities
        ]

    @classmethod
    def build(
        cls, *, scheme: str, hosts: list[dict[str, Any]] | None = None, username: str | None = None,
        password: str | None = None, host: str | None = None, port: int | None = None, path: str | None = None,
        query: str | None = None, fragment: str | None = None,
    ) -> MultiHostUrl:  # fmt: skip
        if hosts is not None:
            if any(one is not None for one in (host, username, password, port)):
                raise ValueError("expected one of `hosts` or singular values to be set.")
            authority = ",".join(
                _login(one.get("username"), one.get("password"))
                + (one.get("host") or "")
                + (f":{one['port']}" if one.get("port") is not None else "")
                for one in hosts
            )
        elif host is not None:
            authority = _login(username, password) + host + (f":{port}" if port is not None else "")
        else:
            raise ValueError("expected either `host` or `hosts` to be set")
        return cls(_joined(scheme, authority, path, query, fragment))
