"""What tools, resources and prompts return, beside text and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

More = Union[Mapping[str, Any], None]


@dataclass(frozen=True)
class Image:
    """A picture, as its bytes."""

    data: bytes
    mime_type: str = "image/png"


@dataclass(frozen=True)
class Audio:
    """A sound, as its bytes."""

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
    """A resource, or a piece of one, with its text or its bytes. In a tool's result it is embedded."""

    uri: str
    body: str | bytes
    mime_type: str | None = None
    more: More = None


@dataclass(frozen=True)
class Raw:
    """A content block of MCP as it stands: for annotations, or for kinds that this package does not know."""

    block: Mapping[str, Any]


Content = Union[str, Image, Audio, Link, Contents, Raw]
CONTENT = (str, Image, Audio, Link, Contents, Raw)


@dataclass(frozen=True)
class Result:
    """All of a tool's result, where a simpler value does not say enough. `more`: `_meta`."""

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
    """A line of the list of resources, for `@resource(…, list=…)`."""

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
