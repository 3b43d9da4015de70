"""The types that tools, resources and prompts return, in addition to text and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

More = Union[Mapping[str, Any], None]


@dataclass(frozen=True)
class Image:
    """An image, by its bytes."""

    data: bytes
    mime_type: str = "image/png"


@dataclass(frozen=True)
class Audio:
    """Audio, by its bytes."""

    data: bytes
    mime_type: str = "audio/wav"


@dataclass(frozen=True)
class Link:
    """A pointer to a resource, which need not be listed. `more`: `title`, `description`, `size`, `annotations`, …"""

    uri: str
    name: str
    mime_type: str | None = None
    more: More = None


@dataclass(frozen=True)
class Contents:
    """One item of a resource's contents, with its text or its bytes. In a tool's result it is an embedded resource."""

    uri: str
    body: str | bytes
    mime_type: str | None = None
    more: More = None


@dataclass(frozen=True)
class Raw:
    """A complete content block of MCP, for annotations, or for kinds that this package does not support."""

    block: Mapping[str, Any]


Content = Union[str, Image, Audio, Link, Contents, Raw]
CONTENT = (str, Image, Audio, Link, Contents, Raw)


@dataclass(frozen=True)
class Result:
    """A complete result of a tool, if a simpler value is not enough. `more`: `_meta`."""

    content: Sequence[Content] = ()
    structured: Any = None
    is_error: bool = False
    more: More = None


@dataclass(frozen=True)
class Message:
    """A message of a prompt."""

    content: Content
    role: Literal["user", "assistant"] = "user"


@dataclass(frozen=True)
class Entry:
    """An entry in the list of resources, for `@resource(…, list=…)`."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    more: More = None


@dataclass(frozen=True)
class Completion:
    """Suggestions, best first; wharf passes on at most 100."""

    values: Sequence[str] = field(default_factory=list)
    total: int | None = None
    has_more: bool = False
